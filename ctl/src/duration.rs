//! Durations as a person writes them: `250ms`, `90s`, `1h30m`, `2d`; and the time a verb may take.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::failure::Failure;

/// Parses a duration: whole numbers, each with its unit, the larger unit first.
pub fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a duration like 90s, 10m, 1h30m, 250ms or 2d");
    let mut rest = text;
    let mut total: u64 = 0;
    let mut smallest = u64::MAX;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
        let (number, tail) = rest.split_at(digits);
        let letters = tail.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(tail.len());
        let (word, tail) = tail.split_at(letters);
        let unit = unit(word).filter(|unit| *unit < smallest).ok_or_else(wrong)?;
        let part = number.parse::<u64>().ok().and_then(|n| n.checked_mul(unit));
        total = part.and_then(|part| total.checked_add(part)).ok_or_else(wrong)?;
        (smallest, rest) = (unit, tail);
    }
    if smallest == u64::MAX { Err(wrong()) } else { Ok(Duration::from_millis(total)) }
}

fn unit(word: &str) -> Option<u64> {
    Some(match word {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    })
}

/// Returns whole milliseconds for the wire.
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The instant at which a verb gives up, if there is one.
#[derive(Debug, Clone, Copy)]
pub struct Deadline(Option<Instant>);

impl Deadline {
    /// Makes the deadline of a verb that may take `timeout`, for ever unless told.
    pub fn after(timeout: Option<Duration>) -> Self {
        Self(timeout.and_then(|timeout| Instant::now().checked_add(timeout)))
    }

    /// Returns the shorter of `patience` and what is left; a failure where nothing is left.
    pub fn clip(self, patience: Option<Duration>) -> Result<Option<Duration>, Failure> {
        let Some(end) = self.0 else { return Ok(patience) };
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Failure::timed_out());
        }
        Ok(Some(patience.map_or(left, |patience| patience.min(left))))
    }

    /// Waits until `file` can be read; a signal does not end that.
    pub fn until_ready(self, file: &impl AsFd) -> Result<(), Failure> {
        loop {
            let limit = self.clip(None)?.and_then(|limit| limit.try_into().ok());
            match poll(&mut [PollFd::new(file, PollFlags::IN)], limit.as_ref()) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(Failure::lost(&error.into())),
            }
        }
    }

    /// Rests for `time`, less where the deadline or a signal comes first.
    pub fn pause(self, time: Duration) -> Result<(), Failure> {
        let rest = self.clip(Some(time))?.and_then(|rest| rest.try_into().ok());
        // A poll of nothing ends early at a signal, which is what a person who presses Ctrl-C wants.
        match poll(&mut [], rest.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(Failure::lost(&error.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Duration, parse};

    #[test]
    fn durations() {
        for (text, ms) in [
            ("250ms", 250),
            ("90s", 90_000),
            ("10m", 600_000),
            ("1h30m", 5_400_000),
            ("2d", 172_800_000),
            ("1d2h3m4s5ms", 93_784_005),
            ("0s", 0),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for bad in ["", "90", "s", "-1s", "1.5h", "1s1h", "1s1s", "1 s", "1S", "1w", "99999999999999999999s", "1h30"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
