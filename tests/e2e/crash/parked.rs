//! A session that is fatal to the daemon each time it is taken up is left for a person; all else goes on.

use nano_protocol::event::{Event, EventType};
use nano_protocol::session::{Session, SessionState};
use nano_protocol::task::{Reason, Task, TaskState};
use nano_tests::client::Client;
use nano_tests::daemon::{Daemon, Setup};
use nano_tests::model_server::{ModelServer, Turn};
use nano_tests::wait;
use serde_json::{Value, json};

use crate::delegate_kit::{self, order, wait_children};

/// Deaths of one step after which it is not tried again by itself.
const DEATHS: usize = 3;

/// A model that never answers the fatal session before `gate` is open.
fn model() -> ModelServer {
    ModelServer::answering(|request, _| {
        let fatal = request["messages"].to_string().contains("fatal");
        Some(if fatal { Turn::text("done").gated("gate") } else { Turn::text("done") })
    })
}

/// Starts the daemon until it stays, and returns how often it died on the way; a session that is named so is fatal.
fn starts(daemon: &mut Daemon, session: &str) -> usize {
    daemon.set_env(vec![("NANO_CRASH_AT_NAME", session.to_owned())]);
    let mut deaths = 0;
    while deaths < 10 {
        // It may answer before it comes to what is fatal.
        let stays = daemon.try_start().is_ok() && stays(daemon);
        if stays {
            return deaths;
        }
        daemon.kill9();
        deaths += 1;
    }
    panic!("the daemon does not stay");
}

/// Tells whether a daemon works off a task of a fresh session.
fn stays(daemon: &mut Daemon) -> bool {
    let Ok(mut client) = Client::connect(&daemon.socket()) else { return false };
    let fresh = json!({"create": {"workspace": daemon.workspace()}, "content": "harmless"});
    let Some(Ok(task)) = client.try_call("task.submit", &fresh) else { return false };
    let Some(Ok(task)) = client.try_call("task.wait", &json!({"task": task["id"]})) else { return false };
    task["state"] == "succeeded" && daemon.ended().is_none()
}

#[test]
fn a_fatal_session_waits_for_a_person() {
    let server = model();
    let mut daemon = Daemon::with(&server, Setup::default());
    let mut client = daemon.client();
    let [fatal, harmless] = [(), ()].map(|()| daemon.session(&mut client));
    let task = client.submit(&fatal, "fatal");
    let other = client.submit(&harmless, "also fatal");
    server.wait_requests(2);
    daemon.kill9();
    let deaths = starts(&mut daemon, &fatal);
    assert!((1..=DEATHS).contains(&deaths), "{deaths} deaths");
    let mut client = daemon.client();
    let parked: Task = client.get("task.get", &json!({"task": task.id}));
    assert_eq!((parked.state, parked.reason), (TaskState::Interrupted, Some(Reason::Restart)), "{parked:?}");
    let why = parked.error.expect("a reason that is named").message;
    assert!(why.contains("died") && why.contains("resume"), "{why}");
    let session: Value = client.get("session.get", &json!({"session": fatal}));
    assert_eq!(session["state"], SessionState::Interrupted.as_str());
    server.open("gate");
    assert_eq!(client.settled(&other.id).state, TaskState::Succeeded, "who did nothing goes on");
    // A start more changes nothing; and once what was fatal is mended, a person takes it up.
    daemon.kill9();
    assert_eq!(starts(&mut daemon, &fatal), 0);
    daemon.kill9();
    daemon.set_env(Vec::new());
    daemon.restart();
    let mut client = daemon.client();
    client.get::<Task>("task.resume", &json!({"task": task.id}));
    assert_eq!(client.settled(&task.id).state, TaskState::Succeeded);
}

/// Kills the daemon, which dies of a session from then on until that waits for a person.
fn park(daemon: &mut Daemon, session: &str) {
    daemon.kill9();
    let deaths = starts(daemon, session);
    assert!((1..=DEATHS).contains(&deaths), "{deaths} deaths");
}

