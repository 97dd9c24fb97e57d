//! Time and fresh ids, the two things that make runs differ.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nano_protocol::time::Timestamp;
use ulid::{Generator, Ulid};

/// Tells the time and draws ids that sort in the order they were drawn.
#[derive(Clone, Default)]
pub struct Clock {
    ids: Arc<Mutex<Generator>>,
}

#[expect(clippy::disallowed_methods, reason = "the one home of the wall clock")]
fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO)
}

/// Returns the wall clock's time in seconds since the Unix epoch, as HTTP headers count it.
pub fn seconds() -> f64 {
    since_epoch().as_secs_f64()
}

impl Clock {
    /// Returns the wall clock's time.
    pub fn now(&self) -> Timestamp {
        Timestamp(i64::try_from(since_epoch().as_millis()).unwrap_or(i64::MAX))
    }

    /// Draws a fresh ULID, greater than all before it in this process.
    pub fn ulid(&self) -> String {
        let mut ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        // The generator fails only when 2^80 ids were drawn in one millisecond.
        ids.generate().unwrap_or_else(|_| Ulid::generate()).to_string()
    }
}
