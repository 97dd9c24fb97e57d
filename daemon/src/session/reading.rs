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
use crate::store::Key;
use crate::store::record::{SessionRecord, SteeringRecord, TaskRecord};

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
    let found = registry.deps().store.get::<TaskRecord>(&Key::task(&id)).map_err(|error| unavailable(&error))?;
    let visible = found.map(|record| record.task).filter(|task| registry.sees(uid, &task.session));
    visible.ok_or_else(|| {
        RpcError::new(ErrorKind::NotFound, format!("there is no task {id}")).hint("nanoctl tasks lists what there is")
    })
}

/// Returns a page of the sessions that `uid` may see, newest first.
pub fn sessions(registry: &Registry, uid: u32, params: &ListParams) -> Result<Sessions, RpcError> {
    let limit = page(params.limit)?;
    let before = params.after.as_ref().map(|after| Key::session(&SessionId(after.clone())));
    let ids = registry.deps().store.ids_backwards(&Key::all(b's'), before.as_ref()).map(SessionId);
    let found = ids.filter(|id| registry.sees(uid, id)).filter_map(|id| session(registry.deps(), &id).ok());
    let wanted = |session: &Session| params.state.is_none_or(|state| session.state == state);
    let (sessions, more) = cut(found.filter(wanted), limit);
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
    let found = ids.filter_map(|id| task(registry, uid, &id).ok());
    let (tasks, more) = cut(found.filter(|task| state.is_none_or(|state| task.state == state)), limit);
    let next = tasks.last().filter(|_| more).map(|last| last.id.0.clone());
    Ok(Tasks { tasks, next })
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
        let record = deps.store.get::<TaskRecord>(&Key::task(&TaskId(task))).map_err(failed)?;
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
    for id in deps.store.ids_backwards(&Key::all(b's'), None) {
        if let Ok(Some(record)) = deps.store.get::<SessionRecord>(&Key::session(&SessionId(id))) {
            *sessions.entry(record.session.state.to_string()).or_insert(0) += 1;
        }
    }
    for id in deps.store.ids_backwards(&Key::all(b't'), None) {
        if let Ok(Some(record)) = deps.store.get::<TaskRecord>(&Key::task(&TaskId(id))) {
            *tasks.entry(record.task.state.to_string()).or_insert(0) += 1;
        }
    }
    (sessions, tasks)
}