/// A parent that waits for a child of which daemons die.
fn parent(server: &ModelServer) -> (Daemon, String, Task, Session) {
    let mut daemon = delegate_kit::daemon(server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let task = client.submit(&session, &order("-", &[json!({"content": "work held"})]));
    let child = wait_children(&mut client, &session, 1).remove(0);
    server.wait_requests(2);
    park(&mut daemon, child.id.as_str());
    (daemon, session, task, child)
}

#[test]
fn a_parent_ends_without_it() {
    let server = delegate_kit::obedient();
    let (mut daemon, _, task, child) = parent(&server);
    let mut client = daemon.client();
    let pid = daemon.pid();
    client.get::<Value>("task.cancel", &json!({"task": task.id}));
    assert_eq!(client.settled(&task.id).state, TaskState::Cancelled);
    let ended = wait::until("the end of the child", || {
        Some(client.get::<Session>("session.get", &json!({"session": child.id})))
            .filter(|child| child.state == SessionState::Closed)
    });
    assert_eq!(client.tasks(ended.id.as_str())[0].state, TaskState::Cancelled);
    assert_eq!((daemon.ended(), daemon.pid()), (None, pid));
}

#[test]
fn closing_and_deleting_the_parent_does_not_take_it_up() {
    for method in ["session.close", "session.delete"] {
        let server = delegate_kit::obedient();
        let (mut daemon, session, _, child) = parent(&server);
        let pid = daemon.pid();
        let mut client = daemon.client();
        let closed: Session = client.get(method, &json!({"session": session}));
        assert_eq!(closed.state, SessionState::Closed);
        let left = client.call("session.get", &json!({"session": child.id}));
        assert!(left.as_ref().map_or(method == "session.delete", |left| left["state"] == "closed"), "{left:?}");
        assert_eq!((daemon.ended(), daemon.pid()), (None, pid));
    }
}

#[test]
fn one_without_a_task_says_that_it_waits() {
    let server = delegate_kit::obedient();
    let mut daemon = delegate_kit::daemon(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    client.run(&session, &order("-", &[json!({"content": "work held", "wait": false})]));
    server.wait_requests(3);
    park(&mut daemon, &session);
    let mut client = daemon.client();
    let shown: Session = client.get("session.get", &json!({"session": session}));
    assert_eq!(shown.state, SessionState::Interrupted);
    let warned = |event: &Event| {
        let of_it = event.session.as_ref().is_some_and(|id| id.0 == session);
        of_it
            && event.kind == EventType::Warning
            && event.data["message"].as_str().is_some_and(|why| why.contains("died"))
    };
    assert_eq!(daemon.history().iter().filter(|event| warned(event)).count(), 1);
    // Somebody asks.
    daemon.kill9();
    daemon.set_env(Vec::new());
    daemon.restart();
    let mut client = daemon.client();
    assert_eq!(client.run(&session, "more").state, TaskState::Succeeded);
    let shown: Session = client.get("session.get", &json!({"session": session}));
    assert_eq!(shown.state, SessionState::Idle);
}

#[test]
fn a_person_can_delete_it() {
    let server = model();
    let mut daemon = Daemon::with(&server, Setup::default());
    let mut client = daemon.client();
    let fatal = daemon.session(&mut client);
    client.submit(&fatal, "fatal");
    server.wait_requests(1);
    park(&mut daemon, &fatal);
    let pid = daemon.pid();
    let mut client = daemon.client();
    client.get::<Session>("session.delete", &json!({"session": fatal}));
    assert_eq!(client.refused("session.get", &json!({"session": fatal})), -32001);
    assert_eq!((daemon.ended(), daemon.pid()), (None, pid));
}

#[test]
fn a_task_that_is_to_be_replaced_there_stays() {
    let server = model();
    let mut daemon = Daemon::with(&server, Setup::default());
    let mut client = daemon.client();
    let fatal = daemon.session(&mut client);
    let later = json!({"session": fatal, "content": "fatal", "trigger": {"external": true}, "overlap": "replace"});
    let followup: Value = client.get("followup.schedule", &later);
    let old: Task = client.get("followup.trigger", &json!({"followup": followup["id"]}));
    server.wait_requests(1);
    daemon.kill9();
    // It dies when the newer task is on record and the older one was not told to end yet.
    daemon.set_env(vec![("NANO_CRASH_AT_NAME", "followup.fire.after".into())]);
    daemon.restart();
    assert!(daemon.client().try_call("followup.trigger", &json!({"followup": followup["id"]})).is_none());
    assert!(!daemon.wait().success());
    park(&mut daemon, &fatal);
    assert!(stays(&mut daemon));
    assert_eq!(daemon.client().get::<Task>("task.get", &json!({"task": old.id})).state, TaskState::Interrupted);
}
