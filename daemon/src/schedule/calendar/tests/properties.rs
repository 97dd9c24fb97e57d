//! What holds for every expression in every zone.

use super::*;

const ZONES: [&str; 4] = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"];

fn field(top: u32) -> impl Strategy<Value = String> {
    prop_oneof![
        Just("*".to_owned()),
        (1..top).prop_map(|step| format!("*/{step}")),
        (0..top).prop_map(|one| one.to_string()),
        (0..top, 0..top).prop_map(|(a, b)| format!("{},{}", a.min(b), a.max(b))),
    ]
}

proptest! {
    #[test]
    fn slots_rise_strictly_and_agree_with_croner_away_from_changes(
        minute in field(60), hour in field(24), zone in 0..ZONES.len(), start in 1_700_000_000i64..1_900_000_000,
    ) {
        let (zone, expr) = (ZONES[zone], format!("{minute} {hour} * * *"));
        let schedule = cron(&expr, zone);
        let slots = upcoming(&schedule, Timestamp(start * 1000), 60);
        prop_assert_eq!(slots.len(), 60);
        let tz = jiff::tz::TimeZone::get(zone).unwrap();
        let pattern: croner::Cron = expr.parse().unwrap();
        for pair in slots.windows(2) {
            prop_assert!(pair[0] < pair[1]);
            prop_assert_eq!(next_after(&schedule, pair[1].plus_ms(-1)), Some(pair[1]));
            let from = jiff::Timestamp::from_millisecond(pair[0].0).unwrap();
            let offset_changes = tz.following(from - jiff::SignedDuration::from_hours(2)).next();
            if offset_changes.is_some_and(|change| change.timestamp().as_millisecond() <= pair[1].0 + 7_200_000) {
                continue;
            }
            let theirs = pattern.find_next_occurrence(&from.to_zoned(tz.clone()), false).unwrap();
            prop_assert_eq!(theirs.timestamp().as_millisecond(), pair[1].0, "{} in {}", expr, zone);
        }
    }

    #[test]
    fn no_text_makes_the_parsers_panic(text in ".{0,40}", cron_like in "[0-9*/,LW#?+@A-Za-z -]{0,30}") {
        for text in [text, cron_like] {
            let trigger = Trigger { cron: Some(text.clone()), ..Trigger::default() };
            if let Ok(schedule) = parsed(&trigger, None) {
                prop_assert!(next_after(&schedule, at(NOW)).is_some());
            }
            drop(parse_instant(&text, "Europe/Berlin"));
            drop(resolve_zone(&Trigger::default(), Some(&text), "UTC"));
        }
    }
}
