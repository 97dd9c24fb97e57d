//! What goes wrong between a session and its remote computer, the same for every kind of server where it can be.

mod boots;
mod broken;
mod ends;
mod redirects;
mod runs;
mod strangers;

use std::ops::Deref;
use std::path::PathBuf;

use nano_protocol::message::{Message, Role};
use nano_protocol::task::{Reason, Task, TaskState};
use nano_tests::sandboxes::Server;
use nano_tests::{processes, transcript, wait};

use super::*;

/// A server of sandboxes, of either kind.
pub enum Remote {
    Neo(Bay),
    Ship(Ships),
}

/// Returns one of each kind.
pub fn both() -> [Remote; 2] {
    [Remote::Neo(Bay::start()), Remote::Ship(Ships::start())]
}

impl Deref for Remote {
    type Target = Server;

    fn deref(&self) -> &Server {
        match self {
            Self::Neo(bay) => bay,
            Self::Ship(ships) => ships,
        }
    }
}

impl Remote {
    fn pick<T>(&self, neo: T, ship: T) -> T {
        if matches!(self, Self::Neo(_)) { neo } else { ship }
    }

    pub fn kind(&self) -> &'static str {
        self.pick("shipyard_neo", "shipyard")
    }

    /// Returns the section of the config that uses it.
    pub fn section(&self) -> String {
        match self {
            Self::Neo(bay) => neo(bay),
            Self::Ship(ships) => shipyard(ships),
        }
    }

    pub fn key(&self) -> String {
        match self {
            Self::Neo(bay) => bay.key(),
            Self::Ship(ships) => ships.key(),
        }
    }

    pub fn change_key(&self) -> String {
        match self {
            Self::Neo(bay) => bay.change_key(),
            Self::Ship(ships) => ships.change_key(),
        }
    }

    pub fn sandboxes(&self) -> Vec<String> {
        match self {
            Self::Neo(bay) => bay.sandboxes(),
            Self::Ship(ships) => ships.ships(),
        }
    }

    /// Returns the folder of the one sandbox there is.
    pub fn folder(&self) -> PathBuf {
        let all = self.sandboxes();
        assert_eq!(all.len(), 1, "one sandbox");
        match self {
            Self::Neo(bay) => bay.folder(&all[0]),
            Self::Ship(ships) => {
                let asked = ships.requests_to("POST", "/ship").pop().expect("a request for a ship");
                ships.folder(&all[0], asked.header("x-session-id").expect("its session"))
            }
        }
    }

    pub fn create(&self) -> &'static str {
        self.pick("/v1/sandboxes", "/ship")
    }

    pub fn one(&self) -> &'static str {
        self.pick("/sandboxes/*", "/ship/*")
    }

    pub fn exec(&self) -> &'static str {
        self.pick("/shell/exec", "/exec")
    }

    pub fn python(&self) -> &'static str {
        self.pick("/python/exec", "/exec")
    }

    pub fn upload(&self) -> &'static str {
        self.pick("/filesystem/upload", "/upload")
    }

    pub fn download(&self) -> &'static str {
        self.pick("/filesystem/download", "/download")
    }

    /// Counts the lines of a file in the sandbox, which commands leave as marks.
    pub fn marks(&self) -> usize {
        std::fs::read_to_string(self.folder().join("marks")).unwrap_or_default().lines().count()
    }

    pub fn wait_file(&self, name: &str) {
        let path = self.folder().join(name);
        wait::until(name, || path.exists().then_some(()));
    }

    /// Waits until nothing runs in the one sandbox but the interpreters that a server keeps.
    pub fn wait_quiet(&self) {
        let folder = self.folder();
        let runs = || processes::of(&folder).into_iter().filter(|one| !one.command.starts_with("python3 -c"));
        wait::until("the end of every process in the sandbox", || (runs().count() == 0).then_some(()));
    }

    pub fn wait_none(&self) {
        wait::until("the end of every sandbox", || self.sandboxes().is_empty().then_some(()));
    }
}

