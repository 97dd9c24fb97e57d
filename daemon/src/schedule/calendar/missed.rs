//! What to do about slots that are due: which fire, which were missed.

use std::collections::VecDeque;

use nano_protocol::followup::Missed;
use nano_protocol::time::Timestamp;

use super::{Schedule, Slots};

/// A slot that is so little late was not missed: timers and a busy machine are never exact.
const ON_TIME_MS: u32 = 2000;
/// So many missed slots are listed, the latest ones.
const MOST_LISTED: u32 = 1000;
/// So many slots fire at once, the latest ones.
const MOST_FIRED: u32 = 100;
/// So many slots are kept while looking.
const KEPT: usize = (MOST_LISTED + MOST_FIRED) as usize;
/// So many slots are looked at one by one.
const MOST_STEPS: usize = 100_000;

/// What becomes of the slots that are due.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// These fire, ascending.
    pub fire: Vec<Timestamp>,
    /// These were missed, ascending; the latest thousand.
    pub missed: Vec<Timestamp>,
    /// So many more were missed before those; of a cron expression with more than a hundred thousand, at least so many.
    pub unlisted: u64,
    /// Whether those that fire are caught up with: their time has passed.
    pub late: bool,
    /// The first slot that is not due yet.
    pub next: Option<Timestamp>,
}

/// Decides about every slot from `next_due` to `now` that is not after `until`; one that is not after `last_due` has been
/// decided before.
pub fn due_slots(
    schedule: &Schedule,
    last_due: Option<Timestamp>,
    next_due: Timestamp,
    (now, until): (Timestamp, Option<Timestamp>),
    missed: Missed,
    grace_ms: u64,
) -> Plan {
    let Some(slots) = Slots::of(schedule) else { return Plan::default() };
    // A clock that was set back must not fire a slot twice.
    let first = match last_due {
        Some(last) if next_due <= last => slots.next_after(last),
        _ => Some(next_due),
    };
    let (mut due, mut unlisted) = (VecDeque::new(), 0);
    let end = until.map_or(now, |until| until.min(now));
    let next = collect_due(&slots, first, end, &mut due, &mut unlisted);
    let next = next.filter(|next| until.is_none_or(|until| *next <= until));
    // Not after `until` means that what was missed before is not caught up with after it.
    let is_over = until.is_some_and(|until| now.0.saturating_sub(until.0) > ON_TIME_MS.into());
    let fires = if is_over { 0 } else { firing(&due, now, missed, grace_ms) };
    let fire = due.split_off(due.len() - fires);
    let late = fire.front().is_some_and(|slot| now.0.abs_diff(slot.0) > ON_TIME_MS.into());
    let surplus = due.len().saturating_sub(MOST_LISTED as usize);
    unlisted += due.drain(..surplus).count() as u64;
    Plan { fire: fire.into(), missed: due.into(), unlisted, late, next }
}

/// Collects the latest due slots, counts those before them, and returns the first that is not due.
fn collect_due(
    slots: &Slots,
    first: Option<Timestamp>,
    now: Timestamp,
    due: &mut VecDeque<Timestamp>,
    unlisted: &mut u64,
) -> Option<Timestamp> {
    let mut slot = skip_whole_intervals(slots, first?, now, unlisted);
    let mut steps = 0;
    while slot <= now {
        if due.len() == KEPT {
            due.pop_front();
            *unlisted += 1;
        }
        due.push_back(slot);
        steps += 1;
        // Years of a cron expression that fires each second: the middle is left out.
        slot = if steps == MOST_STEPS { recent(slots, slot, now)? } else { slots.next_after(slot)? };
    }
    Some(slot)
}

/// Jumps over all intervals but those that can be listed.
fn skip_whole_intervals(slots: &Slots, first: Timestamp, now: Timestamp, unlisted: &mut u64) -> Timestamp {
    let Slots::Every { every_ms, .. } = slots else { return first };
    let room = i64::from(MOST_LISTED + MOST_FIRED);
    let skipped = (now.0.saturating_sub(first.0) / every_ms - room).max(0);
    *unlisted += skipped.unsigned_abs();
    first.plus_ms(skipped.saturating_mul(*every_ms))
}

