//! One case of the loop as data: what the model says, what happens when, what must come of it.

use std::collections::BTreeMap;
use std::path::Path;

use nano_protocol::event::{Event, EventType};
use nano_protocol::id::TaskId;
use nano_protocol::task::{Task, TaskState};
use nano_tests::client::Client;
use nano_tests::daemon::{Daemon, Setup};
use nano_tests::model_server::{ModelServer, Turn};
use nano_tests::wait;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::loop_check::{self, Expect};

/// A case.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// The rows of the table that it is.
    pub rows: Vec<u32>,
    /// What it is about.
    pub about: String,
    /// Lines of the agent's and the model's configuration.
    #[serde(default)]
    config: CaseConfig,
    /// Files of the workspace; a number makes so many MiB of text.
    #[serde(default)]
    files: BTreeMap<String, Value>,
    turns: Vec<Turn>,
    steps: Vec<Step>,
    expect: Expect,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct CaseConfig {
    agent: String,
    model: String,
}

/// One thing that happens; tasks go by their content.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Step {
    /// Submits a task, which must be in the state `state`, if one is given.
    Submit {
        content: String,
        state: Option<String>,
    },
    /// Steers the session; the answer's `accepted_as` must be as given, or else the delivery.
    Steer {
        content: String,
        delivery: Option<String>,
        accepted_as: Option<String>,
        key: Option<String>,
    },
    /// Schedules a follow-up that is due at once and waits until it has fired.
    Followup(String),
    /// Waits until so many requests have reached the model.
    AwaitRequest(usize),
    /// Waits until a call has started.
    AwaitCall(String),
    /// Waits until a file of the workspace exists.
    AwaitFile(String),
    /// Waits until this piece of a reply has come.
    AwaitDelta(String),
    /// Waits until so many events of a type have come.
    AwaitEvent {
        kind: EventType,
        count: usize,
    },
    /// Opens a gate of the model.
    Open(String),
    /// Makes a file in the workspace.
    Touch(String),
    Cancel(String),
    Resume(String),
    /// Waits until a task is settled so.
    AwaitTask {
        task: String,
        state: String,
        reason: Option<String>,
    },
    Kill,
    Start,
}

/// A case on its way.
pub struct Run {
    pub server: ModelServer,
    pub daemon: Daemon,
    pub session: String,
    /// The failed tasks that were resumed: each ends once more.
    reopened: Vec<TaskId>,
    /// Everything that the session's subscription has brought, over all connections.
    pub events: Vec<Event>,
    client: Option<Client>,
    watcher: Option<Client>,
}

/// Plays a case and checks what came of it.
pub fn play(case: &Case) {
    let server = ModelServer::script(case.turns.clone());
    let setup = Setup { agent: case.config.agent.clone(), model: case.config.model.clone(), ..Setup::default() };
    let daemon = Daemon::with(&server, setup);
    for (name, content) in &case.files {
        fill(&daemon.workspace().join(name), content);
    }
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let mut run =
        Run { server, daemon, session, events: Vec::new(), reopened: Vec::new(), client: Some(client), watcher: None };
    run.watch();
    for step in &case.steps {
        run.step(step);
    }
    run.settle(&case.about);
    loop_check::check(&mut run, &case.expect);
}

fn fill(path: &Path, content: &Value) {
    let text = match content.as_u64() {
        Some(mib) => "a line that nobody looks for\n".repeat(36_000).repeat(usize::try_from(mib).expect("a size")),
        None => content.as_str().expect("text or a size").to_owned(),
    };
    std::fs::write(path, text).expect("a file of the workspace");
}

impl Run {
    /// Returns the connection for requests.
    pub fn client(&mut self) -> &mut Client {
        let daemon = &self.daemon;
        self.client.get_or_insert_with(|| daemon.client())
    }

    /// Returns the session's tasks, oldest first.
    pub fn tasks(&mut self) -> Vec<Task> {
        let session = self.session.clone();
        self.client().tasks(&session)
    }

