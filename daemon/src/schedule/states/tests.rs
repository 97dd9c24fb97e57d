//! Pause and resume, failures in a row, clocks that are set back: as tables.
#![expect(clippy::unwrap_used, reason = "tests")]

use nano_protocol::followup::{Last, RunState};
use serde_json::json;

use super::*;

const HOUR: i64 = 3_600_000;
const NOW: i64 = 1_800_000_000_000;

fn at(wall: i64) -> Moment {
    Moment { wall: Timestamp(wall), boot_ms: 0, boot: "b".into() }
}

fn record(schedule: &Schedule, next_due: Option<i64>) -> FollowupRecord {
    let followup = json!({
        "id": "fup_1", "session": "ses_1", "content": "f", "trigger": {}, "state": "active", "next": [], "runs": 0,
        "missed": 0, "missed_policy": "latest", "overlap": "skip", "grace_ms": 60_000, "metadata": {},
        "created_at": Timestamp(NOW - 100 * HOUR),
    });
    let next_due = next_due.map(Timestamp);
    serde_json::from_value(json!({"followup": followup, "owner": 1, "schedule": schedule, "next_due": next_due}))
        .unwrap()
}

fn hourly() -> Schedule {
    Schedule::Every { every_ms: HOUR.unsigned_abs(), anchor: Timestamp(NOW - 100 * HOUR) }
}

/// Returns the slots that changes record, each with its state.
fn rows(changes: &[Change]) -> Vec<(i64, RunState)> {
    let rows = changes.iter().filter_map(|change| match change {
        Change::Put(_, json) => serde_json::from_slice::<Last>(json).ok(),
        _ => None,
    });
    rows.map(|row| (row.slot.0, row.state)).collect()
}

#[test]
fn slots_that_passed_in_a_pause_are_missed() {
    let cron = Schedule::Cron { expr: "0 * * * *".into(), zone: "UTC".into() };
    let once = Schedule::At { due: Timestamp(NOW) };
    for (schedule, next, now, until, missed, next_due, state) in [
        (hourly(), NOW, NOW - 1, None, &[][..], Some(NOW), FollowupState::Active),
        (hourly(), NOW, NOW, None, &[NOW], Some(NOW + HOUR), FollowupState::Active),
        (
            hourly(),
            NOW,
            NOW + 2 * HOUR,
            None,
            &[NOW, NOW + HOUR, NOW + 2 * HOUR],
            Some(NOW + 3 * HOUR),
            FollowupState::Active,
        ),
        (cron, NOW, NOW + HOUR, None, &[NOW, NOW + HOUR], Some(NOW + 2 * HOUR), FollowupState::Active),
        (once.clone(), NOW, NOW + 1, None, &[NOW], None, FollowupState::Done),
        (once, NOW, NOW - 1, None, &[], Some(NOW), FollowupState::Active),
        (hourly(), NOW, NOW + 5 * HOUR, Some(NOW + HOUR), &[NOW, NOW + HOUR], None, FollowupState::Done),
        (Schedule::External, NOW, NOW, None, &[], None, FollowupState::Active),
    ] {
        let mut record = record(&schedule, schedule.is_timed().then_some(next));
        (record.followup.state, record.followup.until) = (FollowupState::Paused, until.map(Timestamp));
        (record.failures, record.followup.reason) = (5, Some("failed".into()));
        let changes = resume(&mut record, &at(now), 7, |_| false).unwrap();
        let expected: Vec<_> = missed.iter().map(|slot| (*slot, RunState::Missed)).collect();
        assert_eq!(rows(&changes), expected, "{schedule:?} at {now}");
        assert_eq!((record.next_due, record.followup.state), (next_due.map(Timestamp), state), "{schedule:?} at {now}");
        assert_eq!(record.followup.missed, missed.len() as u64);
        assert_eq!((record.failures, record.followup.reason, record.seen_seq), (0, None, 7));
    }
}

#[test]
fn a_long_pause_is_counted_and_its_rows_are_bounded() {
    let mut record = record(&Schedule::Every { every_ms: 1000, anchor: Timestamp(NOW) }, Some(NOW));
    record.followup.state = FollowupState::Paused;
    let changes = resume(&mut record, &at(NOW + 24 * HOUR), 0, |_| false).unwrap();
    assert_eq!((record.followup.missed, record.next_due), (86_401, Some(Timestamp(NOW + 24 * HOUR + 1000))));
    assert!(rows(&changes).len() <= 1100, "{} rows", rows(&changes).len());
}

