//! When follow-ups are due. Pure: no clock, no files but the zone database.
//!
//! A [`Schedule`] is what a trigger became at its creation, with its zone resolved; a *slot* is one instant at which it
//! is due. [`next_after`] is strictly rising, whatever the clocks of the zone do. Cron in a zone with daylight saving: an
//! hour field without `*` names fixed times, which fire once at a gap's end and on a fold's first pass only; with `*`
//! it fires in every real hour whose local time fits.

mod cron;
mod missed;
mod parse;

use nano_protocol::time::Timestamp;
use serde::{Deserialize, Serialize};

pub use missed::{Plan, due_slots};
pub use parse::{parse, parse_instant, resolve_zone};

/// When something is due; stored with its follow-up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Schedule {
    /// Once, a while after it was made.
    After {
        /// When.
        due: Timestamp,
    },
    /// Once, at an instant.
    At {
        /// When.
        due: Timestamp,
    },
    /// Again and again in real time, whatever local clocks do.
    Every {
        /// The distance of slots.
        every_ms: u64,
        /// The first slot; the others are whole intervals later.
        anchor: Timestamp,
    },
    /// At the local times that an expression names.
    Cron {
        /// 5 or 6 fields.
        expr: String,
        /// The IANA name.
        zone: String,
    },
}

/// The longest grace that is taken for granted after a repeated slot.
const GRACE_REPEATED_MS: u64 = 60 * 60 * 1000;
/// The grace of a slot that comes once.
const GRACE_ONCE_MS: u64 = 24 * 60 * 60 * 1000;
/// So many slots tell the shortest distance of a cron expression: more than the hours of a day.
const SAMPLE: usize = 30;
/// 2024-01-01: any instant serves to sample from, but it must never change.
const SAMPLE_FROM: Timestamp = Timestamp(1_704_067_200_000);

/// Returns the first slot strictly after `after`; none if there is no more, or if the zone is not known any more.
pub fn next_after(schedule: &Schedule, after: Timestamp) -> Option<Timestamp> {
    Slots::of(schedule)?.next_after(after)
}

/// Returns at most `count` slots strictly after `from`, ascending.
pub fn upcoming(schedule: &Schedule, from: Timestamp, count: usize) -> Vec<Timestamp> {
    let Some(slots) = Slots::of(schedule) else { return Vec::new() };
    std::iter::successors(slots.next_after(from), |slot| slots.next_after(*slot)).take(count).collect()
}

/// Returns how late a slot may fire unless told: half the period, at most an hour; a day for what comes once.
pub fn default_grace_ms(schedule: &Schedule) -> u64 {
    let period = match schedule {
        Schedule::After { .. } | Schedule::At { .. } => return GRACE_ONCE_MS,
        Schedule::Every { every_ms, .. } => *every_ms,
        Schedule::Cron { .. } => {
            let slots = upcoming(schedule, SAMPLE_FROM, SAMPLE);
            let distances = slots.windows(2).map(|pair| pair[1].0.abs_diff(pair[0].0));
            distances.min().unwrap_or(u64::MAX)
        }
    };
    GRACE_REPEATED_MS.min(period / 2)
}

/// A schedule made ready to be stepped through.
enum Slots {
    Once(Timestamp),
    Every { every_ms: i64, anchor: Timestamp },
    Cron(Box<cron::Cron>),
}

impl Slots {
    fn of(schedule: &Schedule) -> Option<Self> {
        Some(match schedule {
            Schedule::After { due } | Schedule::At { due } => Self::Once(*due),
            Schedule::Every { every_ms, anchor } => {
                Self::Every { every_ms: i64::try_from(*every_ms).ok().filter(|ms| *ms > 0)?, anchor: *anchor }
            }
            Schedule::Cron { expr, zone } => Self::Cron(Box::new(cron::Cron::new(expr, zone).ok()?)),
        })
    }

    fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Once(due) => Some(*due).filter(|due| *due > after),
            Self::Every { anchor, .. } if after < *anchor => Some(*anchor),
            Self::Every { every_ms, anchor } => {
                let passed = after.0.checked_sub(anchor.0)? / every_ms;
                let offset = passed.checked_add(1)?.checked_mul(*every_ms)?;
                anchor.0.checked_add(offset).map(Timestamp).filter(|slot| *slot <= parse::LAST)
            }
            Self::Cron(cron) => cron.next_after(after),
        }
    }
}

#[cfg(test)]
mod tests;
