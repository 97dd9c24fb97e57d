//! What is removed with a session.

use nano_protocol::error::RpcError;
use nano_protocol::id::{SessionId, TaskId};

use super::Registry;
use crate::session::{deletion, processes};
use crate::store::{Change, Commit, Key, StoreError};

impl Registry {
    /// Removes sessions that are closed, with all that they had and `with`: in one step.
    pub async fn delete(&self, all: &[SessionId], mut with: Vec<Change>) -> Result<(), RpcError> {
        for id in all {
            with.extend(self.records_of(id)?);
        }
        self.deps.store.commit(Commit::asked(with)).await.map_err(|error| self.deps.store_failed(&error))?;
        for id in all {
            self.deps.events.forget(id);
            self.lock().sessions.remove(id);
        }
        Ok(())
    }

    fn records_of(&self, id: &SessionId) -> Result<Vec<Change>, RpcError> {
        let failed = |error: StoreError| self.deps.store_failed(&error);
        let tasks = self.deps.store.ids_backwards(&Key::below(b'u', &id.0), None);
        let tasks = tasks.map(|task| Ok(Change::Delete(Key::task(&TaskId(task?)))));
        let mut changes: Vec<Change> = tasks.collect::<Result<_, _>>().map_err(failed)?;
        changes.extend(b"muowcdlnq".iter().map(|kind| Change::DeleteAll(Key::below(*kind, &id.0))));
        changes.extend(processes::deleted(&self.deps, id).map_err(failed)?);
        changes.extend([
            Change::Delete(Key::session(id)),
            Change::Delete(Key::tries(id)),
            Change::Delete(Key::todo(id)),
            deletion::mark(id),
        ]);
        let events = self.deps.store.event_numbers_of(id).map_err(failed)?;
        changes.extend(events.into_iter().map(|seq| Change::Delete(Key::event(seq))));
        Ok(changes)
    }
}
