//! A computer that is gone: the call that found it so is made once more, and the model is told.

use nano_protocol::message::{Message, Role};
use tokio_util::sync::CancellationToken;

use crate::sandbox::SandboxError;
use crate::session::actor::Actor;
use crate::store::{Change, StoreError};
use crate::tools::{ToolFault, ToolOutcome};

impl Actor {
    /// Has a call made once more whose computer was gone, unless it is to end; returns any other outcome.
    pub(in crate::session) fn unless_lost(
        &mut self,
        at: usize,
        outcome: Result<ToolOutcome, ToolFault>,
    ) -> Option<Result<ToolOutcome, ToolFault>> {
        let running = self.open.get_mut(at).filter(|open| open.stop.is_some());
        let (Err(ToolFault::Sandbox(SandboxError::Lost { .. })), Some(open)) = (&outcome, running) else {
            return Some(outcome);
        };
        let going_down = self.deps.shutdown.stopping().is_cancelled();
        if going_down || open.stop.as_ref().is_some_and(CancellationToken::is_cancelled) {
            return Some(Ok(ToolOutcome::Stopped("Stopped; the computer was gone before it began.".into())));
        }
        if std::mem::replace(&mut open.again, true) {
            return Some(outcome);
        }
        self.boot.sandbox = None;
        self.boot.waiting.push(at);
        self.start_boot();
        None
    }

    /// Tells the model that the computer is another one, in one step with the record that it knows.
    pub(in crate::session) async fn tell_loss(&mut self) -> Result<(), StoreError> {
        let Some(why) = self.boot.lost.take() else { return Ok(()) };
        let text =
            format!("The sandbox of before is gone ({why}). There is a new one; files and variables may be gone.");
        let mut changes = Vec::new();
        let source = |message: &mut Message| message.source = Some("sandbox".into());
        self.add_message(Role::Steering, text, source, &mut changes);
        self.record.computer.clone_from(&self.boot.key);
        changes.push(Change::session(&self.record));
        self.commit(changes).await.map(|_| ())
    }
}
