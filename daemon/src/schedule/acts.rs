//! What people ask of follow-ups: pause, resume, cancel, a run out of turn, lists.

use nano_protocol::error::{ErrorKind, RpcError};
use nano_protocol::event::EventType;
use nano_protocol::followup::{Followup, FollowupState, Followups, Last, Runs};
use nano_protocol::id::{FollowupId, SessionId};
use nano_protocol::task::Task;
use nano_protocol::time::Timestamp;
use serde_json::json;

use super::firing::Run;
use super::scheduler::Scheduler;
use super::{booking, slots, states};
use crate::session::admission::Keyed;
use crate::session::deps::unavailable;
use crate::session::reading;
use crate::store::record::FollowupRecord;
use crate::store::{Change, Key};

/// Which follow-ups a page is of.
#[derive(Debug, Default)]
pub struct Wanted {
    /// Only those of this session.
    pub session: Option<SessionId>,
    /// Only those in this state.
    pub state: Option<FollowupState>,
    /// Only older ones.
    pub after: Option<FollowupId>,
}

impl Scheduler {
    /// Ends a follow-up; one that has ended already stays as it is.
    pub async fn cancel(&self, id: &FollowupId) -> Result<Followup, RpcError> {
        let _turn = self.turn().await?;
        let mut record = self.record(id)?;
        if states::has_ended(&record) {
            return Ok(record.followup);
        }
        (record.followup.state, record.followup.reason) = (FollowupState::Cancelled, None);
        let event = slots::event(&record, EventType::FollowupCancelled, json!({"followup": record.followup}));
        self.ask(&record, vec![event, Change::DeleteAll(Key::below(b'v', &id.0))]).await?;
        Ok(record.followup)
    }

    /// Keeps a follow-up from firing; one that has ended stays as it is.
    pub async fn pause(&self, id: &FollowupId) -> Result<Followup, RpcError> {
        let _turn = self.turn().await?;
        let mut record = self.record(id)?;
        if record.followup.state == FollowupState::Active {
            record.followup.state = FollowupState::Paused;
            self.ask(&record, Vec::new()).await?;
        }
        Ok(record.followup)
    }

    /// Lets a paused follow-up go on with the slots that come; those that passed meanwhile are noted as missed.
    pub async fn resume(&self, id: &FollowupId) -> Result<Followup, RpcError> {
        let _turn = self.turn().await?;
        let mut record = self.record(id)?;
        if states::has_ended(&record) {
            return Err(ended(&record));
        }
        if record.followup.state == FollowupState::Active {
            return Ok(self.show(&record));
        }
        booking::is_open(&reading::record(self.deps(), &record.followup.session)?.session)?;
        let head = *self.deps().events.head().borrow();
        let resumed = states::resume(&mut record, &self.deps().clock.moment(), head, |slot| self.is_recorded(id, slot));
        let mut changes = match resumed {
            Ok(changes) => changes,
            Err(why) => return Err(RpcError::new(ErrorKind::Conflict, format!("follow-up {id} cannot go on: {why}"))),
        };
        changes.extend(self.files_there(&record).await?);
        changes.extend(self.missed_end(&mut record));
        self.ask(&record, changes).await?;
        Ok(self.show(&record))
    }

    /// Makes a task of a follow-up now, beside its schedule.
    pub async fn trigger(
        &self,
        id: &FollowupId,
        content: Option<String>,
        keyed: Option<Keyed>,
    ) -> Result<Task, RpcError> {
        let _turn = self.turn().await?;
        let mut record = self.record(id)?;
        if states::has_ended(&record) {
            return Err(ended(&record));
        }
        booking::is_open(&reading::record(self.deps(), &record.followup.session)?.session)?;
        if record.followup.state == FollowupState::Paused {
            let message = format!("follow-up {id} is paused");
            return Err(RpcError::new(ErrorKind::Conflict, message).hint(format!("nanoctl followup resume {id}")));
        }
        let clock = &self.deps().clock;
        let slot = states::free_instant(&record, clock.now(), |at| self.is_recorded(id, at));
        let last = self.last_task(&record);
        let (task, changes) = slots::run_out_of_turn(&mut record, slot, last, clock);
        let content = content.unwrap_or_else(|| record.followup.content.clone());
        let run = Run { task, content, depth: record.depth, keyed };
        self.submit(record, run, changes).await
    }

