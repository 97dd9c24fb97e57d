//! The scheduler: one owner of all follow-ups. It sleeps until the nearest slot; firing is one commit that holds the
//! slot, the schedule's advance and the task, so a slot makes at most one task whatever dies in between.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nano_protocol::error::{ErrorKind, RpcError};
use nano_protocol::event::{Data, EventType};
use nano_protocol::followup::{Followup, FollowupState, Last, Overlap, RunState, ScheduleParams};
use nano_protocol::id::{FollowupId, SessionId, TaskId};
use nano_protocol::task::{Limits, Origin};
use nano_protocol::time::Timestamp;
use serde_json::json;
use tokio::sync::Notify;

use super::booking;
use super::calendar::{self, Plan, Schedule};
use crate::session::actor::Command;
use crate::session::admission::{Keyed, Submission};
use crate::session::deps::{Deps, unavailable};
use crate::session::reading;
use crate::session::registry::Registry;
use crate::store::record::{Draft, FollowupRecord, TaskRecord};
use crate::store::{Change, Commit, Key, StoreError};

/// The longest sleep: the wall clock may be set while asleep.
const NAP: Duration = Duration::from_secs(60);
/// How long a slot waits whose session takes nothing now.
const AGAIN: Duration = Duration::from_secs(5);

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
        for record in registry.deps().store.scan::<FollowupRecord>(&Key::all(b'f'), None, usize::MAX)? {
            book.put(&record);
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
        let mut with = vec![event(&record, EventType::FollowupScheduled, json!({"followup": answer}))];
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
        let event = event(&record, EventType::FollowupCancelled, json!({"followup": record.followup}));
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
        loop {
            let now = self.deps().clock.now();
            let next = self.book().due.first().cloned();
            let nap = match next {
                Some((at, id)) if at <= now => {
                    if self.fire(&id, now).await {
                        continue;
                    }
                    AGAIN
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

    /// Decides about the due slots of one follow-up; false: its session takes nothing now.
    async fn fire(&self, id: &FollowupId, now: Timestamp) -> bool {
        let _turn = self.turn.lock().await;
        let Some(mut record) = self.get(id).filter(|record| record.followup.state == FollowupState::Active) else {
            return true;
        };
        let Some(plan) = plan(&record, now) else {
            tracing::error!(followup = %id, "its schedule cannot be read; it is marked as failed");
            record.followup.state = FollowupState::Failed;
            return self.save(record, Vec::new()).await.is_ok();
        };
        let mut changes: Vec<Change> =
            plan.missed.iter().flat_map(|slot| note(&mut record, *slot, RunState::Missed, None)).collect();
        record.followup.missed += plan.unlisted;
        let mut fire = plan.fire;
        if record.followup.overlap == Overlap::Skip && self.still_runs(&record) {
            changes.extend(fire.drain(..).flat_map(|slot| note(&mut record, slot, RunState::Skipped, None)));
        }
        record.next_due = plan.next.filter(|next| record.followup.until.is_none_or(|until| *next <= until));
        let ends = |record: &mut FollowupRecord| {
            let spent = record.followup.max_runs.is_some_and(|most| record.followup.runs >= most);
            if spent || record.next_due.is_none() {
                record.followup.state = FollowupState::Done;
            }
        };
        if fire.is_empty() {
            ends(&mut record);
            return self.save(record, changes).await.is_ok();
        }
        for slot in fire {
            let task = TaskId::from_ulid(&self.deps().clock.ulid());
            changes.extend(note(&mut record, slot, RunState::Fired, Some(task.clone())));
            ends(&mut record);
            changes.push(Change::put(Key::followup(id), &record));
            if let Err(error) = self.submit(&record, task, std::mem::take(&mut changes)).await {
                return self.refused(id, &error).await;
            }
            self.book().put(&record);
        }
        true
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
        if let Some(record) = self.get(id) {
            self.book().put(&record);
        }
        let over = matches!(error.data.kind, ErrorKind::Conflict | ErrorKind::NotFound);
        let Some(mut record) = self.get(id).filter(|_| over) else { return false };
        record.followup.state = FollowupState::Paused;
        self.save(record, Vec::new()).await.is_ok()
    }

    fn still_runs(&self, record: &FollowupRecord) -> bool {
        let task = record.followup.last.as_ref().and_then(|last| last.task.as_ref());
        let task = task.and_then(|id| self.deps().store.get::<TaskRecord>(&Key::task(id)).ok().flatten());
        task.is_some_and(|record| !record.task.state.is_settled())
    }
}

fn plan(record: &FollowupRecord, now: Timestamp) -> Option<Plan> {
    let schedule: Schedule = serde_json::from_value(record.schedule.clone()).ok()?;
    let followup = &record.followup;
    let next_due = record.next_due?;
    Some(calendar::due_slots(&schedule, record.last_due, next_due, now, followup.missed_policy, followup.grace_ms))
}

/// Notes what became of a slot: its row, its count, its event.
fn note(record: &mut FollowupRecord, slot: Timestamp, state: RunState, task: Option<TaskId>) -> Vec<Change> {
    let last = Last { slot, task: task.clone(), state };
    let row = Change::put(Key::slot(&record.followup.id, slot), &last);
    let data = json!({"followup": record.followup.id, "slot": slot, "task": task});
    let kind = match state {
        RunState::Fired => EventType::FollowupFired,
        RunState::Missed | RunState::Skipped => EventType::FollowupMissed,
    };
    record.followup.runs += u64::from(state == RunState::Fired);
    record.followup.missed += u64::from(state == RunState::Missed);
    // A skipped slot keeps the task that it was skipped for: that one still runs.
    let task = if state == RunState::Skipped { record.followup.last.take().and_then(|last| last.task) } else { task };
    (record.followup.last, record.last_due) = (Some(Last { task, ..last }), Some(slot));
    vec![row, event(record, kind, data)]
}

fn event(record: &FollowupRecord, kind: EventType, data: Data) -> Change {
    Change::Event(Draft { session: Some(record.followup.session.clone()), task: None, kind, data })
}
