//! What the scheduler keeps in memory: of every follow-up whose it is, and of those that are active what they wait for.
//! Nothing here takes longer than the logarithm of their number.

use std::collections::{BTreeMap, BTreeSet};

use nano_protocol::event::EventType;
use nano_protocol::followup::FollowupState;
use nano_protocol::id::{FollowupId, SessionId, TaskId};
use nano_protocol::time::Timestamp;

use super::calendar::Schedule;
use super::slots;
use crate::clock::Moment;
use crate::store::record::FollowupRecord;

/// When a follow-up has to be looked at, by which clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Due {
    /// By the wall clock.
    Wall(Timestamp),
    /// By the clock that counts from the start of the machine.
    Boot(u64),
}

impl Due {
    fn wall(self) -> Option<Timestamp> {
        if let Self::Wall(at) = self { Some(at) } else { None }
    }
}

/// What active follow-ups wait for beside time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Awaited {
    /// The end of a task.
    Task(TaskId),
    /// Events of a type.
    Event(EventType),
    /// Files.
    File,
}

/// One follow-up.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Its session.
    pub session: SessionId,
    /// How far it is.
    pub state: FollowupState,
    /// Whether an agent made it.
    pub by_agent: bool,
    due: Option<Due>,
    /// Whether it fires when it is due, or ends then.
    fires: bool,
    awaits: Option<Awaited>,
}

impl Entry {
    fn is_live(&self) -> bool {
        matches!(self.state, FollowupState::Active | FollowupState::Paused)
    }

    fn of(record: &FollowupRecord, boot: &str) -> Self {
        let followup = &record.followup;
        let schedule = slots::schedule(record).ok().filter(|_| followup.state == FollowupState::Active);
        let awaits = schedule.as_ref().and_then(|schedule| match schedule {
            Schedule::Task { task } => Some(Awaited::Task(task.clone())),
            Schedule::Event { event, .. } => Some(Awaited::Event(*event)),
            Schedule::File { .. } => Some(Awaited::File),
            _ => None,
        });
        let due = match &schedule {
            Some(Schedule::After { boot: Some(due), .. }) if due.boot == boot => {
                let jitter = slots::jitter(record).unsigned_abs();
                record.next_due.map(|_| Due::Boot(due.ms + jitter))
            }
            Some(schedule) if schedule.is_timed() => {
                record.next_due.map(|next| Due::Wall(next.plus_ms(slots::jitter(record))))
            }
            // It ends when its time is over.
            Some(_) => followup.until.map(|until| Due::Wall(until.plus_ms(1))),
            // One whose schedule cannot be read is looked at, and marked, at once.
            None if followup.state == FollowupState::Active => Some(Due::Wall(Timestamp(0))),
            None => None,
        };
        let (session, by_agent) = (followup.session.clone(), record.by_agent);
        let fires = schedule.is_some_and(|schedule| schedule.is_timed());
        Self { session, state: followup.state, by_agent, due, fires, awaits }
    }
}

/// Those of one session.
#[derive(Debug, Default)]
struct Of {
    ids: BTreeSet<FollowupId>,
    live: Live,
}

/// How many have not ended.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Live {
    /// All of them.
    pub all: usize,
    /// Those that an agent made.
    pub by_agent: usize,
}

/// The book.
#[derive(Debug, Default)]
pub struct Book {
    entries: BTreeMap<FollowupId, Entry>,
    by_session: BTreeMap<SessionId, Of>,
    due: BTreeSet<(Due, FollowupId)>,
    awaited: BTreeMap<Awaited, BTreeSet<FollowupId>>,
    replacing: BTreeSet<FollowupId>,
    active: u64,
}

impl Book {
    /// Takes up what a record says now.
    pub fn put(&mut self, record: &FollowupRecord, boot: &str) {
        let id = &record.followup.id;
        self.remove(id);
        let entry = Entry::of(record, boot);
        self.active += u64::from(entry.state == FollowupState::Active);
        let of = self.by_session.entry(entry.session.clone()).or_default();
        of.ids.insert(id.clone());
        of.live.all += usize::from(entry.is_live());
        of.live.by_agent += usize::from(entry.is_live() && entry.by_agent);
        self.due.extend(entry.due.map(|due| (due, id.clone())));
        if let Some(awaited) = &entry.awaits {
            self.awaited.entry(awaited.clone()).or_default().insert(id.clone());
        }
        self.entries.insert(id.clone(), entry);
        if record.replaces.is_some() {
            self.replacing.insert(id.clone());
        }
    }

    /// Looks at it again not before `until`.
    pub fn put_off(&mut self, id: &FollowupId, until: Timestamp) {
        let Some(entry) = self.entries.get_mut(id) else { return };
        if let Some(due) = entry.due.replace(Due::Wall(until)) {
            self.due.remove(&(due, id.clone()));
            self.due.insert((Due::Wall(until), id.clone()));
        }
    }

