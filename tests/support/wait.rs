//! Waiting for something outside this process that tells nobody when it happens.

use std::time::{Duration, Instant};

/// How long anything may take before the test fails; generous, for a busy machine.
pub const DEADLINE: Duration = Duration::from_mins(1);

/// Asks `probe` until it has something, and fails naming `what` when the deadline has passed.
pub fn until<T>(what: &str, probe: impl FnMut() -> Option<T>) -> T {
    within(DEADLINE, what, probe)
}

/// Asks `probe` as [`until`] does, for as long as it is told.
pub fn within<T>(deadline: Duration, what: &str, mut probe: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + deadline;
    loop {
        if let Some(found) = probe() {
            return found;
        }
        assert!(Instant::now() < end, "waited {deadline:?} in vain for {what}");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}
