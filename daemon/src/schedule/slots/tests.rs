//! What becomes of due slots, as tables, and a whole catch-up as a property.
#![expect(clippy::unwrap_used, reason = "tests")]

use nano_protocol::followup::{Followup, Missed};
use proptest::prelude::*;

use super::*;

/// What is known of a follow-up before its due slots are decided; instants are small numbers.
#[derive(Debug, Clone)]
struct Given {
    overlap: Overlap,
    /// How the task of the slot before is doing.
    last: Option<TaskState>,
    max_runs: Option<u64>,
    runs: u64,
    missed: &'static [i64],
    unlisted: u64,
    fire: &'static [i64],
    next: Option<i64>,
}

const PLAIN: Given = Given {
    overlap: Overlap::Skip,
    last: None,
    max_runs: None,
    runs: 0,
    missed: &[],
    unlisted: 0,
    fire: &[],
    next: Some(9),
};

/// The task of the slot before.
const BEFORE: &str = "tsk_before";

fn record(overlap: Overlap, missed: Missed, schedule: &Schedule) -> FollowupRecord {
    let followup = json!({
        "id": "fup_1", "session": "ses_1", "content": "f", "trigger": {"every_ms": 1000}, "state": "active", "next": [],
        "runs": 0, "missed": 0, "missed_policy": missed, "overlap": overlap, "grace_ms": 0, "metadata": {},
        "created_at": Timestamp(0),
    });
    let record = json!({"followup": followup, "owner": 1, "schedule": schedule, "next_due": Timestamp(0)});
    serde_json::from_value(record).unwrap()
}

fn before(given: &Given) -> FollowupRecord {
    let mut record = record(given.overlap, Missed::All, &Schedule::After { due: Timestamp(0), boot: None });
    (record.followup.max_runs, record.followup.runs) = (given.max_runs, given.runs);
    let task = given.last.map(|_| TaskId(BEFORE.into()));
    record.followup.last = Some(Last { slot: Timestamp(0), task, state: RunState::Fired });
    record
}

/// Returns the rows that changes write.
fn rows(changes: &[Change]) -> Vec<Last> {
    let puts = changes.iter().filter_map(|change| match change {
        Change::Put(_, json) => Some(serde_json::from_slice(json).unwrap()),
        _ => None,
    });
    puts.collect()
}

/// Decides, and renders the rows, what comes next, the state and the counts.
fn decided(given: &Given) -> (String, FollowupRecord) {
    let mut record = before(given);
    let times = |slots: &[i64]| slots.iter().copied().map(Timestamp).collect::<Vec<_>>();
    let (missed, fire) = (times(given.missed), times(given.fire));
    let plan = Plan { fire, missed, unlisted: given.unlisted, late: false, next: given.next.map(Timestamp) };
    let (task, changes) = decide(&mut record, plan, given.last, &Clock::default());
    let rows = rows(&changes);
    let fired: Vec<_> = rows.iter().filter(|row| row.state == RunState::Fired).map(|row| row.task.clone()).collect();
    assert_eq!(fired, task.into_iter().map(Some).collect::<Vec<_>>(), "{given:?}: a fired row names the task");
    assert_eq!(changes.len(), 2 * rows.len(), "{given:?}: each row has its event");
    let rows: Vec<_> = rows.iter().map(|row| format!("{} {}", row.state, row.slot.0)).collect();
    let Followup { state, runs, missed, .. } = &record.followup;
    let next = record.next_due.map_or("-".to_owned(), |next| next.0.to_string());
    (format!("{}; next {next}; {state} {runs}/{missed}", rows.join(", ")), record)
}

#[test]
fn due_slots_are_decided() {
    for (given, expected) in [
        (PLAIN, "; next 9; active 0/0"),
        (Given { fire: &[1], ..PLAIN }, "fired 1; next 9; active 1/0"),
        (Given { fire: &[1], next: None, ..PLAIN }, "fired 1; next -; done 1/0"),
        (Given { missed: &[1, 2], fire: &[3], ..PLAIN }, "missed 1, missed 2, fired 3; next 9; active 1/2"),
        (Given { missed: &[1], next: None, ..PLAIN }, "missed 1; next -; done 0/1"),
        (Given { unlisted: 7, missed: &[1], fire: &[2], ..PLAIN }, "missed 1, fired 2; next 9; active 1/8"),
        // One at a time: the next one is decided when this one is on record.
        (Given { fire: &[1, 2, 3], ..PLAIN }, "fired 1; next 2; active 1/0"),
        (Given { fire: &[3], runs: 2, max_runs: Some(3), ..PLAIN }, "fired 3; next 9; done 3/0"),
        (Given { fire: &[1, 2], max_runs: Some(1), ..PLAIN }, "fired 1; next 2; done 1/0"),
        (Given { missed: &[1, 2], max_runs: Some(1), ..PLAIN }, "missed 1, missed 2; next 9; active 0/2"),
    ] {
        assert_eq!(decided(&given).0, expected, "{given:?}");
    }
}

