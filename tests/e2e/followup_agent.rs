//! Follow-ups that an agent makes by its own tool, and their bounds.

use nano_protocol::followup::Followups;
use nano_tests::daemon::{Daemon, Setup};
use nano_tests::model_server::{Call, ModelServer, Turn};
use serde_json::{Value, json};

use crate::followup_kit::wait_made;

fn setup() -> Setup {
    Setup { agent: "tool_mode = \"all\"\nenable_followup = true".into(), ..Setup::default() }
}

/// A model that answers each first message with calls, and what follows with a word.
fn scheduling(call: impl Fn(&str, usize) -> Vec<Value> + Send + 'static) -> ModelServer {
    ModelServer::answering(move |request, n| {
        let last = request["messages"].as_array().and_then(|all| all.last()).expect("a message").clone();
        if last["role"] == "tool" {
            return Some(Turn::text("done"));
        }
        let calls = call(&last["content"].to_string(), n).into_iter().enumerate().map(|(at, arguments)| Call {
            id: format!("c{n}_{at}"),
            name: "schedule_followup".into(),
            arguments,
        });
        let calls: Vec<Call> = calls.collect();
        let text = if calls.is_empty() { "nothing to schedule" } else { "" };
        Some(Turn { calls, ..Turn::text(text) })
    })
}

/// Returns what the calls of a session came to, oldest first.
fn results(daemon: &Daemon, session: &str) -> Vec<(bool, String)> {
    let all: Value = daemon.client().get("session.messages", &json!({ "session": session }));
    let all = all["messages"].as_array().expect("messages").clone();
    let results = all.into_iter().filter(|message| message["role"] == "tool");
    results.map(|one| (one["ok"] == true, one["content"].as_str().expect("a text").to_owned())).collect()
}

#[test]
fn it_schedules_and_is_told_when() {
    let server = scheduling(|content, _| {
        if !content.contains("start") {
            return Vec::new();
        }
        vec![
            json!({"content": "later", "trigger": {"after_ms": 1}}),
            json!({"content": "daily", "trigger": {"cron": "0 8 * * *", "tz": "Europe/Berlin"}}),
            json!({"content": "hook", "trigger": {"external": true}}),
            json!({"content": "bad", "trigger": {"cron": "61 * * * *"}}),
            json!({"content": "bad", "trigger": {}}),
            json!({"content": "bad", "trigger": {"soon": 1}}),
            json!({"content": "  ", "trigger": {"after_ms": 1}}),
            json!({"trigger": {"after_ms": 1}}),
        ]
    });
    let daemon = Daemon::with(&server, setup());
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    client.run(&session, "start");
    let found = results(&daemon, &session);
    let expected = [
        (true, "It fires next at 20"),
        (true, ":00:00.000Z, 20"),
        (true, "It fires when what it waits for happens"),
        (false, "61 * * * *"),
        (false, "give one of after_ms"),
        (false, "soon"),
        (false, "the content is empty"),
        (false, "`content` is missing"),
    ];
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for ((ok, text), (fine, says)) in found.iter().zip(expected) {
        assert!(*ok == fine && text.contains(says), "{text} should say {says}");
    }
    let list: Followups = client.get("followup.list", &json!({ "session": session }));
    assert!(list.followups.iter().all(|one| found.iter().any(|(_, text)| text.contains(&one.id.0))), "{list:?}");
    let task = wait_made(&mut client, &session, 1).remove(0);
    assert_eq!(task.content, "later");
}

#[test]
fn ten_at_most() {
    let server = scheduling(|content, _| {
        let count = if content.contains("start") { 12 } else { 0 };
        (0..count).map(|n| json!({"content": format!("f{n}"), "trigger": {"every_ms": 3_600_000}})).collect()
    });
    let daemon = Daemon::with(&server, setup());
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    // Those of a client do not count.
    let own = json!({"session": session, "content": "own", "trigger": {"external": true}});
    client.get::<Value>("followup.schedule", &own);
    client.run(&session, "start");
    let found = results(&daemon, &session);
    let refused: Vec<_> = found.iter().filter(|(ok, _)| !ok).collect();
    assert_eq!((found.len(), refused.len()), (12, 2), "{found:#?}");
    assert!(refused.iter().all(|(_, text)| text.contains("active: 10 follow-ups")), "{refused:?}");
    client.get::<Value>("followup.schedule", &own);
}

#[test]
fn a_chain_has_three_links() {
    let server = scheduling(|_, _| vec![json!({"content": "again", "trigger": {"after_ms": 1}})]);
    let mut daemon = Daemon::with(&server, setup());
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    client.run(&session, "start");
    let tasks = wait_made(&mut client, &session, 2);
    client.settled(&tasks[1].id);
    daemon.kill9();
    daemon.restart();
    let mut client = daemon.client();
    let tasks = wait_made(&mut client, &session, 3);
    client.settled(&tasks[2].id);
    let found = results(&daemon, &session);
    assert_eq!(found.iter().map(|(ok, _)| *ok).collect::<Vec<_>>(), [true, true, true, false], "{found:#?}");
    assert!(found[3].1.contains("depth: this task stands at the end of a chain of 3"), "{found:#?}");
}

#[test]
fn it_is_withheld_unless_it_is_allowed() {
    let server = scheduling(|_, _| vec![json!({"content": "x", "trigger": {"after_ms": 1}})]);
    let daemon = Daemon::with(&server, Setup { agent: "tool_mode = \"all\"".into(), ..Setup::default() });
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    client.run(&session, "start");
    let found = results(&daemon, &session);
    assert!(!found[0].0 && found[0].1.contains("enable_followup is off"), "{found:?}");
    let list: Followups = client.get("followup.list", &json!({}));
    assert!(list.followups.is_empty(), "{list:?}");
}
