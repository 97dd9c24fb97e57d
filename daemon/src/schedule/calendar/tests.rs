//! Slots as tables around changes of the clock, and as properties.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

use nano_protocol::followup::{On, Trigger};
use nano_protocol::time::Timestamp;
use proptest::prelude::*;

use super::*;

mod properties;

fn at(text: &str) -> Timestamp {
    Timestamp(text.parse::<jiff::Timestamp>().unwrap().as_millisecond())
}

fn cron(expr: &str, zone: &str) -> Schedule {
    Schedule::Cron { expr: expr.into(), zone: zone.into() }
}

/// Prints instants as local times with their offset.
fn local(slots: &[Timestamp], zone: &str) -> Vec<String> {
    let zone = jiff::tz::TimeZone::get(zone).unwrap();
    let print = |slot: &Timestamp| {
        let zoned = jiff::Timestamp::from_millisecond(slot.0).unwrap().to_zoned(zone.clone());
        zoned.strftime("%m-%d %H:%M:%S%:z").to_string().replace(":00+", "+").replace(":00-", "-")
    };
    slots.iter().map(print).collect()
}

#[test]
fn cron_around_changes_of_the_clock() {
    for (zone, expr, from, expected) in [
        // Berlin 2027: 02:00 becomes 03:00 on 28 March, 03:00 becomes 02:00 on 31 October.
        (
            "Europe/Berlin",
            "30 2 * * *",
            "2027-03-27T00:00Z",
            "03-27 02:30+01:00 | 03-28 03:00+02:00 | 03-29 02:30+02:00",
        ),
        (
            "Europe/Berlin",
            "0,30 2 * * *",
            "2027-03-27T12:00Z",
            "03-28 03:00+02:00 | 03-29 02:00+02:00 | 03-29 02:30+02:00",
        ),
        ("Europe/Berlin", "*/20 2 * * *", "2027-03-27T12:00Z", "03-28 03:00+02:00 | 03-29 02:00+02:00"),
        ("Europe/Berlin", "0 2,3 * * *", "2027-03-27T12:00Z", "03-28 03:00+02:00 | 03-29 02:00+02:00"),
        (
            "Europe/Berlin",
            "30 1-3 * * *",
            "2027-03-27T12:00Z",
            "03-28 01:30+01:00 | 03-28 03:00+02:00 | 03-28 03:30+02:00 | 03-29 01:30+02:00",
        ),
        (
            "Europe/Berlin",
            "30 * * * *",
            "2027-03-28T00:00Z",
            "03-28 01:30+01:00 | 03-28 03:30+02:00 | 03-28 04:30+02:00",
        ),
        ("Europe/Berlin", "0 */2 * * *", "2027-03-27T22:30Z", "03-28 00:00+01:00 | 03-28 04:00+02:00"),
        ("Europe/Berlin", "30 2 * * *", "2027-10-30T12:00Z", "10-31 02:30+02:00 | 11-01 02:30+01:00"),
        (
            "Europe/Berlin",
            "0,30 2 * * *",
            "2027-10-30T12:00Z",
            "10-31 02:00+02:00 | 10-31 02:30+02:00 | 11-01 02:00+01:00",
        ),
        ("Europe/Berlin", "0,30 2 * * *", "2027-10-31T01:10Z", "11-01 02:00+01:00"),
        (
            "Europe/Berlin",
            "30 * * * *",
            "2027-10-30T23:40Z",
            "10-31 02:30+02:00 | 10-31 02:30+01:00 | 10-31 03:30+01:00",
        ),
        (
            "Europe/Berlin",
            "0 */2 * * *",
            "2027-10-30T22:30Z",
            "10-31 02:00+02:00 | 10-31 02:00+01:00 | 10-31 04:00+01:00",
        ),
        ("Europe/Berlin", "15 30 2 * * *", "2027-03-27T12:00Z", "03-28 03:00+02:00 | 03-29 02:30:15+02:00"),
        ("Europe/Berlin", "0 3 * * *", "2027-10-30T12:00Z", "10-31 03:00+01:00 | 11-01 03:00+01:00"),
        ("Europe/Berlin", "30 2 * * SUN", "2027-03-22T00:00Z", "03-28 03:00+02:00 | 04-04 02:30+02:00"),
        // New York 2027: 14 March and 7 November, at 02:00.
        ("America/New_York", "30 2 * * *", "2027-03-13T12:00Z", "03-14 03:00-04:00 | 03-15 02:30-04:00"),
        ("America/New_York", "30 1 * * *", "2027-11-06T12:00Z", "11-07 01:30-04:00 | 11-08 01:30-05:00"),
        (
            "America/New_York",
            "30 * * * *",
            "2027-11-07T05:00Z",
            "11-07 01:30-04:00 | 11-07 01:30-05:00 | 11-07 02:30-05:00",
        ),
        // Lord Howe moves by half an hour: 4 April 02:00 to 01:30, 3 October 02:00 to 02:30.
        ("Australia/Lord_Howe", "15 2 * * *", "2027-10-02T00:00Z", "10-03 02:30+11:00 | 10-04 02:15+11:00"),
        ("Australia/Lord_Howe", "45 1 * * *", "2027-04-03T00:00Z", "04-04 01:45+11:00 | 04-05 01:45+10:30"),
        (
            "Australia/Lord_Howe",
            "45 * * * *",
            "2027-04-03T14:00Z",
            "04-04 01:45+11:00 | 04-04 01:45+10:30 | 04-04 02:45+10:30",
        ),
        ("Australia/Lord_Howe", "15,45 * * * *", "2027-10-02T15:20Z", "10-03 02:45+11:00 | 10-03 03:15+11:00"),
        // Apia skipped the whole of 30 December 2011; Cairo's gap starts at midnight.
        ("Pacific/Apia", "0 12 30 12 *", "2011-12-01T00:00Z", "12-31 00:00+14:00 | 12-30 12:00+14:00"),
        ("Africa/Cairo", "0 0 * * *", "2027-04-29T00:00Z", "04-30 01:00+03:00 | 05-01 00:00+03:00"),
        // No changes at all.
        ("Asia/Kolkata", "30 2 * * *", "2027-03-27T00:00Z", "03-28 02:30+05:30 | 03-29 02:30+05:30"),
        ("UTC", "30 2 * * *", "2027-03-27T02:30Z", "03-28 02:30+00:00"),
        // What the fields can say.
        ("UTC", "0 0 L * *", "2027-01-31T00:00Z", "02-28 00:00+00:00 | 03-31 00:00+00:00"),
        ("UTC", "0 0 15W * *", "2027-05-01T00:00Z", "05-14 00:00+00:00 | 06-15 00:00+00:00"),
        ("UTC", "0 0 * * FRI#2", "2027-01-01T00:00Z", "01-08 00:00+00:00 | 02-12 00:00+00:00"),
        ("UTC", "0 0 * * 5L", "2027-01-01T00:00Z", "01-29 00:00+00:00"),
        ("UTC", "0 0 29 2 *", "2027-01-01T00:00Z", "02-29 00:00+00:00 | 02-29 00:00+00:00"),
        ("UTC", "@daily", "2027-01-01T00:00Z", "01-02 00:00+00:00"),
    ] {
        let expected: Vec<&str> = expected.split(" | ").collect();
        let slots = upcoming(&cron(expr, zone), at(from), expected.len());
        assert_eq!(local(&slots, zone), expected, "{expr} in {zone} from {from}");
    }
}