    /// Forgets it.
    pub fn remove(&mut self, id: &FollowupId) {
        let Some(entry) = self.entries.remove(id) else { return };
        self.active -= u64::from(entry.state == FollowupState::Active);
        self.replacing.remove(id);
        if let Some(due) = entry.due {
            self.due.remove(&(due, id.clone()));
        }
        if let Some(awaited) = &entry.awaits {
            self.awaits_no_more(awaited, id);
        }
        if let Some(of) = self.by_session.get_mut(&entry.session) {
            of.ids.remove(id);
            of.live.all -= usize::from(entry.is_live());
            of.live.by_agent -= usize::from(entry.is_live() && entry.by_agent);
            if of.ids.is_empty() {
                self.by_session.remove(&entry.session);
            }
        }
    }

    /// Returns one.
    pub fn get(&self, id: &FollowupId) -> Option<&Entry> {
        self.entries.get(id)
    }

    /// Returns all, or those of one session, newest first, beginning before `before`.
    pub fn backwards<'a>(
        &'a self,
        session: Option<&SessionId>,
        before: Option<&'a FollowupId>,
    ) -> Box<dyn Iterator<Item = (&'a FollowupId, &'a Entry)> + 'a> {
        let is_before = move |id: &&FollowupId| before.is_none_or(|before| **id < *before);
        match session {
            Some(session) => {
                let ids = self.by_session.get(session).into_iter().flat_map(|of| of.ids.iter().rev());
                Box::new(ids.filter(is_before).filter_map(|id| Some((id, self.entries.get(id)?))))
            }
            None => match before {
                Some(before) => Box::new(self.entries.range(..before.clone()).rev()),
                None => Box::new(self.entries.iter().rev()),
            },
        }
    }

    /// Returns how many of a session have not ended.
    pub fn live(&self, session: &SessionId) -> Live {
        self.by_session.get(session).map(|of| of.live).unwrap_or_default()
    }

    /// Returns who waits for this, those with a smaller id first.
    pub fn awaiting(&self, awaited: &Awaited) -> Vec<FollowupId> {
        self.awaited.get(awaited).into_iter().flatten().cloned().collect()
    }

    /// Returns those whose newest task still has to replace another.
    pub fn replacing(&self) -> Vec<FollowupId> {
        self.replacing.iter().cloned().collect()
    }

    /// Returns all that wait for the end of a task.
    pub fn tasks_awaited(&self) -> Vec<FollowupId> {
        let tasks = self.awaited.iter().filter(|(awaited, _)| matches!(awaited, Awaited::Task(_)));
        tasks.flat_map(|(_, ids)| ids).cloned().collect()
    }

    /// Returns how many are active.
    pub fn active(&self) -> u64 {
        self.active
    }

    /// Returns which one is due, if one is.
    pub fn first_due(&self, now: &Moment) -> Option<FollowupId> {
        let firsts = [self.first_by_wall(), self.first_by_boot()].into_iter().flatten();
        let is_due = |due: Due| match due {
            Due::Wall(at) => at <= now.wall,
            Due::Boot(ms) => ms <= now.boot_ms,
        };
        firsts.filter(|(due, _)| is_due(*due)).map(|(_, id)| id.clone()).next()
    }

    /// Returns when the next one fires, as the wall clock of now will show it.
    pub fn next_fire(&self, now: &Moment) -> Option<Timestamp> {
        let ahead = |ms: u64| now.wall.plus_ms(ms.cast_signed().saturating_sub(now.boot_ms.cast_signed()));
        let fires = |(due, id): &&(Due, FollowupId)| {
            self.entries.get(id).is_some_and(|entry| entry.fires) && matches!(due, Due::Wall(_))
        };
        let wall = self.due.iter().find(fires).and_then(|(due, _)| due.wall());
        let boot = self.nearest().1.map(ahead);
        wall.into_iter().chain(boot).min()
    }

    /// Returns when the first one is due by the wall clock, and by the other.
    pub fn nearest(&self) -> (Option<Timestamp>, Option<u64>) {
        let boot = self.first_by_boot().and_then(|(due, _)| if let Due::Boot(ms) = due { Some(*ms) } else { None });
        (self.first_by_wall().and_then(|(due, _)| due.wall()), boot)
    }

    fn awaits_no_more(&mut self, awaited: &Awaited, id: &FollowupId) {
        if let Some(ids) = self.awaited.get_mut(awaited) {
            ids.remove(id);
            if ids.is_empty() {
                self.awaited.remove(awaited);
            }
        }
    }

    // Those by the wall clock sort before the others.
    fn first_by_wall(&self) -> Option<&(Due, FollowupId)> {
        self.due.first().filter(|(due, _)| matches!(due, Due::Wall(_)))
    }

    fn first_by_boot(&self) -> Option<&(Due, FollowupId)> {
        self.due.range((Due::Boot(0), FollowupId(String::new()))..).next()
    }
}

#[cfg(test)]
mod tests;
