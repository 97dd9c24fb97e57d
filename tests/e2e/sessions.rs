//! Sessions: states, names, lists, closing and deleting.

use nano_protocol::session::{Session, Sessions};
use nano_protocol::task::TaskState;
use nano_tests::client::Client;
use nano_tests::daemon::{Daemon, Setup};
use nano_tests::model_server::{ModelServer, Turn};
use serde_json::{Value, json};

fn state(client: &mut Client, session: &str) -> String {
    client.get::<Session>("session.get", &json!({ "session": session })).state.to_string()
}

#[test]
fn states() {
    let server = ModelServer::script(vec![Turn { hang: true, ..Turn::default() }, Turn::text("done")]);
    let mut daemon = Daemon::with(&server, Setup { agent: "resume = \"ask\"".to_owned(), ..Setup::default() });
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    assert_eq!(state(&mut client, &session), "idle");
    let task = client.submit(&session, "p");
    server.wait_requests(1);
    assert_eq!(state(&mut client, &session), "running");
    daemon.kill9();
    daemon.restart();
    let mut client = daemon.client();
    assert_eq!(client.settled(&task.id).state, TaskState::Interrupted);
    assert_eq!(state(&mut client, &session), "interrupted");
    client.get::<Value>("task.resume", &json!({"task": task.id}));
    assert_eq!(client.settled(&task.id).state, TaskState::Succeeded);
    assert_eq!(state(&mut client, &session), "idle");
    assert_eq!(client.refused("task.resume", &json!({"task": task.id})), -32005);
    client.get::<Value>("session.close", &json!({ "session": session }));
    assert_eq!(state(&mut client, &session), "closed");
}

#[test]
fn a_closed_session_takes_nothing_more() {
    let server = ModelServer::script(vec![Turn { hang: true, ..Turn::default() }]);
    let daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session = daemon.session_with(&mut client, json!({"name": "n"}));
    let task = client.submit(&session, "p");
    let later = json!({"session": session, "content": "f", "trigger": {"after_ms": 3_600_000}});
    let followup: Value = client.get("followup.schedule", &later);
    server.wait_requests(1);
    client.get::<Value>("session.close", &json!({ "session": session }));
    assert_eq!(client.settled(&task.id).state, TaskState::Cancelled);
    let followup: Value = client.get("followup.get", &json!({"followup": followup["id"]}));
    assert_eq!(followup["state"], "paused");
    let content = json!({"session": session, "content": "x"});
    for (method, params) in [("task.submit", &content), ("session.steer", &content), ("followup.schedule", &later)] {
        assert_eq!(client.refused(method, params), -32002, "{method}");
    }
    daemon.session_with(&mut client, json!({"name": "n"}));
}

#[test]
fn names_and_prefixes() {
    let server = ModelServer::script(Vec::new());
    let mut daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let first = daemon.session_with(&mut client, json!({"name": "one.A_1-x"}));
    let second = daemon.session(&mut client);
    assert_eq!(client.refused("session.create", &json!({"name": "one.A_1-x"})), -32002);
    for bad in ["", "a b", "ses_x", "a/b", &"x".repeat(65)] {
        assert_eq!(client.refused("session.create", &json!({ "name": bad })), -32602, "{bad}");
    }
    daemon.kill9();
    daemon.restart();
    let mut client = daemon.client();
    let mut found = |name: &str| client.get::<Session>("session.get", &json!({ "session": name })).id.0;
    assert_eq!(found("one.A_1-x"), first);
    assert_eq!(found(&second), second);
    let common = first.chars().zip(second.chars()).take_while(|(a, b)| a == b).count();
    assert_eq!(found(&first[..=common]), first);
    let error = client.call("session.get", &json!({"session": first[..common]})).expect_err("an ambiguous prefix");
    let names_both = error.message.contains(&first) && error.message.contains(&second);
    assert!(error.code == -32602 && names_both, "{error:?}");
    assert_eq!(client.refused("session.get", &json!({"session": "nobody"})), -32001);
}

#[test]
fn what_there_is_not_is_named_with_what_there_is() {
    let server = ModelServer::script(Vec::new());
    let daemon = Daemon::start(&server);
    let mut client = daemon.client();
    for (params, says) in [
        (json!({"agent": "nobody"}), "default"),
        (json!({"model": "nothing"}), "scripted"),
        (json!({"booter": "cloud"}), "local"),
        (json!({"level": "root"}), "workspace-write"),
        (json!({"tool_mode": "some"}), "readonly"),
        (json!({"tools": ["hammer"]}), "exec"),
        (json!({"workspace": "/no/such/folder"}), "/no/such/folder"),
        (json!({"workspace": "relative"}), "relative"),
    ] {
        let error = client.call("session.create", &params).expect_err("a refusal");
        assert!(error.code == -32602 && error.message.contains(says), "{params}: {error:?}");
    }
    let sessions: Sessions = client.get("session.list", &json!({}));
    assert!(sessions.sessions.is_empty(), "a refused session was made: {sessions:?}");
}

#[test]
fn lists_come_in_pages_newest_first() {
    let server = ModelServer::script(Vec::new());
    let daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let mut made: Vec<String> = (0..7).map(|_| daemon.session(&mut client)).collect();
    made.reverse();
    let mut seen = Vec::new();
    let mut after = Value::Null;
    loop {
        let page: Sessions = client.get("session.list", &json!({"limit": 3, "after": after}));
        assert!(page.sessions.len() <= 3);
        seen.extend(page.sessions.into_iter().map(|session| session.id.0));
        match page.next {
            Some(next) => after = json!(next),
            None => break,
        }
    }
    assert_eq!(seen, made);
}

#[test]
fn a_deleted_session_is_gone() {
    let server = ModelServer::script(vec![Turn::text("done")]);
    let mut daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let task = client.run(&session, "p");
    client.get::<Value>("session.delete", &json!({ "session": session }));
    for _ in 0..2 {
        assert_eq!(client.refused("session.get", &json!({ "session": session })), -32001);
        assert_eq!(client.refused("task.get", &json!({"task": task.id})), -32001);
        daemon.kill9();
        daemon.restart();
        client = daemon.client();
    }
}

#[test]
fn without_a_workspace_one_is_made_in_the_state_folder() {
    let server = ModelServer::script(vec![Turn::exec("c1", "pwd"), Turn::text("done")]);
    let daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session: Session = client.get("session.create", &json!({}));
    assert_eq!(session.workspace, daemon.state().join("workspaces").join(&session.id.0).display().to_string());
    client.run(&session.id.0, "p");
    let requests = server.requests();
    let last = requests.last().expect("a request").to_string();
    assert!(last.contains(&session.workspace), "{last}");
}
