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

#[test]
fn once_is_once_whatever_becomes_of_it() {
    let now = instant(NOON);
    for schedule in [Schedule::At { due: Timestamp(now + SECOND) }, after(now, SECOND)] {
        for ends in [TaskState::Failed, TaskState::Cancelled, TaskState::Running, TaskState::Interrupted] {
            let mut world = World::new(&schedule, now, &json!({}));
            world.ends = ends;
            (0..3).for_each(|_| world.pass(SECOND));
            (0..3).for_each(|_| world.down(20 * MINUTE));
            assert_eq!((world.state(), world.slots(RunState::Fired)), (FollowupState::Done, vec![now + SECOND]));
        }
    }
}

#[test]
fn a_slot_that_falls_into_a_restart() {
    let now = instant(NOON);
    for (missed, down, fired, lost) in [
        ("latest", 2 * MINUTE, 1, 0),
        ("all", 2 * MINUTE, 1, 0),
        ("skip", 2 * MINUTE, 0, 1),
        ("skip", MINUTE + SECOND, 1, 0),
        ("latest", 2 * HOUR, 0, 1),
        ("latest", 49 * HOUR, 1, 2),
        ("latest", 50 * HOUR, 0, 3),
    ] {
        let mut world = World::new(&cron("0 15 * * *", "UTC"), now, &json!({ "missed_policy": missed }));
        world.pass(3 * HOUR - MINUTE);
        world.down(down);
        let found = (world.slots(RunState::Fired).len(), world.slots(RunState::Missed).len());
        assert_eq!(found, (fired, lost), "{missed} {down}");
        world.check(&cron("0 15 * * *", "UTC"), now);
    }
}

#[test]
fn a_restart_runs_no_slot_again() {
    let now = instant(NOON);
    let mut world = World::new(&cron("0 22 * * *", "Europe/Berlin"), now, &json!({"missed_policy": "all"}));
    world.pass(8 * HOUR);
    assert_eq!(world.slots(RunState::Fired).len(), 1);
    // A task that ends the daemon: 900 restarts.
    for _ in 0..900 {
        world.down(SECOND);
    }
    world.down(30 * MINUTE);
    assert_eq!(world.rows.len(), 1);
}

#[test]
fn a_stall_is_made_up_for_once() {
    let now = instant(NOON);
    let every = Schedule::Every { every_ms: MINUTE.unsigned_abs(), anchor: Timestamp(now) };
    let mut world = World::new(&every, now, &json!({}));
    world.sleep(27 * MINUTE + SECOND);
    world.pass(0);
    assert_eq!((world.slots(RunState::Fired).len(), world.slots(RunState::Missed).len()), (1, 26));
    world.pass(MINUTE);
    assert_eq!(world.slots(RunState::Fired).len(), 2);
}

#[test]
fn looking_at_it_moves_no_slot() {
    let now = instant(NOON);
    let daily = cron("0 13 * * *", "UTC");
    let mut world = World::new(&daily, now, &json!({}));
    world.sleep(HOUR + SECOND);
    let record = world.record();
    // What any other call does between the slot and its tick.
    booking::shown(&record, &world.moment());
    world.commit(&record, &[]);
    world.pass(0);
    assert_eq!(world.slots(RunState::Fired), [now + HOUR]);
    assert_eq!(world.record().next_due, Some(Timestamp(now + 25 * HOUR)));
}

#[test]
fn a_task_that_never_ends_holds_up_no_slot_for_good() {
    let now = instant(NOON);
    let every = Schedule::Every { every_ms: MINUTE.unsigned_abs(), anchor: Timestamp(now) };
    for overlap in ["skip", "queue", "replace"] {
        let mut world = World::new(&every, now, &json!({ "overlap": overlap }));
        world.ends = TaskState::Running;
        world.pass(5 * MINUTE);
        let found = (world.slots(RunState::Fired).len(), world.slots(RunState::Skipped).len());
        assert_eq!(found, if overlap == "skip" { (1, 4) } else { (5, 0) }, "{overlap}");
        assert_eq!(world.record().replaces.is_some(), overlap == "replace");
        // Its daemon is killed, and nobody takes it up.
        world.end_tasks(TaskState::Interrupted);
        world.pass(MINUTE);
        assert_eq!(world.slots(RunState::Fired).last(), Some(&(now + 6 * MINUTE)), "{overlap}");
        world.check(&every, now);
    }
}

