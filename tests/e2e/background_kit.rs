//! What the tests of background processes share: a model that makes the calls it is told, and a look at what came of them.

use nano_protocol::event::{Event, EventType};
use nano_protocol::message::{Message, Role};
use nano_protocol::process::{Process, Processes};
use nano_tests::client::Client;
use nano_tests::daemon::{Daemon, Setup};
use nano_tests::leaks::Before;
use nano_tests::model_server::{Call, ModelServer, Turn};
use nano_tests::{transcript, wait};
use serde_json::{Value, json};

/// A session whose model does what it is told.
pub struct World {
    pub server: ModelServer,
    pub daemon: Daemon,
    pub client: Client,
    pub session: String,
    before: Before,
}

impl World {
    pub fn start() -> Self {
        let server = ModelServer::answering(|request, n| Some(turn(request, n)));
        let agent = "tool_mode = \"all\"".to_owned();
        let daemon = Daemon::with(&server, Setup { agent, ..Setup::default() });
        let mut client = daemon.client();
        let session = daemon.session(&mut client);
        let other = daemon.session(&mut client);
        client.run(&other, &order(&[exec("true")]));
        client.get::<Value>("session.delete", &json!({"session": other}));
        let before = Before::of(&daemon);
        Self { server, daemon, client, session, before }
    }

    /// Has the model make these calls, one after the other.
    pub fn run(&mut self, calls: &[Value]) -> Vec<Message> {
        let seen = self.messages().last().map_or(0, |message| message.seq);
        self.client.run(&self.session, &order(calls));
        let all = self.messages().into_iter();
        all.filter(|message| message.seq > seen && message.role == Role::Tool).collect()
    }

    /// Starts a command in the background; returns its id.
    pub fn begin(&mut self, command: &str) -> String {
        let results = self.run(&[background(command)]);
        assert!(results[0].ok == Some(true) && results[0].content.contains("running in the background"), "{results:?}");
        self.list()[0].id.0.clone()
    }

    /// Has the model make one call of `process`; returns its result.
    pub fn process(&mut self, arguments: Value) -> (String, bool) {
        let result = self.run(&[call("process", arguments)]).remove(0);
        (result.content, result.ok == Some(true))
    }

    pub fn messages(&mut self) -> Vec<Message> {
        transcript::read(&mut self.client, &self.session)
    }

    /// Returns the notices that the model was sent.
    pub fn notices(&mut self) -> Vec<String> {
        let notes = self.messages().into_iter().filter(|message| message.role == Role::Steering);
        notes.map(|message| format!("{}: {}", message.source.unwrap_or_default(), message.content)).collect()
    }

    /// Returns the processes, newest first.
    pub fn list(&mut self) -> Vec<Process> {
        self.client.get::<Processes>("process.list", &json!({"session": self.session})).processes
    }

    pub fn get(&mut self, id: &str) -> Process {
        self.list().into_iter().find(|process| process.id.0 == id).expect("a process on record")
    }

    /// Waits until a process has ended.
    pub fn ended(&mut self, id: &str) -> Process {
        let mut client = self.daemon.client();
        let params = json!({"session": self.session});
        wait::until("the end of a background process", || {
            let all: Processes = client.get("process.list", &params);
            all.processes.into_iter().find(|process| process.id.0 == id && process.ended_at.is_some())
        })
    }

    /// Returns how often each end was told as an event.
    pub fn exits(&self) -> Vec<Event> {
        self.daemon.history().into_iter().filter(|event| event.kind == EventType::ProcessExited).collect()
    }

    /// Returns what waits in the session.
    pub fn waiting(&mut self) -> usize {
        let queue: Value = self.client.get("session.queue", &json!({"session": self.session}));
        queue["waiting"].as_array().expect("a list").len()
    }

    /// Waits until so much waits in the session.
    pub fn waits(&mut self, count: usize) {
        let mut client = self.daemon.client();
        let params = json!({"session": self.session});
        wait::until("a note", || {
            let queue: Value = client.get("session.queue", &params);
            (queue["waiting"].as_array()?.len() == count).then_some(())
        });
    }

    pub fn restart(&mut self) {
        self.daemon.restart();
        self.client = self.daemon.client();
    }

    /// Checks that nothing is left behind.
    pub fn leaves_nothing(&self) {
        self.before.check(&self.daemon);
    }
}

/// What makes the model do that.
pub fn order(calls: &[Value]) -> String {
    format!("do {}", json!(calls))
}

#[expect(clippy::needless_pass_by_value, reason = "it is made in the call")]
pub fn call(name: &str, arguments: Value) -> Value {
    json!({"name": name, "arguments": arguments})
}

pub fn background(command: &str) -> Value {
    call("exec", json!({"command": command, "background": true}))
}

pub fn exec(command: &str) -> Value {
    call("exec", json!({"command": command}))
}

/// A call that the model makes once a gate is open.
pub fn gated(gate: &str, mut call: Value) -> Value {
    call["gate"] = json!(gate);
    call
}

/// Makes the next of the calls that were ordered last; `$ID` is the newest process that the request names.
fn turn(request: &Value, n: usize) -> Turn {
    let messages = request["messages"].as_array().expect("messages");
    let text = |message: &Value| message["content"].as_str().unwrap_or_default().to_owned();
    let Some(at) = messages.iter().rposition(|message| text(message).starts_with("do ")) else {
        return Turn::text("heard");
    };
    let orders: Vec<Value> = serde_json::from_str(&text(&messages[at])[3..]).expect("orders");
    let done = messages[at..].iter().filter(|message| message["role"] == "tool").count();
    let Some(next) = orders.get(done) else { return Turn::text("done") };
    let all: Vec<String> = messages.iter().map(text).collect();
    let newest = all.iter().rev().find_map(|text| text.rsplit_once("prc_").map(|(_, rest)| rest[..26].to_owned()));
    let id = newest.map(|rest| format!("prc_{rest}")).unwrap_or_default();
    let arguments = serde_json::from_str(&next["arguments"].to_string().replace("$ID", &id)).expect("arguments");
    let name = next["name"].as_str().expect("a tool").to_owned();
    let turn = Turn { calls: vec![Call { id: format!("c{n}"), name, arguments }], ..Turn::default() };
    match next["gate"].as_str() {
        Some(gate) => turn.gated(gate),
        None => turn,
    }
}
