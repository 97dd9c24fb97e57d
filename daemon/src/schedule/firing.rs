//! Making a task of a follow-up: one commit in the session that holds the task, the run and the follow-up's new state.

use nano_protocol::error::{ErrorKind, RpcError};
use nano_protocol::followup::{FollowupState, Last};
use nano_protocol::id::{FollowupId, TaskId};
use nano_protocol::task::{Limits, Origin, Task, TaskState};
use nano_protocol::time::Timestamp;

use super::scheduler::Scheduler;
use crate::crash;
use crate::session::actor::Command;
use crate::session::admission::{Keyed, Submission};
use crate::store::record::{FollowupRecord, MadeBy, TaskRecord};
use crate::store::{Change, Key};

/// What a task of a follow-up is beyond what its record says.
pub(super) struct Run {
    pub task: TaskId,
    pub content: String,
    pub depth: u32,
    pub keyed: Option<Keyed>,
}

impl Scheduler {
    /// Makes a task together with what is recorded of it; false: not now.
    pub(super) async fn make(&self, record: FollowupRecord, run: Run, changes: Vec<Change>) -> bool {
        let id = record.followup.id.clone();
        match self.submit(record, run, changes).await {
            Ok(_) => true,
            Err(error) => self.refused(&id, &error).await,
        }
    }

    /// Hands a task to the session, together with the follow-up's new state.
    pub(super) async fn submit(
        &self,
        record: FollowupRecord,
        run: Run,
        mut with: Vec<Change>,
    ) -> Result<Task, RpcError> {
        let followup = &record.followup;
        with.push(Change::put(Key::followup(&followup.id), &record));
        let name = followup.name.as_deref().map(|name| format!(" {name}")).unwrap_or_default();
        let submission = Submission {
            id: run.task,
            origin: Origin::Followup,
            source: Some(format!("follow-up {}{name}", followup.id)),
            content: run.content,
            metadata: followup.metadata.clone(),
            limits: Limits::default(),
            keyed: run.keyed,
            with,
            made_by: Some(MadeBy { followup: followup.id.clone(), depth: run.depth }),
            rounds: 0,
        };
        crash::point("followup.fire.before");
        let task = self.registry.ask(&followup.session, |reply| Command::Submit(Box::new(submission), reply)).await?;
        crash::point("followup.fire.after");
        self.note(&record);
        self.make_room(&record);
        Ok(task)
    }

    /// Keeps a slot for later where the session is only full; a session that is closed or gone pauses the follow-up.
    async fn refused(&self, id: &FollowupId, error: &RpcError) -> bool {
        tracing::warn!(followup = %id, %error, "a slot could not fire");
        // The answer may be lost and the commit made all the same: what is stored decides.
        let Some(mut record) = self.get(id) else { return false };
        self.note(&record);
        if !matches!(error.data.kind, ErrorKind::Conflict | ErrorKind::NotFound) {
            return false;
        }
        (record.followup.state, record.followup.reason) = (FollowupState::Paused, Some(error.message.clone()));
        self.ask(&record, Vec::new()).await.is_ok()
    }

    /// Cancels the task that the newest one replaces; that one waits behind it.
    pub(super) fn make_room(&self, record: &FollowupRecord) {
        let Some(old) = record.replaces.clone() else { return };
        let (this, id, session) = (self.clone(), record.followup.id.clone(), record.followup.session.clone());
        self.deps().shutdown.spawn("replace", async move {
            let reached = this.registry.is_within_reach(&session);
            let ended = match reached {
                Ok(()) => this.registry.ask(&session, |reply| Command::Cancel(old.clone(), reply)).await,
                Err(error) => Err(error),
            };
            if let Err(error) = ended {
                return tracing::warn!(task = %old, %error, "a task to be replaced could not be cancelled");
            }
            let _turn = this.turn.write().await;
            if let Some(mut record) = this.get(&id).filter(|record| record.replaces.as_ref() == Some(&old)) {
                record.replaces = None;
                drop(this.ask(&record, Vec::new()).await);
            }
        });
    }

    /// Tells whether a slot is on record.
    pub(super) fn is_recorded(&self, id: &FollowupId, slot: Timestamp) -> bool {
        self.deps().store.get::<Last>(&Key::slot(id, slot)).is_ok_and(|row| row.is_some())
    }

    /// Returns how the newest task of a follow-up is doing.
    pub(super) fn last_task(&self, record: &FollowupRecord) -> Option<TaskState> {
        let task = record.followup.last.as_ref().and_then(|last| last.task.as_ref())?;
        let record = self.deps().store.get::<TaskRecord>(&Key::task(task)).ok().flatten()?;
        Some(record.task.state)
    }
}
