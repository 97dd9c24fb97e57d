//! The load of the killing test: clients of several kinds that note what the daemon has answered, until it is gone.

use std::path::Path;
use std::process::Child;

use nano_protocol::event::EventType;
use nano_protocol::id::{FollowupId, TaskId};
use nano_protocol::message::Message;
use nano_tests::client::Client;
use nano_tests::ctl::{self, Ctl};
use nano_tests::random::Random;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// What the daemon has answered, and so must still have.
#[derive(Default)]
pub struct Accepted {
    pub tasks: Vec<TaskId>,
    pub followups: Vec<FollowupId>,
    /// The content of each of them and of each steering message, with its session.
    pub said: Vec<(String, String)>,
    /// What was sent and never answered: it may be there, once.
    pub unknown: Vec<(String, String)>,
}

impl Accepted {
    pub fn add(&mut self, other: Self) {
        self.tasks.extend(other.tasks);
        self.followups.extend(other.followups);
        self.said.extend(other.said);
        self.unknown.extend(other.unknown);
    }
}

/// Where and with which words a client speaks; its words are its own.
pub struct Speaker<'a> {
    pub root: &'a Path,
    pub socket: &'a Path,
    pub sessions: &'a [String],
    pub word: String,
    pub random: Random,
}

impl Speaker<'_> {
    /// Says a few things over one connection, and waits until the daemon is gone.
    pub fn speak(&mut self, requests: usize) -> Accepted {
        let mut accepted = Accepted::default();
        let Ok(mut client) = Client::connect(self.socket) else { return accepted };
        for number in 0..requests {
            let session = self.random.pick(self.sessions).clone();
            let content = format!("{}{number}w", self.word);
            if self.say(&mut client, session, &content, &mut accepted).is_none() {
                return accepted;
            }
        }
        while client.next_event().is_some() {}
        accepted
    }

    /// Submits, steers or schedules; `None` when the daemon was gone before it answered.
    fn say(&mut self, client: &mut Client, session: String, content: &str, accepted: &mut Accepted) -> Option<()> {
        let mut params = json!({"session": session, "content": content, "idempotency_key": content});
        let method = ["task.submit", "session.steer", "followup.schedule"][self.third()];
        if method == "followup.schedule" {
            params["trigger"] = json!({"after_ms": self.random.below(300)});
        }
        accepted.unknown.push((session, content.to_owned()));
        match client.try_call(method, &params)? {
            Ok(answer) if method == "task.submit" => accepted.tasks.push(id(&answer)),
            Ok(answer) if method == "followup.schedule" => accepted.followups.push(id(&answer)),
            Ok(_) => {}
            Err(error) => {
                assert!([-32004, -32007].contains(&error.code), "{method} {params}: {error:?}");
                return Some(());
            }
        }
        accepted.said.extend(accepted.unknown.pop());
        Some(())
    }

    /// Has `nanoctl` say a few things, one process each.
    pub fn command(&mut self, requests: usize) -> Accepted {
        let mut accepted = Accepted::default();
        for number in 0..requests {
            let session = self.random.pick(self.sessions).clone();
            let content = format!("{}{number}w", self.word);
            let delay = format!("{}ms", 1 + self.random.below(300));
            let kind = self.third();
            let args = match kind {
                0 => vec!["submit", "-s", &session, &content],
                1 => vec!["steer", &session, &content],
                _ => vec!["followup", "add", &session, &content, "--in", &delay],
            };
            let output = self.ctl(&args).run();
            accepted.unknown.push((session.clone(), content.clone()));
            if output.code != Some(0) {
                assert!([Some(3), Some(5)].contains(&output.code), "{args:?}: {output:?}");
                continue;
            }
            accepted.said.extend(accepted.unknown.pop());
            match kind {
                0 => accepted.tasks.push(TaskId(output.expect_code(0))),
                1 => {}
                _ => accepted.followups.push(FollowupId(output.expect_code(0))),
            }
        }
        accepted
    }

    /// Starts a `nanoctl wait`, which is to outlive the daemon.
    pub fn wait_for(&self, task: &TaskId) -> Child {
        self.ctl(&["wait", task.as_str()]).spawn()
    }

    fn ctl(&self, args: &[&str]) -> Ctl {
        Ctl::new(self.root).env("NANO_SOCKET", self.socket).args(args)
    }

    fn third(&mut self) -> usize {
        usize::try_from(self.random.below(3)).expect("a small number")
    }
}

/// Watches until the daemon is gone, and returns the messages that it has told of, each with its session.
pub fn watch(socket: &Path) -> Vec<(String, Message)> {
    let Ok(mut client) = Client::connect(socket) else { return Vec::new() };
    let params = json!({"types": ["message.added"]});
    if client.try_call("events.subscribe", &params).is_none() {
        return Vec::new();
    }
    let mut seen = Vec::new();
    while let Some(event) = client.next_event() {
        assert_eq!(event.kind, EventType::MessageAdded);
        let message = serde_json::from_value(event.data["message"].clone()).expect("a message");
        seen.push((event.session.expect("a session").0, message));
    }
    seen
}

/// Tells whether a `nanoctl wait` was told what became of its task; it gives up where no connection lasts for seconds.
pub fn was_told(child: Child) -> bool {
    let output = ctl::output(child);
    let interrupted = output.code == Some(1) && output.stderr.contains("interrupted");
    assert!(matches!(output.code, Some(0 | 3)) || interrupted, "{output:?}");
    output.code != Some(3)
}

fn id<T: DeserializeOwned>(answer: &Value) -> T {
    serde_json::from_value(answer["id"].clone()).expect("an id")
}
