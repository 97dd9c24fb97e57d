//! Steps of the clock, zones and daylight saving.

use super::*;

#[test]
fn steps_of_the_clock() {
    let now = instant(NOON);
    let every = Schedule::Every { every_ms: HOUR.unsigned_abs(), anchor: Timestamp(now) };
    // The clock is set after so long, then time passes; all slots, in hours from noon, with what became of them.
    for (before, step, then, expected) in [
        (30 * MINUTE, 2 * HOUR, HOUR, "missed 1, fired 2, fired 3"),
        (30 * MINUTE, DAY, 0, "missed 1-23, fired 24"),
        (150 * MINUTE, -HOUR, 2 * HOUR, "fired 1, fired 2, fired 3"),
        (150 * MINUTE, -2 * HOUR, 2 * HOUR, "fired 1, fired 2"),
        (150 * MINUTE, -DAY, 2 * HOUR, "fired -21, fired -20, fired 1, fired 2"),
        (150 * MINUTE, -30 * DAY, HOUR, "fired -717, fired 1, fired 2"),
    ] {
        let mut world = World::new(&every, now, &json!({}));
        world.pass(before);
        world.step(step);
        world.pass(then);
        let hour = |row: &Row| (row.state, (row.slot - now) / HOUR);
        let mut found: Vec<String> = Vec::new();
        let missed = world.slots(RunState::Missed);
        if missed.len() > 1 {
            found.push(format!("missed {}-{}", (missed[0] - now) / HOUR, (missed[missed.len() - 1] - now) / HOUR));
        }
        let single = |row: &&Row| row.state != RunState::Missed || missed.len() == 1;
        found.extend(world.rows.values().filter(single).map(hour).map(|(state, hour)| format!("{state} {hour}")));
        assert_eq!(found.join(", "), expected, "{before} {step} {then}");
    }
}

#[test]
fn slots_on_record_are_passed_over_after_a_great_step_back() {
    let now = instant(NOON);
    let every = Schedule::Every { every_ms: HOUR.unsigned_abs(), anchor: Timestamp(now - DAY) };
    let mut world = World::new(&every, now, &json!({}));
    world.pass(5 * HOUR + MINUTE);
    world.step(-8 * HOUR);
    world.pass(9 * HOUR);
    let hours: Vec<i64> = world.slots(RunState::Fired).iter().map(|slot| (slot - now) / HOUR).collect();
    assert_eq!(hours, [-2, -1, 0, 1, 2, 3, 4, 5, 6]);
    let at = |hour: i64| world.rows[&(now + hour * HOUR)].wall;
    assert_eq!((at(3), at(6)), (now + 3 * HOUR, now + 6 * HOUR));
}

#[test]
fn delays_by_the_clock_that_nobody_sets() {
    let now = instant(NOON);
    for (step, reboot, fires_after) in [
        (0, false, HOUR),
        (2 * HOUR, false, HOUR),
        (-2 * HOUR, false, HOUR),
        (DAY, false, HOUR),
        (-400 * DAY, false, HOUR),
        // After another start of the machine there is the wall clock alone.
        (0, true, HOUR),
        (-20 * MINUTE, true, HOUR + 20 * MINUTE),
        (40 * MINUTE, true, 20 * MINUTE),
    ] {
        let mut world = World::new(&after(now, HOUR), now, &json!({}));
        world.pass(10 * MINUTE);
        world.step(step);
        if reboot {
            world.reboot(0);
        } else {
            world.down(0);
        }
        let left = fires_after - 10 * MINUTE;
        world.pass(left - SECOND);
        assert_eq!(world.state(), FollowupState::Active, "{step} {reboot}: too early");
        world.pass(SECOND);
        assert_eq!((world.state(), world.rows.len()), (FollowupState::Done, 1), "{step} {reboot}: too late");
    }
}

#[test]
fn a_zone_that_is_not_there_any_more() {
    let mut world = World::new(&cron("0 8 * * *", "Europe/Berlin"), instant(NOON), &json!({}));
    for zone in ["Mars/Olympus", "", "Etc/Unknown"] {
        world.record = world.record.replace("Europe/Berlin", zone);
        let why = slots::plan(&world.record(), &world.moment()).unwrap_err();
        assert!(why.contains("cannot be computed"), "{zone}: {why}");
        world.start();
        assert!(world.book.first_due(&world.moment()).is_some(), "it is looked at, and marked, at once");
        world.record = world.record.replace(&format!("\"zone\":\"{zone}\""), "\"zone\":\"Europe/Berlin\"");
    }
}

#[test]
fn the_days_of_daylight_saving() {
    // A day of each switch by local time, and how many slots it has.
    for (zone, day, hours, half_past_two) in [
        ("Europe/Berlin", "2027-03-28", 23, "03:00"),
        ("Europe/Berlin", "2027-10-31", 25, "02:30"),
        ("America/New_York", "2027-03-14", 23, "03:00"),
        ("America/New_York", "2027-11-07", 25, "02:30"),
        ("Australia/Lord_Howe", "2027-10-03", 23, "02:30"),
        ("Australia/Lord_Howe", "2027-04-04", 24, "02:30"),
        ("Asia/Kolkata", "2027-03-28", 24, "02:30"),
    ] {
        let tz = jiff::tz::TimeZone::get(zone).unwrap();
        let midnight = |day: jiff::civil::Date| day.to_zoned(tz.clone()).unwrap().timestamp().as_millisecond();
        let date: jiff::civil::Date = day.parse().unwrap();
        let (from, to) = (midnight(date), midnight(date.tomorrow().unwrap()));
        for (expr, expected) in [("0 * * * *", hours), ("30 2 * * *", 1), ("0,30 2 * * *", 0), ("0 3 * * *", 1)] {
            let schedule = cron(expr, zone);
            let mut world = World::new(&schedule, from - 1, &json!({}));
            world.pass(to - from);
            world.check(&schedule, from - 1);
            let fired = world.slots(RunState::Fired);
            let local = |slot: &i64| {
                let at = jiff::Timestamp::from_millisecond(*slot).unwrap().to_zoned(tz.clone());
                at.strftime("%H:%M").to_string()
            };
            let local: Vec<String> = fired.iter().map(local).collect();
            if expected > 0 {
                assert_eq!(fired.len(), expected, "{zone} {day} {expr}: {local:?}");
            }
            if expr == "30 2 * * *" {
                assert_eq!(local, [half_past_two], "{zone} {day}");
            }
        }
    }
}