#[test]
fn intervals_count_from_their_anchor() {
    let every = Schedule::Every { every_ms: 5000, anchor: Timestamp(1_000_000) };
    for (after, next) in [
        (0, Some(1_000_000)),
        (999_999, Some(1_000_000)),
        (1_000_000, Some(1_005_000)),
        (1_004_999, Some(1_005_000)),
        (1_005_000, Some(1_010_000)),
        (i64::MAX, None),
    ] {
        assert_eq!(next_after(&every, Timestamp(after)), next.map(Timestamp), "{after}");
    }
}

#[test]
fn graces() {
    let every = |every_ms| Schedule::Every { every_ms, anchor: Timestamp(0) };
    for (schedule, grace) in [
        (Schedule::At { due: Timestamp(0) }, 86_400_000),
        (Schedule::After { due: Timestamp(0), boot: None }, 86_400_000),
        (every(1000), 500),
        (every(86_400_000), 3_600_000),
        (cron("*/10 * * * *", "Europe/Berlin"), 300_000),
        (cron("0 9 * * *", "Europe/Berlin"), 3_600_000),
        (cron("*/30 9-17 * * MON-FRI", "UTC"), 900_000),
        (cron("0 0 29 2 *", "UTC"), 3_600_000),
        (cron("* * * * * *", "UTC"), 500),
    ] {
        assert_eq!(default_grace_ms(&schedule), grace, "{schedule:?}");
    }
}

