//! Sessions that the daemon dies of again and again: they wait for a person, and all else runs.

use nano_protocol::session::{Session, SessionState};
use nano_protocol::task::{Reason, Task, TaskState};
use nano_tests::client::Client;
use nano_tests::daemon::{Daemon, Setup};
use nano_tests::model_server::{ModelServer, Turn};
use nano_tests::wait;
use serde_json::json;

use super::{AGENT, AT};

/// A model that answers `p` once the gate is open, and everything else at once.
fn held() -> ModelServer {
    ModelServer::script(vec![
        Turn { repeat: true, when: Some("\"p\"".into()), ..Turn::text("done").gated("held") },
        Turn { repeat: true, ..Turn::text("done") },
    ])
}

fn daemon(server: &ModelServer) -> Daemon {
    Daemon::with(server, Setup { agent: AGENT.into(), ..Setup::default() })
}

/// Starts the daemon `times` times, each of which dies at `point`.
fn die(daemon: &mut Daemon, times: usize, point: &str) {
    daemon.set_env(vec![(AT, point.to_owned())]);
    for _ in 0..times {
        // It may be dead before it has answered.
        if daemon.try_start().is_ok() {
            wait::until("its death", || daemon.ended());
        }
        daemon.kill9();
    }
    daemon.set_env(Vec::new());
}

fn task(client: &mut Client, session: &str) -> Task {
    client.tasks(session).remove(0)
}

fn check_parked(daemon: &Daemon, session: &str) -> Task {
    let mut client = daemon.client();
    // The socket is served before anything is taken up.
    let parked = |task: &Task| (task.state, task.reason) == (TaskState::Interrupted, Some(Reason::Restart));
    let task = wait::until("its parking", || Some(task(&mut client, session)).filter(parked));
    let error = task.error.clone().expect("why it waits");
    assert!(error.message.contains("3 times") && error.message.contains("message "), "{error:?}");
    let found: Session = client.get("session.get", &json!({ "session": session }));
    assert_eq!(found.state, SessionState::Interrupted);
    task
}

/// A person resumes it, and it comes to its end.
fn check_resumed(daemon: &mut Daemon, server: &ModelServer, task: &Task) {
    server.open("held");
    let mut client = daemon.client();
    client.get::<Task>("task.resume", &json!({"task": task.id}));
    assert_eq!(client.settled(&task.id).state, TaskState::Succeeded);
}

#[test]
fn three_deaths_in_one_step_park_the_session() {
    let server = held();
    let mut daemon = daemon(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    client.submit(&session, "p");
    server.wait_requests(1);
    daemon.kill9();
    die(&mut daemon, 2, "model.ask.before");
    daemon.restart();
    let parked = check_parked(&daemon, &session);
    let mut client = daemon.client();
    let other = daemon.session(&mut client);
    client.run(&other, "q");
    // It is counted anew from here.
    client.get::<Task>("task.resume", &json!({"task": parked.id}));
    server.wait_requests(3);
    daemon.kill9();
    die(&mut daemon, 1, "model.ask.before");
    daemon.restart();
    server.open("held");
    assert_eq!(daemon.client().settled(&parked.id).state, TaskState::Succeeded);
}

#[test]
fn a_session_whose_taking_up_is_fatal_is_left_alone() {
    let server = held();
    let mut daemon = daemon(&server);
    let mut client = daemon.client();
    let sessions: Vec<String> = (0..12).map(|_| daemon.session(&mut client)).collect();
    for session in &sessions {
        drop(client.submit(session, "p"));
    }
    server.wait_requests(sessions.len());
    daemon.kill9();
    let fatal = &sessions[4];
    die(&mut daemon, 2, fatal);
    // One more who would die of it, and does not: it is not read.
    daemon.set_env(vec![(AT, fatal.clone())]);
    daemon.restart();
    let parked = check_parked(&daemon, fatal);
    server.open("held");
    let mut client = daemon.client();
    for session in sessions.iter().filter(|session| *session != fatal) {
        let id = task(&mut client, session).id;
        let task = client.settled(&id);
        assert_eq!(task.state, TaskState::Succeeded, "{task:?}");
    }
    // Nor is it read for a message from another session, or for its follow-up; a person may still end it.
    let trigger = json!({"session": fatal, "content": "f", "trigger": {"after_ms": 1}});
    client.get::<serde_json::Value>("followup.schedule", &trigger);
    wait::until("a refusal", || daemon.log().contains("a slot could not fire").then_some(()));
    assert!(daemon.ended().is_none(), "the daemon lives");
    daemon.set_env(Vec::new());
    daemon.kill9();
    daemon.restart();
    check_resumed(&mut daemon, &server, &parked);
}

#[test]
fn orderly_ends_are_no_deaths() {
    let server = held();
    let mut daemon = daemon(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let id = client.submit(&session, "p").id;
    for times in 1..=4 {
        server.wait_requests(times);
        assert!(daemon.terminate().success());
        daemon.restart();
    }
    server.open("held");
    assert_eq!(daemon.client().settled(&id).state, TaskState::Succeeded);
}
