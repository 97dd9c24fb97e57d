//! From a trigger on the wire to a schedule: everything that can be wrong with one is said here, at its creation.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use nano_protocol::followup::Trigger;
use nano_protocol::time::Timestamp;

use super::{Schedule, cron, happening, next_after};

/// Shorter intervals are busy loops.
const SHORTEST_MS: u64 = 1000;
/// A hundred years: longer is a slip of the pen, and sums stay far from overflow.
const LONGEST_MS: u64 = 100 * 366 * 24 * 60 * 60 * 1000;
/// The last instant that the wire can spell.
pub const LAST: Timestamp = Timestamp(253_402_300_799_999);

/// Makes a schedule of a trigger; `tz_beside` serves one that has no zone, `default_zone` where neither names one.
pub fn parse(
    trigger: &Trigger,
    tz_beside: Option<&str>,
    default_zone: &str,
    now: Timestamp,
) -> Result<Schedule, String> {
    let zone = resolve_zone(trigger, tz_beside, default_zone)?;
    one_kind(trigger)?;
    let schedule = if let Some(after_ms) = trigger.after_ms {
        // A slot lies strictly after the instant it was computed at.
        let due = now.plus_ms(length("after_ms", after_ms)?.max(1));
        Schedule::After { due, boot: None }
    } else if let Some(at) = &trigger.at {
        Schedule::At { due: parse_instant(at, &zone).map_err(|why| format!("at: {why}"))? }
    } else if let Some(every_ms) = trigger.every_ms {
        every(every_ms, trigger.anchor.as_deref(), &zone, now)?
    } else if let Some(on) = &trigger.on {
        return happening::parse(on);
    } else if trigger.external == Some(true) {
        return Ok(Schedule::External);
    } else {
        cron(trigger.cron.as_deref().unwrap_or_default(), zone)?
    };
    match next_after(&schedule, now) {
        Some(slot) if slot <= LAST => Ok(schedule),
        _ => Err(never(&schedule)),
    }
}

/// Returns the IANA name of the zone that a trigger's local times are in.
pub fn resolve_zone(trigger: &Trigger, tz_beside: Option<&str>, default_zone: &str) -> Result<String, String> {
    // The one beside is checked too: a typing error must not wait for the day it is needed.
    let beside = tz_beside.map(known_zone).transpose()?;
    let own = trigger.tz.as_deref().map(known_zone).transpose()?;
    own.or(beside).map_or_else(|| known_zone(default_zone), Ok)
}

fn known_zone(name: &str) -> Result<String, String> {
    let unknown =
        || format!("tz: \"{}\" is not a known time zone; give an IANA name such as Europe/Berlin", name.escape_debug());
    let zone = TimeZone::get(name).map_err(|_| unknown())?;
    zone.iana_name().filter(|_| !zone.is_unknown()).map(str::to_owned).ok_or_else(unknown)
}

fn one_kind(trigger: &Trigger) -> Result<(), String> {
    let kinds = [
        ("after_ms", trigger.after_ms.is_some()),
        ("at", trigger.at.is_some()),
        ("every_ms", trigger.every_ms.is_some()),
        ("cron", trigger.cron.is_some()),
        ("on", trigger.on.is_some()),
        ("external", trigger.external == Some(true)),
    ];
    let given: Vec<&str> = kinds.iter().filter(|(_, is)| *is).map(|(name, _)| *name).collect();
    match given.as_slice() {
        [kind] if trigger.anchor.is_some() && *kind != "every_ms" => {
            Err(format!("trigger: anchor belongs to every_ms, not to {kind}"))
        }
        [_] => Ok(()),
        [] => Err("trigger: give one of after_ms, at, every_ms, cron, on, external".to_owned()),
        several => Err(format!("trigger: {} exclude each other; give one", several.join(" and "))),
    }
}

fn length(name: &str, ms: u64) -> Result<i64, String> {
    let fits = Some(ms).filter(|ms| *ms <= LONGEST_MS).and_then(|ms| i64::try_from(ms).ok());
    fits.ok_or_else(|| format!("{name}: {ms} is more than a hundred years"))
}

fn every(every_ms: u64, anchor: Option<&str>, zone: &str, now: Timestamp) -> Result<Schedule, String> {
    if every_ms < SHORTEST_MS {
        return Err(format!("every_ms: {every_ms} is too short; intervals start at {SHORTEST_MS}"));
    }
    length("every_ms", every_ms)?;
    let anchor = anchor.map_or(Ok(now), |text| parse_instant(text, zone)).map_err(|why| format!("anchor: {why}"))?;
    Ok(Schedule::Every { every_ms, anchor })
}

fn cron(expr: &str, zone: String) -> Result<Schedule, String> {
    cron::Cron::new(expr, &zone).map_err(|why| format!("cron: \"{}\": {why}", expr.escape_debug()))?;
    Ok(Schedule::Cron { expr: expr.trim().to_owned(), zone })
}

fn never(schedule: &Schedule) -> String {
    match schedule {
        Schedule::At { due } => format!("at: {due} has passed"),
        Schedule::Cron { expr, .. } => format!("cron: \"{}\" never fires", expr.escape_debug()),
        _ => "trigger: its first time is after the year 9999".to_owned(),
    }
}

/// Reads an instant: RFC 3339 with `Z` or an offset, or a local date and time in `zone`.
pub fn parse_instant(text: &str, zone: &str) -> Result<Timestamp, String> {
    let wrong = |why: &dyn std::fmt::Display| {
        let shape = "give one like 2027-03-23T08:00, or with Z or an offset such as +01:00";
        format!("\"{}\" is not a time ({why}); {shape}", text.escape_debug())
    };
    let time_of_day = text.get(10..).filter(|_| has_shape(text)).ok_or_else(|| wrong(&"it is none in shape"))?;
    let instant = if time_of_day.contains(['Z', 'z', '+', '-']) {
        text.parse::<jiff::Timestamp>().map_err(|why| wrong(&why))?
    } else {
        let local: DateTime = text.parse().map_err(|why| wrong(&why))?;
        let zone = TimeZone::get(zone).map_err(|why| wrong(&why))?;
        cron::instant(&zone, local).ok_or_else(|| wrong(&"it is out of range"))?
    };
    // The wire's years have four digits.
    Some(Timestamp(instant.as_millisecond()))
        .filter(|at| at.0 >= 0 && *at <= LAST)
        .ok_or_else(|| wrong(&"it is out of range"))
}

/// Holds the forms that are promised apart from the many more that jiff reads: annotations, week dates, no time at all.
fn has_shape(text: &str) -> bool {
    let shape = b"dddd-dd-ddTdd:dd";
    let fits = |(byte, shape): (u8, &u8)| match shape {
        b'd' => byte.is_ascii_digit(),
        b'T' => b"Tt ".contains(&byte),
        other => byte == *other,
    };
    let rest = text.bytes().skip(shape.len());
    text.len() >= shape.len()
        && text.bytes().zip(shape).all(fits)
        && rest.clone().all(|byte| byte.is_ascii_digit() || b":.Zz+-".contains(&byte))
}
