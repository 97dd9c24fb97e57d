//! The store: everything the daemon must not forget.
//!
//! It promises that a [`Commit`] is there whole or not at all, that its answer leaves only after the disk has it, and
//! that events are numbered and published in the order they became durable (`seen_implies_durable`).
//!
//! The promise is the journal, the checkpoints are its past in short, and sled is the memory that answers. One writer
//! thread appends to the journal, then lets the memory see it, then publishes and answers. What decides at the start is
//! journal and checkpoint alone: the memory is compared with them and put right, or begun anew.

mod aside;
mod checkpoint;
mod disk;
mod dump;
mod encode;
mod ground;
mod journal;
mod keeper;
mod keys;
mod looked;
mod memory;
mod merge;
pub mod offline;
mod open;
mod reader;
mod recall;
pub mod record;
mod report;
mod room;
mod start;
mod tail;
mod truth;
mod upgrade;
mod verify;
mod waiting;
mod writer;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod twin;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, RwLock};

use nano_protocol::event::Event;
use nano_protocol::id::SessionId;
use nano_protocol::message::Message;
use serde::Serialize;
use tokio::sync::{mpsc, oneshot, watch};

use ground::Ground;
pub use keys::Key;
use memory::Memory;
pub use open::{StateLock, lock};
use record::{ComputerRecord, Draft, SessionRecord, SteeringRecord, TaskRecord};

/// The schema this version writes; a newer one is refused untouched.
pub const SCHEMA: u32 = 2;

/// Why the store does not serve.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// Another daemon holds the folder.
    #[error("{} is held by another nanod, pid {pid}", path.display())]
    Held {
        /// The folder.
        path: PathBuf,
        /// The holder, as it wrote itself down.
        pid: String,
    },
    /// A newer version wrote it.
    #[error("{} was written by a newer nanod (schema {found}, this one knows {SCHEMA}); it was left untouched", path.display())]
    Newer {
        /// The folder.
        path: PathBuf,
        /// Its schema.
        found: u32,
    },
    /// It cannot be opened.
    #[error("the store in {} cannot be opened: {why}; it was left as it is", path.display())]
    Open {
        /// The folder.
        path: PathBuf,
        /// What sled or the system says.
        why: String,
    },
    /// The disk is nearly full: nothing new is taken until there is room again.
    #[error("nothing new is taken: {0}")]
    NoRoom(String),
    /// A write or sync failed: nothing more is accepted.
    #[error("the store takes nothing more: {0}")]
    Failed(String),
    /// A record cannot be read.
    #[error("a stored record is damaged: {0}")]
    Damaged(String),
}

/// One change of a commit.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// Writes a record.
    Put(Key, Vec<u8>),
    /// Removes a record.
    Delete(Key),
    /// Removes every record below a key.
    DeleteAll(Key),
    /// Numbers and records an event.
    Event(Draft),
    /// Numbers a message by its `message.added` event and records both.
    Message(SessionId, Box<Message>),
    /// Numbers a task by its `task.queued` event and records both.
    Queued(Box<TaskRecord>),
}

impl Change {
    /// Writes any record as JSON.
    pub fn put(key: Key, record: &impl Serialize) -> Self {
        // The records are structs with text keys: they always encode.
        Self::Put(key, serde_json::to_vec(record).unwrap_or_default())
    }
    /// Writes a session.
    pub fn session(record: &SessionRecord) -> Self {
        Self::put(Key::session(&record.session.id), record)
    }
    /// Writes a computer.
    pub fn computer(record: &ComputerRecord) -> Self {
        Self::put(Key::computer(&record.session, &record.key), record)
    }
    /// Writes a task that has its number.
    pub fn task(record: &TaskRecord) -> Self {
        Self::put(Key::task(&record.task.id), record)
    }
    /// Writes a waiting steering message.
    pub fn steering(session: &SessionId, record: &SteeringRecord) -> Self {
        Self::put(Key::steering(session, record.place), record)
    }
}

