//! Whole lives of follow-ups on clocks that the test turns: what users of other schedulers have reported, the days of
//! daylight saving, and any mixture of steps, restarts, crashes and pauses.
//!
//! The world below has the store and the sleeper; all that decides is the real thing.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use nano_protocol::followup::{FollowupState, Last, Missed, Overlap, RunState};
use nano_protocol::id::TaskId;
use nano_protocol::task::TaskState;
use nano_protocol::time::Timestamp;
use proptest::prelude::*;
use serde_json::json;

use super::book::Book;
use super::calendar::{self, BootDue, Schedule};
use super::{booking, slots, states};
use crate::clock::{Clock, Moment};
use crate::store::Change;
use crate::store::record::FollowupRecord;

mod clock;
mod properties;
mod runs;

const SECOND: i64 = 1000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

fn instant(text: &str) -> i64 {
    text.parse::<jiff::Timestamp>().unwrap().as_millisecond()
}

/// A row, and when it was made.
#[derive(Debug, Clone, PartialEq)]
struct Row {
    slot: i64,
    state: RunState,
    wall: i64,
}

/// What a commit does when the daemon dies around it.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Dies {
    Not,
    Before,
    After,
}

struct World {
    /// Tells `now`.
    clock: Clock,
    now: Arc<Mutex<Moment>>,
    /// What is on disk.
    record: String,
    rows: BTreeMap<i64, Row>,
    tasks: BTreeMap<TaskId, TaskState>,
    /// How tasks that are made do.
    ends: TaskState,
    book: Book,
    dies: Dies,
    unlisted: u64,
    rewound: bool,
}

impl World {
    fn new(schedule: &Schedule, now: i64, more: &serde_json::Value) -> Self {
        let moment = Moment { wall: Timestamp(now), boot_ms: 1_000_000, boot: "boot-0".into() };
        let next = calendar::next_after(schedule, moment.wall);
        let mut followup = json!({
            "id": "fup_1", "session": "ses_1", "content": "f", "trigger": {}, "state": "active", "next": [], "runs": 0,
            "missed": 0, "missed_policy": "latest", "overlap": "skip", "grace_ms": calendar::default_grace_ms(schedule),
            "metadata": {}, "created_at": moment.wall,
        });
        followup.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let record = json!({"followup": followup, "owner": 1, "schedule": schedule, "next_due": next}).to_string();
        let now = Arc::new(Mutex::new(moment));
        let told = now.clone();
        let mut world = Self {
            clock: Clock::telling(move || told.lock().unwrap().clone()),
            now,
            record,
            rows: BTreeMap::new(),
            tasks: BTreeMap::new(),
            ends: TaskState::Succeeded,
            book: Book::default(),
            dies: Dies::Not,
            unlisted: 0,
            rewound: false,
        };
        world.start();
        world
    }

    fn moment(&self) -> Moment {
        self.clock.moment()
    }

    fn turn(&self, turn: impl FnOnce(&mut Moment)) {
        turn(&mut self.now.lock().unwrap());
    }

    fn record(&self) -> FollowupRecord {
        serde_json::from_str(&self.record).unwrap()
    }

    fn state(&self) -> FollowupState {
        self.record().followup.state
    }

    /// Starts a daemon: its memory is made of what is on disk.
    fn start(&mut self) {
        self.book = Book::default();
        self.book.put(&self.record(), &self.moment().boot);
        self.rewind();
    }

    fn rewind(&mut self) {
        let mut record = self.record();
        if record.followup.state == FollowupState::Active && states::rewind(&mut record, &self.moment()) {
            self.rewound = true;
            self.commit(&record, &[]);
        }
    }

    fn commit(&mut self, record: &FollowupRecord, changes: &[Change]) {
        let dies = std::mem::replace(&mut self.dies, Dies::Not);
        if dies != Dies::Before {
            let before = self.record().followup.missed;
            let rows = changes.iter().filter_map(|change| match change {
                Change::Put(_, json) => serde_json::from_slice::<Last>(json).ok(),
                _ => None,
            });
            let rows: Vec<Last> = rows.collect();
            let listed = rows.iter().filter(|row| row.state == RunState::Missed).count() as u64;
            self.unlisted += record.followup.missed - before - listed;
            for row in rows {
                let (slot, wall) = (row.slot.0, self.moment().wall.0);
                let was = self.rows.insert(slot, Row { slot, state: row.state, wall });
                assert_eq!(was, None, "a slot was decided twice");
                if let (RunState::Fired, Some(task)) = (row.state, row.task) {
                    self.tasks.insert(task, self.ends);
                }
            }
            self.record = json!(record).to_string();
        }
        if dies == Dies::Not {
            self.book.put(record, &self.moment().boot);
        } else {
            self.start();
        }
    }

