//! What a run has left behind, as clients can see it.

use std::collections::BTreeMap;

use nano_protocol::event::Event;
use nano_protocol::id::SessionId;
use nano_protocol::message::{Message, Role};
use nano_protocol::session::Session;
use nano_protocol::task::Task;
use nano_tests::transcript;

use super::run::Run;

pub struct Story {
    pub sessions: Vec<Session>,
    pub tasks: Vec<Task>,
    pub transcripts: BTreeMap<SessionId, Vec<Message>>,
    pub history: Vec<Event>,
    /// What the commands of the scene have left, one line for each time one ran.
    pub marks: Vec<String>,
}

impl Story {
    pub fn read(run: &mut Run) -> Self {
        let (sessions, tasks) = (run.sessions(), run.tasks());
        let transcripts = sessions
            .iter()
            .map(|session| (session.id.clone(), transcript::read(run.client(), session.id.as_str())))
            .collect();
        let marks = std::fs::read_to_string(run.daemon.workspace().join("marks")).unwrap_or_default();
        let marks = marks.lines().map(str::to_owned).collect();
        Self { sessions, tasks, transcripts, history: run.daemon.history(), marks }
    }

    /// Returns the messages of all transcripts.
    pub fn messages(&self) -> impl Iterator<Item = &Message> {
        self.transcripts.values().flatten()
    }

    /// Returns the results of all calls.
    pub fn results(&self) -> impl Iterator<Item = &Message> {
        self.messages().filter(|message| message.role == Role::Tool)
    }

    /// Returns what of a role was said to a session, in order.
    pub fn said(&self, session: &str, role: Role) -> Vec<&str> {
        let messages = &self.transcripts[&SessionId(session.into())];
        let of = |message: &&Message| message.role == role && (role != Role::User || message.source.is_none());
        messages.iter().filter(of).map(|message| message.content.as_str()).collect()
    }
}
