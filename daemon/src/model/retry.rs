//! Whether and when a failed request is made again. Pure.

use std::time::Duration;

use super::{Class, ProviderError};

/// The longest wait that a server may ask for and get.
pub const MAX_WAIT: Duration = Duration::from_mins(1);

const MAX_RETRIES: u32 = 4;
const BASE: Duration = Duration::from_millis(500);
const CAP: Duration = Duration::from_secs(30);

/// Returns how long to wait before the next try, `None` to give up.
///
/// `attempt` is the number of retries made so far; `jitter`, from 0 to 1, spreads the wait over the upper half of the
/// backoff. What the server asks for is waited at least.
pub fn delay(attempt: u32, error: &ProviderError, jitter: f64) -> Option<Duration> {
    let asked = error.retry_after.unwrap_or_default();
    if error.class == Class::Permanent || attempt >= MAX_RETRIES || asked > MAX_WAIT {
        return None;
    }
    let full = BASE.saturating_mul(2u32.saturating_pow(attempt)).min(CAP);
    Some(full.mul_f64(0.5 + jitter.clamp(0.0, 1.0) / 2.0).max(asked))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::{Class, ProviderError};
    use super::delay;

    fn error(class: Class, retry_after_ms: Option<u64>) -> ProviderError {
        ProviderError { class, message: String::new(), retry_after: retry_after_ms.map(Duration::from_millis) }
    }

    #[test]
    fn waits() {
        for (attempt, asked, jitter, expected) in [
            (0, None, 0.0, Some(250)),
            (0, None, 1.0, Some(500)),
            (1, None, 1.0, Some(1000)),
            (2, None, 0.5, Some(1500)),
            (3, None, 1.0, Some(4000)),
            (3, None, 7.0, Some(4000)),
            (4, None, 0.0, None),
            (u32::MAX, None, 0.0, None),
            (0, Some(7000), 0.0, Some(7000)),
            (0, Some(0), 1.0, Some(500)),
            (3, Some(60_000), 1.0, Some(60_000)),
            (0, Some(60_001), 0.0, None),
            (4, Some(1), 0.0, None),
        ] {
            let got = delay(attempt, &error(Class::Transient, asked), jitter);
            assert_eq!(got, expected.map(Duration::from_millis), "{attempt} {asked:?} {jitter}");
        }
    }

    #[test]
    fn permanent_errors_are_not_retried() {
        assert_eq!(delay(0, &error(Class::Permanent, Some(1)), 0.0), None);
    }
}
