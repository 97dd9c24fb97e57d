//! Slots of random cron expressions against three others who know: a walker that asks every minute, croner itself,
//! and systemd where it is installed.
//!
//! The walker knows our rule for changes of the clock and decides everywhere; the two others have rules of their own
//! and are asked away from changes. Every case has a seed, which its failure names.
#![expect(clippy::expect_used, clippy::panic, reason = "tests")]

#[path = "calendar_differential/random.rs"]
mod random;
#[path = "calendar_differential/spec.rs"]
mod spec;
#[path = "calendar_differential/systemd.rs"]
mod systemd;
#[path = "calendar_differential/walk.rs"]
mod walk;

use std::io::Write as _;

use croner::parser::{CronParser, Year};
use jiff::Timestamp as Instant;
use jiff::tz::TimeZone;
use nano_protocol::time::Timestamp;
use nanod::schedule::calendar::{Schedule, next_after, upcoming};
use random::Random;
use spec::Spec;

const DAY: i64 = 86_400;
const YEAR: i64 = 365 * DAY;
/// 2000-01-01 and 2036-01-01: tables of zones are dense there.
const FIRST: i64 = 946_684_800;
const LAST: i64 = 2_082_758_400;

/// By an hour at night, at midnight, by half an hour, by two hours, by a day, around Ramadan, backwards in winter, never.
const ZONES: [&str; 15] = [
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "Africa/Cairo",
    "Africa/Casablanca",
    "America/Havana",
    "America/St_Johns",
    "America/Sao_Paulo",
    "Antarctica/Troll",
    "Asia/Gaza",
    "Europe/Dublin",
    "Asia/Kathmandu",
    "Asia/Tokyo",
    "UTC",
];

/// An expression, where its times are, and from when on it is asked.
struct Case {
    seed: u64,
    spec: Spec,
    zone: &'static str,
    from: i64,
}

impl Case {
    fn any(seed: u64) -> Self {
        let random = &mut Random::new(seed);
        Self { seed, spec: Spec::any(random), zone: random.pick(&ZONES), from: FIRST + random.span(LAST - FIRST) }
    }

    fn zone(&self) -> TimeZone {
        TimeZone::get(self.zone).expect("a zone")
    }

    fn schedule(&self) -> Schedule {
        Schedule::Cron { expr: self.spec.text(), zone: self.zone.to_owned() }
    }

    /// Returns our slots after the start up to `until`, at most so many.
    fn slots(&self, until: i64, most: usize) -> Vec<i64> {
        let mut slots = vec![];
        // A few at a time: most of an expression's slots lie behind `until`.
        while slots.len() < most {
            let after = slots.last().copied().unwrap_or(self.from);
            let more = upcoming(&self.schedule(), Timestamp(after * 1000), 20);
            let fitting: Vec<i64> = more.iter().map(|slot| slot.0 / 1000).take_while(|slot| *slot <= until).collect();
            slots.extend(&fitting);
            if fitting.len() < 20 {
                break;
            }
        }
        slots.truncate(most);
        slots
    }

    #[track_caller]
    fn agree(&self, who: &str, ours: &[i64], theirs: &[i64]) {
        let Some(at) = (0..ours.len().max(theirs.len())).find(|at| ours.get(*at) != theirs.get(*at)) else { return };
        let print = |slots: &[i64]| {
            let near = slots.iter().skip(at.saturating_sub(2)).take(6);
            near.map(|slot| instant(*slot).to_zoned(self.zone()).to_string()).collect::<Vec<_>>().join("\n  ")
        };
        let Self { seed, spec, zone, from } = self;
        panic!(
            "seed {seed}: \"{}\" in {zone} from {} differs at slot {at}\nours\n  {}\n{who}\n  {}",
            spec.text(),
            instant(*from),
            print(ours),
            print(theirs)
        );
    }
}

fn instant(second: i64) -> Instant {
    Instant::from_second(second).expect("a time")
}

/// Returns the instants at which a zone's offset changes, and by how many seconds.
fn changes(zone: &TimeZone, from: i64, until: i64) -> Vec<(i64, i64)> {
    let offset = |second| i64::from(zone.to_offset(instant(second)).seconds());
    let at = zone.following(instant(from)).map(|change| change.timestamp().as_second());
    let sizes = at.take_while(|at| *at <= until).map(|at| (at, offset(at) - offset(at - 1)));
    sizes.filter(|(_, size)| *size != 0).collect()
}

