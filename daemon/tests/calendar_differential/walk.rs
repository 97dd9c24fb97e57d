//! Slots found by asking every minute: slow, and nothing to go wrong in.

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;

use crate::instant;
use crate::spec::Spec;

const MINUTE: i64 = 60;
/// Changes of the clock and midnights of any zone lie on quarters of an hour.
const QUARTER: i64 = 15 * MINUTE;

/// Returns the slots after `from` up to `until`, at most so many.
pub fn slots(spec: &Spec, zone: &TimeZone, from: i64, until: i64, most: usize) -> Vec<i64> {
    let mut found = Vec::new();
    if spec.every_hour() {
        real(spec, zone, from, until, most, &mut found);
    } else {
        fixed(spec, zone, from, until, most, &mut found);
    }
    found
}

/// Looks at the local time of every real minute.
fn real(spec: &Spec, zone: &TimeZone, from: i64, until: i64, most: usize, found: &mut Vec<i64>) {
    let mut minute = from - from.rem_euclid(QUARTER);
    while minute <= until && found.len() < most {
        let local = zone.to_datetime(instant(minute));
        if !spec.fits(local.date()) {
            minute += QUARTER;
            continue;
        }
        if spec.hours.values.contains(&number(local.hour())) && spec.minutes.values.contains(&number(local.minute())) {
            let seconds = spec.seconds().into_iter().map(|second| minute + i64::from(second));
            found.extend(seconds.filter(|slot| (from + 1..=until).contains(slot)));
        }
        minute += MINUTE;
    }
    found.truncate(most);
}

/// Looks at every minute that calendars and clocks could show, skipped or not, and asks when that is.
fn fixed(spec: &Spec, zone: &TimeZone, from: i64, until: i64, most: usize, found: &mut Vec<i64>) {
    let mut date = zone.to_datetime(instant(from - 2 * 86_400)).date();
    let end = zone.to_datetime(instant(until)).date();
    while date <= end {
        if spec.fits(date) {
            for (hour, minute) in times(spec) {
                let shown = civil(date, hour, minute);
                // Local times rise with the instants they stand for.
                if when(zone, shown.saturating_add(jiff::SignedDuration::from_secs(59))) <= from {
                    continue;
                }
                for second in spec.seconds() {
                    let slot = when(zone, shown.saturating_add(jiff::SignedDuration::from_secs(second.into())));
                    if slot > until || found.len() == most {
                        return;
                    }
                    if slot > from && found.last() != Some(&slot) {
                        found.push(slot);
                    }
                }
            }
        }
        date = date.tomorrow().expect("a day of this millennium");
    }
}

fn times(spec: &Spec) -> impl Iterator<Item = (u32, u32)> {
    let fits = |(hour, minute): &(u32, u32)| spec.hours.values.contains(hour) && spec.minutes.values.contains(minute);
    (0..24).flat_map(|hour| (0..60).map(move |minute| (hour, minute))).filter(fits)
}

fn civil(date: Date, hour: u32, minute: u32) -> DateTime {
    let part = |number: u32| i8::try_from(number).expect("a part of a time");
    date.at(part(hour), part(minute), 0, 0)
}

fn number(part: i8) -> u32 {
    part.unsigned_abs().into()
}

/// Returns when a clock shows this first; at the end of the gap where none does.
fn when(zone: &TimeZone, shown: DateTime) -> i64 {
    let ambiguous = zone.to_ambiguous_timestamp(shown);
    let earlier = ambiguous.earlier().expect("a time").as_second();
    if zone.to_datetime(instant(earlier)) == shown {
        return earlier;
    }
    // The gap ends where the offset changes, between the two instants that its two offsets give.
    let (mut before, mut behind) = (earlier, ambiguous.later().expect("a time").as_second());
    let old = zone.to_offset(instant(before));
    while behind - before > 1 {
        let middle = before + (behind - before) / 2;
        if zone.to_offset(instant(middle)) == old { before = middle } else { behind = middle }
    }
    behind
}
