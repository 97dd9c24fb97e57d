//! What the tests of the store share: everything a daemon is known to hold, read over its socket, and what of that is
//! missing later.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use nano_protocol::event::Event;
use nano_protocol::task::TaskState;
use nano_tests::client::Client;
use nano_tests::daemon::Daemon;
use serde_json::{Value, json};

/// What was found, by kind and name, such as `message ses_1 17`; without what may change by itself.
pub type Seen = BTreeMap<String, Value>;

/// A text above this length is kept as its length and sum.
const LONG: usize = 300;

/// Reads all pages of a list, up to one that cannot be read.
pub fn all(client: &mut Client, method: &str, member: &str, params: &Value) -> Vec<Value> {
    let (mut rows, mut params) = (Vec::new(), params.clone());
    loop {
        let Ok(mut page) = client.call(method, &params).inspect_err(|error| eprintln!("{method} {params}: {error:?}"))
        else {
            return rows;
        };
        rows.extend(page[member].as_array().expect("rows").iter().cloned());
        let next = if page["next"].is_null() { "next_after_seq" } else { "next" };
        let after = if next == "next" { "after" } else { "after_seq" };
        match page[next].take() {
            Value::Null => return rows,
            next => params[after] = next,
        }
    }
}

/// Reads everything there is, but for events.
pub fn look(client: &mut Client) -> Seen {
    let mut seen = Seen::new();
    for session in all(client, "session.list", "sessions", &json!({"limit": 1000})) {
        let id = text(&session["id"]).to_owned();
        seen.insert(
            format!("session {id}"),
            without(session, &["state", "updated_at", "usage", "booted", "capabilities"]),
        );
        look_inside(client, &id, &mut seen);
    }
    for task in all(client, "task.list", "tasks", &json!({"limit": 1000})) {
        let moves = ["state", "reason", "result", "error", "usage", "turns", "started_at", "finished_at"];
        let ended = ["succeeded", "failed", "cancelled"].contains(&text(&task["state"]));
        seen.insert(format!("task {}", text(&task["id"])), if ended { task } else { without(task, &moves) });
    }
    for followup in all(client, "followup.list", "followups", &json!({"limit": 1000})) {
        let id = text(&followup["id"]).to_owned();
        for run in all(client, "followup.runs", "runs", &json!({"followup": id, "limit": 1000})) {
            seen.insert(format!("run {id} {}", text(&run["slot"])), run);
        }
        let moves: &[&str] =
            if followup["state"] == "active" { &["state", "next", "last", "runs", "missed"] } else { &[] };
        seen.insert(format!("followup {id}"), without(followup, moves));
    }
    for agent in all(client, "agent.list", "agents", &json!({"limit": 1000})) {
        let said =
            ["name", "system_prompt", "tools", "skills"].map(|member| (member.to_owned(), agent[member].clone()));
        let name = format!("agent {}", text(&agent["name"]));
        if agent["source"] == "stored" {
            seen.insert(name, Value::Object(said.into_iter().collect()));
        }
    }
    seen.into_iter().map(|(name, value)| (name, brief(value))).collect()
}

/// Adds the steering that waits in a session, and its messages.
fn look_inside(client: &mut Client, session: &str, seen: &mut Seen) {
    // First what waits: it may become a message in between, and must not be missed by both.
    let waiting = all(client, "session.queue", "waiting", &json!({ "session": session }));
    for waiting in waiting.iter().filter(|one| one["kind"] == "steering") {
        seen.insert(format!("steering {session} {}", text(&waiting["id"])), waiting.clone());
    }
    for message in all(client, "session.messages", "messages", &json!({"session": session, "limit": 1000})) {
        seen.insert(format!("message {session} {}", message["seq"]), message);
    }
}

/// Adds every durable event that can be read, up to one that is made for it; what a message's event says stands in
/// the transcript.
pub fn look_at_events(daemon: &Daemon, seen: &mut Seen) {
    let mut client = daemon.client();
    let Ok(last) = client.call("session.create", &json!({"booter": "none"})) else { return };
    let is_last = |event: &Event| event.session.as_ref().is_some_and(|session| last["id"] == json!(session));
    client.subscribe(&json!({"since_seq": 0}));
    while let Some(event) = client.next_event().filter(|event| !is_last(event)) {
        // A gap has no number: what was deleted has left it.
        let Some(seq) = event.seq else { continue };
        let name = format!("event {seq}");
        let event = serde_json::to_value(event).expect("JSON");
        let whole = event["type"] != "message.added";
        seen.insert(name, brief(if whole { event } else { without(event, &["data"]) }));
    }
}

/// Returns the names of what was there and is not, or not the same; what became of steering is looked up in the
/// transcript, and members that a later version adds are none of its business.
pub fn missing(expected: &Seen, found: &Seen) -> Vec<String> {
    let applied = |name: &str| {
        let (session, id) = name.strip_prefix("steering ")?.split_once(' ')?;
        found.iter().find(|(name, message)| name.starts_with(&format!("message {session} ")) && message["id"] == id)
    };
    let there = |(name, value): &(&String, &Value)| {
        found.get(*name).map_or_else(|| applied(name).is_some(), |found| holds(found, value))
    };
    expected.iter().filter(|one| !there(one)).map(|(name, _)| name.clone()).collect()
}

/// Tells whether `found` has all that `expected` has.
fn holds(found: &Value, expected: &Value) -> bool {
    match (found, expected) {
        (Value::Object(found), Value::Object(expected)) => {
            expected.iter().all(|(name, value)| found.get(name).is_some_and(|found| holds(found, value)))
        }
        (Value::Array(found), Value::Array(expected)) => {
            found.len() == expected.len() && found.iter().zip(expected).all(|(found, expected)| holds(found, expected))
        }
        _ => found == expected,
    }
}

/// Waits until no task of any session is left that goes on by itself.
pub fn come_to_rest(client: &mut Client) {
    // In this order: between the two lists a task may begin, and none goes back.
    let states = [TaskState::Queued, TaskState::Running];
    let open = |client: &mut Client| {
        states.iter().find_map(|state| all(client, "task.list", "tasks", &json!({"state": state})).pop())
    };
    while let Some(task) = open(client) {
        client.get::<Value>("task.wait", &json!({"task": task["id"]}));
    }
}

pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("not a text: {value}"))
}

fn without(mut value: Value, members: &[&str]) -> Value {
    let object = value.as_object_mut().expect("an object");
    object.retain(|name, _| !members.contains(&name.as_str()));
    value
}

/// Puts length and sum (FNV-1a) in the place of each long text.
fn brief(value: Value) -> Value {
    match value {
        Value::String(text) if text.len() > LONG => {
            let add = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
            let sum = text.bytes().fold(0xcbf2_9ce4_8422_2325, add);
            json!(format!("({} bytes, {sum:016x})", text.len()))
        }
        Value::Array(all) => all.into_iter().map(brief).collect(),
        Value::Object(all) => Value::Object(all.into_iter().map(|(name, value)| (name, brief(value))).collect()),
        other => other,
    }
}

/// Reads every file below a folder, by path; sockets and the like have no bytes.
pub fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).expect("a folder").flatten() {
            let (path, kind) = (entry.path(), entry.file_type().expect("a kind"));
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() {
                let name = path.strip_prefix(folder).expect("a path below").to_string_lossy().into_owned();
                found.insert(name, fs::read(path).expect("a file"));
            }
        }
    }
    found
}
