//! Sessions whose computer is somewhere else, with fakes of both Shipyards: lists before and after boot, restarts, lost
//! sandboxes, faults, and that nothing is left behind.

mod bugs;
mod exact;
mod faults;
mod leaks;
mod lists;
mod secrets;
mod skills;
mod subagents;

use nano_protocol::event::{Event, EventType};
use nano_protocol::session::{Session, SessionTools};
use nano_tests::boxlite::Boxlite;
use nano_tests::client::Client;
use nano_tests::daemon::{Daemon, Setup};
use nano_tests::model_server::{Call, ModelServer, Turn};
use nano_tests::sandboxes::{Bay, Ships};
use serde_json::{Value, json};

/// Returns the section that makes a daemon use this Bay.
fn neo(bay: &Bay) -> String {
    format!("[booters.shipyard_neo]\nendpoint = \"{}\"\naccess_token = \"{}\"\n", bay.url(), bay.key())
}

/// Returns the section that makes a daemon use these ships.
fn shipyard(ships: &Ships) -> String {
    format!("[booters.shipyard]\nendpoint = \"{}\"\naccess_token = \"{}\"\n", ships.url(), ships.key())
}

/// Returns the section that makes a daemon use these boxes.
fn boxlite(boxes: &Boxlite) -> String {
    format!("[booters.boxlite]\nendpoint = \"{}\"\nimage = \"debian:stable\"\n", boxes.url())
}

/// Starts a daemon with these sections; its agent has no skills unless they say so.
fn daemon(server: &ModelServer, extra: impl Into<String>) -> Daemon {
    Daemon::with(server, Setup { agent: "skills = []".into(), extra: extra.into(), ..Setup::default() })
}

fn session(daemon: &Daemon, client: &mut Client, booter: &str) -> String {
    daemon.session_with(client, json!({"booter": booter}))
}

fn tools(client: &mut Client, session: &str) -> SessionTools {
    client.get("session.tools", &json!({ "session": session }))
}

fn names(tools: &SessionTools) -> Vec<&str> {
    tools.tools.iter().map(|tool| tool.name.as_str()).collect()
}

fn boot(client: &mut Client, session: &str) -> Session {
    client.get("session.boot", &json!({ "session": session }))
}

/// Makes a turn that calls one tool.
fn call(id: &str, name: &str, arguments: Value) -> Turn {
    let call = Call { id: id.into(), name: name.into(), arguments };
    Turn { calls: vec![call], ..Turn::default() }
}

/// Returns the text of the session's newest tool result, and whether it was a success.
fn result(client: &mut Client, session: &str) -> (String, bool) {
    let all: Value = client.get("session.messages", &json!({"session": session, "limit": 1000}));
    let all = all["messages"].as_array().cloned().unwrap_or_default();
    let last = all.iter().rev().find(|one| one["role"] == "tool").cloned().expect("a tool's result");
    (last["content"].as_str().unwrap_or_default().to_owned(), last["ok"] == true)
}

fn events(daemon: &Daemon, kind: EventType) -> Vec<Event> {
    daemon.history().into_iter().filter(|event| event.kind == kind).collect()
}

fn close(client: &mut Client, session: &str) {
    client.get::<Value>("session.close", &json!({ "session": session }));
}

/// Waits until the fake has no sandbox any more.
fn wait_none(bay: &Bay) {
    nano_tests::wait::until("the end of every sandbox", || bay.sandboxes().is_empty().then_some(()));
}
