//! What a session takes, and what it makes of it. Pure: the caller brings the time and the ids.

use std::sync::Arc;

use nano_protocol::error::{ErrorKind, RpcError};
use nano_protocol::event::{Data, Event, EventType};
use nano_protocol::id::{MessageId, TaskId};
use nano_protocol::session::{Delivery, Session, SessionState, Steered};
use nano_protocol::task::{Limits, Origin, Task, TaskState, Usage};
use nano_protocol::time::Timestamp;
use nano_protocol::{MAX_CONTENT, Object};
use serde_json::json;

use super::task::Queued;
use crate::config::AgentConfig;
use crate::store::record::{KeyRecord, MadeBy, SteeringRecord, TaskRecord};
use crate::store::{Change, Key};

/// How many tasks, and how many steering messages, may wait in one session.
pub const MAX_WAITING: usize = 256;

/// A caller's idempotency key, to be recorded with what it brings about.
#[derive(Debug, Clone)]
pub struct Keyed {
    /// Where it lies.
    pub key: Key,
    /// What the caller's parameters hash to.
    pub params: String,
}

impl Keyed {
    /// Returns the change that ties the key to its answer.
    pub fn record(&self, answer: Data, at: Timestamp) -> Change {
        Change::put(self.key.clone(), &KeyRecord { params: self.params.clone(), answer, at })
    }
}

/// A task to take.
#[derive(Debug, Clone)]
pub struct Submission {
    /// Its id.
    pub id: TaskId,
    /// Where it comes from.
    pub origin: Origin,
    /// The same in words, with an id, unless it is the caller's own.
    pub source: Option<String>,
    /// What to do.
    pub content: String,
    /// The sender's own data.
    pub metadata: Object,
    /// Bounds beside the agent's.
    pub limits: Limits,
    /// The caller's key.
    pub keyed: Option<Keyed>,
    /// What must be recorded together with it, such as a follow-up's slot.
    pub with: Vec<Change>,
    /// The follow-up that makes it, or the task it is delegated by.
    pub made_by: Option<MadeBy>,
    /// How many results of delegated work stand in a chain behind it.
    pub rounds: u32,
}

/// A steering message to take.
#[derive(Debug, Clone)]
pub struct SteerRequest {
    /// Its id.
    pub id: MessageId,
    /// Its text.
    pub content: String,
    /// When it takes effect.
    pub delivery: Delivery,
    /// Where it comes from, if not from a client.
    pub source: Option<String>,
    /// The sender's own data.
    pub metadata: Option<Object>,
    /// The caller's key.
    pub keyed: Option<Keyed>,
    /// What must be recorded together with it, such as the place in a steering file.
    pub with: Vec<Change>,
}

impl SteerRequest {
    /// Turns it into a message that waits, and what is recorded with it.
    pub fn into_record(self, place: u64, answer: &Steered, at: Timestamp) -> (SteeringRecord, Vec<Change>) {
        let Self { id, content, delivery, source, metadata, keyed, mut with } = self;
        with.extend(keyed.map(|keyed| keyed.record(json!(answer), at)));
        (SteeringRecord { id, place, delivery, content, source, metadata, at }, with)
    }

    /// Turns it into a task, for a session with nothing to steer.
    pub fn into_submission(self, id: TaskId, answer: &Steered, at: Timestamp) -> Submission {
        let mut with = self.with;
        with.extend(self.keyed.map(|keyed| keyed.record(json!(answer), at)));
        let (content, source, metadata) = (self.content, self.source, self.metadata.unwrap_or_default());
        Submission {
            id,
            origin: Origin::Steering,
            source,
            content,
            metadata,
            limits: Limits::default(),
            keyed: None,
            with,
            made_by: None,
            rounds: 0,
        }
    }
}

/// Refuses content that is empty or too long.
pub fn content_fits(content: &str) -> Result<(), RpcError> {
    if content.trim().is_empty() {
        return Err(RpcError::new(ErrorKind::InvalidParams, "the content is empty").hint("say what is to be done"));
    }
    if content.len() <= MAX_CONTENT {
        return Ok(());
    }
    let message = format!("the content has {} bytes; at most {MAX_CONTENT} are taken", content.len());
    Err(RpcError::new(ErrorKind::TooLarge, message).hint("put it into a file of the workspace and name the file"))
}

fn open(session: &Session) -> Result<(), RpcError> {
    if session.state != SessionState::Closed {
        return Ok(());
    }
    Err(RpcError::new(ErrorKind::Conflict, format!("session {} is closed", session.id)).hint("use an open session"))
}

fn room(waiting: usize, what: &str) -> Result<(), RpcError> {
    if waiting < MAX_WAITING {
        return Ok(());
    }
    let message = format!("{waiting} {what} wait in this session already");
    Err(RpcError::new(ErrorKind::Limit, message).hint("wait for some to be done, or withdraw some"))
}