#[test]
fn a_walker_agrees_around_changes_of_the_clock() {
    let mut fired = 0;
    for seed in 0..1200 {
        let random = &mut Random::new(seed);
        let zone = random.pick(&ZONES);
        let tz = TimeZone::get(zone).expect("a zone");
        let near = FIRST + random.span(LAST - FIRST - YEAR);
        let change =
            random.pick(&changes(&tz, near, near + 2 * YEAR).into_iter().chain([(near, 0)]).collect::<Vec<_>>());
        let before = random.span(30 * 3600) - 26 * 3600;
        let from = change.0 + random.pick(&[-1, 0, 1, -change.1.abs(), before]);
        let hour = tz.to_datetime(instant(change.0 - 1)).hour();
        let case = Case { seed, spec: Spec::near_hour(random, hour.unsigned_abs().into()), zone, from };
        let until = change.0 + 2 * DAY;
        let theirs = walk::slots(&case.spec, &tz, from, until, 80);
        fired += theirs.len();
        case.agree("walker", &case.slots(until, 80), &theirs);
    }
    assert!(fired > 20_000, "only {fired} slots were compared");
}

#[test]
fn a_walker_agrees_over_years() {
    let mut fired = 0;
    for seed in 10_000..11_000 {
        let case = Case::any(seed);
        let until = case.from + if case.spec.every_hour() { 60 * DAY } else { 4 * YEAR };
        let theirs = walk::slots(&case.spec, &case.zone(), case.from, until, 20);
        fired += theirs.len();
        case.agree("walker", &case.slots(until, 20), &theirs);
    }
    assert!(fired > 10_000, "only {fired} slots were compared");
}

#[test]
fn croner_agrees_away_from_changes_of_the_clock() {
    let parser = CronParser::builder().year(Year::Disallowed).build();
    let mut fired = 0;
    for seed in 20_000..20_800 {
        let case = Case::any(seed);
        let (tz, pattern) = (case.zone(), parser.parse(&case.spec.text()).expect("an expression"));
        let next = |at: &jiff::Zoned| pattern.find_next_occurrence(at, false).ok();
        let end = case.from + 5 * YEAR;
        let runs = std::iter::successors(next(&instant(case.from).to_zoned(tz.clone())), next);
        let theirs = runs.map(|run| run.timestamp().as_second()).take(60).take_while(|slot| *slot <= end);
        let theirs: Vec<i64> = theirs.collect();
        // A run that was cut short tells nothing about what comes after it.
        let until = theirs.get(59).copied().unwrap_or(end);
        // Theirs may differ where local time is skipped or comes twice, and nowhere else.
        let changes = changes(&tz, case.from - 2 * DAY, until + 2 * DAY);
        let plain = |slot: &i64| *slot <= until && !changes.iter().any(|(at, size)| (slot - at).abs() <= size.abs());
        let theirs: Vec<i64> = theirs.into_iter().filter(plain).collect();
        let ours: Vec<i64> = case.slots(until, usize::MAX).into_iter().filter(plain).collect();
        fired += theirs.len();
        case.agree("croner", &ours, &theirs);
    }
    assert!(fired > 20_000, "only {fired} slots were compared");
}

#[test]
fn systemd_agrees_away_from_changes_of_the_clock() {
    if !systemd::is_here() {
        // Past the capture of tests that pass.
        let why = "no systemd-analyze to compare with; Debian: apt install systemd";
        writeln!(std::io::stderr(), "######## SKIPPED: {why} ########").expect("a stderr");
        return;
    }
    let mut fired = 0;
    for batch in 30_000..30_020 {
        let random = &mut Random::new(batch);
        let zone = random.pick(&ZONES);
        let tz = TimeZone::get(zone).expect("a zone");
        // From a day after a change to a day before the next, at most a year.
        let near = FIRST + random.span(LAST - FIRST);
        let change = changes(&tz, near, near + YEAR).first().map_or(near, |change| change.0);
        let from = change + DAY + random.span(20 * DAY);
        let until = changes(&tz, from, from + YEAR).first().map_or(from + YEAR, |change| change.0 - DAY);
        let specs: Vec<_> = std::iter::repeat_with(|| Spec::any(random)).filter(Spec::is_plain).take(50).collect();
        let answers = systemd::slots(&specs, zone, from, 20);
        assert_eq!(answers.len(), specs.len(), "an answer to each");
        for (spec, theirs) in specs.into_iter().zip(answers) {
            let case = Case { seed: batch, spec, zone, from };
            let theirs: Vec<i64> = theirs.into_iter().filter(|slot| *slot <= until).collect();
            fired += theirs.len();
            case.agree("systemd", &case.slots(until, 20), &theirs);
        }
    }
    assert!(fired > 5_000, "only {fired} slots were compared");
}

#[test]
fn what_is_below_a_second_changes_nothing() {
    for seed in 40_000..40_300 {
        let case = Case::any(seed);
        let Some(slot) = next_after(&case.schedule(), Timestamp(case.from * 1000)) else { continue };
        for ms in [1, 500, 999] {
            let before = next_after(&case.schedule(), Timestamp(slot.0 - ms));
            assert_eq!(before, Some(slot), "seed {seed}: \"{}\" {ms} ms before", case.spec.text());
            let after = next_after(&case.schedule(), Timestamp(slot.0 + ms));
            assert_eq!(
                after,
                next_after(&case.schedule(), slot),
                "seed {seed}: \"{}\" {ms} ms after",
                case.spec.text()
            );
        }
    }
}