#[test]
fn what_cannot_be_computed_is_not_resumed() {
    let mut record = record(&Schedule::Cron { expr: "0 8 * * *".into(), zone: "Mars/Olympus".into() }, Some(NOW));
    record.followup.state = FollowupState::Paused;
    let why = resume(&mut record, &at(NOW), 0, |_| false).unwrap_err();
    assert!(why.contains("Mars/Olympus"), "{why}");
    assert_eq!(record.followup.state, FollowupState::Paused);
}

#[test]
fn failures_in_a_row_pause() {
    use TaskState::{Cancelled, Failed, Succeeded};
    for (ends, paused, failures) in [
        (&[Failed; 4][..], false, 4),
        (&[Failed; 5], true, 5),
        (&[Failed, Failed, Succeeded, Failed, Failed, Failed, Failed], false, 4),
        (&[Failed, Failed, Cancelled, Failed, Failed, Failed], true, 5),
        (&[Cancelled; 9], false, 0),
    ] {
        let (mut record, mut warnings) = (record(&hourly(), Some(NOW)), 0);
        for (seq, state) in (1..).zip(ends) {
            let task = TaskId("tsk_1".into());
            warnings += judge(&mut record, &task, *state, seq).unwrap_or_default().len();
            // The log may be read again after a crash.
            assert_eq!(judge(&mut record, &task, *state, seq).map(|_| ()), None, "{ends:?}");
        }
        assert_eq!((record.failures, warnings), (failures, usize::from(paused)), "{ends:?}");
        assert_eq!(record.followup.state == FollowupState::Paused, paused, "{ends:?}");
        assert_eq!(record.followup.reason.is_some(), paused, "{ends:?}");
    }
}

#[test]
fn a_clock_that_was_hours_ahead_is_forgiven() {
    let cron = Schedule::Cron { expr: "0 * * * *".into(), zone: "UTC".into() };
    for (schedule, last_due, now, next) in [
        // Less is waited for: the slots up to there have been decided.
        (hourly(), Some(NOW), NOW - 3 * HOUR, None),
        (hourly(), Some(NOW), NOW - 3 * HOUR - 1, Some(NOW - 3 * HOUR)),
        (cron.clone(), Some(NOW), NOW - 50 * HOUR, Some(NOW - 49 * HOUR)),
        (cron, Some(NOW), NOW + HOUR, None),
        (Schedule::At { due: Timestamp(NOW + HOUR) }, None, NOW - 200 * HOUR, None),
        // Made while the clock was ahead: its anchor goes back with the clock.
        (hourly(), None, NOW - 200 * HOUR - 1, Some(NOW - 200 * HOUR)),
    ] {
        let mut record = record(&schedule, Some(NOW + HOUR));
        record.last_due = last_due.map(Timestamp);
        let before = record.clone();
        assert_eq!(rewind(&mut record, &at(now)), next.is_some(), "{schedule:?} at {now}");
        let Some(next) = next else {
            assert_eq!(record, before);
            continue;
        };
        assert_eq!((record.next_due, record.recorded_until), (Some(Timestamp(next)), before.last_due), "{schedule:?}");
        assert!(!rewind(&mut record, &at(now)), "once is enough: {schedule:?}");
        let plan = slots::plan(&record, &at(next)).unwrap();
        assert_eq!((plan.fire, plan.next), (vec![Timestamp(next)], Some(Timestamp(next + HOUR))), "{schedule:?}");
    }
}

#[test]
fn an_anchor_that_was_named_stays() {
    let mut record = record(&hourly(), Some(NOW - 100 * HOUR));
    record.followup.trigger.anchor = Some("then".into());
    assert!(!rewind(&mut record, &at(NOW - 500 * HOUR)));
}

#[test]
fn runs_out_of_turn_take_no_slot() {
    let record = record(&hourly(), Some(NOW));
    for (from, taken, free) in [
        (NOW + 1, &[][..], NOW + 1),
        (NOW, &[], NOW + 1),
        (NOW + HOUR, &[NOW + HOUR + 1], NOW + HOUR + 2),
        (NOW + 5, &[NOW + 5, NOW + 6, NOW + 8], NOW + 7),
    ] {
        let found = free_instant(&record, Timestamp(from), |at| taken.contains(&at.0));
        assert_eq!(found, Timestamp(free), "{from}");
    }
}
