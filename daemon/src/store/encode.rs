//! A commit as a line: events, messages and tasks get their numbers here.

use std::sync::Arc;

use nano_protocol::event::{Event, EventType};
use nano_protocol::time::Timestamp;
use serde::Serialize;
use serde_json::json;

use super::journal::line::{Entry, Line};
use super::record::Draft;
use super::{Change, Commit, Key, Receipt};

/// How far numbers have been given out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbers {
    /// The newest line.
    pub line: u64,
    /// The newest line that is known to be on disk.
    pub synced: u64,
    /// The newest event.
    pub head: u64,
}

/// Turns a commit into the line behind `numbers`, which move on.
pub fn line(commit: Commit, numbers: &mut Numbers, now: Timestamp) -> (Line, Receipt) {
    let mut encoder = Encoder { head: numbers.head, now, entries: Vec::new(), receipt: Vec::new() };
    for change in commit.changes {
        encoder.change(change);
    }
    let Encoder { head, entries, receipt, .. } = encoder;
    (numbers.next(head, entries), receipt)
}

impl Numbers {
    /// Makes the next line of `entries`, in which `head` is the newest event.
    pub fn next(&mut self, head: u64, entries: Vec<Entry>) -> Line {
        self.line += 1;
        self.head = head;
        Line { number: self.line, synced: self.synced, head, entries }
    }
}

struct Encoder {
    head: u64,
    now: Timestamp,
    entries: Vec<Entry>,
    receipt: Receipt,
}

impl Encoder {
    fn change(&mut self, change: Change) {
        match change {
            Change::Put(key, value) => self.entries.push(Entry::Put(key.0, value)),
            Change::Delete(key) => self.entries.push(Entry::Delete(key.0)),
            Change::DeleteAll(prefix) => self.entries.push(Entry::DeleteAll(prefix.0)),
            Change::Event(draft) => self.event(draft, true),
            Change::Message(session, mut message) => {
                message.seq = self.head + 1;
                message.at = self.now;
                self.put(Key::message(&session, message.seq), &message);
                let (task, kind) = (Some(message.task.clone()), EventType::MessageAdded);
                let data = json!({ "message": message });
                // Its event stores no second copy: the reader joins the two by session and number.
                self.event(Draft { session: Some(session), task, kind, data }, false);
            }
            Change::Queued(mut record) => {
                record.task.seq = self.head + 1;
                let task = &record.task;
                let ids = (Some(task.session.clone()), Some(task.id.clone()));
                self.put(Key::session_task(&task.session, &task.id), &1);
                self.put(Key::open_task(&task.session, &task.id), &1);
                self.put(Key::task(&task.id), &record);
                let data = json!({ "task": record.task });
                self.event(Draft { session: ids.0, task: ids.1, kind: EventType::TaskQueued, data }, true);
            }
        }
    }

    fn put(&mut self, key: Key, record: &impl Serialize) {
        self.change(Change::put(key, record));
    }

    fn event(&mut self, draft: Draft, whole: bool) {
        self.head += 1;
        let Draft { session, task, kind, data } = draft;
        let mut event = Event { seq: Some(self.head), session, task, at: self.now, kind, data };
        let data = if whole { None } else { Some(std::mem::take(&mut event.data)) };
        self.put(Key::event(self.head), &event);
        if let Some(data) = data {
            event.data = data;
        }
        self.receipt.push(Arc::new(event));
    }
}