    fn step(&mut self, step: &Step) {
        let session = self.session.clone();
        match step {
            Step::Submit { content, state } => {
                let task = self.client().submit(&session, content);
                if let Some(state) = state {
                    assert_eq!(task.state.as_str(), state, "the state of `{content}` when it is submitted");
                }
            }
            Step::Steer { content, delivery, accepted_as, key } => {
                let params =
                    json!({"session": session, "content": content, "delivery": delivery, "idempotency_key": key});
                let answer: Value = self.client().get("session.steer", &params);
                let expected = accepted_as.as_deref().or(delivery.as_deref()).unwrap_or("note");
                assert_eq!(answer["accepted_as"], expected, "how `{content}` is accepted");
            }
            Step::Followup(content) => self.followup(content),
            Step::AwaitRequest(count) => self.server.wait_requests(*count),
            Step::AwaitCall(id) => self.await_events(step, |events| loop_check::started(events, id)),
            Step::AwaitFile(name) => {
                let path = self.daemon.workspace().join(name);
                wait::until(name, || path.exists().then_some(()));
            }
            Step::AwaitDelta(text) => {
                let is_it = |event: &Event| event.kind == EventType::TextDelta && event.data.to_string().contains(text);
                self.await_events(step, |events| events.iter().any(is_it));
            }
            Step::AwaitEvent { kind, count } => self.await_count(step, *kind, *count),
            Step::Open(gate) => self.server.open(gate),
            Step::Touch(name) => std::fs::write(self.daemon.workspace().join(name), "").expect("a file"),
            Step::Cancel(task) => self.task_verb("task.cancel", task),
            Step::Resume(content) => {
                let task = self.task(content);
                self.reopened.extend((task.state == TaskState::Failed).then_some(task.id));
                self.task_verb("task.resume", content);
            }
            Step::AwaitTask { task, state, reason } => self.await_task(task, state, reason.as_deref()),
            Step::Kill => self.kill(),
            Step::Start => {
                self.daemon.restart();
                self.watch();
            }
        }
    }

    fn followup(&mut self, content: &str) {
        let fired = self.count(EventType::FollowupFired);
        let params = json!({"session": self.session, "content": content, "trigger": {"after_ms": 1}});
        self.client().get::<Value>("followup.schedule", &params);
        self.await_count(format!("the follow-up {content}"), EventType::FollowupFired, fired + 1);
    }

    fn task_verb(&mut self, verb: &str, content: &str) {
        let id = self.task(content).id;
        self.client().get::<Task>(verb, &json!({ "task": id }));
    }

    fn await_task(&mut self, content: &str, state: &str, reason: Option<&str>) {
        let id = self.task(content).id;
        let task = self.client().settled(&id);
        let found = (task.state.as_str(), task.reason.map(nano_protocol::task::Reason::as_str));
        assert_eq!(found.0, state, "{task:?}");
        assert!(reason.is_none() || found.1 == reason, "{task:?} should have ended for {reason:?}");
    }

    fn task(&mut self, content: &str) -> Task {
        let tasks = self.tasks();
        let found = tasks.iter().find(|task| task.content == content);
        found.unwrap_or_else(|| panic!("no task `{content}` in {tasks:?}")).clone()
    }

    fn kill(&mut self) {
        self.daemon.kill9();
        self.client = None;
        self.drain();
    }

    /// Takes what the watcher's connection still holds.
    fn drain(&mut self) {
        while let Some(event) = self.watcher.as_mut().and_then(Client::next_event) {
            self.events.push(event);
        }
        self.watcher = None;
    }

    fn watch(&mut self) {
        let since = self.events.iter().filter_map(|event| event.seq).max().unwrap_or(0);
        let mut watcher = self.daemon.client();
        watcher.subscribe(&json!({"session": self.session, "since_seq": since, "deltas": true}));
        self.watcher = Some(watcher);
    }

    fn count(&self, kind: EventType) -> usize {
        self.events.iter().filter(|event| event.kind == kind).count()
    }

    fn await_count(&mut self, what: impl std::fmt::Debug, kind: EventType, count: usize) {
        self.await_events(what, |events| events.iter().filter(|event| event.kind == kind).count() >= count);
    }

    fn await_events(&mut self, what: impl std::fmt::Debug, found: impl Fn(&[Event]) -> bool) {
        while !found(&self.events) {
            let event = self.watcher.as_mut().and_then(Client::next_event);
            self.events.push(event.unwrap_or_else(|| panic!("the daemon went away before {what:?}")));
        }
    }

    /// Waits until nothing more happens by itself, and until the end of every task has been told.
    fn settle(&mut self, about: &str) {
        for task in self.tasks() {
            let task = self.client().settled(&task.id);
            assert!(task.state.is_settled(), "{about}: {task:?}");
            let is_interrupted = task.state == TaskState::Interrupted;
            let kind = if is_interrupted { EventType::TaskInterrupted } else { EventType::TaskFinished };
            let ends = 1 + self.reopened.iter().filter(|id| **id == task.id).count();
            let is_end = |event: &&Event| event.kind == kind && event.task.as_ref() == Some(&task.id);
            self.await_events(about, |events| events.iter().filter(is_end).count() >= ends);
            if is_interrupted {
                return; // What is queued behind it waits.
            }
        }
    }
}
