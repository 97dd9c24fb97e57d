//! What the tests of delegation share: a model that does what it is told, and a look at the sessions below another one.

use nano_protocol::message::{Message, Role};
use nano_protocol::session::{Session, Sessions};
use nano_protocol::task::{Task, TaskState};
use nano_tests::client::Client;
use nano_tests::daemon::{Daemon, Setup};
use nano_tests::model_server::{Call, ModelServer, Turn};
use nano_tests::{transcript, wait};
use serde_json::{Value, json};

/// Agents beside the default one, which is offered everything.
const AGENTS: &str = "[agents.reader]\nlevel = \"read-only\"\ntool_mode = \"readonly\"\n\
                      [agents.host]\nlevel = \"host\"\ntool_mode = \"all\"\nskills = []\n\
                      [agents.bare]\nbooter = \"none\"\ntool_mode = \"all\"\n";

/// A model that makes of `delegate GATE [ARGUMENTS, …]` these calls, and answers their results once the gate `GATE` is
/// open; that fails on `fail`, answers `work` with 42 once the gate is open that it names, and hears the rest.
pub fn obedient() -> ModelServer {
    let server = ModelServer::answering(|request, n| Some(turn(request, n)));
    server.open("-");
    server
}

fn turn(request: &Value, n: usize) -> Turn {
    let messages = request["messages"].as_array().expect("messages");
    let text = |message: &Value| message["content"].as_str().unwrap_or_default().to_owned();
    let last = messages.last().expect("a message");
    let told = messages.iter().rev().map(text).find(|text| text.starts_with("delegate "));
    let mut words = text(last).splitn(3, ' ').map(str::to_owned).collect::<Vec<_>>().into_iter();
    match (last["role"].as_str(), words.next().as_deref()) {
        (Some("tool"), _) => {
            let gate = told.and_then(|told| told.split(' ').nth(1).map(str::to_owned)).expect("an order");
            Turn::text("noted").gated(&gate)
        }
        (_, Some("delegate")) => {
            let orders: Vec<Value> = serde_json::from_str(&words.nth(1).expect("orders")).expect("a list");
            let call = |(at, arguments)| Call { id: format!("c{n}_{at}"), name: "delegate".into(), arguments };
            Turn { calls: orders.into_iter().enumerate().map(call).collect(), ..Turn::default() }
        }
        (_, Some("work")) => Turn::text("42").gated(&words.next().expect("a gate")),
        (_, Some("fail")) => Turn { status: Some(400), ..Turn::default() },
        _ => Turn::text("heard"),
    }
}

/// What makes the model delegate, and go on when `gate` is open.
pub fn order(gate: &str, orders: &[Value]) -> String {
    format!("delegate {gate} {}", json!(orders))
}

pub fn daemon(server: &ModelServer) -> Daemon {
    daemon_with(server, "")
}

pub fn daemon_with(server: &ModelServer, agent: &str) -> Daemon {
    let agent = format!("tool_mode = \"all\"\n{agent}");
    Daemon::with(server, Setup { agent, extra: AGENTS.into(), ..Setup::default() })
}

/// Returns the sessions below another one, oldest first.
pub fn children(client: &mut Client, parent: &str) -> Vec<Session> {
    let all: Sessions = client.get("session.list", &json!({"limit": 1000}));
    let below = |session: &Session| session.parent.as_ref().is_some_and(|id| id.0 == parent);
    let mut found: Vec<Session> = all.sessions.into_iter().filter(below).collect();
    found.reverse();
    found
}

/// Waits until so many sessions are below another one.
pub fn wait_children(client: &mut Client, parent: &str, count: usize) -> Vec<Session> {
    wait::until("children", || Some(children(client, parent)).filter(|all| all.len() >= count))
}

/// Waits until the newest task of a session, which is at least the `count`th, has come to rest.
pub fn settled(client: &mut Client, session: &str, count: usize) -> Task {
    let tasks = wait::until("a task", || Some(client.tasks(session)).filter(|all| all.len() >= count));
    client.settled(&tasks.last().expect("a task").id)
}

/// Waits until the child's only task has ended.
pub fn ended(client: &mut Client, child: &Session, state: TaskState) -> Task {
    let task = settled(client, child.id.as_str(), 1);
    assert_eq!(task.state, state, "{task:?}");
    task
}

/// Renders a session's transcript; what the model was told is `U` alone.
pub fn rendered(client: &mut Client, session: &str) -> String {
    let mut messages = transcript::read(client, session);
    transcript::check_pairs(&messages, false);
    for message in &mut messages {
        if matches!(message.role, Role::User | Role::Steering) {
            message.content = String::new();
        }
    }
    let ids: Vec<String> = messages.iter().flat_map(|one| &one.tool_calls).map(|call| call.id.clone()).collect();
    let rendered = transcript::render(&messages);
    // Their numbers differ from run to run.
    ids.iter().enumerate().fold(rendered, |text, (at, id)| text.replace(id, &format!("c{}", at + 1)))
}

/// Returns the results of a session's calls, oldest first.
pub fn results(client: &mut Client, session: &str) -> Vec<Message> {
    let mut messages = transcript::read(client, session);
    messages.retain(|message| message.role == Role::Tool);
    messages
}

/// Returns how often a session was told of the end of a child by a message.
pub fn told_of(client: &mut Client, session: &str, child: &Session) -> usize {
    let source = format!("subagent {}", child.id);
    let messages = transcript::read(client, session);
    messages.iter().filter(|message| message.source.as_ref() == Some(&source)).count()
}