#[test]
fn a_task_in_the_way() {
    use TaskState::{Cancelled, Failed, Interrupted, Queued, Running, Succeeded};
    for (overlap, last, fires) in [
        (Overlap::Skip, None, true),
        (Overlap::Skip, Some(Queued), false),
        (Overlap::Skip, Some(Running), false),
        (Overlap::Skip, Some(Interrupted), true),
        (Overlap::Skip, Some(Succeeded), true),
        (Overlap::Skip, Some(Failed), true),
        (Overlap::Skip, Some(Cancelled), true),
        // One waits, not two.
        (Overlap::Queue, Some(Queued), false),
        (Overlap::Queue, Some(Running), true),
        (Overlap::Queue, Some(Succeeded), true),
        (Overlap::Queue, None, true),
    ] {
        let given = Given { overlap, last, fire: &[1, 2], max_runs: Some(5), ..PLAIN };
        let expected = if fires { "fired 1; next 2; active 1/0" } else { "skipped 1; next 2; active 0/0" };
        assert_eq!(decided(&given).0, expected, "{given:?}");
    }
}

#[test]
fn a_task_that_still_runs_is_not_forgotten_for_slots_that_did_not_fire() {
    let last = Some(TaskState::Running);
    for (given, keeps) in [
        (Given { last, fire: &[1], ..PLAIN }, true),
        (Given { last, missed: &[1], ..PLAIN }, true),
        (Given { last, missed: &[1, 2], fire: &[3], ..PLAIN }, true),
        (Given { last: Some(TaskState::Succeeded), missed: &[1], fire: &[2], ..PLAIN }, false),
    ] {
        let (_, record) = decided(&given);
        let task = record.followup.last.and_then(|last| last.task);
        assert_eq!(task.is_some_and(|task| task.0 == BEFORE), keeps, "{given:?}");
    }
}

fn at(wall: i64) -> Moment {
    Moment { wall: Timestamp(wall), boot_ms: 0, boot: "".into() }
}

/// Catches up as the scheduler does, the clock going on by `step` and every task ending at once, and returns all rows.
fn catch_up(record: &mut FollowupRecord, mut now: i64, step: i64) -> Vec<Last> {
    let mut all = Vec::new();
    while record.followup.state == FollowupState::Active && record.next_due.is_some_and(|next| next.0 <= now) {
        let plan = plan(record, &at(now)).unwrap();
        let last = record.followup.last.as_ref().and_then(|last| last.task.as_ref()).map(|_| TaskState::Succeeded);
        all.extend(rows(&decide(record, plan, last, &Clock::default()).1));
        now += step;
    }
    all
}

proptest! {
    #[test]
    fn each_slot_is_decided_once_and_none_beyond_the_bounds(
        missed in prop::sample::select(vec![Missed::Skip, Missed::Latest, Missed::All]),
        grace_s in 0_u64..20,
        max_runs in prop::option::of(1_u64..6),
        until_s in prop::option::of(0_i64..40),
        (down_s, step) in (0_i64..30, 0_i64..900),
    ) {
        let schedule = Schedule::Every { every_ms: 1000, anchor: Timestamp(0) };
        let mut record = record(Overlap::Skip, missed, &schedule);
        let until = until_s.map(|s| Timestamp(s * 1000));
        (record.followup.max_runs, record.followup.until, record.followup.grace_ms) = (max_runs, until, grace_s * 1000);
        let rows = catch_up(&mut record, down_s * 1000, step);
        let slots: Vec<i64> = rows.iter().map(|row| row.slot.0).collect();
        let expected: Vec<i64> = (0..).map(|n| n * 1000).take(slots.len()).collect();
        prop_assert_eq!(&slots, &expected, "every slot from the first on, in order");
        prop_assert!(until.is_none_or(|until| slots.iter().all(|slot| *slot <= until.0)), "{:?}", rows);
        let fired = rows.iter().filter(|row| row.state == RunState::Fired).count() as u64;
        prop_assert!(max_runs.is_none_or(|most| fired <= most), "{:?}", rows);
        prop_assert_eq!((record.followup.runs, record.followup.runs + record.followup.missed), (fired, rows.len() as u64));
        if record.followup.state == FollowupState::Active {
            prop_assert!(slots.last() >= Some(&(down_s * 1000)), "due slots are left: {:?}", rows);
        }
    }
}

#[test]
fn what_happens_too_often_pauses_it() {
    let mut record = record(Overlap::Queue, Missed::Latest, &Schedule::External);
    let clock = Clock::default();
    for n in 0..MOST_AN_HOUR {
        let (task, _) = happen(&mut record, Timestamp(n.cast_signed()), 1, None, &clock);
        assert!(task.is_some(), "{n}");
    }
    // An hour later it counts anew.
    let (task, _) = happen(&mut record.clone(), Timestamp(HOUR_MS), 1, None, &clock);
    assert!(task.is_some());
    let (task, changes) = happen(&mut record, Timestamp(HOUR_MS - 1), 1, None, &clock);
    assert_eq!(
        (task, rows(&changes)[0].state, record.followup.state),
        (None, RunState::Skipped, FollowupState::Paused)
    );
    assert!(record.followup.reason.is_some_and(|why| why.contains("1000 times within an hour")));
}