/// Jumps close to the latest slot that is due, found by halving.
fn recent(slots: &Slots, slot: Timestamp, now: Timestamp) -> Option<Timestamp> {
    let (mut before, mut behind) = (slot.0, now.0);
    while behind - before > 1 {
        let middle = before + (behind - before) / 2;
        let is_before = slots.next_after(Timestamp(middle)).is_some_and(|next| next <= now);
        if is_before { before = middle } else { behind = middle }
    }
    // A window that holds all that can be listed even if one fires each second, and not much more.
    let window = i64::from(MOST_LISTED + MOST_FIRED) * 1000;
    slots.next_after(Timestamp(slot.0.max(before - window)))
}

/// Returns how many of the latest due slots fire.
fn firing(due: &VecDeque<Timestamp>, now: Timestamp, missed: Missed, grace_ms: u64) -> usize {
    let late_by_at_most = |ms: u64| due.iter().rev().take_while(|slot| now.0.abs_diff(slot.0) <= ms).count();
    let in_grace = late_by_at_most(grace_ms.max(ON_TIME_MS.into()));
    match missed {
        Missed::Skip => late_by_at_most(ON_TIME_MS.into()).min(1),
        Missed::Latest => in_grace.min(1),
        Missed::All => in_grace.min(MOST_FIRED as usize),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400_000;
    const NOW: Timestamp = Timestamp(1_800_000_000_000);

    fn every(every_ms: u64) -> Schedule {
        Schedule::Every { every_ms, anchor: NOW.plus_ms(-400 * DAY) }
    }

    fn is_late(fire: &[i64]) -> bool {
        fire.first().is_some_and(|ago| *ago > ON_TIME_MS.into())
    }

    fn ago(ms: &[i64]) -> Vec<Timestamp> {
        ms.iter().map(|ms| NOW.plus_ms(-ms)).collect()
    }

    #[test]
    fn policies() {
        let hour = every(3_600_000);
        let h = 3_600_000;
        for (missed, grace, next_due, fire, lost) in [
            (Missed::Latest, 60_000, 0, &[0][..], &[][..]),
            (Missed::Skip, 60_000, 0, &[0], &[]),
            (Missed::All, 60_000, 0, &[0], &[]),
            (Missed::Latest, 60_000, 3 * h, &[0], &[3 * h, 2 * h, h]),
            (Missed::Skip, 60_000, 3 * h, &[0], &[3 * h, 2 * h, h]),
            (Missed::All, 2 * 3_600_000, 3 * h, &[2 * h, h, 0], &[3 * h]),
            (Missed::Latest, 60_000, -h, &[], &[]),
        ] {
            let plan = due_slots(&hour, None, NOW.plus_ms(-next_due), (NOW, None), missed, grace);
            let late = is_late(fire);
            let expected = Plan { fire: ago(fire), missed: ago(lost), unlisted: 0, late, next: Some(NOW.plus_ms(h)) };
            assert_eq!(plan, expected, "{missed} {grace} {next_due}");
        }
    }

    #[test]
    fn how_late_is_too_late() {
        for (missed, grace, late, fires) in [
            (Missed::Latest, 60_000, 60_000, true),
            (Missed::Latest, 60_000, 60_001, false),
            (Missed::Latest, 0, i64::from(ON_TIME_MS), true),
            (Missed::Skip, 60_000, i64::from(ON_TIME_MS), true),
            (Missed::Skip, 60_000, i64::from(ON_TIME_MS) + 1, false),
            (Missed::All, 60_000, 60_001, false),
        ] {
            let due = NOW.plus_ms(-late);
            let plan = due_slots(&Schedule::At { due }, None, due, (NOW, None), missed, grace);
            let (fire, lost) = if fires { (vec![due], vec![]) } else { (vec![], vec![due]) };
            let late = plan.late;
            assert_eq!(plan, Plan { fire, missed: lost, unlisted: 0, late, next: None }, "{missed} {grace} {late}");
        }
    }

    #[test]
    fn none_after_the_last_instant() {
        let hour = 3_600_000;
        for (until, fire, lost, unlisted, next) in [
            (0, &[0][..], &[2 * hour, hour][..], 0, None),
            (-1, &[0], &[2 * hour, hour], 0, None),
            (-hour, &[0], &[2 * hour, hour], 0, Some(-hour)),
            (1, &[], &[2 * hour, hour], 0, None),
            (2 * hour, &[], &[2 * hour], 0, None),
            (2 * hour + 1, &[], &[], 0, None),
        ] {
            let bounds = (NOW, Some(NOW.plus_ms(-until)));
            let plan = due_slots(&every(3_600_000), None, NOW.plus_ms(-2 * hour), bounds, Missed::Latest, 60_000);
            let next = next.map(|ms: i64| NOW.plus_ms(-ms));
            assert_eq!(
                plan,
                Plan { fire: ago(fire), missed: ago(lost), unlisted, late: is_late(fire), next },
                "{until}"
            );
        }
        // What is only counted ends there too.
        let bounds = (NOW, Some(NOW.plus_ms(-364 * DAY)));
        let plan = due_slots(&every(1000), None, NOW.plus_ms(-365 * DAY), bounds, Missed::All, u64::MAX);
        assert_eq!((plan.fire.len(), plan.missed.len(), plan.unlisted), (0, 1000, 86_401 - 1000));
    }

    #[test]
    fn a_slot_that_was_decided_is_not_decided_again() {
        let plan = due_slots(&every(60_000), Some(NOW), NOW.plus_ms(-60_000), (NOW, None), Missed::Latest, 60_000);
        assert_eq!(plan, Plan { next: Some(NOW.plus_ms(60_000)), ..Plan::default() });
        let due = NOW.plus_ms(-5);
        assert_eq!(due_slots(&Schedule::At { due }, Some(due), due, (NOW, None), Missed::All, 60_000), Plan::default());
    }

    #[test]
    fn a_year_of_seconds_is_counted_and_bounded() {
        let seconds = 365 * DAY / 1000;
        let plan = due_slots(&every(1000), None, NOW.plus_ms(-365 * DAY), (NOW, None), Missed::All, u64::MAX);
        assert_eq!((plan.fire.len(), plan.missed.len()), (MOST_FIRED as usize, MOST_LISTED as usize));
        assert_eq!(plan.fire.last(), Some(&NOW));
        assert_eq!(plan.unlisted + 1100, seconds.unsigned_abs() + 1);
        assert_eq!(plan.next, Some(NOW.plus_ms(1000)));
    }

    #[test]
    fn a_year_of_a_cron_that_fires_each_second_ends() {
        let cron = Schedule::Cron { expr: "* * * * * *".into(), zone: "Europe/Berlin".into() };
        let plan = due_slots(&cron, None, NOW.plus_ms(-365 * DAY), (NOW, None), Missed::Latest, 500);
        assert_eq!((plan.fire, plan.missed.len()), (vec![NOW], MOST_LISTED as usize));
        assert_eq!(plan.missed.last(), Some(&NOW.plus_ms(-1000)));
        assert!(plan.unlisted >= MOST_STEPS as u64 - 1100, "{}", plan.unlisted);
        assert_eq!(plan.next, Some(NOW.plus_ms(1000)));
    }

    #[test]
    fn bursts_long_ago_do_not_hide_the_latest_slot() {
        // Each second of the first day of a month; now is noon of the 15th of January 2027.
        let cron = Schedule::Cron { expr: "* * * 1 * *".into(), zone: "UTC".into() };
        let plan = due_slots(&cron, None, NOW.plus_ms(-300 * DAY), (NOW, None), Missed::Skip, 0);
        assert_eq!(plan.fire, []);
        assert_eq!(plan.missed.last().map(ToString::to_string).as_deref(), Some("2027-01-01T23:59:59.000Z"));
        assert_eq!(plan.next.map(|next| next.to_string()).as_deref(), Some("2027-02-01T00:00:00.000Z"));
    }
}
