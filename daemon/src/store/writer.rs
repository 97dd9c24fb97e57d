//! The writer: one thread takes a commit, drains what waits, makes one batch durable, answers all, then publishes.

use std::collections::HashMap;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use nano_protocol::event::{Event, EventType};
use nano_protocol::time::Timestamp;
use serde_json::json;
use tokio::sync::{mpsc, watch};

use super::record::Draft;
use super::{Change, Commit, Gate, Key, Opened, Publish, Receipt, Request, StoreError};
use crate::clock::Clock;

/// The most commits that become durable together; more only makes the first wait longer.
const GROUP: usize = 256;
/// A larger value is cut. sled keeps some twenty entries in a node before it splits it, and puts a node above 128 KiB
/// into a file of its own that it never syncs.
const PIECE: usize = 6 * 1024;

pub(super) struct Writer {
    pub db: sled::Db,
    pub file: File,
    pub opened: Opened,
    pub publish: Publish,
    pub gate: Gate,
    pub failure: watch::Sender<Option<StoreError>>,
}

/// Starts the thread; it ends when the last handle is gone, or at the first failure.
pub(super) fn start(writer: Writer, requests: mpsc::Receiver<Request>) -> std::io::Result<()> {
    std::thread::Builder::new().name("store-writer".into()).spawn(move || run(&writer, requests)).map(|_| ())
}

fn run(writer: &Writer, mut requests: mpsc::Receiver<Request>) {
    let mut head = writer.opened.head;
    let clock = Clock::default();
    while let Some(first) = requests.blocking_recv() {
        let mut group = vec![first];
        while group.len() < GROUP {
            let Ok(next) = requests.try_recv() else { break };
            group.push(next);
        }
        let mut encoder =
            Encoder { db: &writer.db, batch: sled::Batch::default(), head, now: clock.now(), put: HashMap::new() };
        let (commits, replies): (Vec<_>, Vec<_>) = group.into_iter().map(|one| (one.commit, one.reply)).unzip();
        let receipts: Vec<Receipt> = commits.into_iter().map(|commit| encoder.commit(commit)).collect();
        head = encoder.head;
        let batch = encoder.finish(writer.opened.epoch);
        let gate = writer.gate.write();
        match writer.make_durable(batch) {
            Ok(()) => {
                let events: Vec<_> = receipts.iter().flatten().cloned().collect();
                // Memory first, then the answer: who asked must find what it was told.
                (writer.publish)(&events);
                drop(gate);
                for (reply, receipt) in replies.into_iter().zip(receipts) {
                    // Nobody waits any more: the commit stands all the same.
                    drop(reply.send(Ok(receipt)));
                }
            }
            Err(error) => {
                tracing::error!(%error, "the store failed; nothing more is accepted");
                writer.failure.send_replace(Some(error.clone()));
                for reply in replies {
                    drop(reply.send(Err(error.clone())));
                }
                // After a failed sync a second one may lie: this thread ends, and with it the daemon.
                return;
            }
        }
    }
}

impl Writer {
    fn make_durable(&self, batch: sled::Batch) -> Result<(), StoreError> {
        let flushed = catch_unwind(AssertUnwindSafe(|| self.db.apply_batch(batch).and_then(|()| self.db.flush())));
        match flushed {
            Ok(Ok(_)) => {}
            Ok(Err(why)) => return Err(StoreError::Failed(why.to_string().replace('\n', " "))),
            Err(_) => return Err(StoreError::Failed("sled panicked while writing".into())),
        }
        // sled's flush ends in sync_file_range, which leaves the disk's own cache alone.
        rustix::fs::fdatasync(&self.file).map_err(|why| StoreError::Failed(format!("fdatasync: {why}")))
    }
}

/// Turns commits into one batch, numbering events on the way.
struct Encoder<'a> {
    db: &'a sled::Db,
    batch: sled::Batch,
    head: u64,
    now: Timestamp,
    /// What this batch has put, with its pieces: the store does not show it yet.
    put: HashMap<Vec<u8>, usize>,
}

