//! Closing reaches the sessions below first; and a computer stays as long as one of them works on it.

use std::time::Duration;

use futures_util::future::join_all;
use nano_protocol::error::RpcError;
use nano_protocol::event::EventType;
use nano_protocol::id::{SessionId, TaskId};
use nano_protocol::session::{Session, SessionState};
use nano_protocol::task::{Reason, TaskState};
use serde_json::json;

use super::poke;
use crate::session::actor::{Actor, Command};
use crate::session::computer;
use crate::session::deps::Deps;
use crate::session::reading;
use crate::session::registry::Registry;
use crate::store::record::{Draft, SessionRecord, TaskRecord};
use crate::store::{Change, Commit, Key, StoreError};

/// When a child is told again that could not be closed, and how often.
const AGAIN: Duration = Duration::from_secs(1);
const TRIES: usize = 5;

impl Actor {
    /// Closes what is still open below a closed session, and looks again after that; false: nothing is.
    pub(in crate::session) fn closes_children(&self) -> bool {
        let (registry, id) = (self.registry.clone(), self.record.session.id.clone());
        let mut open = registry.below(&id);
        open.retain(|child| !is_closed(&self.deps, child));
        if open.is_empty() {
            return false;
        }
        self.deps.shutdown.spawn("close-children", async move {
            join_all(open.iter().map(|child| close(&registry, child))).await;
            drop(registry.send(&id, Command::Children).await);
        });
        true
    }

    /// Leaves those unanswered who wait for the computer of a session that closes: they are closed too, and should end as
    /// that says rather than fail.
    pub(in crate::session) fn hold_lends(&mut self) {
        for mut reply in self.boot.lends.drain(..) {
            self.deps.shutdown.spawn("held-lend", async move { reply.closed().await });
        }
    }

    /// Tells whether work is being done, or waits, on the computer of this session below it.
    pub(in crate::session) fn works_below(&self) -> bool {
        let own = &self.record.session.id;
        has_delegated(&self.deps, own) || self.registry.sharing(own).iter().any(|id| works(&self.deps, id))
    }

    /// Has the session look whose computer this one shares, if it gives that back when no more work is done on it.
    pub(super) fn tell_lender(&self) {
        if let Some(lender) = lender(&self.deps, &self.record).filter(|lender| lender.ephemeral && self.record.shares) {
            poke(&self.registry, &lender.session.id);
        }
    }
}

/// Returns the session whose computer this one uses: itself, or one above it.
fn lender(deps: &Deps, record: &SessionRecord) -> Option<SessionRecord> {
    let mut at = record.clone();
    while at.shares {
        at = deps.store.get(&Key::session(&at.session.parent?)).ok().flatten()?;
    }
    Some(at)
}

/// Tells whether a session works or waits for work. In this order: who hears of an end has its task at once.
fn works(deps: &Deps, id: &SessionId) -> bool {
    has_delegated(deps, id) || has(deps, b'o', id)
}

fn has_delegated(deps: &Deps, id: &SessionId) -> bool {
    has(deps, b'd', id)
}

fn has(deps: &Deps, kind: u8, id: &SessionId) -> bool {
    deps.store.may_hold(&Key::below(kind, &id.0))
}

/// Closes a session; one that cannot be taken up again is written off, so that nobody waits for it for ever.
async fn close(registry: &Registry, id: &SessionId) {
    let stopping = registry.deps().shutdown.stopping();
    for _ in 0..TRIES {
        if registry.is_within_reach(id).is_err() {
            break;
        }
        let Err(error) = registry.ask(id, Command::Close).await else { return };
        tracing::warn!(session = %id, %error, "a child is not closed yet");
        if tokio::time::timeout(AGAIN, stopping.cancelled()).await.is_ok() {
            return;
        }
    }
    give_up(registry, id).await;
}

/// Closes a session because somebody says so; one that waits for a person since daemons died of it is put away instead.
pub async fn close_for_person(registry: &Registry, id: &SessionId) -> Result<Session, RpcError> {
    if registry.is_within_reach(id).is_ok() {
        return registry.ask(id, Command::Close).await;
    }
    put_away(registry, id).await;
    Ok(reading::record(registry.deps(), id)?.session)
}

/// Writes a session off that must not be taken up, and closes what is below it.
pub(super) async fn put_away(registry: &Registry, id: &SessionId) {
    join_all(registry.below(id).iter().map(|child| close(registry, child))).await;
    give_up(registry, id).await;
}

/// Writes a session off, and has its parent hear of that.
async fn give_up(registry: &Registry, id: &SessionId) {
    if let Err(error) = write_off(registry, id).await {
        return tracing::error!(session = %id, %error, "it is neither closed nor written off");
    }
    if let Some(parent) = reading::record(registry.deps(), id).ok().and_then(|record| record.session.parent) {
        poke(registry, &parent);
    }
}

/// Records a session as closed whose own actor cannot do that.
async fn write_off(registry: &Registry, id: &SessionId) -> Result<(), StoreError> {
    let deps = registry.deps();
    if is_closed(deps, id) {
        return Ok(());
    }
    let Some(mut record) = deps.store.get::<SessionRecord>(&Key::session(id))? else { return Ok(()) };
    (record.session.state, record.closing) = (SessionState::Closed, false);
    record.session.updated_at = deps.clock.now();
    let message = "it cannot be taken up, so what it did was not ended; it counts as closed";
    tracing::error!(session = %id, message);
    let event = |kind, data| Change::Event(Draft { session: Some(id.clone()), task: None, kind, data });
    let mut changes = computer::released(deps, id)?;
    changes.extend(ended_tasks(deps, id)?);
    changes.push(Change::session(&record));
    changes.push(event(EventType::Warning, json!({ "message": message })));
    changes.push(event(EventType::SessionClosed, json!({"session": record.session})));
    deps.store.commit(Commit::owed(changes)).await?;
    registry.note_closed(&record.session);
    deps.computers.notify_one();
    Ok(())
}

/// Ends on record what a session had still to do; of a task that cannot be read only the mark goes.
fn ended_tasks(deps: &Deps, id: &SessionId) -> Result<Vec<Change>, StoreError> {
    let open = deps.store.ids_backwards(&Key::below(b'o', &id.0), None);
    let open: Vec<TaskId> = open.map(|task| task.map(TaskId)).collect::<Result<_, _>>()?;
    let mut changes: Vec<Change> = open.iter().map(|task| Change::Delete(Key::open_task(id, task))).collect();
    for mut record in open.iter().filter_map(|task| deps.store.get::<TaskRecord>(&Key::task(task)).ok().flatten()) {
        let task = &mut record.task;
        (task.state, task.reason) = (TaskState::Cancelled, Some(Reason::Cancelled));
        task.finished_at = Some(deps.clock.now());
        changes.push(Change::task(&record));
        let (session, data) = (Some(id.clone()), json!({"task": record.task}));
        let task = Some(record.task.id);
        changes.push(Change::Event(Draft { session, task, kind: EventType::TaskFinished, data }));
    }
    Ok(changes)
}

/// Tells whether nothing of a session is left to close.
fn is_closed(deps: &Deps, id: &SessionId) -> bool {
    let record = deps.store.get::<SessionRecord>(&Key::session(id)).ok().flatten();
    record.is_none_or(|record| record.session.state == SessionState::Closed && !record.closing)
}