const NOW: &str = "2027-01-01T00:00:00Z";

fn parsed(trigger: &Trigger, beside: Option<&str>) -> Result<Schedule, String> {
    parse(trigger, beside, "Europe/Berlin", at(NOW))
}

#[test]
fn instants() {
    for (text, expected) in [
        ("2027-03-23T08:00:00Z", Some("2027-03-23T08:00:00.000Z")),
        ("2027-03-23t08:00:00z", Some("2027-03-23T08:00:00.000Z")),
        ("2027-03-23T08:00:00.123456+01:00", Some("2027-03-23T07:00:00.123Z")),
        ("2027-03-23 08:00:00-05:30", Some("2027-03-23T13:30:00.000Z")),
        ("2027-03-23T08:00", Some("2027-03-23T07:00:00.000Z")),
        ("2027-03-23T08:00:05", Some("2027-03-23T07:00:05.000Z")),
        ("2027-07-23 08:00", Some("2027-07-23T06:00:00.000Z")),
        ("2027-03-28T02:30", Some("2027-03-28T01:00:00.000Z")),
        ("2027-10-31T02:30", Some("2027-10-31T00:30:00.000Z")),
        ("2027-10-31T02:30+01:00", Some("2027-10-31T01:30:00.000Z")),
        ("2027-02-29T08:00", None),
        ("2027-13-01T08:00", None),
        ("2027-03-23T24:00", None),
        ("2027-03-23T08:60", None),
        ("2027-03-23T08:00+99:00", None),
        ("2027-03-23T08:00[Europe/Berlin]", None),
        ("2027-03-23T08:00+01:00[Europe/Berlin]", None),
        ("2027-03-23", None),
        ("08:00", None),
        ("2027-3-23T8:00", None),
        ("2027-W12-2T08:00", None),
        ("tomorrow", None),
        ("", None),
        ("99999-01-01T00:00Z", None),
        ("2027-03-23T08:00 ", None),
        ("2027-03-23T08:00Z+01:00", None),
        ("2027-03-23T08:00\u{0661}Z", None),
    ] {
        let found = parse_instant(text, "Europe/Berlin");
        assert_eq!(found.as_ref().ok().map(ToString::to_string).as_deref(), expected, "{text}: {found:?}");
    }
}

