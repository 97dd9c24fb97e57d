//! Calls that are not to run, or wait for a person: kept back before their start is on record, so that what waits when
//! the daemon dies has not begun. A call waits as one of the running ones; it ends by an answer, by its time, or
//! because its task wants no further call.

mod answer;
mod bound;
pub mod list;

use nano_protocol::approval::{Approval, ApprovalState};
use nano_protocol::event::EventType;
use nano_protocol::id::ApprovalId;
use nano_protocol::message::{NotRun, ToolCall};
use nano_protocol::time::Timestamp;
use serde_json::json;
use tokio::time::{Duration, Instant};

use super::actor::Actor;
use super::deps::Deps;
use super::task::Input;
use super::transcript;
use crate::policy::{Level, Policy, Verdict};
use crate::store::record::call::CallResult;
use crate::store::record::{Draft, SessionRecord};
use crate::store::{Change, Key, StoreError};

pub use answer::Answer;

/// The wall clock may be set: it is looked at so often while a call waits.
const LOOK: Duration = Duration::from_secs(10);
/// How long advice waits at most where nobody is there to hear it.
const UNHEARD: Duration = Duration::from_secs(5);

/// Whether a call may start.
#[derive(Default)]
pub(super) enum Gate {
    /// It was not looked at yet, or needs no person.
    #[default]
    Open,
    /// A person is asked.
    Waits(Box<Approval>),
    /// It must not start; what the model reads.
    Denied(String),
    /// A person has allowed it.
    Passed(Box<Approval>),
}

/// Why a call that was kept back does not start.
enum End {
    Denied(String),
    Halted(NotRun),
    Expired,
}

impl Gate {
    /// Tells whether it keeps the call back.
    pub fn holds(&self) -> bool {
        matches!(self, Self::Waits(_) | Self::Denied(_))
    }

    /// Returns the folder that a person saw.
    pub fn place(&self) -> Option<(u64, u64)> {
        let Self::Passed(approval) = self else { return None };
        approval.cwd.as_ref().map(|place| (place.device, place.inode))
    }

    fn end(&self, halted: Option<NotRun>, now: Timestamp) -> Option<End> {
        match (self, halted) {
            (Self::Waits(_) | Self::Denied(_), Some(why)) => Some(End::Halted(why)),
            (Self::Denied(text), None) => Some(End::Denied(text.clone())),
            (Self::Waits(approval), None) if now >= approval.expires_at => Some(End::Expired),
            _ => None,
        }
    }
}

/// Returns the policies that a session is under: its own and those above it, each with what was allowed for good.
fn policies(deps: &Deps, record: &SessionRecord) -> Vec<Policy> {
    let own = deps.agent(&record.session.agent).approve;
    let all = std::iter::once(&own).chain(&record.policies);
    // A rule that this version cannot read may forbid anything.
    let blind = || Policy::parse(&["*: ask".into()]).unwrap_or_default();
    all.map(|rules| Policy::parse(&[rules.as_slice(), &record.session.always].concat()).unwrap_or_else(|_| blind()))
        .collect()
}

/// Ends an approval that nobody answered.
pub(super) fn ended(approval: &Approval, now: Timestamp, reason: &str) -> [Change; 2] {
    let (state, reason) = (ApprovalState::Expired, Some(reason.to_owned()));
    recorded(&Approval { state, reason, answered_at: Some(now), ..approval.clone() }, EventType::ApprovalAnswered)
}

/// Records an approval and tells of it.
fn recorded(approval: &Approval, kind: EventType) -> [Change; 2] {
    let (session, task) = (approval.session.clone(), approval.task.clone());
    let put = Change::put(Key::approval(&session, &approval.id), approval);
    let data = json!({ "approval": approval });
    [put, Change::Event(Draft { session: Some(session), task: Some(task), kind, data })]
}

impl Actor {
    /// Keeps a call back that is not to run, or not before a person has been asked.
    pub(super) fn keeps_back(&mut self, at: usize, changes: &mut Vec<Change>) -> bool {
        let toolset = self.offered();
        let Some(open) = self.open.get(at) else { return false };
        let (call, record) = (open.call.clone(), open.record.clone());
        let is_run = toolset.get(&call.name).is_some() && call.arguments_raw.is_none();
        if matches!(open.gate, Gate::Passed(_)) || !is_run {
            return false;
        }
        let again = record.starts > 0 && record.approval.is_some();
        let verdict = self.verdict(&call, again);
        let gate = match verdict.level {
            Level::Allow => Gate::Open,
            Level::Deny => Gate::Denied(denied(&verdict.why)),
            Level::Ask => Gate::Waits(Box::new(self.asked(&call, &verdict))),
        };
        let Some(open) = self.open.get_mut(at) else { return false };
        open.verdict = Some(verdict);
        if let Gate::Waits(approval) = &gate {
            open.record.approval = Some(approval.id.clone());
            changes.push(Change::put(Key::call(&self.record.session.id, at), &open.record));
            changes.extend(recorded(approval, EventType::ApprovalRequested));
        }
        open.gate = gate;
        open.gate.holds()
    }

    fn verdict(&mut self, call: &ToolCall, again: bool) -> Verdict {
        let verdict = self.bound(call).judged(&policies(&self.deps, &self.record), call);
        if !again || verdict.level == Level::Deny {
            return verdict;
        }
        let why = "it was allowed, and the daemon died while it ran: whether it did its work is unknown";
        Verdict::new(Level::Ask, why)
    }

