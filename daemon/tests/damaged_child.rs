//! A child whose records cannot be read, or that was left open: its parent does not wait for it.

#![expect(clippy::expect_used, reason = "tests")]

use nano_protocol::event::EventType;
use nano_protocol::session::{Session, SessionState, Sessions};
use nano_protocol::task::{Task, TaskState};
use nano_tests::client::Client;
use nano_tests::daemon::{Daemon, Setup};
use nano_tests::model_server::{Call, ModelServer, Turn};
use nano_tests::wait;
use nanod::store::record::SessionRecord;
use nanod::store::{Change, Commit, Key, Store, lock};
use serde_json::json;

/// A model that delegates what begins with `outer`, holds `inner` and hears the rest.
fn model() -> ModelServer {
    let server = ModelServer::answering(|request, n| {
        let last = request["messages"].as_array().and_then(|all| all.last()).expect("a message").clone();
        let told = last["content"].as_str().unwrap_or_default().to_owned();
        let arguments = json!({"content": told.strip_prefix("outer ").unwrap_or_default(), "wait": false});
        let call = Call { id: format!("c{n}"), name: "delegate".into(), arguments };
        Some(match told.split(' ').next() {
            Some("outer") => Turn { calls: vec![call], ..Turn::default() },
            Some("inner") => Turn::text("42").gated("held"),
            _ => Turn::text("heard"),
        })
    });
    server.open("-");
    server
}

/// A session, its child and that one's child, which is held.
fn three(server: &ModelServer) -> (Daemon, [Session; 3]) {
    let agent = "tool_mode = \"all\"".to_owned();
    let daemon = Daemon::with(server, Setup { agent, ..Setup::default() });
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    client.run(&session, "outer outer inner");
    server.wait_requests(6);
    let mut all: Vec<Session> = client.get::<Sessions>("session.list", &json!({})).sessions;
    all.reverse();
    (daemon, all.try_into().expect("three sessions"))
}

/// Changes the store of a daemon while it does not run.
fn change(daemon: &mut Daemon, make: impl FnOnce(&Store) -> Vec<Change>) {
    daemon.kill9();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let held = lock(&daemon.state()).await.expect("the folder");
        let store = Store::open(&daemon.state().join("store"), &held, Box::new(|_| {})).await.expect("the store");
        let changes = make(&store);
        store.commit(Commit::owed(changes)).await.expect("a commit");
    });
    drop(runtime);
    daemon.restart();
}

fn state(client: &mut Client, session: &Session) -> SessionState {
    client.get::<Session>("session.get", &json!({"session": session.id})).state
}

fn task(client: &mut Client, session: &Session) -> Task {
    client.tasks(session.id.as_str()).remove(0)
}

#[test]
fn one_that_cannot_be_taken_up_does_not_keep_its_parent_open() {
    for what in ["task", "message"] {
        let server = model();
        let (mut daemon, [top, child, grandchild]) = three(&server);
        let task = task(&mut daemon.client(), &child).id;
        change(&mut daemon, |_| {
            let (steering, open) = (Key::steering(&child.id, 1), Key::open_task(&child.id, &task));
            let damage = if what == "task" { Key::task(&task) } else { steering };
            vec![Change::put(damage, &"damage"), Change::put(open, &1)]
        });
        let mut client = daemon.client();
        let closed: Session = client.get("session.close", &json!({"session": top.id}));
        assert_eq!(closed.state, SessionState::Closed);
        for session in [&child, &grandchild] {
            assert_eq!(state(&mut client, session), SessionState::Closed, "{what}");
        }
        let events = daemon.history().into_iter().filter(|event| event.session.as_ref() == Some(&child.id));
        let kinds: Vec<EventType> = events.map(|event| event.kind).collect();
        assert!(kinds.ends_with(&[EventType::Warning, EventType::SessionClosed]), "{kinds:?}");
        assert!(daemon.log().contains("it counts as closed"));
    }
}

#[test]
fn one_that_is_open_below_a_closed_session_is_closed_at_a_start() {
    for gone in [false, true] {
        let server = model();
        let (mut daemon, [top, child, grandchild]) = three(&server);
        change(&mut daemon, |store| {
            let key = Key::session(&top.id);
            let mut record = store.get::<SessionRecord>(&key).expect("a read").expect("a session");
            record.session.state = SessionState::Closed;
            vec![if gone { Change::Delete(key) } else { Change::session(&record) }]
        });
        let mut client = daemon.client();
        for session in [&child, &grandchild] {
            wait::until("its end", || (state(&mut client, session) == SessionState::Closed).then_some(()));
        }
        let work = task(&mut client, &grandchild);
        assert_eq!(client.settled(&work.id).state, TaskState::Cancelled);
    }
}
