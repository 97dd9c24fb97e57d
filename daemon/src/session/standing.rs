//! Where a session stands, on record; and how its actor goes down with the daemon.

use nano_protocol::session::SessionState;
use nano_protocol::task::TaskState;

use super::actor::Actor;
use super::task::Input;
use crate::store::{Change, StoreError};

impl Actor {
    /// Records the session's state where it has changed.
    pub(super) fn note_state(&mut self, changes: &mut Vec<Change>) {
        let state = match () {
            () if self.record.session.state == SessionState::Closed => SessionState::Closed,
            () if self.machine.is_held() => SessionState::Interrupted,
            () if self.machine.is_idle() => SessionState::Idle,
            () => SessionState::Running,
        };
        if self.record.session.state != state {
            self.record.session.state = state;
            self.record.session.updated_at = self.deps.clock.now();
            changes.push(Change::session(&self.record));
        }
    }

    pub(super) async fn suspend(&mut self) -> Result<(), StoreError> {
        self.stop_boot();
        let effects = self.machine.on(Input::Suspend);
        let mut changes = Vec::new();
        for record in self.tasks.values_mut().filter(|record| record.task.state == TaskState::Running) {
            record.suspended = true;
            changes.push(Change::task(record));
        }
        self.apply(effects, changes).await
    }

    /// Tells whether something is under way that has to end before the daemon does: what waits for a person has not begun.
    pub(super) fn is_busy(&self) -> bool {
        let waits = self.open.iter().any(|open| open.gate.holds());
        self.machine.is_busy() && (!waits || self.open.iter().any(|open| open.stop.is_some()))
    }
}
