//! A session that is fatal to the daemon each time it is taken up is left for a person; all else goes on.

use nano_protocol::session::SessionState;
use nano_protocol::task::{Reason, Task, TaskState};
use nano_tests::client::Client;
use nano_tests::daemon::{Daemon, Setup};
use nano_tests::model_server::{ModelServer, Turn};
use serde_json::{Value, json};

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
