//! Whatever happens in whatever order, a slot runs once and is accounted for.

use super::*;

#[derive(Debug, Clone)]
enum Act {
    Pass(i64),
    Sleep(i64),
    Step(i64),
    Down(i64),
    Reboot(i64),
    Pause(i64),
    Dies(bool),
    Ends(TaskState),
    New(TaskState),
}

fn span() -> impl Strategy<Value = i64> {
    prop_oneof![0..2 * MINUTE, 0..6 * HOUR, 0..2 * DAY]
}

fn act() -> impl Strategy<Value = Act> {
    let states = || {
        prop::sample::select(vec![
            TaskState::Queued,
            TaskState::Running,
            TaskState::Succeeded,
            TaskState::Failed,
            TaskState::Interrupted,
        ])
    };
    prop_oneof![
        4 => span().prop_map(Act::Pass),
        2 => span().prop_map(Act::Sleep),
        3 => (span(), any::<bool>()).prop_map(|(ms, back)| Act::Step(if back { -ms } else { ms })),
        2 => span().prop_map(Act::Down),
        1 => span().prop_map(Act::Reboot),
        1 => span().prop_map(Act::Pause),
        2 => any::<bool>().prop_map(Act::Dies),
        1 => states().prop_map(Act::Ends),
        1 => states().prop_map(Act::New),
    ]
}

fn field(top: u32) -> impl Strategy<Value = String> {
    prop_oneof![
        Just("*".to_owned()),
        (2..top).prop_map(|step| format!("*/{step}")),
        (0..top).prop_map(|one| one.to_string()),
        (0..top, 0..top).prop_map(|(a, b)| format!("{}-{}", a.min(b), a.max(b))),
        (0..top, 0..top).prop_map(|(a, b)| format!("{},{}", a.min(b), a.max(b))),
    ]
}

fn expression() -> impl Strategy<Value = String> {
    let days = prop::sample::select(vec![
        "* * *",
        "* * *",
        "L * *",
        "15W * *",
        "* * FRI#2",
        "* * 5L",
        "* * MON-FRI",
        "1,15 * *",
    ]);
    let second = prop::option::of(0..60_u32);
    (second, field(60), field(24), days).prop_map(|(second, minute, hour, days)| {
        let second = second.map(|second| format!("{second} ")).unwrap_or_default();
        format!("{second}{minute} {hour} {days}")
    })
}

fn zone() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "UTC"])
}

/// A start near one of the switches of those zones, or anywhere.
fn beginning() -> impl Strategy<Value = i64> {
    let near =
        ["2027-03-28T01:00Z", "2027-10-31T01:00Z", "2027-03-14T07:00Z", "2027-11-07T06:00Z", "2027-04-03T15:00Z"];
    let near: Vec<i64> = near.iter().map(|at| instant(at)).collect();
    prop_oneof![
        (prop::sample::select(near), -2 * DAY..DAY).prop_map(|(at, off)| at + off),
        1_800_000_000_000..1_900_000_000_000_i64,
    ]
}

fn kind() -> impl Strategy<Value = (Schedule, i64)> {
    prop_oneof![
        4 => (expression(), zone(), beginning()).prop_map(|(expr, zone, now)| (cron(&expr, zone), now)),
        2 => (30_u64..100_000, beginning()).prop_map(|(s, now)| {
            (Schedule::Every { every_ms: s * 1000, anchor: Timestamp(now) }, now)
        }),
        1 => (span(), beginning()).prop_map(|(ms, now)| (after(now, ms + 1), now)),
        1 => (span(), beginning()).prop_map(|(ms, now)| (Schedule::At { due: Timestamp(now + ms + 1) }, now)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]
    #[test]
    fn any_life(
        (schedule, now) in kind(),
        missed in prop::sample::select(Missed::ALL.to_vec()),
        overlap in prop::sample::select(Overlap::ALL.to_vec()),
        grace_ms in prop::option::of(0_i64..3 * HOUR),
        jitter_ms in prop::option::of(0_u64..30_000),
        max_runs in prop::option::of(1_u64..30),
        until in prop::option::of(span()),
        acts in prop::collection::vec(act(), 1..14),
    ) {
        let first = calendar::next_after(&schedule, Timestamp(now));
        let grace_ms = grace_ms.map_or_else(|| calendar::default_grace_ms(&schedule), i64::unsigned_abs);
        let jitter_ms = jitter_ms.filter(|ms| calendar::period_ms(&schedule).is_none_or(|period| *ms < period));
        prop_assume!(first.is_some());
        // One that would never fire is refused.
        let later = jitter_ms.map_or(0, |most| calendar::jitter_ms("fup_1", most));
        let until = until.filter(|ms| first.is_some_and(|first| first.0 + later <= now + ms));
        let more = json!({
            "missed_policy": missed, "overlap": overlap, "grace_ms": grace_ms, "jitter_ms": jitter_ms,
            "max_runs": max_runs, "until": until.map(|ms| Timestamp(now + ms)),
        });
        let mut world = World::new(&schedule, now, &more);
        for act in &acts {
            match *act {
                Act::Pass(ms) => world.pass(ms),
                Act::Sleep(ms) => world.sleep(ms),
                Act::Step(ms) => world.step(ms),
                Act::Down(ms) => world.down(ms),
                Act::Reboot(ms) => world.reboot(ms),
                Act::Pause(ms) => world.pause(ms),
                Act::Dies(after) => world.dies = if after { Dies::After } else { Dies::Before },
                Act::Ends(state) => world.end_tasks(state),
                Act::New(state) => world.ends = state,
            }
        }
        world.check(&schedule, now);
        let record = world.record();
        let fired = world.slots(RunState::Fired);
        prop_assert!(max_runs.is_none_or(|most| fired.len() as u64 <= most), "{:?}", fired);
        prop_assert!(until.is_none_or(|ms| world.rows.keys().all(|slot| *slot <= now + ms)), "{:?}", world.rows);
        if record.followup.state == FollowupState::Active {
            prop_assert!(record.next_due.is_some(), "{:?}", record);
        }
    }
}
