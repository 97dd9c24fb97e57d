//! Time and fresh ids, the two things that make runs differ.

use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nano_protocol::time::Timestamp;
use ulid::{Generator, Ulid};

/// One look at both clocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moment {
    /// The wall clock: it may be set.
    pub wall: Timestamp,
    /// Milliseconds since the machine was started, asleep or not: nobody sets it.
    pub boot_ms: u64,
    /// Names this start of the machine.
    pub boot: Arc<str>,
}

/// What a clock that is not the machine's tells.
type Told = Arc<dyn Fn() -> Moment + Send + Sync>;

/// Tells the time and draws ids that sort in the order they were drawn.
#[derive(Clone, Default)]
pub struct Clock {
    ids: Arc<Mutex<Generator>>,
    told: Option<Told>,
}

/// This start of the machine, as random(4) names it; empty where it does not.
static BOOT: LazyLock<Arc<str>> = LazyLock::new(|| {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().into()
});

#[expect(clippy::disallowed_methods, reason = "the one home of the wall clock")]
fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO)
}

/// Returns the wall clock's time in seconds since the Unix epoch, as HTTP headers count it.
pub fn seconds() -> f64 {
    since_epoch().as_secs_f64()
}

impl Clock {
    /// Makes a clock that tells what `told` returns.
    pub fn telling(told: impl Fn() -> Moment + Send + Sync + 'static) -> Self {
        Self { ids: Arc::default(), told: Some(Arc::new(told)) }
    }

    /// Returns the wall clock's time.
    pub fn now(&self) -> Timestamp {
        self.moment().wall
    }

    /// Looks at both clocks.
    pub fn moment(&self) -> Moment {
        if let Some(told) = &self.told {
            return told();
        }
        let wall = Timestamp(i64::try_from(since_epoch().as_millis()).unwrap_or(i64::MAX));
        let boot = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let boot_ms = boot.tv_sec.unsigned_abs() * 1000 + boot.tv_nsec.unsigned_abs() / 1_000_000;
        Moment { wall, boot_ms, boot: BOOT.clone() }
    }

    /// Draws a fresh ULID, greater than all before it in this process.
    pub fn ulid(&self) -> String {
        let mut ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        // The generator fails only when 2^80 ids were drawn in one millisecond.
        ids.generate().unwrap_or_else(|_| Ulid::generate()).to_string()
    }
}
