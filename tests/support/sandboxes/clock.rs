//! The time that a fake lives in, and the ids it gives out.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::Value;

/// A point in time: microseconds since 1970.
pub type Instant = i64;

const SECOND: i64 = 1_000_000;

/// The time of day, and what a test has pushed it forward by.
#[derive(Debug, Default)]
pub struct Clock(AtomicI64);

impl Clock {
    /// Returns the time now.
    pub fn now(&self) -> Instant {
        Timestamp::now().as_microsecond() + self.0.load(Ordering::SeqCst)
    }

    /// Pushes the time forward.
    pub fn advance(&self, by: Duration) {
        self.0.fetch_add(i64::try_from(by.as_micros()).expect("a span of years"), Ordering::SeqCst);
    }
}

/// Returns the point in time that is `seconds` after `start`, if there is one.
pub fn after(start: Instant, seconds: i64) -> Instant {
    start.saturating_add(seconds.saturating_mul(SECOND)).min(Timestamp::MAX.as_microsecond())
}

/// Returns the whole seconds from `start` to `end`, none where it is past.
pub fn seconds(start: Instant, end: Instant) -> i64 {
    (end - start).max(0) / SECOND
}

/// Writes a point in time as both servers do: in UTC, without saying so.
pub fn stamp(instant: Instant) -> String {
    let time = Timestamp::from_microsecond(instant).expect("a time of this era").to_zoned(TimeZone::UTC);
    time.strftime("%Y-%m-%dT%H:%M:%S%.6f").to_string()
}

/// Writes a point in time that may be missing.
pub fn stamp_or_null(instant: Option<Instant>) -> Value {
    instant.map(stamp).into()
}

/// Makes twelve hexadecimal digits that come only once in this process.
pub fn digits() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(1);
    // An odd factor keeps them apart and makes neighbours look unlike.
    let number = COUNT.fetch_add(1, Ordering::SeqCst).wrapping_mul(0x9E37_79B9_7F4B) & 0xFFFF_FFFF_FFFF;
    format!("{number:012x}")
}

/// Makes an id that looks like a UUID.
pub fn uuid() -> String {
    let (head, tail) = (digits(), digits());
    format!("{}-{}-4{}-8{}-{}", &head[..8], &head[8..], &tail[..3], &tail[3..6], digits())
}
