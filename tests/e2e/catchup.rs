//! Follow-ups when not all goes smoothly: slots that passed while the daemon was down, and sessions that are full.

use std::time::{SystemTime, UNIX_EPOCH};

use nano_protocol::event::{Event, EventType};
use nano_protocol::followup::Followup;
use nano_protocol::task::{Origin, TaskState};
use nano_protocol::time::Timestamp;
use nano_tests::client::Client;
use nano_tests::daemon::Daemon;
use nano_tests::model_server::{ModelServer, Turn};
use nano_tests::wait;
use serde_json::{Value, json};

const HOUR: u64 = 3_600_000;

fn now() -> Timestamp {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970").as_millis();
    Timestamp(i64::try_from(now).expect("a clock before the year 292 million"))
}

/// Schedules for each second, and returns the follow-up in a session of its own.
fn each_second(daemon: &Daemon, client: &mut Client, more: &Value) -> Followup {
    let session = daemon.session(client);
    let mut params = json!({"session": session, "content": "f", "trigger": {"every_ms": 1000}, "grace_ms": HOUR});
    let more = more.as_object().expect("an object");
    params.as_object_mut().expect("an object").extend(more.clone());
    client.get("followup.schedule", &params)
}

/// Returns the slots that events tell of, with whether they fired, and checks that none comes twice or is left out.
fn slots(daemon: &Daemon, followup: &Followup) -> Vec<(i64, bool)> {
    let about = |event: &Event| {
        let decided = matches!(event.kind, EventType::FollowupFired | EventType::FollowupMissed);
        decided && event.data["followup"] == json!(followup.id)
    };
    let slot = |event: &Event| {
        let slot: Timestamp = serde_json::from_value(event.data["slot"].clone()).expect("a slot");
        (slot.0, event.kind == EventType::FollowupFired)
    };
    let all: Vec<(i64, bool)> = daemon.history().iter().filter(|event| about(event)).map(slot).collect();
    let first = followup.next[0].0;
    let steps: Vec<i64> = all.iter().map(|(slot, _)| (slot - first) / 1000).collect();
    let expected: Vec<i64> = (0..).take(all.len()).collect();
    assert_eq!(steps, expected, "each slot is decided once: {all:?}");
    all
}

fn is_over(daemon: &Daemon, followup: &Followup) -> Option<Followup> {
    let now: Followup = daemon.client().get("followup.get", &json!({"followup": followup.id}));
    (now.state.as_str() != "active").then_some(now)
}

#[test]
fn what_passed_while_the_daemon_was_down() {
    let server = ModelServer::answering(|_, _| Some(Turn::text("done")));
    let mut daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let until = now().plus_ms(3500);
    let queued = json!({"missed": "all", "overlap": "queue", "max_runs": 2});
    let [runs, bounded, skipping, queueing, late] = [
        json!({"missed": "all", "max_runs": 2}),
        json!({"missed": "all", "until": until.to_string()}),
        json!({"missed": "skip", "until": until.to_string()}),
        queued,
        json!({"missed": "all", "grace_ms": 0, "until": until.to_string()}),
    ]
    .map(|more| each_second(&daemon, &mut client, &more));
    daemon.kill9();
    wait::until("the last slot", || (now() > until.plus_ms(2500)).then_some(()));
    daemon.restart();
    let fired = |followup: &Followup| {
        let over = wait::until("the end of a follow-up", || is_over(&daemon, followup));
        let all = slots(&daemon, followup);
        let fired: Vec<i64> = all.iter().filter(|(_, fired)| *fired).map(|(slot, _)| *slot).collect();
        let tasks = daemon.client().tasks(&followup.session.0);
        let made = tasks.iter().filter(|task| task.origin == Origin::Followup).count();
        assert_eq!((over.runs, fired.len()), (made as u64, made), "{over:?}: {all:?}");
        assert!(over.until.is_none_or(|until| all.iter().all(|(slot, _)| *slot <= until.0)), "{over:?}: {all:?}");
        (made, all.len())
    };
    assert_eq!(fired(&runs).0, 2);
    assert_eq!(fired(&queueing).0, 2);
    assert!(matches!(fired(&bounded), (_, 3..)), "none after its last instant, and each on record");
    assert!(matches!(fired(&skipping), (_, 3..)));
    // Two seconds late is not late; the last slot is older than that.
    assert!(matches!(fired(&late), (_, 3..)));
}

#[test]
fn overlap_queue_lets_one_wait() {
    let server = ModelServer::answering(|_, n| Some(Turn::text("done").gated(if n == 1 { "m1" } else { "open" })));
    server.open("open");
    let daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let followup = each_second(&daemon, &mut client, &json!({"overlap": "queue", "max_runs": 3}));
    wait::until("three slots", || (slots(&daemon, &followup).len() >= 4).then_some(()));
    let tasks = client.tasks(&followup.session.0);
    let states: Vec<_> = tasks.iter().map(|task| task.state).collect();
    assert_eq!(states, [TaskState::Running, TaskState::Queued]);
    server.open("m1");
    let over = wait::until("the end of the follow-up", || is_over(&daemon, &followup));
    assert_eq!(over.runs, 3, "a skipped slot is no run: {over:?}");
    slots(&daemon, &followup);
}

/// Fills the queue of a session whose task waits at a gate.
fn fill(client: &mut Client, session: &str) {
    let asked: Vec<u64> = (0..300)
        .map(|n| {
            client.begin("task.submit", &json!({"session": session, "content": format!("w{n}")})).expect("a daemon")
        })
        .collect();
    let answers: Vec<_> = asked.into_iter().map(|id| client.finish(id).expect("a live daemon")).collect();
    let refused: Vec<i32> = answers.into_iter().filter_map(Result::err).map(|error| error.code).collect();
    assert!(!refused.is_empty() && refused.iter().all(|code| *code == -32004), "{refused:?}");
}

#[test]
fn a_full_session_stops_nobody_elses_follow_up() {
    let server = ModelServer::answering(|request, _| {
        let held = request["messages"].to_string().contains("w0");
        Some(Turn::text("done").gated(if held { "m1" } else { "open" }))
    });
    server.open("open");
    let daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let full = daemon.session(&mut client);
    fill(&mut client, &full);
    let once = |client: &mut Client, session: &str| -> Followup {
        client.get("followup.schedule", &json!({"session": session, "content": "f", "trigger": {"after_ms": 1}}))
    };
    let waiting: Vec<Followup> = (0..5).map(|_| once(&mut client, &full)).collect();
    for _ in 0..3 {
        let other = daemon.session(&mut client);
        let followup = once(&mut client, &other);
        wait::until("another session's follow-up", || is_over(&daemon, &followup));
    }
    assert!(waiting.iter().all(|one| is_over(&daemon, one).is_none()), "there was no room for them");
    server.open("m1");
    for followup in &waiting {
        let over = wait::until("its own, now that there is room", || is_over(&daemon, followup));
        assert_eq!((over.state.as_str(), over.runs, over.missed), ("done", 1, 0), "{over:?}");
        assert_eq!(slots(&daemon, followup).len(), 1);
    }
}
