//! Reading and ending background processes, for clients and tools.

use nano_protocol::error::{ErrorKind, RpcError};
use nano_protocol::id::{ProcessId, SessionId};
use nano_protocol::process::{Process, ProcessLog, ProcessState, Processes};

use super::log::{Page, Part, Printed};
use crate::session::deps::{Deps, unavailable};
use crate::session::reading::{page as most, rows};
use crate::session::registry::Registry;
use crate::store::record::process::ProcessRecord;
use crate::store::{Key, StoreError};

/// Returns the record of one.
pub(super) fn record(deps: &Deps, id: &ProcessId) -> Result<Option<ProcessRecord>, StoreError> {
    deps.store.get(&Key::process(id))
}

/// Returns those of a session, newest first.
pub(super) fn of_session(deps: &Deps, session: &SessionId) -> Result<Vec<ProcessRecord>, StoreError> {
    let ids = deps.store.ids_backwards(&Key::below(b'l', &session.0), None);
    ids.filter_map(|id| id.and_then(|id| record(deps, &ProcessId(id))).transpose()).collect()
}

/// Returns one that `uid` may see.
pub async fn process(registry: &Registry, uid: u32, id: &str) -> Result<Process, RpcError> {
    registry.is_counted().await?;
    visible(registry, uid, id)
}

fn visible(registry: &Registry, uid: u32, id: &str) -> Result<Process, RpcError> {
    let found = seen(registry, uid, &ProcessId(id.to_owned())).map_err(|error| unavailable(&error))?;
    found.ok_or_else(|| {
        RpcError::new(ErrorKind::NotFound, format!("there is no background process {id}"))
            .hint("process.list lists what there is")
    })
}

fn seen(registry: &Registry, uid: u32, id: &ProcessId) -> Result<Option<Process>, StoreError> {
    let found = record(registry.deps(), id)?;
    Ok(found.map(|record| record.process).filter(|process| registry.sees(uid, &process.session)))
}

/// Returns a page of those that `uid` may see, of one session or of all, newest first. Before the start is on record it
/// waits for that: what is lost must not seem to run.
pub async fn list(
    registry: &Registry,
    uid: u32,
    session: Option<&SessionId>,
    state: Option<ProcessState>,
    (limit, after): (Option<usize>, Option<String>),
) -> Result<Processes, RpcError> {
    registry.is_counted().await?;
    let limit = most(limit)?;
    let after = after.map(ProcessId);
    let (prefix, before) = match session {
        Some(id) => (Key::below(b'l', &id.0), after.map(|after| Key::session_process(id, &after))),
        None => (Key::all(b'j'), after.map(|after| Key::process(&after))),
    };
    let ids = registry.deps().store.ids_backwards(&prefix, before.as_ref());
    let wanted = |process: &Process| state.is_none_or(|state| process.state == state);
    let (processes, more) = rows(ids, |id| Ok(seen(registry, uid, &ProcessId(id))?.filter(wanted)), limit)?;
    let next = processes.last().filter(|_| more).map(|last| last.id.0.clone());
    Ok(Processes { processes, next })
}

/// Returns a piece of what one has printed, and how it was then.
pub(super) fn page(deps: &Deps, id: &ProcessId, part: Part) -> Result<(Process, Page), RpcError> {
    // In this order: the end of one that runs no more is on record before it is forgotten.
    let live = deps.processes.get(id);
    let found = record(deps, id).map_err(|error| unavailable(&error))?;
    let gone = || RpcError::new(ErrorKind::NotFound, format!("there is no background process {id}"));
    let ProcessRecord { process, bytes, tail } = found.ok_or_else(gone)?;
    let printed = match live.filter(|_| process.state == ProcessState::Running) {
        Some(live) => live.printed(&process.output),
        None => Printed {
            file: process.output.clone().into(),
            bytes,
            head: Vec::new(),
            tail: tail.into_bytes(),
            is_over: true,
        },
    };
    Ok((process, printed.page(part)))
}

/// Returns a piece of what one has printed.
pub async fn log(registry: &Registry, process: &Process, part: Part) -> Result<ProcessLog, RpcError> {
    let (registry, id) = (registry.clone(), process.id.clone());
    let read = tokio::task::spawn_blocking(move || page(registry.deps(), &id, part)).await;
    let (process, page) = read.map_err(|why| RpcError::new(ErrorKind::Internal, why.to_string()))??;
    let Page { text, from, next, bytes } = page;
    Ok(ProcessLog { process, content: text, offset: from, next_offset: next, bytes })
}

/// Ends one with all that it has started, and returns it as it is then.
pub async fn kill(registry: &Registry, uid: u32, found: &Process) -> Result<Process, RpcError> {
    let live = registry.deps().processes.get(&found.id).filter(|_| found.state == ProcessState::Running);
    let Some(live) = live else {
        return Err(RpcError::new(ErrorKind::NotRunning, format!("{} has ended already", found.id)));
    };
    if !live.end().await {
        let message = format!("{} was told to end and has not yet", found.id);
        return Err(RpcError::new(ErrorKind::Unavailable, message).hint("process.list shows whether it has ended"));
    }
    visible(registry, uid, &found.id.0)
}