#[test]
fn all_that_was_missed_is_caught_up_with_whatever_may_overlap() {
    let now = instant(NOON);
    let every = Schedule::Every { every_ms: MINUTE.unsigned_abs(), anchor: Timestamp(now) };
    for overlap in ["skip", "queue"] {
        let more = json!({"missed_policy": "all", "overlap": overlap, "grace_ms": HOUR});
        let mut world = World::new(&every, now, &more);
        world.ends = TaskState::Queued;
        world.sleep(10 * MINUTE + 5 * SECOND);
        world.start();
        world.pass(0);
        assert_eq!(world.slots(RunState::Fired).len(), 10, "{overlap}");
        world.check(&every, now);
    }
}

#[test]
fn nothing_is_caught_up_with_after_its_last_instant() {
    let now = instant(NOON);
    let at = Schedule::At { due: Timestamp(now + MINUTE) };
    for (slept, fired) in [(MINUTE, 1), (MINUTE + 2 * SECOND, 1), (11 * MINUTE, 0)] {
        let mut world = World::new(&at, now, &json!({"until": Timestamp(now + MINUTE + SECOND)}));
        world.sleep(slept);
        world.start();
        world.pass(0);
        assert_eq!(world.slots(RunState::Fired).len(), fired, "{slept}");
        assert_eq!(world.state(), FollowupState::Done);
    }
}

#[test]
fn steps_of_the_clock() {
    let now = instant(NOON);
    let every = Schedule::Every { every_ms: HOUR.unsigned_abs(), anchor: Timestamp(now) };
    // The clock is set after so long, then time passes; all slots, in hours from noon, with what became of them.
    for (before, step, then, expected) in [
        (30 * MINUTE, 2 * HOUR, HOUR, "missed 1, fired 2, fired 3"),
        (30 * MINUTE, DAY, 0, "missed 1-23, fired 24"),
        (150 * MINUTE, -HOUR, 2 * HOUR, "fired 1, fired 2, fired 3"),
        (150 * MINUTE, -2 * HOUR, 2 * HOUR, "fired 1, fired 2"),
        (150 * MINUTE, -DAY, 2 * HOUR, "fired -21, fired -20, fired 1, fired 2"),
        (150 * MINUTE, -30 * DAY, HOUR, "fired -717, fired 1, fired 2"),
    ] {
        let mut world = World::new(&every, now, &json!({}));
        world.pass(before);
        world.step(step);
        world.pass(then);
        let hour = |row: &Row| (row.state, (row.slot - now) / HOUR);
        let mut found: Vec<String> = Vec::new();
        let missed = world.slots(RunState::Missed);
        if missed.len() > 1 {
            found.push(format!("missed {}-{}", (missed[0] - now) / HOUR, (missed[missed.len() - 1] - now) / HOUR));
        }
        let single = |row: &&Row| row.state != RunState::Missed || missed.len() == 1;
        found.extend(world.rows.values().filter(single).map(hour).map(|(state, hour)| format!("{state} {hour}")));
        assert_eq!(found.join(", "), expected, "{before} {step} {then}");
    }
}

#[test]
fn slots_on_record_are_passed_over_after_a_great_step_back() {
    let now = instant(NOON);
    let every = Schedule::Every { every_ms: HOUR.unsigned_abs(), anchor: Timestamp(now - DAY) };
    let mut world = World::new(&every, now, &json!({}));
    world.pass(5 * HOUR + MINUTE);
    world.step(-8 * HOUR);
    world.pass(9 * HOUR);
    let hours: Vec<i64> = world.slots(RunState::Fired).iter().map(|slot| (slot - now) / HOUR).collect();
    assert_eq!(hours, [-2, -1, 0, 1, 2, 3, 4, 5, 6]);
    let at = |hour: i64| world.rows[&(now + hour * HOUR)].wall;
    assert_eq!((at(3), at(6)), (now + 3 * HOUR, now + 6 * HOUR));
}

#[test]
fn delays_by_the_clock_that_nobody_sets() {
    let now = instant(NOON);
    for (step, reboot, fires_after) in [
        (0, false, HOUR),
        (2 * HOUR, false, HOUR),
        (-2 * HOUR, false, HOUR),
        (DAY, false, HOUR),
        (-400 * DAY, false, HOUR),
        // After another start of the machine there is the wall clock alone.
        (0, true, HOUR),
        (-20 * MINUTE, true, HOUR + 20 * MINUTE),
        (40 * MINUTE, true, 20 * MINUTE),
    ] {
        let mut world = World::new(&after(now, HOUR), now, &json!({}));
        world.pass(10 * MINUTE);
        world.step(step);
        if reboot {
            world.reboot(0);
        } else {
            world.down(0);
        }
        let left = fires_after - 10 * MINUTE;
        world.pass(left - SECOND);
        assert_eq!(world.state(), FollowupState::Active, "{step} {reboot}: too early");
        world.pass(SECOND);
        assert_eq!((world.state(), world.rows.len()), (FollowupState::Done, 1), "{step} {reboot}: too late");
    }
}

