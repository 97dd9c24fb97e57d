//! Where a session stands: what the daemon died in, in words for a person.

use nano_protocol::id::{SessionId, TaskId};
use nano_protocol::message::Message;
use nano_protocol::task::TaskError;

use crate::session::deps::Deps;
use crate::store::record::call::CallRecord;
use crate::store::{Key, StoreError};

/// Where a session stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Step {
    /// The number of its newest message.
    pub number: u64,
    /// What was being done.
    pub told: String,
}

/// Looks where a session stands; a record that cannot be read says nothing.
pub fn step(deps: &Deps, session: &SessionId) -> Result<Step, StoreError> {
    let newest = readable(deps.store.scan_backwards::<Message>(&Key::below(b'm', &session.0), None, 1))?.pop();
    let calls: Vec<CallRecord> = deps.store.readable(&Key::below(b'c', &session.0))?;
    let reply = newest.as_ref().map(|newest| newest.tool_calls.as_slice()).unwrap_or_default();
    let running: Vec<String> = calls
        .iter()
        .filter(|call| call.result.is_none())
        .map(|call| match reply.iter().find(|made| made.id == call.id) {
            Some(made) => format!("the call {} of {}", call.id, made.name),
            None => format!("the call {}", call.id),
        })
        .collect();
    let doing = if running.is_empty() { "what follows it".to_owned() } else { running.join(" and ") };
    let number = newest.map_or(0, |newest| newest.seq);
    let told = if number == 0 { "its beginning".into() } else { format!("message {number} and {doing}") };
    Ok(Step { number, told })
}

fn readable<T>(found: Result<Vec<T>, StoreError>) -> Result<Vec<T>, StoreError> {
    match found {
        Err(StoreError::Damaged(_)) => Ok(Vec::new()),
        found => found,
    }
}

impl Step {
    /// Says why a task waits for a person.
    pub fn parks(&self, times: u32, task: &TaskId) -> TaskError {
        let at = &self.told;
        let message = format!(
            "the daemon, or the session in it, died {times} times while the task ran, the last time at {at}; it is not \
             taken up again by itself: nanoctl resume {task} does that, nanoctl cancel {task} ends it"
        );
        TaskError { kind: "restart".into(), message }
    }
}
