//! Durations and sizes as people write them. Pure.

use std::time::Duration;

const DURATION_UNITS: [(&str, u64); 5] = [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];
const SIZE_UNITS: [(&str, u64); 11] = [
    ("", 1),
    ("B", 1),
    ("K", 1 << 10),
    ("M", 1 << 20),
    ("G", 1 << 30),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("kB", 1000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
];

/// Returns the duration that `text` such as `90s`, `1h30m` or `250ms` names: units fall, each at most once.
pub fn duration(text: &str) -> Option<Duration> {
    let (mut rest, mut total, mut below) = (text, 0u64, u64::MAX);
    while !rest.is_empty() {
        let (number, after) = split_number(rest)?;
        let end = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, tail) = after.split_at(end);
        let ms = DURATION_UNITS.iter().find(|(name, _)| *name == unit)?.1;
        if ms >= below {
            return None;
        }
        total = total.checked_add(number.checked_mul(ms)?)?;
        (rest, below) = (tail, ms);
    }
    (!text.is_empty()).then(|| Duration::from_millis(total))
}

/// Returns the bytes that `text` such as `16MiB`, `1GB` or `4096` names.
pub fn size(text: &str) -> Option<u64> {
    let (number, unit) = split_number(text)?;
    let unit = unit.trim_start();
    let bytes = SIZE_UNITS.iter().find(|(name, _)| *name == unit || (unit == "KB" && *name == "kB"))?.1;
    number.checked_mul(bytes)
}

fn split_number(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    Some((digits.parse().ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::{duration, size};

    #[test]
    fn durations() {
        for (text, ms) in [
            ("90s", Some(90_000)),
            ("10m", Some(600_000)),
            ("1h30m", Some(5_400_000)),
            ("250ms", Some(250)),
            ("2d", Some(172_800_000)),
            ("1d2h3m4s5ms", Some(93_784_005)),
            ("0s", Some(0)),
            ("", None),
            ("10", None),
            ("s", None),
            ("-1s", None),
            ("1.5h", None),
            ("30m1h", None),
            ("1s1s", None),
            ("1h 30m", None),
            ("5 s", None),
            ("5S", None),
            ("99999999999999999999s", None),
            ("99999999999999999d", None),
        ] {
            assert_eq!(duration(text).map(|d| d.as_millis()), ms, "{text}");
        }
    }

    #[test]
    fn sizes() {
        for (text, bytes) in [
            ("16MiB", Some(16 << 20)),
            ("512KiB", Some(512 << 10)),
            ("1GB", Some(1_000_000_000)),
            ("1 KB", Some(1000)),
            ("4096", Some(4096)),
            ("7B", Some(7)),
            ("", None),
            ("MiB", None),
            ("-1", None),
            ("1TiB2", None),
            ("99999999999GiB", None),
        ] {
            assert_eq!(size(text), bytes, "{text}");
        }
    }
}