/// Changes that are made together or not at all.
#[derive(Debug, Clone, Default)]
pub struct Commit {
    /// Whether somebody asked for it who can be told that there is no room; what is owed waits for room.
    asked: bool,
    changes: Vec<Change>,
}

impl Commit {
    /// Changes that somebody asks for: new work. Refused with [`StoreError::NoRoom`] while the disk is nearly full.
    pub fn asked(changes: Vec<Change>) -> Self {
        Self { asked: true, changes }
    }
    /// Changes that must come about, such as what work that was accepted comes to. On a full disk they wait.
    pub fn owed(changes: Vec<Change>) -> Self {
        Self { asked: false, changes }
    }
}

/// What a commit came to: its events, numbered, in order.
pub type Receipt = Vec<Arc<Event>>;

/// Told of events after they are durable, in order of their numbers; must not block.
pub type Publish = Box<dyn Fn(&[Arc<Event>]) + Send>;

enum Request {
    Commit(Commit, Answer),
    /// Make an orderly end.
    Close(oneshot::Sender<()>),
}

type Answer = oneshot::Sender<Result<Receipt, StoreError>>;

/// A handle to the store; clones share it, and with the last one it ends.
#[derive(Clone)]
pub struct Store {
    inbox: mpsc::Sender<Request>,
    path: Arc<Path>,
    opened: Opened,
    memory: Gate,
    ground: Arc<Ground>,
    /// Set while what is owed waits for room.
    waiting: Arc<AtomicBool>,
    failure: watch::Receiver<Option<StoreError>>,
}

/// Held for writing while lines are applied and published: a reader sees a line with all that it tells, or not at all.
type Gate = Arc<RwLock<Option<Memory>>>;

/// What was found at opening.
#[derive(Debug, Clone, Copy)]
pub struct Opened {
    /// Counts the openings of this store.
    pub epoch: u64,
    /// The newest event number at opening.
    pub head: u64,
}

impl Store {
    /// Makes the changes of `commit` durable, all or nothing. Dropping the future does not take the commit back.
    pub async fn commit(&self, commit: Commit) -> Result<Receipt, StoreError> {
        let (reply, answer) = oneshot::channel();
        let ended = || StoreError::Failed("its writer has ended".into());
        let gone = || self.failure.borrow().clone().unwrap_or_else(ended);
        self.inbox.send(Request::Commit(commit, reply)).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }

    /// Tells whether new work is taken: not while the disk is nearly full.
    pub fn has_room(&self) -> Result<(), StoreError> {
        let waits = || self.ground.room.told("is full: what has happened waits to be recorded");
        let why = self.waiting.load(Ordering::Relaxed).then(waits).or_else(|| self.ground.room.shortage());
        why.map_or(Ok(()), |why| Err(StoreError::NoRoom(why)))
    }

    /// Makes an orderly end: what was taken is recorded, the memory is flushed. Nothing is taken after that.
    pub async fn close(&self) {
        let (done, ended) = oneshot::channel();
        // Ended already is ended.
        drop(self.inbox.send(Request::Close(done)).await);
        drop(ended.await);
    }

    /// Returns why nothing is taken any more, once that is so. An orderly end is no failure.
    pub async fn failed(&self) -> StoreError {
        let mut failure = self.failure.clone();
        match failure.wait_for(Option::is_some).await.ok().and_then(|error| error.clone()) {
            Some(error) => error,
            None => std::future::pending().await,
        }
    }

    /// Returns why nothing is taken any more, if that is so by now.
    pub fn failure(&self) -> Option<StoreError> {
        self.failure.borrow().clone()
    }

    /// Returns what was found at opening.
    pub fn opened(&self) -> Opened {
        self.opened
    }

    /// Returns the store's folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the size of the store on disk in bytes.
    pub fn bytes(&self) -> u64 {
        size_of(&self.path)
    }
}

/// Returns how many bytes the files in a folder have; one that goes meanwhile has none.
fn size_of(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let size = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(data) if data.is_dir() => size_of(&entry.path()),
        Ok(data) => data.len(),
        Err(_) => 0,
    };
    entries.map(size).sum()
}
