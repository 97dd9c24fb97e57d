//! A person's answer: the first one counts, and the call starts in the same step.

use nano_protocol::approval::{Approval, ApprovalState};
use nano_protocol::error::{ErrorKind, RpcError};
use nano_protocol::event::EventType;
use nano_protocol::id::ApprovalId;
use nano_protocol::message::NotRun;

use super::{Gate, recorded};
use crate::crash;
use crate::policy::Level;
use crate::session::actor::{Actor, Reply};
use crate::session::deps::unavailable;
use crate::store::{Change, Key, StoreError};

/// What a person says to an approval.
pub struct Answer {
    /// Which.
    pub approval: ApprovalId,
    /// The uid of who says it.
    pub by: u32,
    /// Whether the call may run.
    pub allow: bool,
    /// Whether the same call may run for the rest of the session.
    pub always: bool,
}

impl Answer {
    fn state(&self) -> ApprovalState {
        if self.allow { ApprovalState::Allowed } else { ApprovalState::Denied }
    }

    /// Answers what comes to an approval that has ended: the same answer again gets the same, another one is too late.
    pub fn came_late(&self, approval: Approval) -> Result<Approval, RpcError> {
        let is_same =
            (approval.answered_by, approval.state, approval.always) == (Some(self.by), self.state(), self.always);
        if is_same && approval.reason.is_none() {
            return Ok(approval);
        }
        let message = format!("approval {} is {} already", approval.id, approval.state);
        Err(RpcError::new(ErrorKind::Conflict, message).hint("nanoctl explain TASK tells what became of its call"))
    }
}

impl Actor {
    /// Takes an answer.
    pub(in crate::session) async fn take_answer(
        &mut self,
        answer: Answer,
        reply: Reply<Approval>,
    ) -> Result<(), StoreError> {
        let waits = |gate: &Gate| matches!(gate, Gate::Waits(approval) if approval.id == answer.approval);
        let at = self.open.iter().position(|open| waits(&open.gate));
        if self.deps.shutdown.stopping().is_cancelled() && at.is_some() {
            let why = RpcError::new(ErrorKind::ShuttingDown, "the daemon is going down; the call waits on after that");
            drop(reply.send(Err(why.hint("answer again later"))));
            return Ok(());
        }
        // Time may have run out since it was last looked.
        self.attend_gates().await?;
        let waiting = at.and_then(|at| self.open.get(at)).filter(|open| waits(&open.gate));
        let Some((at, Gate::Waits(approval))) = at.zip(waiting.map(|open| &open.gate)) else {
            let key = Key::approval(&self.record.session.id, &answer.approval);
            let found = self.deps.store.get::<Approval>(&key).map_err(|error| unavailable(&error));
            let gone = || RpcError::new(ErrorKind::NotFound, format!("there is no approval {}", answer.approval));
            let before = found.and_then(|found| answer.came_late(found.ok_or_else(gone)?));
            drop(reply.send(before));
            return Ok(());
        };
        let approval = Approval {
            state: answer.state(),
            answered_by: Some(answer.by),
            answered_at: Some(self.deps.clock.now()),
            always: answer.always,
            ..(**approval).clone()
        };
        if answer.allow { self.allowed(at, approval, reply).await } else { self.forbidden(at, approval, reply).await }
    }

    async fn allowed(&mut self, at: usize, approval: Approval, reply: Reply<Approval>) -> Result<(), StoreError> {
        let Some(call) = self.open.get(at).map(|open| open.call.clone()) else { return Ok(()) };
        if let Some(why) = self.has_changed(&approval, &call) {
            let text = format!("Not run: {why}. Make the call again if it is still right.");
            let (state, reason) = (ApprovalState::Denied, Some(why.clone()));
            let denied = Approval { state, reason, always: false, ..approval };
            self.is_kept_from(at, NotRun::Denied, text, recorded(&denied, EventType::ApprovalAnswered).into()).await?;
            let hint = "the model is told, and may make the call again";
            drop(reply.send(Err(RpcError::new(ErrorKind::Conflict, why).hint(hint))));
            return Ok(());
        }
        let mut changes: Vec<Change> = recorded(&approval, EventType::ApprovalAnswered).into();
        if approval.always {
            let rule = self.bound(&call).always(&call);
            self.record.session.always.push(rule);
            changes.push(Change::session(&self.record));
        }
        if let Some(open) = self.open.get_mut(at) {
            open.gate = Gate::Passed(Box::new(approval.clone()));
        }
        self.write_start(at, &mut changes);
        crash::point("approval.allow.before");
        self.commit(changes).await?;
        crash::point("approval.allow.after");
        drop(reply.send(Ok(approval)));
        self.start_call(at);
        Ok(())
    }

    async fn forbidden(&mut self, at: usize, approval: Approval, reply: Reply<Approval>) -> Result<(), StoreError> {
        let text = format!(
            "Not run: a person was asked ({}) and denied it. Another way to the same end is denied too. Go on without it if \
             you can, and say at the end what was left undone.",
            approval.why
        );
        crash::point("approval.deny.before");
        let changes = recorded(&approval, EventType::ApprovalAnswered).into();
        self.is_kept_from(at, NotRun::Denied, text, changes).await?;
        crash::point("approval.deny.after");
        drop(reply.send(Ok(approval)));
        Ok(())
    }

    /// Says why a call is not to start after all; looked at when all else is ready.
    pub(in crate::session) fn is_another(&mut self, at: usize) -> Option<String> {
        let open = self.open.get(at)?;
        let call = open.call.clone();
        let why = match &open.gate {
            Gate::Passed(approval) => {
                let approval = approval.clone();
                self.has_changed(&approval, &call)?
            }
            // It may have waited for the computer.
            _ => self.denies(&call, Level::Allow)?,
        };
        Some(format!("Not run: {why}. Make the call again if it is still right."))
    }
}
