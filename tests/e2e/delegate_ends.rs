//! The end of delegated work: told once, whatever the parent does meanwhile, and reached by the parent's own end.

use nano_protocol::event::EventType;
use nano_protocol::message::Outcome;
use nano_protocol::session::{Queue, Session, SessionState};
use nano_protocol::task::{Origin, Task, TaskState};
use nano_tests::client::Client;
use nano_tests::daemon::Daemon;
use nano_tests::model_server::ModelServer;
use nano_tests::random::Random;
use nano_tests::wait;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::delegate_kit::{
    children, daemon, daemon_with, ended, obedient, order, rendered, results, settled, told_of, wait_children,
};

mod deaths;
mod generations;

const KILLS: usize = 20;

/// A parent with a child that is held at the gate `held`; the parent's own answer waits for `gate`.
fn working(gate: &str, wait: bool, agent: &str) -> (ModelServer, Daemon, String, Session) {
    let server = obedient();
    let daemon = daemon_with(&server, agent);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    client.submit(&session, &order(gate, &[json!({"content": "work held", "wait": wait})]));
    let child = wait_children(&mut client, &session, 1).remove(0);
    server.wait_requests(if wait { 2 } else { 3 });
    (server, daemon, session, child)
}

fn restart(daemon: &mut Daemon) -> Client {
    daemon.kill9();
    daemon.restart();
    daemon.client()
}

fn waiting(client: &mut Client, session: &str) -> usize {
    client.get::<Queue>("session.queue", &json!({ "session": session })).waiting.len()
}

/// Checks that nothing of the child is told a second time by a daemon that starts anew.
fn once(daemon: &mut Daemon, session: &str, child: &Session, transcript: &str) {
    let mut client = restart(daemon);
    assert_eq!(waiting(&mut client, session), 0);
    client.run(session, "and now");
    assert_eq!(told_of(&mut client, session, child), 1);
    let now = rendered(&mut client, session);
    assert_eq!(now, format!("{transcript} U A(heard)"));
    let ends = daemon.history().into_iter().filter(|event| event.kind == EventType::TaskFinished).count();
    let tasks = client.tasks(session).len() + client.tasks(child.id.as_str()).len();
    assert_eq!(ends, tasks, "each task has one end");
}

#[test]
fn an_idle_parent_gets_a_task() {
    let (server, mut daemon, session, child) = working("-", false, "");
    let mut client = daemon.client();
    assert_eq!(settled(&mut client, &session, 1).state, TaskState::Succeeded);
    let said = results(&mut client, &session).remove(0).content;
    let task = ended_later(&server, &mut client, &session, &child);
    assert!(said.contains(child.id.as_str()) && said.contains(&task.id.0), "{said}");
    once(&mut daemon, &session, &child, "U A[c1] T(c1) A(noted) N A(heard)");
}

/// Lets the child end and waits for the parent's task of that.
fn ended_later(server: &ModelServer, client: &mut Client, session: &str, child: &Session) -> Task {
    server.open("held");
    let task = ended(client, child, TaskState::Succeeded);
    let heard = settled(client, session, 2);
    assert_eq!((heard.origin, heard.state), (Origin::Subagent, TaskState::Succeeded));
    assert!(heard.content.contains("Its answer:\n\n42"), "{heard:?}");
    task
}

#[test]
fn a_busy_parent_gets_a_note_whatever_it_says_of_steering() {
    for agent in ["", "enable_steering = false"] {
        let (server, mut daemon, session, child) = working("busy", false, agent);
        let mut client = daemon.client();
        server.open("held");
        ended(&mut client, &child, TaskState::Succeeded);
        wait::until("the note", || (waiting(&mut client, &session) == 1).then_some(()));
        // What waits is on record.
        let mut client = restart(&mut daemon);
        server.open("busy");
        assert_eq!(settled(&mut client, &session, 1).state, TaskState::Succeeded);
        let now = rendered(&mut client, &session);
        assert!(now.starts_with("U A[c1] T(c1)") && now.ends_with("S A(heard)"), "{now}");
        once(&mut daemon, &session, &child, &now);
    }
}

#[test]
fn a_restart_loses_neither_the_child_nor_its_end() {
    let (server, mut daemon, session, child) = working("-", false, "");
    let mut client = daemon.client();
    settled(&mut client, &session, 1);
    let mut client = restart(&mut daemon);
    ended_later(&server, &mut client, &session, &child);
    once(&mut daemon, &session, &child, "U A[c1] T(c1) A(noted) N A(heard)");
}

#[test]
fn a_child_that_fails_at_the_restart_is_heard_of() {
    let (_server, mut daemon, session, child) = working("-", false, "resume = \"never\"");
    let mut client = daemon.client();
    settled(&mut client, &session, 1);
    let mut client = restart(&mut daemon);
    ended(&mut client, &child, TaskState::Failed);
    let heard = settled(&mut client, &session, 2);
    assert!(heard.content.contains("failed (restart)"), "{heard:?}");
    once(&mut daemon, &session, &child, "U A[c1] T(c1) A(noted) N A(heard)");
}

#[test]
fn a_call_that_dies_and_may_not_run_again_names_the_child() {
    let (server, mut daemon, session, child) = working("-", true, "resume = \"ask\"");
    let mut client = restart(&mut daemon);
    settled(&mut client, &session, 1);
    let result = results(&mut client, &session).remove(0);
    assert_eq!(result.outcome, Some(Outcome::Unknown));
    assert!(result.content.contains(child.id.as_str()), "{result:?}");
    for held in [child.id.as_str(), &session] {
        let task = client.tasks(held).remove(0).id;
        client.get::<Task>("task.resume", &json!({ "task": task }));
    }
    server.open("held");
    ended(&mut client, &child, TaskState::Succeeded);
    wait::until("the message", || (told_of(&mut client, &session, &child) == 1).then_some(()));
}

