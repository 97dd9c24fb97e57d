//! Steering by RPC: listed, withdrawn, bounded, and neither lost nor doubled by a crash.

use nano_protocol::session::Queue;
use nano_protocol::task::TaskState;
use nano_tests::client::Client;
use nano_tests::daemon::{Daemon, Setup};
use nano_tests::model_server::{ModelServer, Turn};
use nano_tests::transcript;
use serde_json::{Value, json};

/// Starts a task that waits at the gate `m1` of its first request, with `done` after it.
fn running(agent: &str) -> (ModelServer, Daemon, Client, String) {
    let server =
        ModelServer::answering(|_, n| Some(if n == 1 { Turn::text("one").gated("m1") } else { Turn::text("two") }));
    let daemon = Daemon::with(&server, Setup { agent: agent.to_owned(), ..Setup::default() });
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    client.submit(&session, "p");
    server.wait_requests(1);
    (server, daemon, client, session)
}

fn steer(client: &mut Client, session: &str, content: &str) -> Value {
    client.get("session.steer", &json!({"session": session, "content": content}))
}

fn settle(client: &mut Client, session: &str) -> String {
    for task in client.tasks(session) {
        let task = client.settled(&task.id);
        assert_eq!(task.state, TaskState::Succeeded, "{task:?}");
    }
    let messages = transcript::read(client, session);
    transcript::check_pairs(&messages, false);
    transcript::render(&messages)
}

#[test]
fn what_waits_is_listed_in_order_and_can_be_withdrawn() {
    let (server, _daemon, mut client, session) = running("");
    let first = steer(&mut client, &session, "s1");
    let second = steer(&mut client, &session, "s2");
    assert_eq!((first["position"].as_u64(), second["position"].as_u64()), (Some(0), Some(1)));
    let task = client.submit(&session, "q");
    let queue: Queue = client.get("session.queue", &json!({ "session": session }));
    let waiting: Vec<_> = queue.waiting.iter().map(|one| one.content.as_str()).collect();
    assert_eq!(waiting, ["s1", "s2", "q"]);
    for id in [first["message"].clone(), json!(task.id)] {
        client.get::<Value>("session.withdraw", &json!({"session": session, "id": id}));
        assert_eq!(client.refused("session.withdraw", &json!({"session": session, "id": id})), -32001);
    }
    server.open("m1");
    assert_eq!(client.settled(&task.id).state, TaskState::Cancelled);
    let first = client.tasks(&session).remove(0);
    assert_eq!(client.settled(&first.id).state, TaskState::Succeeded);
    assert_eq!(transcript::render(&transcript::read(&mut client, &session)), "U(p) A(one) S(s2) A(two)");
}

#[test]
fn accepted_steering_survives_a_kill_once_and_in_order() {
    let (_server, mut daemon, mut client, session) = running("");
    (1..=3).for_each(|n| drop(steer(&mut client, &session, &format!("s{n}"))));
    daemon.kill9();
    daemon.restart();
    let rendered = settle(&mut daemon.client(), &session);
    assert!(transcript::fits("U(p) N? S(s1) S(s2) S(s3) N? A(two)", &rendered), "{rendered}");
}

#[test]
fn an_interrupted_session_keeps_steering_for_the_resume() {
    let (_server, mut daemon, _, session) = running("resume = \"ask\"");
    daemon.kill9();
    daemon.restart();
    let mut client = daemon.client();
    let task = client.tasks(&session).remove(0);
    assert_eq!(client.settled(&task.id).state, TaskState::Interrupted);
    let answer = steer(&mut client, &session, "s");
    assert_eq!((&answer["accepted_as"], &answer["task"]), (&json!("note"), &json!(task.id)));
    client.get::<Value>("task.resume", &json!({"task": task.id}));
    let rendered = settle(&mut client, &session);
    assert!(transcript::fits("U(p) N? S(s) N? A(two)", &rendered), "{rendered}");
}

#[test]
fn a_full_queue_refuses_and_loses_nothing() {
    let (server, _daemon, mut client, session) = running("");
    let params = |n: usize| json!({"session": session, "content": format!("s{n}")});
    let accepted = (0..10_000).take_while(|n| match client.call("session.steer", &params(*n)) {
        Ok(_) => true,
        Err(error) => {
            assert_eq!((error.code, error.data.retryable), (-32004, true), "{error:?}");
            false
        }
    });
    let accepted = accepted.count();
    assert!((100..10_000).contains(&accepted), "{accepted} waited");
    server.open("m1");
    let rendered = settle(&mut client, &session);
    assert_eq!(rendered.matches("S(s").count(), accepted, "{rendered}");
}

#[test]
fn refusals() {
    let (_server, _daemon, mut client, session) = running("enable_steering = false");
    let params = |content: &str| json!({"session": session, "content": content});
    assert_eq!(client.refused("session.steer", &params("s")), -32003);
    let (_server, _daemon, mut client, session) = running("");
    let params = |content: &str| json!({"session": session, "content": content});
    assert_eq!(client.refused("session.steer", &params(&"x".repeat(1024 * 1024 + 1))), -32008);
    assert_eq!(
        client.refused("session.steer", &json!({"session": session, "content": "s", "delivery": "later"})),
        -32602
    );
    assert_eq!(client.refused("session.steer", &json!({"session": "nobody", "content": "s"})), -32001);
    client.get::<Value>("session.steer", &params(&"x".repeat(1024 * 1024)));
}
