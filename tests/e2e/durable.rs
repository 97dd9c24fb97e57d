//! Accepted means durable, and one key means one object.

use nano_protocol::task::{Task, TaskState};
use nano_tests::client::Client;
use nano_tests::daemon::Daemon;
use nano_tests::model_server::{ModelServer, Turn};
use nano_tests::transcript;
use serde_json::{Value, json};

/// A model that answers everything with the same text.
fn plain() -> ModelServer {
    ModelServer::answering(|_, _| Some(Turn::text("done")))
}

#[test]
fn what_was_accepted_runs_after_a_kill() {
    let server = plain();
    let mut daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let ids: Vec<_> = (0..5).map(|n| client.submit(&session, &format!("p{n}")).id).collect();
    daemon.kill9();
    daemon.restart();
    let mut client = daemon.client();
    let states: Vec<_> = ids.iter().map(|id| client.settled(id).state).collect();
    assert_eq!(states, [TaskState::Succeeded; 5]);
    let contents: Vec<_> = client.tasks(&session).into_iter().map(|task| task.content).collect();
    assert_eq!(contents, ["p0", "p1", "p2", "p3", "p4"]);
    transcript::check_pairs(&transcript::read(&mut client, &session), false);
}

#[test]
fn a_kill_before_the_answer_leaves_one_task_or_none() {
    let server = plain();
    let mut daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let params = json!({"session": session, "content": "p", "idempotency_key": "k"});
    client.begin("task.submit", &params).expect("a live daemon");
    daemon.kill9();
    daemon.restart();
    let mut client = daemon.client();
    let task: Task = client.get("task.submit", &params);
    assert_eq!(client.settled(&task.id).state, TaskState::Succeeded);
    assert_eq!(client.tasks(&session).len(), 1);
}

#[test]
fn a_fresh_session_of_a_submit_is_durable_with_it() {
    let server = plain();
    let mut daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let create = json!({"name": "mine", "workspace": daemon.workspace()});
    let task: Task = client.get("task.submit", &json!({"create": create, "content": "p"}));
    daemon.kill9();
    daemon.restart();
    let mut client = daemon.client();
    assert_eq!(client.settled(&task.id).state, TaskState::Succeeded);
    let session: Value = client.get("session.get", &json!({"session": "mine"}));
    assert_eq!(session["id"], json!(task.session));
}

#[test]
fn a_wait_over_a_restart_answers_what_had_ended() {
    let server = plain();
    let mut daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let before = client.run(&session, "p");
    daemon.kill9();
    daemon.restart();
    let mut client = daemon.client();
    assert_eq!(client.settled(&before.id), before);
    assert_eq!(server.requests().len(), 1, "a reply that is stored is not asked for again");
}

#[test]
fn a_wait_that_runs_out_is_no_error() {
    let server = ModelServer::script(vec![Turn::text("done").gated("m1")]);
    let daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let task = client.submit(&session, "p");
    server.wait_requests(1);
    let waited: Task = client.get("task.wait", &json!({"task": task.id, "timeout_ms": 1}));
    assert_eq!(waited.state, TaskState::Running);
    server.open("m1");
    assert_eq!(client.settled(&task.id).state, TaskState::Succeeded);
}

/// Checks that a method knows a key: the same object for the same parameters, a conflict for others, over a restart.
fn check_key(method: &str, params: &Value, member: &str, id: &str) {
    let server = plain();
    let mut daemon = Daemon::start(&server);
    let mut client = daemon.client();
    daemon.session_with(&mut client, json!({"name": "s"}));
    let mut keyed = params.clone();
    keyed["idempotency_key"] = json!("k");
    let ask = |client: &mut Client| client.get::<Value>(method, &keyed)[id].clone();
    let first = ask(&mut client);
    assert_eq!(ask(&mut client), first, "{method}: the same key");
    daemon.kill9();
    daemon.restart();
    let mut client = daemon.client();
    assert_eq!(ask(&mut client), first, "{method}: the same key after a restart");
    let mut other = keyed.clone();
    other[member] = json!("other");
    assert_eq!(client.refused(method, &other), -32002, "{method}: the same key with other parameters");
    other["idempotency_key"] = json!("k2");
    let second: Value = client.get(method, &other);
    assert_ne!(second[id], first, "{method}: another key");
}

#[test]
fn keys() {
    check_key("task.submit", &json!({"session": "s", "content": "p"}), "content", "id");
    check_key("session.create", &json!({"name": "t"}), "name", "id");
    check_key("session.steer", &json!({"session": "s", "content": "p"}), "content", "message");
    let trigger = json!({"after_ms": 3_600_000});
    check_key("followup.schedule", &json!({"session": "s", "content": "p", "trigger": trigger}), "content", "id");
}

#[test]
fn a_replayed_task_says_so() {
    let server = plain();
    let daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let params = json!({"session": session, "content": "p", "idempotency_key": "k"});
    let replayed: Vec<bool> = (0..2).map(|_| client.get::<Task>("task.submit", &params).replayed).collect();
    assert_eq!(replayed, [false, true]);
    assert_eq!(client.tasks(&session).len(), 1);
}

#[test]
fn a_key_counts_per_method() {
    let server = plain();
    let daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    client.get::<Value>("task.submit", &json!({"session": session, "content": "p", "idempotency_key": "k"}));
    client.get::<Value>("session.steer", &json!({"session": session, "content": "p", "idempotency_key": "k"}));
}