    /// Pauses the follow-ups of a session that is being closed.
    pub async fn pause_all(&self, session: &SessionId) -> Result<(), RpcError> {
        let _turn = self.turn().await?;
        for id in self.of(session) {
            let Some(mut record) = self.get(&id).filter(|one| one.followup.state == FollowupState::Active) else {
                continue;
            };
            let reason = format!("session {session} is closed");
            (record.followup.state, record.followup.reason) = (FollowupState::Paused, Some(reason));
            self.ask(&record, Vec::new()).await?;
        }
        Ok(())
    }

    /// Removes sessions that are closed, with their follow-ups and all that they had: all of it, or nothing.
    pub async fn delete(&self, sessions: &[SessionId]) -> Result<(), RpcError> {
        let _turn = self.turn().await?;
        let ids: Vec<FollowupId> = sessions.iter().flat_map(|session| self.of(session)).collect();
        let mut changes = Vec::new();
        for id in &ids {
            changes.push(Change::Delete(Key::followup(id)));
            changes.extend(b"rv".iter().map(|kind| Change::DeleteAll(Key::below(*kind, &id.0))));
        }
        self.registry.delete(sessions, changes).await?;
        for id in &ids {
            self.book().remove(id);
        }
        Ok(())
    }

    /// Returns a page of the follow-ups that `uid` may see, newest first.
    pub fn page(&self, uid: u32, wanted: &Wanted, limit: Option<usize>) -> Result<Followups, RpcError> {
        let limit = reading::page(limit)?;
        let ids: Vec<FollowupId> = {
            let book = self.book();
            let all = book.backwards(wanted.session.as_ref(), wanted.after.as_ref());
            let fits = all
                .filter(|(_, entry)| wanted.state.is_none_or(|state| entry.state == state))
                .filter(|(_, entry)| self.registry.sees(uid, &entry.session));
            fits.map(|(id, _)| id.clone()).take(limit + 1).collect()
        };
        let (ids, more) = reading::cut(ids.into_iter(), limit);
        let next = ids.last().filter(|_| more).map(|last| last.0.clone());
        // One that has just gone is not there.
        let followups = ids.iter().filter_map(|id| self.shown(id).ok()).collect();
        Ok(Followups { followups, next })
    }

    /// Returns a page of what became of a follow-up's slots, newest first.
    pub fn runs(&self, id: &FollowupId, limit: Option<usize>, after: Option<&str>) -> Result<Runs, RpcError> {
        let limit = reading::page(limit)?;
        let wrong = || RpcError::new(ErrorKind::InvalidParams, "after: give `next` of the page before");
        let before = after.map(|after| Timestamp::parse(after).ok_or_else(wrong)).transpose()?;
        let before = before.map(|before| Key::slot(id, before));
        let found = self.deps().store.scan_backwards::<Last>(&Key::below(b'r', &id.0), before.as_ref(), limit + 1);
        let (runs, more) = reading::cut(found.map_err(|error| unavailable(&error))?.into_iter(), limit);
        let next = runs.last().filter(|_| more).map(|last| last.slot.to_string());
        Ok(Runs { runs, next })
    }

    /// Returns the session of a follow-up.
    pub fn session_of(&self, id: &FollowupId) -> Option<SessionId> {
        self.book().get(id).map(|entry| entry.session.clone())
    }

    fn record(&self, id: &FollowupId) -> Result<FollowupRecord, RpcError> {
        self.get(id).ok_or_else(|| booking::gone(id))
    }

    fn of(&self, session: &SessionId) -> Vec<FollowupId> {
        self.book().backwards(Some(session), None).map(|(id, _)| id.clone()).collect()
    }
}

fn ended(record: &FollowupRecord) -> RpcError {
    let message =
        format!("follow-up {} is {}; only active and paused ones go on", record.followup.id, record.followup.state);
    RpcError::new(ErrorKind::NotRunning, message).hint("schedule a new one")
}
