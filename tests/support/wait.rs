//! Waiting for something outside this process that tells nobody when it happens.

use std::time::{Duration, Instant};

/// How long anything may take before the test fails; generous, for a busy machine.
pub const DEADLINE: Duration = Duration::from_mins(1);

/// Asks `probe` until it has something, and fails naming `what` when the deadline has passed.
pub fn until<T>(what: &str, probe: impl FnMut() -> Option<T>) -> T {
    within(DEADLINE, what, probe)
}

/// Asks `probe` as [`until`] does, for as long as it is told.
pub fn within<T>(deadline: Duration, what: &str, probe: impl FnMut() -> Option<T>) -> T {
    tried(deadline, probe).unwrap_or_else(|| panic!("waited {deadline:?} in vain for {what}"))
}

/// Asks `probe` until it has something or the deadline has passed, for who has more to say of that.
pub fn tried<T>(deadline: Duration, mut probe: impl FnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + deadline;
    loop {
        let found = probe();
        if found.is_some() || Instant::now() >= end {
            return found;
        }
        std::thread::park_timeout(Duration::from_millis(5));
    }
}
