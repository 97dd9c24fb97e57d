//! What the tests of follow-ups share.

use std::time::{SystemTime, UNIX_EPOCH};

use nano_protocol::event::{Event, EventType};
use nano_protocol::followup::{Followup, Last, RunState, Runs};
use nano_protocol::task::{Origin, Task};
use nano_protocol::time::Timestamp;
use nano_tests::client::Client;
use nano_tests::daemon::Daemon;
use nano_tests::model_server::{ModelServer, Turn};
use nano_tests::wait;
use serde_json::{Value, json};

pub const HOUR: u64 = 3_600_000;

/// A model that answers everything at once.
pub fn plain() -> ModelServer {
    ModelServer::answering(|_, _| Some(Turn::text("done")))
}

/// A model whose answers to requests that hold `word` wait for the gate of the same name.
pub fn holding(word: &'static str) -> ModelServer {
    let server = ModelServer::answering(move |request, _| {
        let held = request["messages"]
            .as_array()
            .and_then(|all| all.last())
            .is_some_and(|last| last.to_string().contains(word));
        Some(Turn::text("done").gated(if held { word } else { "open" }))
    });
    server.open("open");
    server
}

pub fn now() -> Timestamp {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970").as_millis();
    Timestamp(i64::try_from(now).expect("a clock before the year 292 million"))
}

/// Schedules with further parameters.
pub fn schedule(client: &mut Client, session: &str, trigger: &Value, more: &Value) -> Followup {
    let mut params = json!({"session": session, "content": "f", "trigger": trigger});
    let more = more.as_object().expect("an object");
    params.as_object_mut().expect("an object").extend(more.clone());
    client.get("followup.schedule", &params)
}

/// Calls a method that takes a follow-up alone.
pub fn act(client: &mut Client, method: &str, followup: &Followup) -> Followup {
    client.get(method, &json!({"followup": followup.id}))
}

pub fn get(client: &mut Client, followup: &Followup) -> Followup {
    act(client, "followup.get", followup)
}

/// Waits until a follow-up is in this state.
pub fn wait_for(client: &mut Client, followup: &Followup, state: &str) -> Followup {
    wait::until(state, || Some(get(client, followup)).filter(|now| now.state.as_str() == state))
}

/// Returns the tasks that follow-ups have made in a session, oldest first.
pub fn made(client: &mut Client, session: &str) -> Vec<Task> {
    let mut tasks = client.tasks(session);
    tasks.retain(|task| task.origin == Origin::Followup);
    tasks
}

/// Waits for so many of them.
pub fn wait_made(client: &mut Client, session: &str, count: usize) -> Vec<Task> {
    wait::until("tasks of follow-ups", || Some(made(client, session)).filter(|tasks| tasks.len() >= count))
}

/// Returns all rows of a follow-up, newest first, read in small pages.
pub fn runs(client: &mut Client, followup: &Followup) -> Vec<Last> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let page: Runs = client.get("followup.runs", &json!({"followup": followup.id, "limit": 3, "after": after}));
        all.extend(page.runs);
        after = page.next;
        if after.is_none() {
            return all;
        }
    }
}

/// Checks that each slot is on record once, each fired one with a task of its own, and that events say the same.
pub fn check(daemon: &Daemon, followup: &Followup) -> Vec<Last> {
    let mut client = daemon.client();
    let rows = runs(&mut client, followup);
    assert!(rows.windows(2).all(|pair| pair[0].slot > pair[1].slot), "newest first, none twice: {rows:#?}");
    let fired: Vec<_> = rows.iter().filter(|row| row.state == RunState::Fired).collect();
    let mut tasks: Vec<_> = fired.iter().map(|row| row.task.clone().expect("its task")).collect();
    tasks.sort();
    tasks.dedup();
    assert_eq!(tasks.len(), fired.len(), "{rows:#?}");
    let about = |event: &Event| event.data["followup"] == json!(followup.id);
    let told = daemon.history().into_iter().filter(|event| event.kind == EventType::FollowupFired && about(event));
    let now = get(&mut client, followup);
    assert_eq!((told.count(), now.runs), (fired.len(), fired.len() as u64), "{now:?}");
    rows
}
