//! When follow-ups are due. Pure: no clock, no files but the zone database.
//!
//! A [`Schedule`] is what a trigger became at its creation, with its zone resolved; a *slot* is one instant at which it
//! is due. [`next_after`] is strictly rising, whatever the clocks of the zone do. Cron in a zone with daylight saving: an
//! hour field without `*` names fixed times, which fire once at a gap's end and on a fold's first pass only; with `*`
//! it fires in every real hour whose local time fits.

mod cron;
mod fields;
pub mod happening;
mod missed;
mod parse;

use nano_protocol::Object;
use nano_protocol::event::EventType;
use nano_protocol::id::{SessionId, TaskId};
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
        /// When, by the wall clock of that moment.
        due: Timestamp,
        /// The same by a clock that nobody sets.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        boot: Option<BootDue>,
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
    /// Once, when a task has ended.
    Task {
        /// Which.
        task: TaskId,
    },
    /// Whenever an event comes.
    Event {
        /// Its type.
        event: EventType,
        /// What its data must hold.
        matches: Object,
        /// Whose it must be; unless told, the follow-up's own session's or nobody's.
        session: Option<SessionId>,
    },
    /// Whenever a file is there that was not there so before.
    File {
        /// What its path below the workspace is like.
        glob: String,
    },
    /// Whenever somebody says so.
    External,
}

/// When a delay is over, by the clock that counts from the start of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootDue {
    /// The start that it counts from.
    pub boot: String,
    /// Milliseconds since then.
    pub ms: u64,
}

impl Schedule {
    /// Tells whether time alone makes it due.
    pub fn is_timed(&self) -> bool {
        !matches!(self, Self::Task { .. } | Self::Event { .. } | Self::File { .. } | Self::External)
    }

    /// Says why slots cannot be computed any more, such as for want of zone data.
    pub fn check(&self) -> Result<(), String> {
        match self {
            Self::Cron { expr, zone } => cron::Cron::new(expr, zone).map(|_| ()),
            _ => Ok(()),
        }
    }
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
    period_ms(schedule).map_or(GRACE_ONCE_MS, |period| GRACE_REPEATED_MS.min(period / 2))
}

/// Returns the shortest distance of slots; none of what comes once or at no set time.
pub fn period_ms(schedule: &Schedule) -> Option<u64> {
    match schedule {
        Schedule::Every { every_ms, .. } => Some(*every_ms),
        Schedule::Cron { .. } => {
            let slots = upcoming(schedule, SAMPLE_FROM, SAMPLE);
            let distances = slots.windows(2).map(|pair| pair[1].0.abs_diff(pair[0].0));
            Some(distances.min().unwrap_or(u64::MAX))
        }
        _ => None,
    }
}

/// Tells whether `at` is a slot.
pub fn is_slot(schedule: &Schedule, at: Timestamp) -> bool {
    next_after(schedule, at.plus_ms(-1)) == Some(at)
}

/// Returns how much later than its slots a follow-up with this id fires: always the same, up to `most_ms`.
pub fn jitter_ms(id: &str, most_ms: u64) -> i64 {
    // FNV-1a: all it needs is to spread.
    let hash = id
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    // The low bits of few bytes are the ones that differ least.
    let spread = hash ^ (hash >> 32);
    i64::try_from(spread % most_ms.saturating_add(1)).unwrap_or(0)
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
            Schedule::After { due, .. } | Schedule::At { due } => Self::Once(*due),
            Schedule::Every { every_ms, anchor } => {
                Self::Every { every_ms: i64::try_from(*every_ms).ok().filter(|ms| *ms > 0)?, anchor: *anchor }
            }
            Schedule::Cron { expr, zone } => Self::Cron(Box::new(cron::Cron::new(expr, zone).ok()?)),
            Schedule::Task { .. } | Schedule::Event { .. } | Schedule::File { .. } | Schedule::External => return None,
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