impl Encoder<'_> {
    fn commit(&mut self, commit: Commit) -> Receipt {
        let mut receipt = Vec::new();
        for change in commit.changes {
            match change {
                Change::Put(key, value) => self.put(&key, &value),
                Change::Delete(key) => self.delete(&key.0),
                Change::DeleteAll(prefix) => self.delete_all(&prefix.0),
                Change::Event(draft) => receipt.push(self.event(draft, true)),
                Change::Message(session, mut message) => {
                    message.seq = self.head + 1;
                    message.at = self.now;
                    let value = serde_json::to_vec(&message).unwrap_or_default();
                    self.put(&Key::message(&session, message.seq), &value);
                    let (task, kind) = (Some(message.task.clone()), EventType::MessageAdded);
                    let data = json!({ "message": message });
                    // Its event stores no second copy: the reader joins the two by session and number.
                    receipt.push(self.event(Draft { session: Some(session), task, kind, data }, false));
                }
                Change::Queued(mut record) => {
                    record.task.seq = self.head + 1;
                    let task = &record.task;
                    let ids = (Some(task.session.clone()), Some(task.id.clone()));
                    self.put(&Key::session_task(&task.session, &task.id), b"1");
                    self.put(&Key::open_task(&task.session, &task.id), b"1");
                    self.put(&Key::task(&task.id), &serde_json::to_vec(&record).unwrap_or_default());
                    let data = json!({ "task": task });
                    receipt.push(
                        self.event(Draft { session: ids.0, task: ids.1, kind: EventType::TaskQueued, data }, true),
                    );
                }
            }
        }
        receipt
    }

    fn event(&mut self, draft: Draft, whole: bool) -> Arc<Event> {
        self.head += 1;
        let Draft { session, task, kind, data } = draft;
        let mut event = Event { seq: Some(self.head), session, task, at: self.now, kind, data };
        let data = if whole { None } else { Some(std::mem::take(&mut event.data)) };
        self.put(&Key::event(self.head), &serde_json::to_vec(&event).unwrap_or_default());
        if let Some(data) = data {
            event.data = data;
        }
        Arc::new(event)
    }

    fn put(&mut self, key: &Key, value: &[u8]) {
        self.delete_pieces(&key.0);
        self.put.insert(key.0.clone(), value.len().div_ceil(PIECE));
        if value.len() < PIECE {
            self.batch.insert(key.0.as_slice(), [b"=", value].concat());
            return;
        }
        let pieces = value.chunks(PIECE);
        self.batch.insert(key.0.as_slice(), format!("+{}", pieces.len()).into_bytes());
        for (n, piece) in pieces.enumerate() {
            self.batch.insert(piece_key(&key.0, n), piece);
        }
    }

    fn delete(&mut self, key: &[u8]) {
        self.delete_pieces(key);
        self.batch.remove(key);
    }

    fn delete_all(&mut self, prefix: &[u8]) {
        let stored = self.db.scan_prefix(prefix).keys().map_while(Result::ok).map(|key| key.to_vec());
        let fresh = self.put.keys().filter(|key| key.starts_with(prefix)).cloned();
        let keys: Vec<Vec<u8>> = stored.chain(fresh).collect();
        for key in keys {
            self.delete(&key);
        }
    }

    /// Removes the pieces of what lies at `key`, in the store or in this batch.
    fn delete_pieces(&mut self, key: &[u8]) {
        let old = self.db.get(key).ok().flatten().and_then(|old| piece_count(&old));
        let count = old.max(self.put.remove(key)).unwrap_or(0);
        for n in 0..count {
            self.batch.remove(piece_key(key, n));
        }
    }

    fn finish(mut self, epoch: u64) -> sled::Batch {
        self.batch.insert(Key::meta("seq").0, &self.head.to_be_bytes());
        // Who wrote last: a writer with an older epoch has lost the folder.
        self.batch.insert(Key::meta("writer").0, &epoch.to_be_bytes());
        self.batch
    }
}

/// Returns how many pieces a head value speaks of, if it is cut.
pub(super) fn piece_count(value: &[u8]) -> Option<usize> {
    std::str::from_utf8(value.strip_prefix(b"+")?).ok()?.parse().ok()
}

/// Returns where a piece lies; `~` sorts behind every kind, so no scan meets it.
pub(super) fn piece_key(key: &[u8], n: usize) -> Vec<u8> {
    [b"~".as_slice(), key, &(n as u64).to_be_bytes()].concat()
}
