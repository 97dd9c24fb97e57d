//! Reading sessions and tasks as the store has them: no actor is woken for that.

use std::collections::BTreeMap;

use nano_protocol::MAX_CONTENT;
use nano_protocol::error::{ErrorKind, RpcError};
use nano_protocol::id::{SessionId, TaskId};
use nano_protocol::session::{ListParams, Messages, Queue, Session, Sessions, Waiting, WaitingKind};
use nano_protocol::task::{Task, TaskState, Tasks};

use super::deps::{Deps, unavailable};
use super::offered::seen;
use super::registry::Registry;
use crate::store::record::{SessionRecord, SteeringRecord, TaskRecord};
use crate::store::{Key, StoreError};

/// Rows of a list unless told.
const PAGE: usize = 200;
/// Rows of a list at most.
const MOST: usize = 1000;

/// Returns how many rows a list gives.
pub fn page(limit: Option<usize>) -> Result<usize, RpcError> {
    let limit = limit.unwrap_or(PAGE);
    let wrong = || RpcError::new(ErrorKind::InvalidParams, format!("limit is 1 to {MOST}"));
    (1..=MOST).contains(&limit).then_some(limit).ok_or_else(wrong)
}

/// Returns a session's record.
pub fn record(deps: &Deps, id: &SessionId) -> Result<SessionRecord, RpcError> {
    let found = deps.store.get(&Key::session(id)).map_err(|error| unavailable(&error))?;
    found.ok_or_else(|| RpcError::new(ErrorKind::NotFound, format!("there is no session {id}")))
}

/// Returns a session as clients see it: with what is known by now of the computer that it uses.
pub fn session(deps: &Deps, id: &SessionId) -> Result<Session, RpcError> {
    Ok(seen(deps, &record(deps, id)?).session)
}

/// Returns a session together with what is on its list.
pub fn with_todo(deps: &Deps, id: &SessionId) -> Result<Session, RpcError> {
    let todo = deps.store.get(&Key::todo(id)).map_err(|error| unavailable(&error))?.unwrap_or_default();
    Ok(Session { todo, ..session(deps, id)? })
}

/// Returns a task that `uid` may see.
pub fn task(registry: &Registry, uid: u32, id: &str) -> Result<Task, RpcError> {
    let id = TaskId(id.to_owned());
    seen_task(registry, uid, &id).map_err(|error| unavailable(&error))?.ok_or_else(|| {
        RpcError::new(ErrorKind::NotFound, format!("there is no task {id}")).hint("nanoctl tasks lists what there is")
    })
}

fn seen_task(registry: &Registry, uid: u32, id: &TaskId) -> Result<Option<Task>, StoreError> {
    let found = registry.deps().store.get::<TaskRecord>(&Key::task(id))?;
    Ok(found.map(|record| record.task).filter(|task| registry.sees(uid, &task.session)))
}

/// Returns a page of the sessions that `uid` may see, newest first.
pub fn sessions(registry: &Registry, uid: u32, params: &ListParams) -> Result<Sessions, RpcError> {
    let deps = registry.deps();
    let limit = page(params.limit)?;
    let before = params.after.as_ref().map(|after| Key::session(&SessionId(after.clone())));
    let ids = deps.store.ids_backwards(&Key::all(b's'), before.as_ref());
    let wanted = |session: &Session| params.state.is_none_or(|state| session.state == state);
    let row = |id: String| {
        let id = SessionId(id);
        let found = if registry.sees(uid, &id) { deps.store.get(&Key::session(&id))? } else { None };
        Ok(found.map(|record| seen(deps, &record).session).filter(wanted))
    };
    let (sessions, more) = rows(ids, row, limit)?;
    let next = sessions.last().filter(|_| more).map(|last| last.id.0.clone());
    Ok(Sessions { sessions, next })
}

/// Returns a page of the tasks that `uid` may see, of one session or of all, newest first.
pub fn tasks(
    registry: &Registry,
    uid: u32,
    session: Option<&SessionId>,
    state: Option<TaskState>,
    (limit, after): (Option<usize>, Option<String>),
) -> Result<Tasks, RpcError> {
    let limit = page(limit)?;
    let after = after.map(TaskId);
    let (prefix, before) = match session {
        Some(id) => (Key::below(b'u', &id.0), after.map(|after| Key::session_task(id, &after))),
        None => (Key::all(b't'), after.map(|after| Key::task(&after))),
    };
    let ids = registry.deps().store.ids_backwards(&prefix, before.as_ref());
    let wanted = |task: &Task| state.is_none_or(|state| task.state == state);
    let row = |id| Ok(seen_task(registry, uid, &TaskId(id))?.filter(wanted));
    let (tasks, more) = rows(ids, row, limit)?;
    let next = tasks.last().filter(|_| more).map(|last| last.id.0.clone());
    Ok(Tasks { tasks, next })
}