/// Refuses bounds that no task could keep.
pub fn limits_make_sense(limits: &Limits) -> Result<(), RpcError> {
    let cost = limits.cost.is_some_and(|cost| !cost.is_finite() || cost <= 0.0);
    for (name, wrong) in [
        ("max_turns", limits.max_turns == Some(0)),
        ("timeout_ms", limits.timeout_ms == Some(0)),
        ("tokens", limits.tokens == Some(0)),
        ("cost", cost),
    ] {
        if wrong {
            return Err(RpcError::new(ErrorKind::InvalidParams, format!("limits.{name} must be more than 0")));
        }
    }
    Ok(())
}

/// Tells whether the session takes another task.
pub fn may_queue(session: &Session, waiting: usize) -> Result<(), RpcError> {
    open(session)?;
    room(waiting, "tasks")
}

/// Tells whether the session takes another steering message.
pub fn may_steer(session: &Session, agent: &AgentConfig, waiting: usize) -> Result<(), RpcError> {
    open(session)?;
    if !agent.enable_steering {
        let message = format!("agent {} does not allow steering (enable_steering = false)", session.agent);
        return Err(RpcError::new(ErrorKind::Denied, message));
    }
    room(waiting, "steering messages")
}

/// Tells whether the task can be taken up again.
pub fn may_resume(session: &Session, task: &Task) -> Result<(), RpcError> {
    open(session)?;
    if matches!(task.state, TaskState::Interrupted | TaskState::Failed) {
        return Ok(());
    }
    let message = format!("task {} is {}; only interrupted and failed tasks are resumed", task.id, task.state);
    Err(RpcError::new(ErrorKind::NotRunning, message))
}

/// Makes the record of a new task, and what is recorded with it.
pub fn task_record(submission: Submission, session: &Session, now: Timestamp) -> (TaskRecord, Vec<Change>) {
    let Submission { id, origin, source, content, metadata, limits, keyed, mut with, made_by, rounds } = submission;
    with.extend(keyed.map(|keyed| keyed.record(json!(id), now)));
    let task = Task {
        id,
        seq: 0,
        session: session.id.clone(),
        origin,
        content,
        state: TaskState::Queued,
        reason: None,
        result: None,
        error: None,
        usage: Usage::default(),
        turns: 0,
        metadata,
        created_at: now,
        started_at: None,
        finished_at: None,
        replayed: false,
    };
    let record = TaskRecord {
        task,
        limits,
        source,
        restarts: 0,
        suspended: false,
        cuts: 0,
        turns_before: 0,
        seen_before: 0,
        queued_at: now,
        made_by,
        rounds,
    };
    (record, with)
}

/// Returns the number that a commit gave its task: that of the `task.queued` event.
pub fn queued_number(receipt: &[Arc<Event>]) -> u64 {
    let queued = receipt.iter().find(|event| event.kind == EventType::TaskQueued);
    queued.and_then(|event| event.seq).unwrap_or_default()
}

/// Returns what the machine needs to know of a task that never ran.
pub fn queued(record: &TaskRecord, agent: &AgentConfig) -> Queued {
    Queued::fresh(record.task.id.clone(), max_turns(record, agent))
}

/// Makes an ended or interrupted task ready to run again with all its turns, and returns it for the machine; `newest` is
/// the number of the session's newest message.
pub fn requeue(record: &mut TaskRecord, agent: &AgentConfig, newest: u64, now: Timestamp) -> Queued {
    let task = &mut record.task;
    let held = task.state == TaskState::Interrupted;
    (task.state, task.reason, task.error, task.finished_at) = (TaskState::Queued, None, None, None);
    task.result = None;
    // An interrupted one goes on before all that waits for it.
    let queued_at = if held { Timestamp(0) } else { now };
    (record.turns_before, record.seen_before, record.queued_at) = (task.turns, newest, queued_at);
    (record.cuts, record.restarts, record.suspended) = (0, 0, false);
    // A task that was never started has no first message yet.
    let resumed = task.started_at.is_some();
    let max_turns = max_turns(record, agent);
    Queued { resumed, ..Queued::fresh(record.task.id.clone(), max_turns) }
}

fn max_turns(record: &TaskRecord, agent: &AgentConfig) -> u32 {
    record.limits.max_turns.unwrap_or(agent.max_turns)
}

/// Tells whether a task has used all the tokens or money it may.
pub fn over_budget(record: &TaskRecord, agent: &AgentConfig) -> bool {
    let used = &record.task.usage;
    let tokens = used.input_tokens.saturating_add(used.output_tokens);
    let cost = record.limits.cost.or(agent.budget);
    record.limits.tokens.is_some_and(|most| tokens >= most)
        || cost.is_some_and(|most| used.cost.is_some_and(|cost| cost >= most))
}

#[cfg(test)]
mod tests;
