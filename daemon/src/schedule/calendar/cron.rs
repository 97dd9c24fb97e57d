//! Cron in a zone: croner finds matching local times, the rules for gaps and folds are ours.

use croner::parser::{CronParser, Year};
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use nano_protocol::time::Timestamp;

/// A parsed expression in its zone.
pub struct Cron {
    pattern: croner::Cron,
    zone: TimeZone,
    every_hour: bool,
}

/// Returns what croner says in the form of our own words: a part of a sentence.
fn said(why: &str) -> String {
    why.trim_start_matches("Component error: ").trim_end_matches('.').to_lowercase()
}

impl Cron {
    /// Parses 5 or 6 fields, or one of croner's names such as `@daily`, in the zone of this IANA name.
    pub fn new(expr: &str, zone: &str) -> Result<Self, String> {
        let unknown = || format!("\"{}\" is not a known time zone", zone.escape_debug());
        // One that is called unknown would count as UTC.
        let zone = TimeZone::get(zone).ok().filter(|zone| !zone.is_unknown()).ok_or_else(unknown)?;
        super::fields::check(expr)?;
        let pattern =
            CronParser::builder().year(Year::Disallowed).build().parse(expr).map_err(|why| said(&why.to_string()))?;
        let fields: Vec<&str> = pattern.as_str().split_whitespace().collect();
        let hour = fields.get(fields.len().saturating_sub(4)).copied().unwrap_or_default();
        Ok(Self { every_hour: hour.contains('*'), pattern, zone })
    }

    /// Returns the first slot strictly after `after`.
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        // Slots lie on whole seconds, so what is below a second cannot matter.
        let after = jiff::Timestamp::from_second(after.0.div_euclid(1000)).ok()?;
        let slot = if self.every_hour { self.next_real(after) } else { self.next_fixed(after) }?;
        Some(Timestamp(slot.as_millisecond()))
    }

    /// Each matching local time is one slot, wherever the clock puts it.
    fn next_fixed(&self, after: jiff::Timestamp) -> Option<jiff::Timestamp> {
        let mut local = self.zone.to_datetime(after);
        loop {
            local = self.matching(local, false)?;
            let slot = instant(&self.zone, local)?;
            // On a fold's second pass the local times lie ahead and their slots behind.
            if slot > after {
                return Some(slot);
            }
        }
    }

    /// Between two changes of the clock local time runs as real time does.
    fn next_real(&self, after: jiff::Timestamp) -> Option<jiff::Timestamp> {
        let (mut from, mut inclusive) = (after, false);
        loop {
            let offset = self.zone.to_offset(from);
            let slot = offset.to_timestamp(self.matching(offset.to_datetime(from), inclusive)?).ok()?;
            match self.zone.following(from).next() {
                Some(change) if slot >= change.timestamp() => (from, inclusive) = (change.timestamp(), true),
                _ => return Some(slot),
            }
        }
    }

    fn matching(&self, local: DateTime, inclusive: bool) -> Option<DateTime> {
        self.pattern.find_next_occurrence(&local, inclusive).ok()
    }
}

/// Returns the instant of a local time: a gap's end for one that the clock skips, the first of two.
pub fn instant(zone: &TimeZone, local: DateTime) -> Option<jiff::Timestamp> {
    match zone.to_ambiguous_timestamp(local).offset() {
        AmbiguousOffset::Unambiguous { offset } | AmbiguousOffset::Fold { before: offset, .. } => {
            offset.to_timestamp(local).ok()
        }
        AmbiguousOffset::Gap { after, .. } => {
            // Read with the offset after the gap, a skipped time lies before the change; it is less than a gap away.
            let before = after.to_timestamp(local).ok()?;
            Some(zone.following(before).next()?.timestamp())
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::Cron;

    #[test]
    fn the_hour_field_decides_the_rule() {
        for (expr, every_hour) in [
            ("30 2 * * *", false),
            ("0 30 2 * * *", false),
            ("* * 2 * * *", false),
            ("30 * * * *", true),
            ("0 30 */2 * * *", true),
            ("0 0-23 * * *", false),
            ("@hourly", true),
            ("@daily", false),
        ] {
            assert_eq!(Cron::new(expr, "UTC").unwrap().every_hour, every_hour, "{expr}");
        }
    }
}