#[test]
fn a_zone_that_is_not_there_any_more() {
    let mut world = World::new(&cron("0 8 * * *", "Europe/Berlin"), instant(NOON), &json!({}));
    for zone in ["Mars/Olympus", "", "Etc/Unknown"] {
        world.record = world.record.replace("Europe/Berlin", zone);
        let why = slots::plan(&world.record(), &world.moment()).unwrap_err();
        assert!(why.contains("cannot be computed"), "{zone}: {why}");
        world.start();
        assert!(world.book.first_due(&world.moment()).is_some(), "it is looked at, and marked, at once");
        world.record = world.record.replace(&format!("\"zone\":\"{zone}\""), "\"zone\":\"Europe/Berlin\"");
    }
}

#[test]
fn the_days_of_daylight_saving() {
    // A day of each switch by local time, and how many slots it has.
    for (zone, day, hours, half_past_two) in [
        ("Europe/Berlin", "2027-03-28", 23, "03:00"),
        ("Europe/Berlin", "2027-10-31", 25, "02:30"),
        ("America/New_York", "2027-03-14", 23, "03:00"),
        ("America/New_York", "2027-11-07", 25, "02:30"),
        ("Australia/Lord_Howe", "2027-10-03", 23, "02:30"),
        ("Australia/Lord_Howe", "2027-04-04", 24, "02:30"),
        ("Asia/Kolkata", "2027-03-28", 24, "02:30"),
    ] {
        let tz = jiff::tz::TimeZone::get(zone).unwrap();
        let midnight = |day: jiff::civil::Date| day.to_zoned(tz.clone()).unwrap().timestamp().as_millisecond();
        let date: jiff::civil::Date = day.parse().unwrap();
        let (from, to) = (midnight(date), midnight(date.tomorrow().unwrap()));
        for (expr, expected) in [("0 * * * *", hours), ("30 2 * * *", 1), ("0,30 2 * * *", 0), ("0 3 * * *", 1)] {
            let schedule = cron(expr, zone);
            let mut world = World::new(&schedule, from - 1, &json!({}));
            world.pass(to - from);
            world.check(&schedule, from - 1);
            let fired = world.slots(RunState::Fired);
            let local = |slot: &i64| {
                let at = jiff::Timestamp::from_millisecond(*slot).unwrap().to_zoned(tz.clone());
                at.strftime("%H:%M").to_string()
            };
            let local: Vec<String> = fired.iter().map(local).collect();
            if expected > 0 {
                assert_eq!(fired.len(), expected, "{zone} {day} {expr}: {local:?}");
            }
            if expr == "30 2 * * *" {
                assert_eq!(local, [half_past_two], "{zone} {day}");
            }
        }
    }
}

#[derive(Debug, Clone)]
enum Act {
    Pass(i64),
    Sleep(i64),
    Step(i64),
    Down(i64),
    Reboot(i64),
    Pause(i64),
    Dies(bool),
    Ends(TaskState),
    New(TaskState),
}

fn span() -> impl Strategy<Value = i64> {
    prop_oneof![0..2 * MINUTE, 0..6 * HOUR, 0..2 * DAY]
}

fn act() -> impl Strategy<Value = Act> {
    let states = || {
        prop::sample::select(vec![
            TaskState::Queued,
            TaskState::Running,
            TaskState::Succeeded,
            TaskState::Failed,
            TaskState::Interrupted,
        ])
    };
    prop_oneof![
        4 => span().prop_map(Act::Pass),
        2 => span().prop_map(Act::Sleep),
        3 => (span(), any::<bool>()).prop_map(|(ms, back)| Act::Step(if back { -ms } else { ms })),
        2 => span().prop_map(Act::Down),
        1 => span().prop_map(Act::Reboot),
        1 => span().prop_map(Act::Pause),
        2 => any::<bool>().prop_map(Act::Dies),
        1 => states().prop_map(Act::Ends),
        1 => states().prop_map(Act::New),
    ]
}

