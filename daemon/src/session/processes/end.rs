//! Ends, and what is recorded of them.

use std::time::Duration;

use nano_protocol::event::EventType;
use nano_protocol::id::{ProcessId, SessionId};
use nano_protocol::process::{Process, ProcessState};
use nano_protocol::task::{Task, TaskState};
use serde_json::json;

use super::live::Live;
use super::reading::{of_session, record};
use crate::crash;
use crate::sandbox::text::whole_lines_after;
use crate::session::actor::Actor;
use crate::session::children::poke;
use crate::session::deps::Deps;
use crate::session::registry::Registry;
use crate::store::record::Draft;
use crate::store::record::process::ProcessRecord;
use crate::store::{Change, Commit, Key, StoreError};

/// So much of the end of its output is kept in the record.
const TAIL: usize = 4 * 1024;

/// How long until an end that could not be recorded is tried again.
const AGAIN: Duration = Duration::from_secs(2);

/// How one ended.
#[derive(Debug, Default)]
pub(super) struct Ending {
    pub status: Option<i32>,
    pub signal: Option<String>,
    /// The limits that it came up against.
    pub limits: Vec<String>,
    /// Whether somebody wanted that.
    pub killed: bool,
}

/// Records the end of one, and has its session hear of it.
pub(super) async fn record_end(registry: &Registry, process: &Process, ending: &Ending, live: &Live) {
    let deps = registry.deps();
    // Deleted with its session, it is not to come back.
    if !matches!(record(deps, &process.id), Ok(Some(_))) {
        return;
    }
    let printed = live.printed(&process.output);
    let known = printed.last();
    let tail = known.get(known.len().saturating_sub(TAIL)..).unwrap_or_default();
    let tail = if (tail.len() as u64) < printed.bytes { whole_lines_after(tail) } else { tail };
    let state = if ending.killed { ProcessState::Killed } else { ProcessState::Exited };
    let process = Process {
        state,
        status: ending.status,
        signal: ending.signal.clone(),
        limits: ending.limits.clone(),
        ended_at: Some(deps.clock.now()),
        ..process.clone()
    };
    let (session, bytes) = (process.session.clone(), printed.bytes);
    let tail = String::from_utf8_lossy(tail).into_owned();
    let changes = ended(&ProcessRecord { process, bytes, tail });
    crash::point("process.end.before");
    // Until it is on record, or the next daemon finds it lost.
    while let Err(error) = deps.store.commit(Commit::owed(changes.clone())).await {
        drop(deps.store_failed(&error));
        tokio::select! {
            () = tokio::time::sleep(AGAIN) => {}
            () = deps.shutdown.cutting().cancelled() => return,
        }
    }
    crash::point("process.end.after");
    poke(registry, &session);
}

/// What is recorded of an end.
fn ended(record: &ProcessRecord) -> Vec<Change> {
    let Process { id, session, task, .. } = &record.process;
    let (key, untold) = (Key::process(id), Key::untold(session, id));
    let (session, task) = (Some(session.clone()), Some(task.clone()));
    let mut data = json!(record.process);
    // The names that the event has had from the beginning.
    (data["process"], data["code"]) = (json!(id), json!(record.process.status));
    let event = Draft { session, task, kind: EventType::ProcessExited, data };
    vec![Change::put(key, record), Change::put(untold, &1), Change::Event(event)]
}

/// Returns what is recorded, at a start, of those that ended with the daemon before.
pub fn lost(deps: &Deps) -> Result<Vec<Change>, StoreError> {
    let all: Vec<ProcessRecord> = deps.store.readable(&Key::all(b'j'))?;
    let running = all.into_iter().filter(|record| record.process.state == ProcessState::Running);
    let lost = running.flat_map(|mut record| {
        let process = &mut record.process;
        (process.state, process.ended_at) = (ProcessState::Lost, Some(deps.clock.now()));
        record.bytes = std::fs::metadata(&process.output).map_or(0, |meta| meta.len());
        ended(&record)
    });
    Ok(lost.collect())
}

/// Returns the removal of those of a session.
pub fn deleted(deps: &Deps, session: &SessionId) -> Result<Vec<Change>, StoreError> {
    let ids = deps.store.ids_backwards(&Key::below(b'l', &session.0), None);
    ids.map(|id| Ok(Change::Delete(Key::process(&ProcessId(id?))))).collect()
}

impl Actor {
    /// Ends what a task left running; one that was cancelled, also what it began in the background.
    pub(in crate::session) async fn end_processes(&self, task: &Task) {
        if let Some(sandbox) = self.boot.sandbox.clone() {
            let task = task.id.clone();
            self.patiently("end-task", async move { sandbox.end_task(&task).await }).await;
        }
        if task.state == TaskState::Cancelled
            && let Err(error) = self.end_background(|process| process.task == task.id).await
        {
            tracing::error!(%error, "what a task left in the background cannot be looked for");
        }
    }

    /// Ends background processes.
    pub(in crate::session) async fn end_background(&self, which: impl Fn(&Process) -> bool) -> Result<(), StoreError> {
        let all = of_session(&self.deps, &self.record.session.id)?;
        let live: Vec<_> = all
            .iter()
            .filter(|record| which(&record.process))
            .filter_map(|record| self.deps.processes.get(&record.process.id))
            .collect();
        if live.is_empty() {
            return Ok(());
        }
        self.patiently("end-background", async move {
            futures_util::future::join_all(live.iter().map(|live| live.end())).await;
        })
        .await;
        Ok(())
    }
}
