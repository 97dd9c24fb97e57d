//! The scheduler: one owner of all follow-ups. It sleeps until the nearest slot; firing is one commit that holds the
//! slot, the schedule's advance and the task, so a slot makes at most one task whatever dies in between.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nano_protocol::error::RpcError;
use nano_protocol::event::EventType;
use nano_protocol::followup::{Followup, FollowupState, ScheduleParams};
use nano_protocol::id::{FollowupId, SessionId};
use nano_protocol::time::Timestamp;
use serde_json::json;
use tokio::sync::{Notify, RwLock, RwLockWriteGuard, watch};

use super::alarm::Alarm;
use super::book::Book;
use super::booking::{self, Maker};
use super::firing::Run;
use super::{slots, states};
use crate::clock::Moment;
use crate::session::admission::Keyed;
use crate::session::deps::{Deps, unavailable};
use crate::session::reading;
use crate::session::registry::Registry;
use crate::store::record::FollowupRecord;
use crate::store::{Change, Commit, Key, StoreError};

/// How long a slot waits whose session takes nothing now, in milliseconds.
pub(super) const AGAIN_MS: u64 = 5000;
/// A wall clock that goes back by more than this at once may have been wrong before.
const STEP_MS: i64 = 60 * 60 * 1000;

/// The scheduler; clones share it.
#[derive(Clone)]
pub struct Scheduler {
    pub(super) registry: Registry,
    book: Arc<Mutex<Book>>,
    changed: Arc<Notify>,
    /// One change at a time: a cancel and a fire of one follow-up must not cross. Only what is new shares its turn with
    /// others, so that many become durable together.
    pub(super) turn: Arc<RwLock<()>>,
    /// Told when files have to be looked at.
    pub(super) files: Arc<Notify>,
    /// The newest event that was heard.
    pub(super) heard_to: Arc<watch::Sender<u64>>,
}

impl Scheduler {
    /// Reads the follow-ups of the store; [`Scheduler::run`] then fires them.
    pub fn load(registry: Registry) -> Result<Self, StoreError> {
        let mut book = Book::default();
        let boot = registry.deps().clock.moment().boot;
        let store = &registry.deps().store;
        for id in store.ids_backwards(&Key::all(b'f'), None) {
            match store.get::<FollowupRecord>(&Key::followup(&FollowupId(id?))) {
                Ok(record) => record.iter().for_each(|record| book.put(record, &boot)),
                Err(error @ StoreError::Damaged(_)) => tracing::error!(%error, "a follow-up is left out"),
                Err(error) => return Err(error),
            }
        }
        Ok(Self {
            registry,
            book: Arc::new(Mutex::new(book)),
            changed: Arc::default(),
            turn: Arc::default(),
            files: Arc::default(),
            heard_to: Arc::default(),
        })
    }

    pub(super) fn deps(&self) -> &Arc<Deps> {
        self.registry.deps()
    }

    pub(super) fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn note(&self, record: &FollowupRecord) {
        let boot = self.deps().clock.moment().boot;
        self.book().put(record, &boot);
        self.changed.notify_one();
    }

    /// Returns how many follow-ups will fire, and when the next one does.
    pub fn brief(&self) -> (u64, Option<Timestamp>) {
        let book = self.book();
        (book.active(), book.next_fire(&self.deps().clock.moment()))
    }

    /// Returns a follow-up's record.
    pub(super) fn get(&self, id: &FollowupId) -> Option<FollowupRecord> {
        let found = self.deps().store.get(&Key::followup(id));
        found.inspect_err(|error| tracing::error!(%error, "a follow-up cannot be read")).ok().flatten()
    }

    /// Returns a follow-up.
    pub fn shown(&self, id: &FollowupId) -> Result<Followup, RpcError> {
        let record = self.get(id).ok_or_else(|| booking::gone(id))?;
        Ok(self.show(&record))
    }

    pub(super) fn show(&self, record: &FollowupRecord) -> Followup {
        booking::shown(record, &self.deps().clock.moment())
    }

    /// Records a new follow-up, and answers after that.
    pub async fn add(
        &self,
        maker: Maker,
        session: &SessionId,
        params: ScheduleParams,
        keyed: Option<Keyed>,
    ) -> Result<Followup, RpcError> {
        // Who has the turn may be waiting for room.
        self.deps().store.has_room().map_err(|error| unavailable(&error))?;
        let _turn = self.turn.read().await;
        let session = reading::record(self.deps(), session)?.session;
        let record = booking::book(&self.registry, &maker, &session, params)?;
        let answer = self.show(&record);
        let mut with = self.files_there(&record).await?;
        with.push(slots::event(
            &record,
            EventType::FollowupScheduled,
            json!({"followup": answer, "depth": record.depth}),
        ));
        with.extend(keyed.map(|keyed| keyed.record(json!(record.followup.id), record.followup.created_at)));
        // First, so that nothing passes unheard that happens after the commit; who hears it waits for this turn's end.
        self.enter(&record, &maker)?;
        if let Err(error) = self.ask(&record, with).await {
            self.book().remove(&record.followup.id);
            return Err(error);
        }
        self.check_task(record).await;
        self.shown(&answer.id)
    }

    /// Notes a new follow-up if there is room for it.
    fn enter(&self, record: &FollowupRecord, maker: &Maker) -> Result<(), RpcError> {
        let boot = self.deps().clock.moment().boot;
        let mut book = self.book();
        booking::has_room(&book, &record.followup.session, maker)?;
        book.put(record, &boot);
        Ok(())
    }