fn field(top: u32) -> impl Strategy<Value = String> {
    prop_oneof![
        Just("*".to_owned()),
        (2..top).prop_map(|step| format!("*/{step}")),
        (0..top).prop_map(|one| one.to_string()),
        (0..top, 0..top).prop_map(|(a, b)| format!("{}-{}", a.min(b), a.max(b))),
        (0..top, 0..top).prop_map(|(a, b)| format!("{},{}", a.min(b), a.max(b))),
    ]
}

fn expression() -> impl Strategy<Value = String> {
    let days = prop::sample::select(vec![
        "* * *",
        "* * *",
        "L * *",
        "15W * *",
        "* * FRI#2",
        "* * 5L",
        "* * MON-FRI",
        "1,15 * *",
    ]);
    let second = prop::option::of(0..60_u32);
    (second, field(60), field(24), days).prop_map(|(second, minute, hour, days)| {
        let second = second.map(|second| format!("{second} ")).unwrap_or_default();
        format!("{second}{minute} {hour} {days}")
    })
}

fn zone() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "UTC"])
}

/// A start near one of the switches of those zones, or anywhere.
fn beginning() -> impl Strategy<Value = i64> {
    let near =
        ["2027-03-28T01:00Z", "2027-10-31T01:00Z", "2027-03-14T07:00Z", "2027-11-07T06:00Z", "2027-04-03T15:00Z"];
    let near: Vec<i64> = near.iter().map(|at| instant(at)).collect();
    prop_oneof![
        (prop::sample::select(near), -2 * DAY..DAY).prop_map(|(at, off)| at + off),
        1_800_000_000_000..1_900_000_000_000_i64,
    ]
}

fn kind() -> impl Strategy<Value = (Schedule, i64)> {
    prop_oneof![
        4 => (expression(), zone(), beginning()).prop_map(|(expr, zone, now)| (cron(&expr, zone), now)),
        2 => (30_u64..100_000, beginning()).prop_map(|(s, now)| {
            (Schedule::Every { every_ms: s * 1000, anchor: Timestamp(now) }, now)
        }),
        1 => (span(), beginning()).prop_map(|(ms, now)| (after(now, ms + 1), now)),
        1 => (span(), beginning()).prop_map(|(ms, now)| (Schedule::At { due: Timestamp(now + ms + 1) }, now)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]
    #[test]
    fn any_life(
        (schedule, now) in kind(),
        missed in prop::sample::select(Missed::ALL.to_vec()),
        overlap in prop::sample::select(Overlap::ALL.to_vec()),
        grace_ms in prop::option::of(0_i64..3 * HOUR),
        jitter_ms in prop::option::of(0_u64..30_000),
        max_runs in prop::option::of(1_u64..30),
        until in prop::option::of(span()),
        acts in prop::collection::vec(act(), 1..14),
    ) {
        let first = calendar::next_after(&schedule, Timestamp(now));
        let grace_ms = grace_ms.map_or_else(|| calendar::default_grace_ms(&schedule), i64::unsigned_abs);
        let jitter_ms = jitter_ms.filter(|ms| calendar::period_ms(&schedule).is_none_or(|period| *ms < period));
        prop_assume!(first.is_some());
        // One that would never fire is refused.
        let later = jitter_ms.map_or(0, |most| calendar::jitter_ms("fup_1", most));
        let until = until.filter(|ms| first.is_some_and(|first| first.0 + later <= now + ms));
        let more = json!({
            "missed_policy": missed, "overlap": overlap, "grace_ms": grace_ms, "jitter_ms": jitter_ms,
            "max_runs": max_runs, "until": until.map(|ms| Timestamp(now + ms)),
        });
        let mut world = World::new(&schedule, now, &more);
        for act in &acts {
            match *act {
                Act::Pass(ms) => world.pass(ms),
                Act::Sleep(ms) => world.sleep(ms),
                Act::Step(ms) => world.step(ms),
                Act::Down(ms) => world.down(ms),
                Act::Reboot(ms) => world.reboot(ms),
                Act::Pause(ms) => world.pause(ms),
                Act::Dies(after) => world.dies = if after { Dies::After } else { Dies::Before },
                Act::Ends(state) => world.end_tasks(state),
                Act::New(state) => world.ends = state,
            }
        }
        world.check(&schedule, now);
        let record = world.record();
        let fired = world.slots(RunState::Fired);
        prop_assert!(max_runs.is_none_or(|most| fired.len() as u64 <= most), "{:?}", fired);
        prop_assert!(until.is_none_or(|ms| world.rows.keys().all(|slot| *slot <= now + ms)), "{:?}", world.rows);
        if record.followup.state == FollowupState::Active {
            prop_assert!(record.next_due.is_some(), "{:?}", record);
        }
    }
}
