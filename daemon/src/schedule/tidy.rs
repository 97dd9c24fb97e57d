//! Bounding what is kept of slots that are long decided.

use std::time::Duration;

use nano_protocol::followup::Last;
use nano_protocol::id::FollowupId;

use super::scheduler::Scheduler;
use crate::store::{Change, Commit, Key, StoreError};

/// So many rows of a follow-up are kept, the newest.
const KEPT: usize = 10_000;
/// So many are removed at once.
const AT_ONCE: usize = 10_000;
/// How often old ones are looked for: more than a row each second does not come.
const LOOK: Duration = Duration::from_hours(2);

impl Scheduler {
    /// Removes old rows now and then until the daemon goes down.
    pub(super) async fn keep_short(&self) {
        let stopping = self.deps().shutdown.stopping().clone();
        loop {
            tokio::select! {
                () = stopping.cancelled() => return,
                () = tokio::time::sleep(LOOK) => {}
            }
            let ids: Vec<FollowupId> = self.book().backwards(None, None).map(|(id, _)| id.clone()).collect();
            for id in ids {
                if let Err(error) = self.forget_old_rows(&id).await {
                    return tracing::error!(%error, "old rows of follow-ups cannot be removed");
                }
            }
        }
    }

    async fn forget_old_rows(&self, id: &FollowupId) -> Result<(), StoreError> {
        let store = &self.deps().store;
        let rows = store.scan_backwards::<Last>(&Key::below(b'r', &id.0), None, KEPT + AT_ONCE)?;
        let changes: Vec<Change> = rows.iter().skip(KEPT).map(|row| Change::Delete(Key::slot(id, row.slot))).collect();
        if changes.is_empty() {
            return Ok(());
        }
        store.commit(Commit::owed(changes)).await.map(|_| ())
    }
}