#[test]
fn good_triggers() {
    let now = at(NOW);
    let berlin = |expr: &str| Ok(cron(expr, "Europe/Berlin"));
    for (trigger, beside, expected) in [
        (
            Trigger { after_ms: Some(0), ..Trigger::default() },
            None,
            Ok(Schedule::After { due: now.plus_ms(1), boot: None }),
        ),
        (
            Trigger { after_ms: Some(60_000), ..Trigger::default() },
            None,
            Ok(Schedule::After { due: now.plus_ms(60_000), boot: None }),
        ),
        (
            Trigger { at: Some("2027-03-23T08:00".into()), tz: Some("asia/tokyo".into()), ..Trigger::default() },
            Some("Europe/Paris"),
            Ok(Schedule::At { due: at("2027-03-22T23:00Z") }),
        ),
        (
            Trigger { every_ms: Some(1000), ..Trigger::default() },
            None,
            Ok(Schedule::Every { every_ms: 1000, anchor: now }),
        ),
        (
            Trigger { every_ms: Some(1000), anchor: Some("2027-02-01T00:00".into()), ..Trigger::default() },
            None,
            Ok(Schedule::Every { every_ms: 1000, anchor: at("2027-01-31T23:00Z") }),
        ),
        (Trigger { cron: Some(" 0 8 * * *".into()), ..Trigger::default() }, None, berlin("0 8 * * *")),
        (
            Trigger { cron: Some("0 8 * * *".into()), external: Some(false), ..Trigger::default() },
            Some("utc"),
            Ok(cron("0 8 * * *", "UTC")),
        ),
    ] {
        assert_eq!(parsed(&trigger, beside), expected, "{trigger:?}");
    }
}

#[test]
fn bad_triggers() {
    let none = Trigger::default;
    let cron = |expr: &str| Trigger { cron: Some(expr.into()), ..none() };
    for (trigger, beside, words) in [
        (none(), None, "give one of"),
        (Trigger { tz: Some("UTC".into()), ..none() }, None, "give one of"),
        (Trigger { after_ms: Some(1), every_ms: Some(1000), ..none() }, None, "after_ms and every_ms exclude"),
        (Trigger { external: Some(true), ..cron("* * * * *") }, None, "cron and external exclude"),
        (Trigger { on: Some(On::default()), ..none() }, None, "on: give one of task, event, file"),
        (Trigger { anchor: Some(NOW.into()), external: Some(true), ..none() }, None, "anchor belongs to every_ms"),
        (Trigger { at: Some("2026-12-31T23:59:59Z".into()), ..none() }, None, "2026-12-31T23:59:59.000Z has passed"),
        (Trigger { at: Some(NOW.into()), ..none() }, None, "has passed"),
        (Trigger { at: Some("soon".into()), ..none() }, None, "at: \"soon\" is not a time"),
        (Trigger { at: Some("2028-01-01T00:00".into()), tz: Some("Mars/X".into()), ..none() }, None, "\"Mars/X\""),
        (Trigger { after_ms: Some(1), ..none() }, Some("Nowhere"), "\"Nowhere\" is not a known time zone"),
        (Trigger { tz: Some(String::new()), ..cron("* * * * *") }, None, "not a known time zone"),
        (Trigger { after_ms: Some(u64::MAX), ..none() }, None, "more than a hundred years"),
        (Trigger { every_ms: Some(u64::MAX), ..none() }, None, "more than a hundred years"),
        (Trigger { every_ms: Some(999), ..none() }, None, "too short"),
        (Trigger { every_ms: Some(0), ..none() }, None, "too short"),
        (Trigger { every_ms: Some(1000), anchor: Some("x".into()), ..none() }, None, "anchor: \"x\""),
        (Trigger { after_ms: Some(1), anchor: Some(NOW.into()), ..none() }, None, "anchor belongs to every_ms"),
        (cron("0 0 30 2 *"), None, "\"0 0 30 2 *\" never fires"),
        (cron("0 0 31 4,6,9,11 *"), None, "never fires"),
        (cron(""), None, "cron: \"\""),
        (cron("61 * * * *"), None, "cron: \"61 * * * *\""),
        (cron("* * * *"), None, "cron"),
        (cron("0 0 0 * * * 2030"), None, "5 or 6 fields"),
        (cron("0 8 * * XYZ"), None, "cron"),
        (cron("@reboot"), None, "cron"),
        (cron("5-1 * * * *"), None, "cron"),
        (cron("*/0 * * * *"), None, "cron"),
    ] {
        let why = parsed(&trigger, beside).err().unwrap_or_else(|| panic!("accepted: {trigger:?}"));
        assert!(why.contains(words), "{trigger:?}: {why}");
    }
}
