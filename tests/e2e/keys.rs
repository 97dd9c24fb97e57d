//! Idempotency keys where it is hard: over a kill before the answer, without a model, in another spelling.

use nano_protocol::session::Sessions;
use nano_protocol::task::{Task, TaskState};
use nano_tests::client::Client;
use nano_tests::daemon::Daemon;
use nano_tests::model_server::{ModelServer, Turn};
use serde_json::{Value, json};

fn plain() -> ModelServer {
    ModelServer::answering(|_, _| Some(Turn::text("done")))
}

#[test]
fn a_session_with_its_task_is_there_once_over_a_kill() {
    let server = plain();
    let mut daemon = Daemon::start(&server);
    for round in 0..16 {
        let name = format!("s{round}");
        let create = json!({"name": name, "workspace": daemon.workspace()});
        let submit = json!({"create": create, "content": "t", "idempotency_key": name});
        let (mut client, mut other) = (daemon.client(), daemon.client());
        client.begin("task.submit", &submit).expect("a live daemon");
        // From before it was read to after it was done.
        (0..round % 4).for_each(|_| drop(other.get::<Value>("daemon.hello", &json!({"client": "t", "protocol": 1}))));
        daemon.kill9();
        daemon.restart();
        let mut client = daemon.client();
        let task: Task = client.get("task.submit", &submit);
        assert_eq!(client.settled(&task.id).state, TaskState::Succeeded);
        let list: Sessions = client.get("session.list", &json!({}));
        let named = list.sessions.iter().filter(|one| one.name.as_deref() == Some(&name)).count();
        assert_eq!((named, client.tasks(&task.session.0).len()), (1, 1), "round {round}");
        assert!(client.get::<Task>("task.submit", &submit).replayed);
    }
}

#[test]
fn a_key_answers_when_no_model_is_configured_any_more() {
    let server = plain();
    let mut daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let params = |key: &str| json!({"session": session, "content": "p", "idempotency_key": key});
    let task: Task = client.get("task.submit", &params("k"));
    client.settled(&task.id);
    daemon.kill9();
    std::fs::write(daemon.root().join("nanod.toml"), "[daemon]\n").expect("a config file");
    daemon.restart();
    let mut client = daemon.client();
    let again: Task = client.get("task.submit", &params("k"));
    assert_eq!((again.id, again.replayed), (task.id, true));
    assert_eq!(client.refused("task.submit", &params("k2")), -32006, "a fresh one needs a model");
}

/// Sends `params` as they are spelt and returns the answer's id.
fn ask(client: &mut Client, method: &str, params: &str) -> Value {
    let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
    client.send(format!("{line}\n").as_bytes()).expect("a live daemon");
    let answer: Value = serde_json::from_str(&client.read_line().expect("an answer")).expect("JSON");
    assert!(answer.get("error").is_none(), "{params}: {answer}");
    answer["result"]["id"].clone()
}

#[test]
fn the_order_of_members_says_nothing() {
    let server = plain();
    let daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let session = format!(r#""session":"{session}","content":"p""#);
    let triggers = [r#","trigger":{"cron":"0 0 1 1 *","tz":"UTC"}"#, r#","trigger":{"tz":"UTC","cron":"0 0 1 1 *"}"#];
    for (method, named, more) in [
        ("task.submit", session.as_str(), ["", ""]),
        ("followup.schedule", session.as_str(), triggers),
        ("session.create", r#""name":"n""#, ["", ""]),
    ] {
        let [a, b] = more;
        let first = format!(r#"{{"idempotency_key":"k",{named}{a},"metadata":{{"a":1,"b":[{{"c":1,"d":2}}]}}}}"#);
        let second = format!(r#"{{"metadata":{{"b":[{{"d":2,"c":1}}],"a":1}}{b},{named},"idempotency_key":"k"}}"#);
        assert_eq!(ask(&mut client, method, &first), ask(&mut client, method, &second), "{method}");
    }
}