#[test]
fn a_daemon_that_goes_down_does_not_wait_for_the_child() {
    let (server, mut daemon, session, child) = working("-", true, "");
    assert!(daemon.terminate().success());
    daemon.restart();
    let mut client = daemon.client();
    settled(&mut client, &session, 1);
    let result = results(&mut client, &session).remove(0);
    assert!(result.content.contains(child.id.as_str()) && result.content.contains("goes down"), "{result:?}");
    ended_later(&server, &mut client, &session, &child);
    once(&mut daemon, &session, &child, "U A[c1] T!(c1:outcome=stopped) A(noted) N A(heard)");
}

fn cancel(client: &mut Client, session: &str) {
    let task = client.tasks(session).remove(0);
    let task: Task = client.get("task.cancel", &json!({"task": task.id}));
    assert_eq!(task.state, TaskState::Cancelled);
}

#[test]
fn a_cancel_reaches_the_child_that_is_waited_for() {
    let (_server, mut daemon, session, child) = working("-", true, "");
    let mut client = daemon.client();
    cancel(&mut client, &session);
    ended(&mut client, &child, TaskState::Cancelled);
    assert_eq!(rendered(&mut client, &session), "U A[c1] T!(c1:outcome=stopped)");
    let mut client = restart(&mut daemon);
    assert_eq!((client.tasks(&session).len(), waiting(&mut client, &session)), (1, 0));
    assert_eq!(told_of(&mut client, &session, &child), 0, "the call has told of it");
}

#[test]
fn a_cancel_reaches_the_child_that_is_not_and_begins_nothing() {
    for killed in [false, true] {
        let (_server, mut daemon, session, child) = working("busy", false, "");
        let mut client = daemon.client();
        cancel(&mut client, &session);
        if killed {
            client = restart(&mut daemon);
        }
        ended(&mut client, &child, TaskState::Cancelled);
        wait::until("the note", || (waiting(&mut client, &session) == 1).then_some(()));
        assert_eq!(client.tasks(&session).len(), 1, "an idle parent is left alone");
        let mut client = restart(&mut daemon);
        assert_eq!((client.tasks(&session).len(), waiting(&mut client, &session)), (1, 1));
        client.run(&session, "go on");
        assert_eq!(rendered(&mut client, &session), "U A[c1] T(c1) U S A(heard)");
        once(&mut daemon, &session, &child, "U A[c1] T(c1) U S A(heard)");
    }
}

#[test]
fn an_interrupt_and_a_time_limit_reach_the_child() {
    let (_server, daemon, session, child) = working("-", true, "");
    let mut client = daemon.client();
    let steer = json!({"session": session, "content": "stop", "delivery": "interrupt"});
    client.get::<Value>("session.steer", &steer);
    ended(&mut client, &child, TaskState::Cancelled);
    settled(&mut client, &session, 1);
    assert_eq!(rendered(&mut client, &session), "U A[c1] T!(c1:outcome=stopped) S A(heard)");
    let params = json!({"session": session, "content": order("-", &[json!({"content": "work held"})]),
                        "limits": {"timeout_ms": 300}});
    let task: Task = client.get("task.submit", &params);
    assert_eq!(client.settled(&task.id).state, TaskState::Failed);
    let child = children(&mut client, &session).pop().expect("a child");
    ended(&mut client, &child, TaskState::Cancelled);
    assert_eq!(client.tasks(&session).len(), 2, "it is not told again");
}

#[test]
fn a_child_that_somebody_else_cancels_or_deletes_is_heard_of() {
    for (method, says) in [("task.cancel", "was cancelled"), ("session.close", "was cancelled"), ("session.delete", "")]
    {
        let (_server, mut daemon, session, child) = working("-", false, "");
        let mut client = daemon.client();
        settled(&mut client, &session, 1);
        let task = client.tasks(child.id.as_str()).remove(0).id;
        let params = if method == "task.cancel" { json!({ "task": task }) } else { json!({ "session": child.id }) };
        client.get::<Value>(method, &params);
        let heard = settled(&mut client, &session, 2);
        assert!(heard.content.contains(child.id.as_str()) && heard.content.contains(says), "{heard:?}");
        let mut client = restart(&mut daemon);
        assert_eq!((told_of(&mut client, &session, &child), client.tasks(&session).len()), (1, 2));
    }
}

#[test]
fn a_long_answer_is_cut_and_kept() {
    let long = format!("{}{}", "first words\n".repeat(5000), "last words");
    let answer = long.clone();
    let server = ModelServer::answering(move |request, n| {
        let last = request["messages"].as_array().and_then(|all| all.last()).expect("a message").clone();
        Some(match (last["role"].as_str(), last["content"].as_str()) {
            (Some("tool"), _) => nano_tests::model_server::Turn::text("noted"),
            (_, Some("work")) => nano_tests::model_server::Turn::text(answer.clone()),
            _ => nano_tests::model_server::Turn {
                calls: vec![nano_tests::model_server::Call {
                    id: format!("c{n}"),
                    name: "delegate".into(),
                    arguments: json!({"content": "work"}),
                }],
                ..Default::default()
            },
        })
    });
    let daemon = daemon(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    client.run(&session, "go");
    let text = results(&mut client, &session).remove(0).content;
    assert!(text.len() < 60 * 1024 && text.starts_with("first words") && text.contains("last words"), "{}", text.len());
    let folder = daemon.state().join("spill").join(&session);
    let mut files = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a file").path());
    let file = files.find(|file| text.contains(file.to_str().expect("a path"))).expect("a file that is named");
    assert_eq!(std::fs::read_to_string(file).expect("a text"), long);
}
