//! The scheduler: one owner of all follow-ups. It sleeps until the nearest slot; firing is one commit that holds the
//! slot, the schedule's advance and the task, so a slot makes at most one task whatever dies in between.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nano_protocol::error::{ErrorKind, RpcError};
use nano_protocol::event::EventType;
use nano_protocol::followup::{Followup, FollowupState, ScheduleParams};
use nano_protocol::id::{FollowupId, SessionId, TaskId};
use nano_protocol::task::{Limits, Origin, TaskState};
use nano_protocol::time::Timestamp;
use serde_json::json;
use tokio::sync::Notify;

use super::{booking, slots};
use crate::session::actor::Command;
use crate::session::admission::{Keyed, Submission};
use crate::session::deps::{Deps, unavailable};
use crate::session::reading;
use crate::session::registry::Registry;
use crate::store::record::{FollowupRecord, TaskRecord};
use crate::store::{Change, Commit, Key, StoreError};

/// The longest sleep: the wall clock may be set while asleep.
const NAP: Duration = Duration::from_mins(1);
/// How long a slot waits whose session takes nothing now, in milliseconds.
const AGAIN_MS: i64 = 5000;

/// The next slot of every follow-up that will fire; all else is read from the store when it is needed.
#[derive(Default)]
struct Book {
    due: BTreeSet<(Timestamp, FollowupId)>,
}

impl Book {
    fn put(&mut self, record: &FollowupRecord) {
        self.remove(&record.followup.id);
        if let (FollowupState::Active, Some(next)) = (record.followup.state, record.next_due) {
            self.due.insert((next, record.followup.id.clone()));
        }
    }

    fn put_off(&mut self, id: &FollowupId, until: Timestamp) {
        if self.due.iter().any(|(_, other)| other == id) {
            self.remove(id);
            self.due.insert((until, id.clone()));
        }
    }

    fn remove(&mut self, id: &FollowupId) {
        self.due.retain(|(_, other)| other != id);
    }
}

/// The scheduler; clones share it.
#[derive(Clone)]
pub struct Scheduler {
    registry: Registry,
    book: Arc<Mutex<Book>>,
    changed: Arc<Notify>,
    /// One change at a time: a cancel and a fire of one follow-up must not cross.
    turn: Arc<tokio::sync::Mutex<()>>,
}

impl Scheduler {
    /// Reads the follow-ups of the store; [`Scheduler::run`] then fires them.
    pub fn load(registry: Registry) -> Result<Self, StoreError> {
        let mut book = Book::default();
        let store = &registry.deps().store;
        for id in store.ids_backwards(&Key::all(b'f'), None) {
            match store.get::<FollowupRecord>(&Key::followup(&FollowupId(id))) {
                Ok(record) => record.iter().for_each(|record| book.put(record)),
                Err(error @ StoreError::Damaged(_)) => tracing::error!(%error, "a follow-up is left out"),
                Err(error) => return Err(error),
            }
        }
        Ok(Self { registry, book: Arc::new(Mutex::new(book)), changed: Arc::default(), turn: Arc::default() })
    }