    /// Does what the scheduler does when something is due.
    fn fire_due(&mut self) {
        for _ in 0..5000 {
            let Some(_) = self.book.first_due(&self.moment()) else { return };
            let mut record = self.record();
            let mut plan = slots::plan(&record, &self.moment()).unwrap();
            if let Some(until) = record.recorded_until {
                slots::only_new(&mut plan, |slot| slot <= until && self.rows.contains_key(&slot.0));
            }
            for slot in plan.fire.iter().chain(&plan.missed) {
                let late = slots::now_for(&slots::schedule(&record).unwrap(), &self.moment()).0 - slot.0;
                assert!(late >= slots::jitter(&record), "before its time: {slot}");
            }
            let last = record.followup.last.as_ref().and_then(|last| last.task.as_ref());
            let last = last.and_then(|task| self.tasks.get(task)).copied();
            let (_, changes) = slots::decide(&mut record, plan, last, &self.clock);
            self.commit(&record, &changes);
        }
        panic!("it never comes to rest: {:?}", self.record());
    }

    /// Lets time pass in a daemon that runs: it wakes when something is due, and only then.
    fn pass(&mut self, ms: i64) {
        let end = self.moment().boot_ms + ms.unsigned_abs();
        self.fire_due();
        while self.moment().boot_ms < end {
            let (wall, boot) = self.book.nearest();
            let by_wall = wall.map_or(i64::MAX, |at| (at.0 - self.moment().wall.0).max(1));
            let by_boot = boot.map_or(i64::MAX, |at| at.cast_signed() - self.moment().boot_ms.cast_signed());
            let left = (end - self.moment().boot_ms).cast_signed();
            let shown = booking::shown(&self.record(), &self.moment()).next.first().copied();
            let waits = by_wall.min(by_boot);
            self.sleep(waits.min(left));
            if waits <= left && self.state() == FollowupState::Active {
                let now = self.moment().wall.0;
                assert!(shown.is_some_and(|shown| shown.0.abs_diff(now) < 1000), "{shown:?} was shown for {now}");
            }
            self.fire_due();
        }
    }

    /// Lets time pass that nobody sees.
    fn sleep(&mut self, ms: i64) {
        self.turn(|now| (now.wall, now.boot_ms) = (now.wall.plus_ms(ms), now.boot_ms + ms.unsigned_abs()));
    }

    /// Sets the wall clock, which wakes the sleeper.
    fn step(&mut self, ms: i64) {
        self.turn(|now| now.wall = now.wall.plus_ms(ms));
        self.rewind();
        self.fire_due();
    }

    fn down(&mut self, ms: i64) {
        self.sleep(ms);
        self.start();
        self.fire_due();
    }

    fn reboot(&mut self, ms: i64) {
        self.sleep(ms);
        self.turn(|now| (now.boot, now.boot_ms) = (format!("boot-{}", now.wall.0).into(), 5000));
        self.start();
        self.fire_due();
    }

    fn pause(&mut self, ms: i64) {
        let mut record = self.record();
        if record.followup.state != FollowupState::Active {
            return;
        }
        record.followup.state = FollowupState::Paused;
        self.dies = Dies::Not;
        self.commit(&record, &[]);
        let runs = self.record().followup.runs;
        self.pass(ms);
        assert_eq!(self.record().followup.runs, runs, "it fired while paused");
        let mut record = self.record();
        let rows = self.rows.clone();
        let changes = states::resume(&mut record, &self.moment(), 0, |slot| rows.contains_key(&slot.0)).unwrap();
        self.commit(&record, &changes);
    }

    fn end_tasks(&mut self, state: TaskState) {
        self.tasks.values_mut().for_each(|task| *task = state);
    }

    fn slots(&self, state: RunState) -> Vec<i64> {
        self.rows.values().filter(|row| row.state == state).map(|row| row.slot).collect()
    }

    /// Checks what holds of every life.
    fn check(&self, schedule: &Schedule, from: i64) {
        let followup = self.record().followup;
        let count = |state| self.rows.values().filter(|row| row.state == state).count() as u64;
        assert_eq!(followup.runs, count(RunState::Fired), "{:?}", self.rows);
        assert_eq!(followup.missed, count(RunState::Missed) + self.unlisted, "{:?}", self.rows);
        assert_eq!(self.tasks.len() as u64, followup.runs, "a task for each slot that fired");
        if self.rewound {
            return;
        }
        let record = self.record();
        let decided = record
            .next_due
            .map(|next| next.0 - 1)
            .or(record.followup.until.map(|until| until.0 - slots::jitter(&record)));
        let Some(last) = decided.or(self.rows.keys().last().copied()) else { return };
        let after = |slot| calendar::next_after(schedule, slot).filter(|slot| slot.0 <= last);
        let all = std::iter::successors(after(Timestamp(from)), |slot| after(*slot));
        let all: Vec<i64> = all.map(|slot| slot.0).collect();
        assert!(self.rows.keys().all(|slot| all.binary_search(slot).is_ok()), "not a slot: {:?}", self.rows);
        assert_eq!(all.len() as u64, self.rows.len() as u64 + self.unlisted, "a slot is lost: {:?}", self.rows);
    }
}

fn cron(expr: &str, zone: &str) -> Schedule {
    Schedule::Cron { expr: expr.into(), zone: zone.into() }
}

fn after(now: i64, ms: i64) -> Schedule {
    let boot = BootDue { boot: "boot-0".into(), ms: 1_000_000 + ms.unsigned_abs() };
    Schedule::After { due: Timestamp(now + ms), boot: Some(boot) }
}

const NOON: &str = "2027-06-01T12:00:00Z";
