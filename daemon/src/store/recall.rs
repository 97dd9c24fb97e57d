//! Bringing the memory up: opened or begun anew, filled from the journal, compared with the truth.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use super::checkpoint::Checkpoints;
use super::journal::line::Line;
use super::journal::reader::{Damage, Reader};
use super::memory::{self, Memory};
use super::room::Room;
use super::tail::Tail;
use super::truth::Truth;
use super::verify::{Believe, Compared, verify};
use super::{Key, StoreError, aside};

/// Stands for the newest line in a memory that knows more than the journal.
const AHEAD: u64 = u64::MAX / 2;
/// How many lines of the journal are applied at once.
const AT_ONCE: usize = 256;

/// What the memory is made from.
pub struct Sources<'a> {
    /// The store's folder.
    pub path: &'a Path,
    /// Its disk.
    pub room: &'a Room,
    /// The past.
    pub checkpoints: &'a Checkpoints,
    /// What came after.
    pub reader: Reader,
    /// Whether to go on where neither the checkpoints nor the memory know how the journal began.
    pub forgives: bool,
}

/// The memory as it was brought up.
pub struct Recalled {
    /// It; the newest line is applied.
    pub memory: Memory,
    /// What was found on the way.
    pub compared: Compared,
    /// Why it was begun anew, and where the old one lies.
    pub anew: Option<(String, String)>,
    /// Whether it knows lines that the journal has lost.
    pub is_ahead: bool,
    /// Whether it alone knows how the journal began.
    pub is_alone: bool,
    /// Whether there was nothing in it.
    pub was_empty: bool,
}

impl Recalled {
    /// Returns the newest event that only the memory may know.
    pub fn newest_event(&self) -> Result<u64, StoreError> {
        if !self.is_ahead {
            return Ok(0);
        }
        let prefix = Key::all(b'e').0;
        let inside =
            (std::ops::Bound::Included(prefix.clone()), std::ops::Bound::Excluded([&prefix[..], &[0xff]].concat()));
        let last = self.memory.range(inside.0, inside.1).next_back().transpose()?;
        let number = last.and_then(|last| last.key().get(2..)?.try_into().ok()).map(u64::from_be_bytes);
        Ok(number.unwrap_or(0))
    }
}

/// What the journal behind the newest checkpoint comes to, and what of it is lost.
pub fn tail(checkpoints: &Checkpoints, reader: &Reader) -> (Tail, u64, Vec<Damage>) {
    let (mut tail, mut head, mut lost) = (Tail::default(), checkpoints.newest().head, Vec::new());
    for line in reader.lines(checkpoints.newest().through, u64::MAX) {
        match line {
            Ok(line) => {
                head = head.max(line.head);
                line.entries.into_iter().for_each(|entry| tail.take(entry));
            }
            Err(damage) => lost.push(damage),
        }
    }
    (tail, head, lost)
}

/// Returns the lines that can stand in for a damaged checkpoint.
pub fn lines(reader: &Reader) -> impl FnMut(u64, &mut dyn FnMut(Line)) {
    |after, take| reader.lines(after, u64::MAX).filter_map(Result::ok).for_each(take)
}

impl Sources<'_> {
    /// Opens the memory and makes it say what the truth says. One that fails on the way is begun anew, once.
    pub fn recall(&self, tail: &Tail, lost: &[Damage]) -> Result<Recalled, StoreError> {
        let failed = |why: String| failed(self.path, &why);
        let no_base = self.checkpoints.newest().generation == 0 && lost.first().is_some_and(|lost| lost.first == 1);
        let why = match self.open()? {
            // sled panics on some damage only when it is read.
            Ok(memory) => match catch_unwind(AssertUnwindSafe(|| self.fill(memory, tail, lost, no_base))) {
                Ok(Ok(recalled)) => return Ok(recalled),
                // That is no fault of its own: nothing is moved, and it serves once there is room.
                Ok(Err(error)) if is_full(&error.to_string()) => {
                    return Err(StoreError::NoRoom(self.room.told("is full")));
                }
                Ok(Err(error)) => error.to_string(),
                Err(_) => "sled found it damaged and panicked".into(),
            },
            Err(why) => why,
        };
        if no_base && !self.forgives {
            return Err(failed(format!("no checkpoint can be read, the journal has lost how it began, and: {why}")));
        }
        tracing::warn!(why, "the memory is begun anew from the journal and its checkpoints");
        let old = aside::put(self.path, "memory").map_err(|why| failed(why.to_string()))?;
        let memory = self.open()?.map_err(failed)?;
        let anew = Some((why, old.display().to_string()));
        let recalled = self.fill(memory, tail, lost, false).map_err(|error| match error {
            error if is_full(&error.to_string()) => StoreError::NoRoom(self.room.told("is full")),
            error => error,
        });
        Ok(Recalled { anew, ..recalled? })
    }

    /// Opens sled; a full disk is no fault of its own.
    fn open(&self) -> Result<Result<Memory, String>, StoreError> {
        loop {
            match memory::open(&memory::folder(self.path), &aside::folder(self.path)) {
                Err(why) if is_full(&why) && self.room.release() => {}
                Err(why) if is_full(&why) => return Err(StoreError::NoRoom(self.room.told("is full"))),
                other => return Ok(other),
            }
        }
    }

    fn fill(&self, memory: Memory, tail: &Tail, lost: &[Damage], no_base: bool) -> Result<Recalled, StoreError> {
        let (applied, last) = (memory.applied()?, self.reader.last().max(self.checkpoints.newest().through));
        let is_ahead = applied.is_some_and(|applied| applied > last || lost.iter().any(|lost| lost.first <= applied));
        if let Some(applied) = applied {
            self.replay(&memory, applied)?;
        } else if no_base {
            return Err(StoreError::Damaged("the memory is empty".into()));
        }
        let is_alone = no_base && is_ahead;
        let compared = if is_alone {
            Compared::default()
        } else {
            let mut lines = lines(&self.reader);
            let mut truth = Truth::new(self.checkpoints, tail, &mut lines);
            verify(&memory, &mut truth, if is_ahead { Believe::Memory } else { Believe::Truth })?
        };
        // What only it knows is not in the journal yet: until then it must not pass for one that merely follows.
        memory.apply(&[], Some(if is_ahead { AHEAD } else { last }))?;
        if is_ahead {
            memory.make_durable()?;
        }
        Ok(Recalled { memory, compared, anew: None, is_ahead, is_alone, was_empty: applied.is_none() })
    }

    fn replay(&self, memory: &Memory, applied: u64) -> Result<(), StoreError> {
        let mut lines = self.reader.lines(applied, u64::MAX).filter_map(Result::ok).peekable();
        while lines.peek().is_some() {
            let group: Vec<_> = lines.by_ref().take(AT_ONCE).collect();
            memory.apply(group.iter().flat_map(|line| &line.entries), group.last().map(|line| line.number))?;
        }
        Ok(())
    }
}

/// Tells of what went wrong at the start; a full disk is not the store's fault, and may be another's soon.
pub fn failed(path: &Path, why: &impl ToString) -> StoreError {
    let why = why.to_string();
    if is_full(&why) {
        return StoreError::NoRoom(format!("the disk of {} is full: {why}", path.display()));
    }
    StoreError::Open { path: path.to_owned(), why }
}

/// Tells whether an error speaks of a full disk, or of a quota that is used up.
pub fn is_full(why: &str) -> bool {
    let signs = ["No space left", "StorageFull", "os error 28", "Disk quota", "QuotaExceeded", "os error 122"];
    signs.iter().any(|sign| why.contains(sign))
}