/// Takes at most `limit` of the rows with these ids, and tells whether there are more. One that is damaged is left out and
/// told in the log; where the store fails that is the answer: a shorter list would be a wrong one.
pub fn rows<T>(
    ids: impl Iterator<Item = Result<String, StoreError>>,
    row: impl Fn(String) -> Result<Option<T>, StoreError>,
    limit: usize,
) -> Result<(Vec<T>, bool), RpcError> {
    let found = ids.filter_map(|id| match id.and_then(&row) {
        Err(error @ StoreError::Damaged(_)) => {
            tracing::error!(%error, "it is left out of a list");
            None
        }
        row => row.transpose(),
    });
    let rows: Result<Vec<T>, _> = found.take(limit + 1).collect();
    Ok(cut(rows.map_err(|error| unavailable(&error))?.into_iter(), limit))
}

/// Takes at most `limit` and tells whether there are more.
pub fn cut<T>(rows: impl Iterator<Item = T>, limit: usize) -> (Vec<T>, bool) {
    let mut rows: Vec<T> = rows.take(limit + 1).collect();
    let more = rows.len() > limit;
    rows.truncate(limit);
    (rows, more)
}

/// Returns a page of a session's messages, oldest first.
pub fn messages(deps: &Deps, id: &SessionId, after: u64, limit: Option<usize>) -> Result<Messages, RpcError> {
    let limit = page(limit)?;
    let (messages, more) = deps.store.messages(id, after, limit).map_err(|error| unavailable(&error))?;
    let next_after_seq = messages.last().filter(|_| more).map(|last| last.seq);
    Ok(Messages { messages, next_after_seq })
}

/// Returns what waits in a session, in the order it will be taken.
pub fn queue(deps: &Deps, id: &SessionId) -> Result<Queue, RpcError> {
    let failed = |error| unavailable(&error);
    let steering: Vec<SteeringRecord> = deps.store.scan(&Key::below(b'w', &id.0), None, MAX_CONTENT).map_err(failed)?;
    let steering = steering.into_iter().map(|one| Waiting {
        id: one.id.0,
        kind: WaitingKind::Steering,
        delivery: Some(one.delivery),
        content: one.content,
        at: one.at,
    });
    let mut tasks = Vec::new();
    for task in deps.store.ids_backwards(&Key::below(b'o', &id.0), None) {
        let key = Key::task(&TaskId(task.map_err(failed)?));
        let record = deps.store.get::<TaskRecord>(&key).map_err(failed)?;
        tasks.extend(record.filter(|record| record.task.state == TaskState::Queued));
    }
    tasks.sort_by_key(|record| (record.queued_at, record.task.seq));
    let tasks = tasks.into_iter().map(|record| record.task).map(|task| Waiting {
        id: task.id.0,
        kind: WaitingKind::Task,
        delivery: None,
        content: task.content,
        at: task.created_at,
    });
    Ok(Queue { waiting: steering.chain(tasks).collect() })
}

/// How many of something are in each state.
pub type Counts = BTreeMap<String, u64>;

/// Returns how many sessions, and how many tasks, are in each state.
pub fn counts(deps: &Deps) -> (Counts, Counts) {
    let (mut sessions, mut tasks) = (Counts::new(), Counts::new());
    // Record by record: a long look must not keep the writer waiting.
    for id in deps.store.ids_backwards(&Key::all(b's'), None).map_while(Result::ok) {
        if let Ok(Some(record)) = deps.store.get::<SessionRecord>(&Key::session(&SessionId(id))) {
            *sessions.entry(record.session.state.to_string()).or_insert(0) += 1;
        }
    }
    for id in deps.store.ids_backwards(&Key::all(b't'), None).map_while(Result::ok) {
        if let Ok(Some(record)) = deps.store.get::<TaskRecord>(&Key::task(&TaskId(id))) {
            *tasks.entry(record.task.state.to_string()).or_insert(0) += 1;
        }
    }
    (sessions, tasks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_whole_or_an_error() {
        let damaged = |id: &str| StoreError::Damaged(id.to_owned());
        let failed = |id: &str| StoreError::Failed(id.to_owned());
        // What each id gives: a row, nothing, a record that is damaged, a store that fails; `*` where the list itself fails.
        let page = |ids: &str, limit: usize| {
            let ids = ids.chars().map(|id| if id == '*' { Err(failed("*")) } else { Ok(id.to_string()) });
            let row = |id: String| match id.as_str() {
                "-" => Ok(None),
                "d" => Err(damaged(&id)),
                "f" => Err(failed(&id)),
                _ => Ok(Some(id)),
            };
            rows(ids, row, limit).map(|(rows, more)| (rows.concat(), more)).map_err(|error| error.data.kind)
        };
        let whole = |rows: &str, more| Ok((rows.to_owned(), more));
        for (ids, limit, expected) in [
            ("", 2, whole("", false)),
            ("ab", 2, whole("ab", false)),
            ("abc", 2, whole("ab", true)),
            ("a--b-c", 2, whole("ab", true)),
            ("ab--", 2, whole("ab", false)),
            ("adb", 2, whole("ab", false)),
            ("abd", 2, whole("ab", false)),
            ("af", 2, Err(ErrorKind::Unavailable)),
            ("abf", 2, Err(ErrorKind::Unavailable)),
            ("abcf", 2, whole("ab", true)),
            ("a*", 2, Err(ErrorKind::Unavailable)),
            ("*", 2, Err(ErrorKind::Unavailable)),
        ] {
            assert_eq!(page(ids, limit), expected, "{ids}");
        }
    }
}
