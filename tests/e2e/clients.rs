//! Clients that behave badly: one that dies before it reads loses nothing and doubles nothing, one that never reads
//! holds up nobody.

use nano_protocol::followup::{Followup, Followups};
use nano_protocol::session::{Session, Sessions};
use nano_protocol::task::{Origin, Task};
use nano_tests::client::Client;
use nano_tests::daemon::Daemon;
use nano_tests::model_server::{ModelServer, Turn};
use nano_tests::random::Random;
use nano_tests::wait;
use serde_json::{Value, json};

const ROUNDS: u64 = 40;

fn plain() -> ModelServer {
    ModelServer::answering(|_, _| Some(Turn::text("done")))
}

/// Sends `requests` at once behind a few others, and closes without having read.
fn say_and_die(daemon: &Daemon, before: u64, requests: &[(&str, Value)]) {
    let hello = ("daemon.hello", json!({"client": "dying", "protocol": 1}));
    let status = (0..before).map(|_| ("daemon.status", json!({})));
    let all = std::iter::once(hello).chain(status).chain(requests.iter().cloned());
    let line = |(method, params)| json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    let text: String = all.map(|request| line(request) + "\n").collect();
    daemon.client().send(text.as_bytes()).expect("a listening daemon");
}

fn later(session: &str, content: &str, key: &str) -> Value {
    json!({"session": session, "content": content, "trigger": {"after_ms": 1}, "idempotency_key": key})
}

/// Checks that every session of a list can be read.
fn readable(client: &mut Client) -> Vec<Session> {
    let list: Sessions = client.get("session.list", &json!({"limit": 1000}));
    list.sessions.iter().map(|one| client.get("session.get", &json!({"session": one.id}))).collect()
}

/// Waits until the only follow-up of a session has fired, and checks that it made one task.
fn fires_once(client: &mut Client, session: &str) {
    let mut list = || client.get::<Followups>("followup.list", &json!({ "session": session })).followups;
    let list = wait::until("a follow-up's end", || Some(list()).filter(|list| list.iter().all(|one| one.runs > 0)));
    assert_eq!(list.len(), 1, "{list:?}");
    let made = client.tasks(session).into_iter().filter(|task| task.origin == Origin::Followup).count();
    assert_eq!((made, list[0].runs), (1, 1), "{list:?}");
}

#[test]
fn what_a_dying_client_asked_for_is_there_once() {
    let server = plain();
    let daemon = Daemon::start(&server);
    let mut random = Random::new(7);
    for round in 0..ROUNDS {
        let name = format!("s{round}");
        let create = json!({"name": name, "workspace": daemon.workspace(), "idempotency_key": name});
        let mut requests = vec![("session.create", create.clone())];
        if round % 2 == 0 {
            requests.push(("followup.schedule", later(&name, "f", &name)));
        }
        say_and_die(&daemon, random.below(6), &requests);
        let mut client = daemon.client();
        readable(&mut client);
        let session = client.get::<Session>("session.create", &create).id.0;
        let submit = json!({"session": name, "content": "t", "idempotency_key": name});
        let requests = [("task.submit", submit.clone()), ("followup.schedule", later(&name, "f", &name))];
        say_and_die(&daemon, random.below(6), &requests);
        let task: Task = client.get("task.submit", &submit);
        let followup: Followup = client.get("followup.schedule", &later(&name, "f", &name));
        assert_eq!((task.session.0.as_str(), followup.session.0.as_str()), (session.as_str(), session.as_str()));
        fires_once(&mut client, &session);
        let own = client.tasks(&session).into_iter().filter(|task| task.origin == Origin::User).count();
        let named = readable(&mut client).into_iter().filter(|one| one.name.as_deref() == Some(&name)).count();
        assert_eq!((own, named), (1, 1), "round {round}");
    }
}

#[test]
fn a_session_that_a_dying_client_made_with_its_task_is_there_once() {
    let server = plain();
    let daemon = Daemon::start(&server);
    let mut random = Random::new(11);
    for round in 0..ROUNDS {
        let name = format!("s{round}");
        let create = json!({"name": name, "workspace": daemon.workspace()});
        let submit = json!({"create": create, "content": "t", "idempotency_key": name});
        say_and_die(&daemon, random.below(6), &[("task.submit", submit.clone())]);
        let mut client = daemon.client();
        let task: Task = client.get("task.submit", &submit);
        assert_eq!(client.settled(&task.id).state.as_str(), "succeeded");
        let named: Vec<_> =
            readable(&mut client).into_iter().filter(|one| one.name.as_deref() == Some(&name)).collect();
        assert_eq!((named.len(), client.tasks(&task.session.0).len()), (1, 1), "round {round}: {named:?}");
    }
}

/// Checks that another client gets what it asks for, and that the daemon ends.
fn others_are_served(daemon: &mut Daemon, session: &str, retried: &Value) {
    let mut client = daemon.client();
    client.get::<Followup>("followup.schedule", retried);
    client.get::<Value>("daemon.status", &json!({}));
    let other = daemon.session(&mut client);
    client.get::<Followup>("followup.schedule", &later(&other, "f", "other"));
    fires_once(&mut client, &other);
    client.run(&other, "p");
    client.get::<Value>("session.close", &json!({ "session": session }));
    client.get::<Value>("session.close", &json!({ "session": other }));
    assert_eq!(daemon.terminate().code(), Some(0), "{}", daemon.log());
}

#[test]
fn a_client_that_asks_and_never_reads_holds_up_nobody() {
    let server = plain();
    let mut daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let mut deaf = daemon.client();
    deaf.stop_when_full();
    let far = |key: u32| {
        let trigger = json!({"after_ms": 3_600_000});
        json!({"session": session, "content": "f", "trigger": trigger, "idempotency_key": key.to_string()})
    };
    let asked = (0..100_000_u32).take_while(|n| {
        deaf.begin("rpc.discover", &json!({})).is_some() && deaf.begin("followup.schedule", &far(*n)).is_some()
    });
    let asked = u32::try_from(asked.count()).expect("a count");
    assert!((1..100_000).contains(&asked), "{asked} requests were taken");
    // Its last ones may have begun and cannot be answered: their keys must not stay locked.
    for key in asked.saturating_sub(20)..asked {
        client.get::<Followup>("followup.schedule", &far(key));
    }
    others_are_served(&mut daemon, &session, &far(0));
}

#[test]
fn a_client_that_subscribes_and_never_reads_holds_up_nobody() {
    let server = plain();
    let mut daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    (0..8).for_each(|n| drop(client.run(&session, &format!("p{n} {}", "x".repeat(500_000)))));
    let mut deaf = daemon.client();
    for _ in 0..8 {
        deaf.begin("events.subscribe", &json!({"since_seq": 0, "deltas": true})).expect("a live daemon");
    }
    let kept = later(&session, "f", "k");
    others_are_served(&mut daemon, &session, &kept);
    drop(deaf);
}
