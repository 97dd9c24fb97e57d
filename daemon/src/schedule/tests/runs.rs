//! Restarts, stalls and what is made up for.

use super::*;

#[test]
fn once_is_once_whatever_becomes_of_it() {
    let now = instant(NOON);
    for schedule in [Schedule::At { due: Timestamp(now + SECOND) }, after(now, SECOND)] {
        for ends in [TaskState::Failed, TaskState::Cancelled, TaskState::Running, TaskState::Interrupted] {
            let mut world = World::new(&schedule, now, &json!({}));
            world.ends = ends;
            (0..3).for_each(|_| world.pass(SECOND));
            (0..3).for_each(|_| world.down(20 * MINUTE));
            assert_eq!((world.state(), world.slots(RunState::Fired)), (FollowupState::Done, vec![now + SECOND]));
        }
    }
}

#[test]
fn a_slot_that_falls_into_a_restart() {
    let now = instant(NOON);
    for (missed, down, fired, lost) in [
        ("latest", 2 * MINUTE, 1, 0),
        ("all", 2 * MINUTE, 1, 0),
        ("skip", 2 * MINUTE, 0, 1),
        ("skip", MINUTE + SECOND, 1, 0),
        ("latest", 2 * HOUR, 0, 1),
        ("latest", 49 * HOUR, 1, 2),
        ("latest", 50 * HOUR, 0, 3),
    ] {
        let mut world = World::new(&cron("0 15 * * *", "UTC"), now, &json!({ "missed_policy": missed }));
        world.pass(3 * HOUR - MINUTE);
        world.down(down);
        let found = (world.slots(RunState::Fired).len(), world.slots(RunState::Missed).len());
        assert_eq!(found, (fired, lost), "{missed} {down}");
        world.check(&cron("0 15 * * *", "UTC"), now);
    }
}

#[test]
fn a_restart_runs_no_slot_again() {
    let now = instant(NOON);
    let mut world = World::new(&cron("0 22 * * *", "Europe/Berlin"), now, &json!({"missed_policy": "all"}));
    world.pass(8 * HOUR);
    assert_eq!(world.slots(RunState::Fired).len(), 1);
    // A task that ends the daemon: 900 restarts.
    for _ in 0..900 {
        world.down(SECOND);
    }
    world.down(30 * MINUTE);
    assert_eq!(world.rows.len(), 1);
}

#[test]
fn a_stall_is_made_up_for_once() {
    let now = instant(NOON);
    let every = Schedule::Every { every_ms: MINUTE.unsigned_abs(), anchor: Timestamp(now) };
    let mut world = World::new(&every, now, &json!({}));
    world.sleep(27 * MINUTE + SECOND);
    world.pass(0);
    assert_eq!((world.slots(RunState::Fired).len(), world.slots(RunState::Missed).len()), (1, 26));
    world.pass(MINUTE);
    assert_eq!(world.slots(RunState::Fired).len(), 2);
}

#[test]
fn looking_at_it_moves_no_slot() {
    let now = instant(NOON);
    let daily = cron("0 13 * * *", "UTC");
    let mut world = World::new(&daily, now, &json!({}));
    world.sleep(HOUR + SECOND);
    let record = world.record();
    // What any other call does between the slot and its tick.
    booking::shown(&record, &world.moment());
    world.commit(&record, &[]);
    world.pass(0);
    assert_eq!(world.slots(RunState::Fired), [now + HOUR]);
    assert_eq!(world.record().next_due, Some(Timestamp(now + 25 * HOUR)));
}

#[test]
fn a_task_that_never_ends_holds_up_no_slot_for_good() {
    let now = instant(NOON);
    let every = Schedule::Every { every_ms: MINUTE.unsigned_abs(), anchor: Timestamp(now) };
    for overlap in ["skip", "queue", "replace"] {
        let mut world = World::new(&every, now, &json!({ "overlap": overlap }));
        world.ends = TaskState::Running;
        world.pass(5 * MINUTE);
        let found = (world.slots(RunState::Fired).len(), world.slots(RunState::Skipped).len());
        assert_eq!(found, if overlap == "skip" { (1, 4) } else { (5, 0) }, "{overlap}");
        assert_eq!(world.record().replaces.is_some(), overlap == "replace");
        // Its daemon is killed, and nobody takes it up.
        world.end_tasks(TaskState::Interrupted);
        world.pass(MINUTE);
        assert_eq!(world.slots(RunState::Fired).last(), Some(&(now + 6 * MINUTE)), "{overlap}");
        world.check(&every, now);
    }
}

#[test]
fn all_that_was_missed_is_caught_up_with_whatever_may_overlap() {
    let now = instant(NOON);
    let every = Schedule::Every { every_ms: MINUTE.unsigned_abs(), anchor: Timestamp(now) };
    for overlap in ["skip", "queue"] {
        let more = json!({"missed_policy": "all", "overlap": overlap, "grace_ms": HOUR});
        let mut world = World::new(&every, now, &more);
        world.ends = TaskState::Queued;
        world.sleep(10 * MINUTE + 5 * SECOND);
        world.start();
        world.pass(0);
        assert_eq!(world.slots(RunState::Fired).len(), 10, "{overlap}");
        world.check(&every, now);
    }
}

#[test]
fn nothing_is_caught_up_with_after_its_last_instant() {
    let now = instant(NOON);
    let at = Schedule::At { due: Timestamp(now + MINUTE) };
    for (slept, fired) in [(MINUTE, 1), (MINUTE + 2 * SECOND, 1), (11 * MINUTE, 0)] {
        let mut world = World::new(&at, now, &json!({"until": Timestamp(now + MINUTE + SECOND)}));
        world.sleep(slept);
        world.start();
        world.pass(0);
        assert_eq!(world.slots(RunState::Fired).len(), fired, "{slept}");
        assert_eq!(world.state(), FollowupState::Done);
    }
}