    /// Takes the turn, for what somebody asks for: refused where there is no room, as who has it may be waiting for that.
    pub(super) async fn turn(&self) -> Result<RwLockWriteGuard<'_, ()>, RpcError> {
        self.deps().store.has_room().map_err(|error| unavailable(&error))?;
        Ok(self.turn.write().await)
    }

    /// Makes a change to a follow-up durable. Refused where there is no room for it: nobody holds the turn and waits.
    pub(super) async fn ask(&self, record: &FollowupRecord, with: Vec<Change>) -> Result<(), RpcError> {
        let mut changes = vec![Change::put(Key::followup(&record.followup.id), record)];
        changes.extend(with);
        self.deps().store.commit(Commit::asked(changes)).await.map_err(|error| unavailable(&error))?;
        self.note(record);
        Ok(())
    }

    /// Fires what is due until the daemon goes down; what falls due after that is decided by the next one.
    pub async fn run(self) {
        for id in self.book().replacing() {
            self.get(&id).iter().for_each(|record| self.make_room(record));
        }
        self.rewind_all().await;
        let (shutdown, [events, files, rows]) = (&self.deps().shutdown, [self.clone(), self.clone(), self.clone()]);
        shutdown.spawn("follow-up-events", async move { events.listen().await });
        shutdown.spawn("follow-up-files", async move { files.look_at_files().await });
        shutdown.spawn("follow-up-rows", async move { rows.keep_short().await });
        self.fire_due().await;
    }

    fn first_due(&self, now: &Moment) -> Option<FollowupId> {
        self.book().first_due(now)
    }

    async fn fire_due(&self) {
        let stopping = self.deps().shutdown.stopping().clone();
        let alarm = Alarm::new();
        let mut before = self.deps().clock.moment();
        while !stopping.is_cancelled() {
            let now = self.deps().clock.moment();
            if set_back_by(&before, &now) > STEP_MS {
                tracing::warn!(from = %before.wall, to = %now.wall, "the clock was set back");
                self.rewind_all().await;
            }
            before = now.clone();
            // All that is due by now is judged by now: one does not make the next one late.
            while let Some(id) = self.first_due(&now).filter(|_| !stopping.is_cancelled()) {
                if !self.fire(&id, &now).await {
                    // Later, and meanwhile the others.
                    self.book().put_off(&id, now.boot_ms + AGAIN_MS);
                }
            }
            let nearest = self.book().nearest();
            tokio::select! {
                biased;
                () = stopping.cancelled() => return,
                () = self.changed.notified() => {}
                () = alarm.sleep(nearest, &now) => {}
            }
        }
    }

    /// Begins anew what had come to slots that are hours ahead.
    async fn rewind_all(&self) {
        let ids: Vec<FollowupId> = self.book().backwards(None, None).map(|(id, _)| id.clone()).collect();
        let now = self.deps().clock.moment();
        for id in ids {
            let _turn = self.turn.write().await;
            let Some(mut record) = self.get(&id).filter(|record| record.followup.state == FollowupState::Active) else {
                continue;
            };
            if states::rewind(&mut record, &now) {
                tracing::warn!(followup = %id, "the clock was hours ahead before; slots are counted from now on");
                drop(self.ask(&record, Vec::new()).await);
            }
        }
    }

    /// Decides about the due slots of one follow-up up to the first that fires; false: not now.
    async fn fire(&self, id: &FollowupId, now: &Moment) -> bool {
        let _turn = self.turn.write().await;
        let Some(mut record) = self.get(id) else {
            self.book().remove(id);
            return true;
        };
        if record.followup.state != FollowupState::Active {
            self.note(&record);
            return true;
        }
        let mut plan = match slots::plan(&record, now) {
            Ok(plan) => plan,
            Err(why) => return self.fail(record, why).await,
        };
        if let Some(until) = record.recorded_until {
            slots::only_new(&mut plan, |slot| slot <= until && self.is_recorded(id, slot));
        }
        let last = self.last_task(&record);
        match slots::decide(&mut record, plan, last, &self.deps().clock) {
            (None, changes) => self.ask(&record, changes).await.is_ok(),
            (Some(task), changes) => {
                let content = record.followup.content.clone();
                let run = Run { task, content, depth: record.depth, keyed: None };
                self.make(record, run, changes).await
            }
        }
    }

    /// Ends one that cannot go on; false: that could not be recorded.
    pub(super) async fn fail(&self, mut record: FollowupRecord, why: String) -> bool {
        tracing::error!(followup = %record.followup.id, why, "a follow-up cannot go on");
        (record.followup.state, record.followup.reason) = (FollowupState::Failed, Some(why));
        self.ask(&record, Vec::new()).await.is_ok()
    }
}

/// Returns by how many milliseconds the wall clock was set back between two looks.
fn set_back_by(before: &Moment, now: &Moment) -> i64 {
    let passed = now.boot_ms.saturating_sub(before.boot_ms).cast_signed();
    before.wall.plus_ms(passed).0.saturating_sub(now.wall.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_back_are_told_from_time_that_passes() {
        let at = |wall, boot_ms| Moment { wall: Timestamp(wall), boot_ms, boot: "b".into() };
        for (before, now, expected) in [
            (at(1000, 0), at(2000, 1000), 0),
            (at(1000, 0), at(1000, 0), 0),
            (at(9000, 0), at(5000, 1000), 5000),
            (at(1000, 0), at(9000, 1000), -7000),
            (at(0, 0), at(-STEP_MS, 1000), STEP_MS + 1000),
        ] {
            assert_eq!(set_back_by(&before, &now), expected, "{before:?} {now:?}");
        }
    }
}
