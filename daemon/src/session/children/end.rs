//! What came of a child's task, in words for its parent.

use std::io::ErrorKind;

use nano_protocol::id::SessionId;
use nano_protocol::task::{Reason, Task, TaskState};

use crate::sandbox::output::Output;
use crate::session::deps::Deps;
use crate::store::record::{ChildRecord, TaskRecord};
use crate::store::{Key, StoreError};

/// The longest answer that is passed on whole.
const MOST: usize = 50 * 1024;

/// What came of a child's task.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct End {
    pub state: TaskState,
    /// The answer; none: it failed or was cancelled.
    pub answer: Option<String>,
    /// The same for who does not wait for it.
    pub told: String,
}

/// Returns the end of a child's task; none: it has not ended.
pub(super) fn of(deps: &Deps, child: &ChildRecord) -> Result<Option<End>, StoreError> {
    Ok(match deps.store.get::<TaskRecord>(&Key::task(&child.task)) {
        Ok(Some(record)) => end(&record.task),
        // The two were made together: somebody has deleted it since.
        Ok(None) => Some(lost(&child.session, TaskState::Cancelled, "was deleted before its result was heard")),
        Err(StoreError::Damaged(why)) => {
            tracing::error!(session = %child.session, why, "the result of a subagent session is lost");
            Some(lost(&child.session, TaskState::Failed, "failed: the record of its task is damaged"))
        }
        Err(error) => return Err(error),
    })
}

fn lost(session: &SessionId, state: TaskState, why: &str) -> End {
    End { state, answer: None, told: format!("Subagent session {session} {why}.") }
}

fn end(task: &Task) -> Option<End> {
    let Task { session, state, .. } = task;
    let said = task.result.as_deref().filter(|said| !said.trim().is_empty());
    let reason = task.reason.map_or("error", Reason::as_str);
    let why = task.error.as_ref().map(|error| format!(": {}", error.message)).unwrap_or_default();
    let so_far = said.map(|said| format!("\n\nIts last words were:\n\n{said}")).unwrap_or_default();
    let (answer, told) = match state {
        TaskState::Succeeded => {
            let answer = said.unwrap_or("(It ended without a word.)").to_owned();
            let told = format!("Subagent session {session} has done its work. Its answer:\n\n{answer}");
            (Some(answer), told)
        }
        TaskState::Failed => (None, format!("Subagent session {session} failed ({reason}){why}.{so_far}")),
        TaskState::Cancelled => (None, format!("The work of subagent session {session} was cancelled.{so_far}")),
        TaskState::Queued | TaskState::Running | TaskState::Interrupted => return None,
    };
    Some(End { state: *state, answer, told })
}

/// Returns as much of a text as a model should read; the whole is then in a file.
pub(super) async fn bounded(deps: &Deps, parent: &SessionId, child: &ChildRecord, text: String) -> String {
    if text.len() <= MOST {
        return text;
    }
    let path = deps.spill(parent).join(format!("{}.txt", child.task));
    let cut = tokio::task::spawn_blocking(move || {
        // Left by a daemon that died before this was recorded.
        if let Err(error) = std::fs::remove_file(&path)
            && error.kind() != ErrorKind::NotFound
        {
            tracing::warn!(%error, "an answer may not be kept whole");
        }
        let mut output = Output::new(path);
        output.push(text.as_bytes());
        output.render().0
    });
    cut.await.unwrap_or_else(|error| format!("(the answer is lost: {error})"))
}

#[cfg(test)]
mod tests;
