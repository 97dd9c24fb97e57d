//! Closing over crashes and while the daemon goes down: told once, answered truly, and nothing half done.

use std::process::Stdio;

use nano_protocol::event::{Event, EventType};
use nano_protocol::followup::Followups;
use nano_protocol::session::{Queue, Sessions};
use nano_protocol::task::TaskState;
use nano_tests::client::Client;
use nano_tests::daemon::{Daemon, Setup};
use nano_tests::model_server::{ModelServer, Turn};
use nano_tests::{processes, wait};
use rustix::process::Signal;
use serde_json::{Value, json};

const STUBBORN: &str = "trap '' TERM; touch up; while :; do sleep 0.05; done";

fn closed(daemon: &Daemon, session: &str) -> usize {
    let of_it = |event: &Event| event.session.as_ref().is_some_and(|one| one.0 == session);
    daemon.history().into_iter().filter(of_it).filter(|event| event.kind == EventType::SessionClosed).count()
}

fn busy(server: &ModelServer) -> (Daemon, Client, String) {
    let setup = Setup { agent: "exec_timeout = \"10m\"".to_owned(), ..Setup::default() };
    let daemon = Daemon::with(server, setup);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    client.submit(&session, "p");
    let up = daemon.workspace().join("up");
    wait::until("the call", || up.exists().then_some(()));
    (daemon, client, session)
}

fn until_closed(daemon: &Daemon, session: &str) {
    let closes = || {
        let found: Value = daemon.client().get("session.get", &json!({ "session": session }));
        (found["state"] == "closed").then_some(())
    };
    wait::until("the closing on record", closes);
}

#[test]
fn it_is_told_once_whenever_the_daemon_dies() {
    let server = ModelServer::script(Vec::new());
    let mut daemon = Daemon::start(&server);
    for _ in 0..5 {
        let mut client = daemon.client();
        let session = daemon.session(&mut client);
        client.begin("session.close", &json!({ "session": session }));
        until_closed(&daemon, &session);
        daemon.kill9();
        daemon.restart();
        daemon.client().get::<Value>("session.close", &json!({ "session": session }));
        assert_eq!(closed(&daemon, &session), 1);
    }
}

#[test]
fn a_busy_one_that_was_being_closed_is_closed_by_the_next_daemon() {
    let server = ModelServer::script(vec![Turn::exec("c1", STUBBORN)]);
    let (mut daemon, mut client, session) = busy(&server);
    client.get::<Value>("session.steer", &json!({"session": session, "content": "s"}));
    client.begin("session.close", &json!({ "session": session }));
    until_closed(&daemon, &session);
    daemon.kill9();
    daemon.restart();
    let mut client = daemon.client();
    client.get::<Value>("session.close", &json!({ "session": session }));
    assert_eq!(closed(&daemon, &session), 1);
    let states: Vec<TaskState> = client.tasks(&session).into_iter().map(|task| task.state).collect();
    assert_eq!(states, [TaskState::Cancelled]);
    let queue: Queue = client.get("session.queue", &json!({ "session": session }));
    assert_eq!(queue.waiting, [], "nobody would ever hear it");
    assert_eq!(server.requests().len(), 1, "a closed session asks nothing more");
    assert_eq!(client.refused("session.boot", &json!({ "session": session })), -32002);
}

#[test]
fn what_is_refused_while_the_daemon_goes_down_is_not_done() {
    let server = ModelServer::script(vec![Turn::exec("c1", STUBBORN)]);
    let (mut daemon, mut client, _) = busy(&server);
    let idle: Value = client.get("session.create", &json!({"name": "idle"}));
    let later = json!({"session": "idle", "content": "f", "trigger": {"after_ms": 3_600_000}});
    client.get::<Value>("followup.schedule", &later);
    processes::signal(i32::try_from(daemon.pid()).expect("a process id"), Signal::TERM);
    wait::until("the beginning of the end", || daemon.log().contains("going down").then_some(()));
    for (method, params) in [
        ("task.submit", json!({"create": {"name": "new"}, "content": "p"})),
        ("session.close", json!({"session": "idle"})),
        ("session.delete", json!({"session": "idle"})),
    ] {
        assert_eq!(client.refused(method, &params), -32007, "{method}");
    }
    assert_eq!(daemon.terminate().code(), Some(0), "{}", daemon.log());
    daemon.restart();
    let mut client = daemon.client();
    let sessions: Sessions = client.get("session.list", &json!({}));
    assert!(sessions.sessions.iter().all(|session| session.name.as_deref() != Some("new")), "{sessions:?}");
    assert_eq!(client.get::<Value>("session.get", &json!({"session": "idle"}))["id"], idle["id"]);
    let followups: Followups = client.get("followup.list", &json!({"session": "idle", "state": "active"}));
    assert_eq!(followups.followups.len(), 1);
}

#[test]
fn a_log_that_cannot_be_written_stops_nothing() {
    let server = ModelServer::script(vec![Turn::text("done")]);
    let mut daemon = Daemon::start(&server);
    daemon.kill9();
    let mut child = daemon.command().stderr(Stdio::piped()).spawn().expect("nanod starts");
    drop(child.stderr.take());
    let mut client = wait::until("an answer", || Client::connect(&daemon.socket()).ok());
    let session = daemon.session(&mut client);
    assert_eq!(client.run(&session, "p").state, TaskState::Succeeded);
    client.get::<Value>("daemon.shutdown", &json!({}));
    let status = wait::until("the end of the daemon", || child.try_wait().expect("the state of nanod"));
    assert_eq!(status.code(), Some(0));
}
