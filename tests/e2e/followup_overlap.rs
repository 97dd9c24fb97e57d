//! What follow-ups do about their own tasks: one that still runs, and many that fail. And jitter.

use nano_protocol::event::EventType;
use nano_protocol::followup::RunState;
use nano_protocol::task::TaskState;
use nano_tests::daemon::Daemon;
use nano_tests::model_server::{ModelServer, Turn};
use nano_tests::wait;
use serde_json::json;

use crate::followup_kit::{act, check, get, holding, made, plain, schedule, wait_for, wait_made};

#[test]
fn the_new_task_replaces_the_old() {
    let server = holding("f");
    let mut daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let more = json!({"overlap": "replace", "max_runs": 3});
    let followup = schedule(&mut client, &session, &json!({"every_ms": 1000}), &more);
    wait_made(&mut client, &session, 2);
    daemon.kill9();
    daemon.restart();
    let mut client = daemon.client();
    wait_for(&mut client, &followup, "done");
    let states = |tasks: &[nano_protocol::task::Task]| tasks.iter().map(|task| task.state).collect::<Vec<_>>();
    wait::until("the old ones' end", || {
        (states(&made(&mut client, &session)) == [TaskState::Cancelled, TaskState::Cancelled, TaskState::Running])
            .then_some(())
    });
    server.open("f");
    let last = made(&mut client, &session).remove(2);
    assert_eq!(client.settled(&last.id).state, TaskState::Succeeded);
    assert!(check(&daemon, &followup).iter().filter(|row| row.state == RunState::Fired).count() == 3);
}

#[test]
fn an_interrupted_task_is_replaced_too() {
    let server = holding("f");
    let setup = nano_tests::daemon::Setup { agent: "resume = \"ask\"".into(), ..Default::default() };
    let mut daemon = Daemon::with(&server, setup);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let followup = schedule(&mut client, &session, &json!({"external": true}), &json!({"overlap": "replace"}));
    let old: nano_protocol::task::Task = client.get("followup.trigger", &json!({"followup": followup.id}));
    server.wait_requests(1);
    daemon.kill9();
    daemon.restart();
    let mut client = daemon.client();
    assert_eq!(client.settled(&old.id).state, TaskState::Interrupted);
    server.open("f");
    let new: nano_protocol::task::Task = client.get("followup.trigger", &json!({"followup": followup.id}));
    assert_eq!(client.settled(&new.id).state, TaskState::Succeeded);
    assert_eq!(client.settled(&old.id).state, TaskState::Cancelled);
}

#[test]
fn failures_in_a_row_pause_it() {
    let server = ModelServer::answering(|request, _| {
        let fails = !request["messages"].to_string().contains("good");
        Some(Turn { status: fails.then_some(400), ..Turn::text("done") })
    });
    let mut daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let followup = schedule(&mut client, &session, &json!({"external": true}), &json!({}));
    let mut run = |client: &mut nano_tests::client::Client, content: &str| {
        let params = json!({"followup": followup.id, "content": content});
        let task: nano_protocol::task::Task = client.get("followup.trigger", &params);
        client.settled(&task.id).state
    };
    for _ in 0..4 {
        assert_eq!(run(&mut client, "bad"), TaskState::Failed);
    }
    daemon.kill9();
    daemon.restart();
    let mut client = daemon.client();
    assert_eq!(run(&mut client, "bad"), TaskState::Failed);
    let paused = wait_for(&mut client, &followup, "paused");
    assert!(
        paused.reason.as_ref().is_some_and(|reason| reason.contains("5 of its tasks in a row failed")),
        "{paused:?}"
    );
    let warned = daemon.history().into_iter().filter(|event| event.kind == EventType::Warning);
    let warned = warned.filter(|event| event.data["followup"] == json!(followup.id)).count();
    assert_eq!(warned, 1);
    let resumed = act(&mut client, "followup.resume", &followup);
    assert_eq!((resumed.state.as_str(), resumed.reason), ("active", None));
    assert_eq!(run(&mut client, "bad"), TaskState::Failed);
    assert_eq!(get(&mut client, &followup).state.as_str(), "active", "it starts anew");
}

#[test]
fn jitter_is_stable_and_shown() {
    let server = plain();
    let mut daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let cron = json!({"cron": "0 0 * * *", "tz": "UTC"});
    let all: Vec<_> =
        (0..20).map(|_| schedule(&mut client, &session, &cron, &json!({"jitter_ms": 3_600_000}))).collect();
    let mut offsets: Vec<i64> = all.iter().map(|one| one.next[0].0.rem_euclid(86_400_000)).collect();
    assert!(all.iter().all(|one| one.next[1].0 - one.next[0].0 == 86_400_000), "{all:?}");
    assert!(offsets.iter().all(|offset| (0..=3_600_000).contains(offset)), "{offsets:?}");
    offsets.sort_unstable();
    offsets.dedup();
    assert!(offsets.len() > 10, "they are spread: {offsets:?}");
    daemon.kill9();
    daemon.restart();
    let mut client = daemon.client();
    assert!(all.iter().all(|one| get(&mut client, one).next == one.next));
    let soon = schedule(&mut client, &session, &json!({"every_ms": 1000}), &json!({"jitter_ms": 999, "max_runs": 2}));
    wait_for(&mut client, &soon, "done");
    let rows = check(&daemon, &soon);
    let anchored = |slot: i64| (slot - soon.created_at.0) % 1000 == 0;
    assert!(rows.iter().all(|row| anchored(row.slot.0)), "a slot is named by its own instant: {rows:?}");
    for (trigger, ms) in [
        (json!({"every_ms": 1000}), 1000),
        (json!({"cron": "*/5 * * * *"}), 300_000),
        (json!({"after_ms": 1}), 86_400_001),
        (json!({"external": true}), 1),
    ] {
        let params = json!({"session": session, "content": "f", "trigger": trigger, "jitter_ms": ms});
        assert_eq!(client.refused("followup.schedule", &params), -32602, "{params}");
    }
}