    fn deps(&self) -> &Arc<Deps> {
        self.registry.deps()
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how many follow-ups will fire, and when the next one does.
    pub fn brief(&self) -> (u64, Option<Timestamp>) {
        let book = self.book();
        (book.due.len() as u64, book.due.first().map(|(at, _)| *at))
    }

    /// Returns a follow-up.
    pub fn get(&self, id: &FollowupId) -> Option<FollowupRecord> {
        let found = self.deps().store.get(&Key::followup(id));
        found.inspect_err(|error| tracing::error!(%error, "a follow-up cannot be read")).ok().flatten()
    }

    /// Returns every follow-up, newest first.
    pub fn all(&self) -> Vec<FollowupRecord> {
        let found = self.deps().store.scan::<FollowupRecord>(&Key::all(b'f'), None, usize::MAX);
        let found = found.inspect_err(|error| tracing::error!(%error, "follow-ups cannot be read"));
        found.unwrap_or_default().into_iter().rev().collect()
    }

    /// Returns the session of a follow-up.
    pub fn session_of(&self, id: &FollowupId) -> Option<SessionId> {
        self.get(id).map(|record| record.followup.session)
    }

    /// Records a new follow-up, and answers after that.
    pub async fn add(
        &self,
        owner: u32,
        session: SessionId,
        params: ScheduleParams,
        keyed: Option<Keyed>,
    ) -> Result<Followup, RpcError> {
        let _turn = self.turn.lock().await;
        let session = reading::record(self.deps(), &session)?.session;
        let record = booking::book(self.deps(), owner, &session, params)?;
        let answer = booking::shown(&record);
        let mut with = vec![slots::event(&record, EventType::FollowupScheduled, json!({"followup": answer}))];
        with.extend(keyed.map(|keyed| keyed.record(json!(record.followup.id), record.followup.created_at)));
        self.save(record, with).await?;
        Ok(answer)
    }

    /// Ends a follow-up; one that has ended already stays as it is.
    pub async fn cancel(&self, id: &FollowupId) -> Result<Followup, RpcError> {
        let _turn = self.turn.lock().await;
        let gone = || RpcError::new(ErrorKind::NotFound, format!("there is no follow-up {id}"));
        let mut record = self.get(id).ok_or_else(gone)?;
        if !matches!(record.followup.state, FollowupState::Active | FollowupState::Paused) {
            return Ok(record.followup);
        }
        record.followup.state = FollowupState::Cancelled;
        let event = slots::event(&record, EventType::FollowupCancelled, json!({"followup": record.followup}));
        self.save(record, vec![event]).await
    }

    /// Pauses the follow-ups of a session that is being closed.
    pub async fn pause_all(&self, session: &SessionId) -> Result<(), RpcError> {
        let _turn = self.turn.lock().await;
        for mut record in self.of(session).into_iter().filter(|one| one.followup.state == FollowupState::Active) {
            record.followup.state = FollowupState::Paused;
            self.save(record, Vec::new()).await?;
        }
        Ok(())
    }

    /// Removes the follow-ups of a session that is being deleted.
    pub async fn forget_all(&self, session: &SessionId) -> Result<(), RpcError> {
        let _turn = self.turn.lock().await;
        for id in self.of(session).into_iter().map(|record| record.followup.id) {
            let changes = vec![Change::Delete(Key::followup(&id)), Change::DeleteAll(Key::below(b'r', &id.0))];
            let commit = self.deps().store.commit(Commit { owner: None, changes }).await;
            commit.map_err(|error| unavailable(&error))?;
            self.book().remove(&id);
        }
        Ok(())
    }

    fn of(&self, session: &SessionId) -> Vec<FollowupRecord> {
        self.all().into_iter().filter(|record| record.followup.session == *session).collect()
    }

    async fn save(&self, record: FollowupRecord, with: Vec<Change>) -> Result<Followup, RpcError> {
        let mut changes = vec![Change::put(Key::followup(&record.followup.id), &record)];
        changes.extend(with);
        let commit = self.deps().store.commit(Commit { owner: Some(record.owner), changes }).await;
        commit.map_err(|error| unavailable(&error))?;
        let followup = record.followup.clone();
        self.book().put(&record);
        self.changed.notify_one();
        Ok(followup)
    }

    /// Fires what is due until the daemon goes down; what falls due after that is decided by the next one.
    pub async fn run(self) {
        let stopping = self.deps().shutdown.stopping().clone();
        while !stopping.is_cancelled() {
            let now = self.deps().clock.now();
            let next = self.book().due.first().cloned();
            let nap = match next {
                Some((at, id)) if at <= now => {
                    if !self.fire(&id, now).await {
                        // Later, and meanwhile the others.
                        self.book().put_off(&id, now.plus_ms(AGAIN_MS));
                    }
                    continue;
                }
                Some((at, _)) => Duration::from_millis(at.0.abs_diff(now.0)).min(NAP),
                None => Duration::MAX,
            };
            tokio::select! {
                biased;
                () = stopping.cancelled() => return,
                () = self.changed.notified() => {}
                () = tokio::time::sleep(nap) => {}
            }
        }
    }

    /// Decides about the due slots of one follow-up up to the first that fires; false: not now.
    async fn fire(&self, id: &FollowupId, now: Timestamp) -> bool {
        let _turn = self.turn.lock().await;
        let Some(mut record) = self.get(id).filter(|record| record.followup.state == FollowupState::Active) else {
            self.book().remove(id);
            return true;
        };
        let Some(plan) = slots::plan(&record, now) else {
            tracing::error!(followup = %id, "its schedule cannot be read; it is marked as failed");
            record.followup.state = FollowupState::Failed;
            return self.save(record, Vec::new()).await.is_ok();
        };
        let last = self.last_task(&record);
        match slots::decide(&mut record, plan, last, &self.deps().clock) {
            (None, changes) => self.save(record, changes).await.is_ok(),
            (Some(task), mut changes) => {
                changes.push(Change::put(Key::followup(id), &record));
                if let Err(error) = self.submit(&record, task, changes).await {
                    return self.refused(id, &error).await;
                }
                self.book().put(&record);
                true
            }
        }
    }

    async fn submit(&self, record: &FollowupRecord, id: TaskId, with: Vec<Change>) -> Result<(), RpcError> {
        let followup = &record.followup;
        let name = followup.name.as_deref().map(|name| format!(" {name}")).unwrap_or_default();
        let submission = Submission {
            id,
            origin: Origin::Followup,
            source: Some(format!("follow-up {}{name}", followup.id)),
            content: followup.content.clone(),
            metadata: followup.metadata.clone(),
            limits: Limits::default(),
            keyed: None,
            with,
        };
        self.registry.ask(&followup.session, |reply| Command::Submit(Box::new(submission), reply)).await.map(|_| ())
    }

    /// Keeps a slot for later where the session is only full; a session that is closed or gone pauses the follow-up.
    async fn refused(&self, id: &FollowupId, error: &RpcError) -> bool {
        tracing::warn!(followup = %id, %error, "a slot could not fire");
        // The answer may be lost and the commit made all the same: what is stored decides.
        let Some(mut record) = self.get(id) else { return false };
        self.book().put(&record);
        if !matches!(error.data.kind, ErrorKind::Conflict | ErrorKind::NotFound) {
            return false;
        }
        record.followup.state = FollowupState::Paused;
        self.save(record, Vec::new()).await.is_ok()
    }

    /// Returns how the task of the slot before is doing.
    fn last_task(&self, record: &FollowupRecord) -> Option<TaskState> {
        let task = record.followup.last.as_ref().and_then(|last| last.task.as_ref())?;
        let record = self.deps().store.get::<TaskRecord>(&Key::task(task)).ok().flatten()?;
        Some(record.task.state)
    }
}
