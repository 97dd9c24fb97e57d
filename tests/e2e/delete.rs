//! Deleting and closing: nothing is left of what was deleted, whatever it was doing, and the end comes last.

use nano_protocol::event::{Event, EventType};
use nano_protocol::followup::Followups;
use nano_protocol::task::{TaskState, Tasks};
use nano_tests::client::Client;
use nano_tests::daemon::Daemon;
use nano_tests::model_server::{ModelServer, Turn};
use nano_tests::wait;
use serde_json::{Value, json};

/// Checks that a session has left nothing that can be read.
fn nothing_left(daemon: &Daemon, session: &str, tasks: &[String]) {
    let mut client = daemon.client();
    // A newest event that is there: numbers at the head may be gone.
    client.get::<Value>("session.create", &json!({"workspace": daemon.workspace()}));
    let of_it = |event: &Event| event.session.as_ref().is_some_and(|one| one.0 == session);
    let events: Vec<Event> = daemon.history().into_iter().filter(of_it).collect();
    assert_eq!(events, []);
    let list: Tasks = client.get("task.list", &json!({"limit": 1000}));
    assert!(list.tasks.iter().all(|task| task.session.0 != session), "{list:?}");
    let list: Followups = client.get("followup.list", &json!({}));
    assert!(list.followups.iter().all(|one| one.session.0 != session), "{list:?}");
    for method in ["session.get", "session.messages", "session.queue", "session.tools", "session.boot"] {
        assert_eq!(client.refused(method, &json!({ "session": session })), -32001, "{method}");
    }
    for task in tasks {
        assert_eq!(client.refused("task.get", &json!({ "task": task })), -32001);
    }
    assert!(!daemon.state().join("workspaces").join(session).exists(), "its own workspace is removed");
}

/// Deletes a session, checks what is left before and after a restart, and makes another of its name.
fn delete(mut daemon: Daemon, client: &mut Client, session: &str) {
    let tasks: Vec<String> = client.tasks(session).into_iter().map(|task| task.id.0).collect();
    client.get::<Value>("session.delete", &json!({ "session": session }));
    nothing_left(&daemon, session, &tasks);
    let again: Value = daemon.client().get("session.create", &json!({"name": "n"}));
    assert_ne!(again["id"], session);
    daemon.kill9();
    daemon.restart();
    nothing_left(&daemon, session, &tasks);
    let found: Value = daemon.client().get("session.get", &json!({"session": "n"}));
    assert_eq!(found["id"], again["id"]);
}

/// Makes a session with the name `n` in its own workspace, and a follow-up of it.
fn session(client: &mut Client) -> String {
    let session: Value = client.get("session.create", &json!({"name": "n"}));
    let later = json!({"session": "n", "content": "f", "trigger": {"every_ms": 1000}});
    client.get::<Value>("followup.schedule", &later);
    session["id"].as_str().expect("an id").to_owned()
}

#[test]
fn an_idle_session() {
    let server = ModelServer::answering(|request, n| {
        let asks = request["messages"].as_array().and_then(|all| all.last()).is_some_and(|last| last["role"] == "user");
        Some(if asks { Turn::exec(format!("c{n}"), "echo hi") } else { Turn::text("done") })
    });
    let daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session = session(&mut client);
    (0..3).for_each(|n| drop(client.run(&session, &format!("p{n}"))));
    delete(daemon, &mut client, &session);
}

#[test]
fn one_that_waits_for_its_model() {
    let server = ModelServer::answering(|_, _| Some(Turn { hang: true, ..Turn::default() }));
    let daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session = session(&mut client);
    (0..3).for_each(|n| drop(client.submit(&session, &format!("p{n}"))));
    client.get::<Value>("session.steer", &json!({"session": session, "content": "s"}));
    server.wait_requests(1);
    delete(daemon, &mut client, &session);
}

#[test]
fn one_that_runs_a_call() {
    let server = ModelServer::answering(|_, n| Some(Turn::exec(format!("c{n}"), "trap '' TERM; touch up; sleep 600")));
    let daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session = session(&mut client);
    client.submit(&session, "p");
    let up = daemon.state().join("workspaces").join(&session).join("up");
    wait::until("the call", || up.exists().then_some(()));
    delete(daemon, &mut client, &session);
}

#[test]
fn one_that_boots() {
    let server = ModelServer::answering(|_, n| {
        Some(if n % 2 == 1 { Turn::exec(format!("c{n}"), "echo hi") } else { Turn::text("done") })
    });
    let daemon = Daemon::start(&server);
    let mut client = daemon.client();
    for round in 0..12 {
        let session = session(&mut client);
        let boot = client.begin("session.boot", &json!({ "session": session })).expect("a live daemon");
        (0..round % 3).for_each(|_| drop(client.get::<Value>("daemon.hello", &json!({"client": "t", "protocol": 1}))));
        client.get::<Value>("session.delete", &json!({ "session": session }));
        if let Err(error) = client.finish(boot).expect("a live daemon") {
            assert!([-32001, -32002, -32006].contains(&error.code), "{error:?}");
        }
        nothing_left(&daemon, &session, &[]);
    }
}

/// Closes a session with a running and two waiting tasks and checks that its end is told after theirs.
fn closed_comes_last(turn: Turn, is_up: impl Fn(&Daemon, &ModelServer)) {
    let server = ModelServer::script(vec![turn]);
    let mut daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let tasks: Vec<_> = (0..3).map(|n| client.submit(&session, &format!("p{n}")).id).collect();
    is_up(&daemon, &server);
    client.get::<Value>("session.close", &json!({ "session": session }));
    for task in &tasks {
        assert_eq!(client.settled(task).state, TaskState::Cancelled);
    }
    daemon.kill9();
    daemon.restart();
    let all = daemon.history();
    let at = |event: &Event| matches!(event.kind, EventType::TaskFinished | EventType::SessionClosed);
    let ends: Vec<_> = all.iter().filter(|event| at(event)).map(|event| event.kind).collect();
    let finished = EventType::TaskFinished;
    assert_eq!(ends, [finished, finished, finished, EventType::SessionClosed], "{all:#?}");
    assert_eq!(all.last().map(|event| event.kind), Some(EventType::SessionClosed), "{all:#?}");
}

#[test]
fn closing_ends_what_runs_first() {
    closed_comes_last(Turn { hang: true, ..Turn::default() }, |_, server| server.wait_requests(1));
    closed_comes_last(Turn::exec("c1", "trap '' TERM; touch up; sleep 600"), |daemon, _| {
        wait::until("the call", || daemon.workspace().join("up").exists().then_some(()));
    });
}
