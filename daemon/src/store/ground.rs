//! What the store stands on: its folder, the journal, the checkpoints, and the room they have.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::checkpoint::{CheckpointError, Checkpoints};
use super::journal::line::Line;
use super::journal::{AppendError, Journal};
use super::memory::Memory;
use super::recall::{Sources, lines, tail};
use super::room::Room;
use super::tail::Tail;
use super::{Gate, StoreError};

/// So many sealed segments are worth a checkpoint.
const WORTH: usize = 4;
/// At an orderly end, so many lines are.
const WORTH_AT_END: u64 = 4;

/// Everything but the memory.
pub struct Ground {
    path: PathBuf,
    /// The disk that it lies on.
    pub room: Room,
    journal: Mutex<Journal>,
    checkpoints: Mutex<Checkpoints>,
    /// Held while the memory is brought up again without its gate.
    reviving: Mutex<()>,
    /// Held as long as any thread may write here.
    _lock: File,
}

impl Ground {
    /// Puts the parts together.
    pub fn new(path: &Path, room: Room, journal: Journal, checkpoints: Checkpoints, lock: File) -> Self {
        let (journal, checkpoints) = (Mutex::new(journal), Mutex::new(checkpoints));
        Self { path: path.to_owned(), room, journal, checkpoints, reviving: Mutex::default(), _lock: lock }
    }

    fn journal(&self) -> MutexGuard<'_, Journal> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn checkpoints(&self) -> MutexGuard<'_, Checkpoints> {
        self.checkpoints.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes lines durable.
    pub fn append(&self, lines: &[Line]) -> Result<(), AppendError> {
        self.journal().append(lines)
    }

    /// Brings the memory up from the truth where there is none. Who reads meanwhile is refused and does not wait.
    pub fn revive(&self, gate: &Gate) -> Result<(), StoreError> {
        let _turn = self.reviving.lock().unwrap_or_else(PoisonError::into_inner);
        if gate.read().unwrap_or_else(PoisonError::into_inner).is_none() {
            let memory = self.recall()?;
            *gate.write().unwrap_or_else(PoisonError::into_inner) = Some(memory);
        }
        Ok(())
    }

    /// Brings a memory that failed up again, once; who reads waits for it.
    pub fn replace(&self, gate: &mut Option<Memory>, why: &StoreError) -> Result<(), StoreError> {
        tracing::error!(%why, "the memory failed; it is opened again");
        drop(gate.take());
        let memory = self.recall().map_err(|error| match error {
            // It is tried again: the journal has all of it.
            StoreError::NoRoom(why) => StoreError::NoRoom(why),
            error => StoreError::Failed(format!("{why}; and then: {error}")),
        })?;
        *gate = Some(memory);
        Ok(())
    }

    /// Brings the memory up again if it has failed; who has seen it fail may not be the first.
    pub fn mend(&self, gate: &Gate) -> Result<(), StoreError> {
        let mut gate = gate.write().unwrap_or_else(PoisonError::into_inner);
        // It may still answer one question and not the next; at a flush it says that it has failed.
        match gate.as_ref().map(Memory::make_durable) {
            Some(Err(why)) => self.replace(&mut gate, &why),
            _ => Ok(()),
        }
    }

    fn recall(&self) -> Result<Memory, StoreError> {
        self.room.release();
        let (checkpoints, reader) = (self.checkpoints(), self.journal().reader());
        let (tail, _, lost) = tail(&checkpoints, &reader);
        let sources =
            Sources { path: &self.path, room: &self.room, checkpoints: &checkpoints, reader, forgives: false };
        let recalled = sources.recall(&tail, &lost)?;
        if recalled.is_ahead || !(lost.is_empty() && recalled.compared.missing.is_empty()) {
            // To put that right is a start's work, and so is to tell of it.
            return Err(StoreError::Failed("the journal or its checkpoint is damaged too".into()));
        }
        Ok(recalled.memory)
    }

    /// Makes the memory durable; where it cannot be, it is brought up again.
    ///
    /// On a disk that is nearly full it is left alone: the journal has it all, and sled does not survive a failed write.
    pub fn flush(&self, gate: &Gate) -> Result<(), StoreError> {
        self.revive(gate)?;
        if self.is_nearly_full() {
            return Ok(());
        }
        let memory = gate.read().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(Err(_)) = memory.as_ref().map(Memory::make_durable) else { return Ok(()) };
        // Its lock is held as long as this handle lives.
        drop(memory);
        self.mend(gate)
    }

    fn is_nearly_full(&self) -> bool {
        self.room.free() < self.room.sizes.watermark / 2
    }

    /// Makes a checkpoint when the journal has grown, and removes segments that nothing needs any more. At the `end`
    /// less is worth one: it makes the next start short.
    pub fn keep_short(&self, end: bool) -> Result<(), CheckpointError> {
        if self.is_nearly_full() {
            return Ok(());
        }
        // One lock after the other: who brings the memory up holds them both, in another order.
        let through = self.checkpoints().newest().through;
        let mut journal = self.journal();
        if end && journal.last() >= through + WORTH_AT_END {
            journal.seal();
        }
        drop(journal);
        self.checkpoint(if end { 1 } else { WORTH })
    }

    fn checkpoint(&self, worth: usize) -> Result<(), CheckpointError> {
        let mut checkpoints = self.checkpoints();
        let done = checkpoints.newest().through;
        let (sealed, reader) = {
            let journal = self.journal();
            (journal.sealed().unwrap_or_default(), journal.reader())
        };
        let news = || sealed.iter().filter(|segment| segment.last > done);
        let Some(through) = news().map(|segment| segment.last).max().filter(|_| news().count() >= worth) else {
            return Ok(());
        };
        let (mut tail, mut head) = (Tail::default(), checkpoints.newest().head);
        for line in reader.lines(done, through) {
            let Ok(line) = line else {
                tracing::error!("a sealed line of the journal cannot be read; the next start names it");
                return Ok(());
            };
            head = head.max(line.head);
            line.entries.into_iter().for_each(|entry| tail.take(entry));
        }
        let needed_behind = checkpoints.next(&tail, &mut lines(&reader), through, head)?;
        if let Err(error) = self.journal().drop_through(needed_behind) {
            tracing::warn!(%error, "old segments of the journal stay");
        }
        tracing::debug!(through, "a checkpoint was made");
        Ok(())
    }
}