    fn asked(&mut self, call: &ToolCall, verdict: &Verdict) -> Approval {
        let (bound, now) = (self.bound(call), self.deps.clock.now());
        let (session, task) = (self.record.session.id.clone(), self.turn_task.clone());
        let task = task.unwrap_or_else(|| nano_protocol::id::TaskId(String::new()));
        let wait = self.agent().approve_timeout;
        let is_heard = !verdict.is_advice || self.deps.events.may_be_answered(&session, &task);
        Approval {
            id: ApprovalId::from_ulid(&self.deps.clock.ulid()),
            session,
            task,
            call: call.id.clone(),
            tool: call.name.clone(),
            what: bound.what(call),
            leads_to: bound.leads_to(),
            arguments: bound::shortened(&call.arguments),
            arguments_sha256: bound.arguments_sha256,
            argv: bound.argv,
            cwd: bound.cwd,
            environment_sha256: bound.environment_sha256,
            why: verdict.why.clone(),
            state: ApprovalState::Pending,
            created_at: now,
            expires_at: later(now, if is_heard { wait } else { wait.min(UNHEARD) }),
            answered_by: None,
            answered_at: None,
            always: false,
            reason: None,
        }
    }

    /// Ends what waits no longer; returns when the rest is to be looked at again.
    pub(super) async fn attend_gates(&mut self) -> Result<Option<Instant>, StoreError> {
        // The next daemon has it wait on.
        if self.deps.shutdown.stopping().is_cancelled() {
            return Ok(None);
        }
        self.wait_longer().await?;
        loop {
            let (halted, now) = (self.machine.halted(), self.deps.clock.now());
            let ends = |(at, open): (usize, &super::actor::OpenCall)| Some((at, open.gate.end(halted, now)?));
            match self.open.iter().enumerate().find_map(ends) {
                Some((at, end)) => self.does_not_start(at, end).await?,
                None => break,
            }
        }
        let now = self.deps.clock.now();
        let left = self.open.iter().filter_map(|open| match &open.gate {
            Gate::Waits(approval) => Some(u64::try_from(approval.expires_at.0 - now.0).unwrap_or(0)),
            Gate::Open | Gate::Denied(_) | Gate::Passed(_) => None,
        });
        Ok(left.min().map(|ms| Instant::now() + Duration::from_millis(ms).min(LOOK)))
    }

    /// Has a question wait its full time that nobody was there to hear, and somebody is now.
    async fn wait_longer(&mut self) -> Result<(), StoreError> {
        let (now, wait) = (self.deps.clock.now(), self.agent().approve_timeout);
        let mut changes = Vec::new();
        for open in &mut self.open {
            let Gate::Waits(approval) = &mut open.gate else { continue };
            let until = later(approval.created_at, wait);
            let is_over = approval.expires_at <= now && now < until;
            if is_over && self.deps.events.may_be_answered(&approval.session, &approval.task) {
                approval.expires_at = until;
                changes.extend(recorded(approval, EventType::ApprovalRequested));
            }
        }
        if !changes.is_empty() {
            self.commit(changes).await?;
        }
        Ok(())
    }

    async fn does_not_start(&mut self, at: usize, end: End) -> Result<(), StoreError> {
        let Some(Gate::Waits(approval)) = self.open.get(at).map(|open| &open.gate) else {
            let (why, text) = match end {
                End::Halted(why) => (why, transcript::not_run_text(why)),
                End::Denied(text) => (NotRun::Denied, text),
                End::Expired => return Ok(()),
            };
            return self.is_kept_from(at, why, text, Vec::new()).await;
        };
        let now = self.deps.clock.now();
        let (why, text, reason) = match end {
            End::Halted(why) => (why, transcript::not_run_text(why), "its task did not wait any longer"),
            End::Denied(_) | End::Expired => {
                (NotRun::Denied, unanswered(approval, self.agent().approve_timeout), "nobody answered in time")
            }
        };
        let changes = ended(approval, now, reason).into();
        self.is_kept_from(at, why, text, changes).await
    }

    /// Gives a call its result that was kept back: it never started, or not again.
    async fn is_kept_from(
        &mut self,
        at: usize,
        why: NotRun,
        text: String,
        changes: Vec<Change>,
    ) -> Result<(), StoreError> {
        let Some(open) = self.open.get_mut(at) else { return Ok(()) };
        open.gate = Gate::Open;
        let ran = open.record.starts > 0;
        let content = if ran { format!("{} {text}", transcript::UNKNOWN) } else { text };
        let print = (why == NotRun::Denied).then(|| transcript::fingerprint(&open.call, &content));
        open.result =
            Some(CallResult { content, unknown: ran, not_run: (!ran).then_some(why), ..CallResult::default() });
        let effects = self.machine.on(Input::CallEnded(at, print));
        self.apply(effects, changes).await
    }
}

fn denied(why: &str) -> String {
    format!(
        "Not run: it is denied ({why}). Another way to the same end is denied too. Go on without it if you can, and say \
         at the end what was left undone."
    )
}

fn later(at: Timestamp, wait: Duration) -> Timestamp {
    at.plus_ms(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX))
}

fn unanswered(approval: &Approval, wait: Duration) -> String {
    let waited = Duration::from_millis(u64::try_from(approval.expires_at.0 - approval.created_at.0).unwrap_or(0));
    let nobody = if waited == UNHEARD && wait > UNHEARD {
        "nobody watches this session who could be asked".to_owned()
    } else {
        format!("nobody answered within {waited:?}")
    };
    format!(
        "Not run: a person has to allow it ({}), and {nobody}. Go on without it if you can, and \
         say at the end what was left undone: {}",
        approval.why, approval.what
    )
}
