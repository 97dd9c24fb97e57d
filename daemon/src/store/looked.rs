//! Journal and checkpoints as they are found, read once and not changed.

use std::path::Path;
use std::sync::Arc;

use super::checkpoint::{CheckpointError, Checkpoints};
use super::disk::Folder;
use super::journal::reader::Damage;
use super::journal::{self, OpenError, Seen};
use super::recall::{failed, tail};
use super::tail::Tail;
use super::{Key, SCHEMA, StoreError};

/// What the truth is made from.
pub struct Looked {
    /// The past.
    pub checkpoints: Checkpoints,
    /// What came after.
    pub journal: Seen,
    /// What the journal behind the newest checkpoint comes to.
    pub tail: Tail,
    /// The newest event number in both.
    pub head: u64,
    /// What of the journal behind the newest checkpoint is lost.
    pub lost: Vec<Damage>,
}

impl Looked {
    /// Looks at the store in `path`, whose parts `part` opens. What a newer version wrote is refused.
    pub fn at(path: &Path, part: Part<'_>) -> Result<Self, StoreError> {
        let (checkpoints, journal) = (checkpoints(path, part)?, journal(path, part)?);
        let (tail, head, lost) = tail(&checkpoints, &journal.reader());
        let schema = tail.says(&Key::meta("schema").0).flatten();
        let found = schema.and_then(|schema| serde_json::from_slice(schema).ok()).unwrap_or(0);
        if found > SCHEMA {
            return Err(StoreError::Newer { path: path.to_owned(), found });
        }
        Ok(Self { checkpoints, journal, tail, head, lost })
    }

    /// Tells whether neither of them says anything.
    pub fn is_empty(&self) -> bool {
        self.journal.found.last == 0 && self.checkpoints.newest().generation == 0
    }

    /// Looks at it where it is whole; else only refuses what is newer. Makes nothing.
    pub fn if_there(path: &Path, part: Part<'_>) -> Result<Option<Self>, StoreError> {
        let there = |name: &str| path.join(name).is_dir();
        if there("checkpoint") && there("journal") {
            return Self::at(path, part).map(Some);
        }
        there("checkpoint").then(|| checkpoints(path, part)).transpose()?;
        there("journal").then(|| journal(path, part)).transpose()?;
        Ok(None)
    }
}

/// Opens a part of a store by its name.
pub type Part<'a> = &'a dyn Fn(&str) -> Result<Arc<dyn Folder>, StoreError>;

/// Reads what checkpoints there are.
pub fn checkpoints(path: &Path, part: Part<'_>) -> Result<Checkpoints, StoreError> {
    Checkpoints::read(part("checkpoint")?).map_err(|error| of_checkpoint(path, &error))
}

fn journal(path: &Path, part: Part<'_>) -> Result<Seen, StoreError> {
    journal::look(part("journal")?).map_err(|error| of_journal(path, &error))
}

/// Says of a checkpoint's error what it means for the store.
pub fn of_checkpoint(path: &Path, error: &CheckpointError) -> StoreError {
    match error {
        CheckpointError::Newer { found, .. } => StoreError::Newer { path: path.to_owned(), found: *found },
        _ => failed(path, &error),
    }
}

/// Says of a journal's error what it means for the store.
pub fn of_journal(path: &Path, error: &OpenError) -> StoreError {
    match error {
        OpenError::Newer { found, .. } => StoreError::Newer { path: path.to_owned(), found: *found },
        OpenError::Disk { .. } => failed(path, &error),
    }
}