/// A model that makes the calls it is told: a prompt is a JSON list of pairs, name and arguments.
pub fn obeying() -> ModelServer {
    ModelServer::answering(|request, n| {
        let messages = request["messages"].as_array().cloned().unwrap_or_default();
        let asked = |one: &Value| serde_json::from_str::<Vec<(String, Value)>>(one["content"].as_str()?).ok();
        let last = messages.iter().rposition(|one| one["role"] == "user" && asked(one).is_some());
        let done = last.is_none_or(|at| messages[at..].iter().any(|one| one["role"] == "tool"));
        let calls = last.filter(|_| !done).and_then(|at| asked(&messages[at])).unwrap_or_default();
        let calls = calls.into_iter().enumerate();
        let calls: Vec<_> =
            calls.map(|(at, (name, arguments))| Call { id: format!("c{n}-{at}"), name, arguments }).collect();
        Some(if calls.is_empty() { Turn::text("done") } else { Turn { calls, ..Turn::default() } })
    })
}

/// One session with a remote computer; the daemon goes first, then what it talks to.
pub struct World {
    pub client: Client,
    pub daemon: Daemon,
    pub model: ModelServer,
    pub session: String,
    pub remote: Remote,
}

impl World {
    pub fn new(remote: Remote) -> Self {
        let section = remote.section();
        Self::with(remote, section, "skills = []")
    }

    pub fn with(remote: Remote, extra: impl Into<String>, agent: &str) -> Self {
        Self::scripted(obeying(), remote, extra, agent)
    }

    pub fn scripted(model: ModelServer, remote: Remote, extra: impl Into<String>, agent: &str) -> Self {
        let daemon = Daemon::with(&model, Setup { agent: agent.into(), extra: extra.into(), ..Setup::default() });
        let mut client = daemon.client();
        let session = session(&daemon, &mut client, remote.kind());
        Self { client, daemon, model, session, remote }
    }

    pub fn submit(&mut self, calls: &[(&str, Value)]) -> Task {
        self.client.submit(&self.session, &json!(calls).to_string())
    }

    pub fn settled(&mut self, task: &Task) -> Task {
        self.client.settled(&task.id)
    }

    /// Runs a task with these calls to its end, whatever that is.
    pub fn run(&mut self, calls: &[(&str, Value)]) -> Task {
        let task = self.submit(calls);
        self.settled(&task)
    }

    /// Runs a task that makes one call, and returns its result, and whether it was a success.
    pub fn call(&mut self, name: &str, arguments: Value) -> (String, bool) {
        let task = self.run(&[(name, arguments)]);
        assert_eq!(task.state, TaskState::Succeeded, "{task:?}");
        let last = self.last();
        (last.content, last.ok == Some(true))
    }

    pub fn exec(&mut self, command: &str) -> (String, bool) {
        self.call("exec", json!({ "command": command }))
    }

    /// Returns the newest result of a call.
    pub fn last(&mut self) -> Message {
        let messages = transcript::read(&mut self.client, &self.session);
        transcript::check_pairs(&messages, false);
        messages.into_iter().rfind(|one| one.role == Role::Tool).expect("a result")
    }

    pub fn steer(&mut self, delivery: &str) -> Value {
        let steer = json!({"session": self.session, "content": "look up", "delivery": delivery});
        self.client.get("session.steer", &steer)
    }

    pub fn cancel(&mut self, task: &Task) -> Task {
        self.client.get("task.cancel", &json!({"task": task.id}))
    }

    pub fn boot(&mut self) -> Session {
        boot(&mut self.client, &self.session)
    }

    /// Boots in vain and returns why.
    pub fn boot_fails(&mut self) -> String {
        let error = self.client.call("session.boot", &json!({"session": self.session})).expect_err("no computer");
        assert_eq!(error.code, -32006, "{error:?}");
        error.message
    }

    pub fn close(&mut self) {
        close(&mut self.client, &self.session);
    }

    pub fn restart(&mut self) {
        self.daemon.restart();
        self.client = self.daemon.client();
    }
}

/// Checks that a task failed for want of a computer, and returns why.
pub fn no_computer(task: &Task) -> String {
    let error = task.error.clone().unwrap_or_else(|| panic!("no error in {task:?}"));
    assert_eq!((task.state, task.reason, error.kind.as_str()), (TaskState::Failed, Some(Reason::Error), "booter"));
    error.message
}

pub fn hello() -> [(&'static str, Value); 1] {
    [("exec", json!({"command": "echo hello"}))]
}

/// A command that leaves a mark.
pub fn marking() -> Value {
    json!({"command": "echo m >> marks; echo marked"})
}
