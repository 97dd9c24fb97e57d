//! A folder in memory that knows what was synced: it can lose the rest, fail at the n-th operation, and be full.

#![expect(clippy::cast_possible_truncation, reason = "tests")]

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nano_tests::random::Random;

use super::disk::{DiskFile, Folder};

/// What can be told to fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Everything that changes a file or a name; of bytes to be written a part may be there afterwards.
    Write,
    /// A sync of a file or of the folder. What it left undone is never done by a later one.
    Sync,
}

/// A failure to come.
#[derive(Debug, Clone, Copy)]
pub struct Fault {
    /// Of what.
    pub of: Operation,
    /// At which of these, counted from 1 on since the twin was made.
    pub at: u64,
    /// Whether all later ones fail as well.
    pub lasting: bool,
    /// As what.
    pub kind: ErrorKind,
}

/// The folder; clones share it.
#[derive(Clone)]
pub struct Twin(Arc<Mutex<State>>);

struct State {
    random: Random,
    files: Vec<Stored>,
    names: BTreeMap<String, usize>,
    synced_names: BTreeMap<String, usize>,
    namings: Vec<Naming>,
    counts: [u64; 2],
    faults: Vec<Fault>,
    /// Operations before the power goes; at 0 nothing is done any more.
    left: u64,
    room: u64,
    unreadable: Option<(String, u64)>,
}

#[derive(Default)]
struct Stored {
    now: Vec<u8>,
    synced: Vec<u8>,
    edits: Vec<Edit>,
}

#[derive(Clone)]
enum Edit {
    Write(usize, Vec<u8>),
    SetLen(usize),
}

/// Names that go, and a name that a file gets, at once.
struct Naming {
    gone: Vec<String>,
    fresh: Option<(String, usize)>,
}

enum Outcome {
    Done,
    Fails(ErrorKind),
    Dies,
}

struct TwinFile(Twin, usize);

impl Twin {
    /// Makes an empty one; `seed` decides what a failure or crash leaves.
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(State {
            random: Random::new(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15)),
            files: Vec::new(),
            names: BTreeMap::new(),
            synced_names: BTreeMap::new(),
            namings: Vec::new(),
            counts: [0; 2],
            faults: Vec::new(),
            left: u64::MAX,
            room: u64::MAX,
            unreadable: None,
        })))
    }

    /// Lets failures come, in the place of those told of before.
    pub fn fail(&self, faults: impl IntoIterator<Item = Fault>) {
        self.state().faults = faults.into_iter().collect();
    }

    /// Limits the bytes of all files together.
    pub fn limit(&self, bytes: u64) {
        self.state().room = bytes;
    }

    /// Makes a file unreadable from `offset` on.
    pub fn make_unreadable(&self, name: &str, offset: u64) {
        self.state().unreadable = Some((name.into(), offset));
    }

    /// Returns how many operations of a kind there were.
    pub fn count(&self, of: Operation) -> u64 {
        self.state().counts[of as usize]
    }

    /// Lets `operations` more be done, the last of them in part; then every one fails, until a crash or restart.
    pub fn stop_after(&self, operations: u64) {
        self.state().left = operations;
    }

    /// Goes on after [`Self::stop_after`] as after a `kill -9`: what was not synced is still there.
    pub fn restart(&self) {
        self.state().left = u64::MAX;
    }

    /// Cuts the power: of what was not synced any part is left. Open files must not be used any more.
    pub fn crash(&self) {
        let state = &mut *self.state();
        let mut files = std::mem::take(&mut state.files);
        for file in &mut files {
            file.lose(&mut state.random);
            file.now = file.synced.clone();
        }
        state.files = files;
        let how = state.random.below(3);
        for naming in std::mem::take(&mut state.namings) {
            if how == 0 || (how == 1 && state.random.below(2) == 0) {
                naming.apply(&mut state.synced_names);
            }
        }
        state.names = state.synced_names.clone();
        state.left = u64::MAX;
    }

    /// Returns what a file holds.
    pub fn get(&self, name: &str) -> Vec<u8> {
        let state = self.state();
        state.names.get(name).map(|id| state.files[*id].now.clone()).unwrap_or_default()
    }

    /// Puts a file there, durably, whatever was there.
    pub fn put(&self, name: &str, bytes: &[u8]) {
        let state = &mut *self.state();
        let id = state.files.len();
        state.files.push(Stored { now: bytes.to_vec(), synced: bytes.to_vec(), edits: Vec::new() });
        state.names.insert(name.into(), id);
        state.synced_names.insert(name.into(), id);
    }

    /// Takes a file away, durably.
    pub fn take(&self, name: &str) {
        let state = &mut *self.state();
        state.names.remove(name);
        state.synced_names.remove(name);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Counts an operation and returns what becomes of it; an error means that nothing is done at all.
    fn begin(&mut self, of: Operation) -> io::Result<Outcome> {
        let gone = || io::Error::other("the power is gone");
        self.left = self.left.checked_sub(1).ok_or_else(gone)?;
        let count = &mut self.counts[of as usize];
        *count += 1;
        // What a failure leaves differs with when it comes.
        self.random.below(1);
        let hit = |fault: &&Fault| fault.of == of && (*count == fault.at || fault.lasting && *count > fault.at);
        let fault = self.faults.iter().find(hit).map(|fault| Outcome::Fails(fault.kind));
        Ok(fault.unwrap_or(if self.left == 0 { Outcome::Dies } else { Outcome::Done }))
    }

    fn change(&mut self, gone: Vec<String>, fresh: Option<(String, usize)>) -> io::Result<()> {
        let outcome = self.begin(Operation::Write)?;
        if !matches!(outcome, Outcome::Fails(_)) {
            let naming = Naming { gone, fresh };
            naming.apply(&mut self.names);
            self.namings.push(naming);
        }
        outcome.answer()
    }

    /// Returns how long `file` may become.
    fn most(&self, file: usize) -> usize {
        let others = self.names.values().filter(|id| **id != file).map(|id| self.files[*id].now.len());
        usize::try_from(self.room).unwrap_or(usize::MAX).saturating_sub(others.sum()).max(self.files[file].now.len())
    }

    fn id(&self, name: &str) -> io::Result<usize> {
        self.names.get(name).copied().ok_or_else(|| ErrorKind::NotFound.into())
    }
}

impl Outcome {
    fn answer(self) -> io::Result<()> {
        match self {
            Self::Done => Ok(()),
            Self::Fails(kind) => Err(kind.into()),
            Self::Dies => Err(io::Error::other("the power goes")),
        }
    }
}

impl Naming {
    fn apply(&self, names: &mut BTreeMap<String, usize>) {
        names.retain(|name, _| !self.gone.contains(name));
        names.extend(self.fresh.clone());
    }
}

impl Stored {
    fn edit(&mut self, edit: Edit) {
        edit.apply(&mut self.now);
        self.edits.push(edit);
    }

    /// Makes any part of what was not synced durable and forgets that there is more.
    fn lose(&mut self, random: &mut Random) {
        let how = random.below(4);
        for edit in std::mem::take(&mut self.edits) {
            match (if how < 2 { how } else { random.below(4) }, &edit) {
                (0, _) => {}
                (2, Edit::Write(at, bytes)) => {
                    let torn = random.below(bytes.len() as u64 + 1) as usize;
                    Edit::Write(*at, bytes[..torn].to_vec()).apply(&mut self.synced);
                }
                (3, Edit::Write(at, bytes)) => {
                    for (from, block) in blocks(*at, bytes) {
                        if random.below(2) == 0 {
                            Edit::Write(from, block.to_vec()).apply(&mut self.synced);
                        }
                    }
                }
                _ => edit.apply(&mut self.synced),
            }
        }
    }
}

/// Returns the parts of a write that lie in the disk's blocks.
fn blocks(at: usize, mut bytes: &[u8]) -> Vec<(usize, &[u8])> {
    let (mut from, mut blocks) = (at, Vec::new());
    while !bytes.is_empty() {
        let (block, rest) = bytes.split_at((512 - from % 512).min(bytes.len()));
        blocks.push((from, block));
        (from, bytes) = (from + block.len(), rest);
    }
    blocks
}

impl Edit {
    fn apply(&self, to: &mut Vec<u8>) {
        match self {
            Self::SetLen(length) => to.resize(*length, 0),
            Self::Write(at, bytes) => {
                to.resize(to.len().max(at + bytes.len()), 0);
                to[*at..at + bytes.len()].copy_from_slice(bytes);
            }
        }
    }
}

impl Folder for Twin {
    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.state().names.keys().cloned().collect())
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(TwinFile(self.clone(), self.state().id(name)?)))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.state();
        let id = state.files.len();
        state.files.push(Stored::default());
        state.change(Vec::new(), Some((name.into(), id)))?;
        Ok(Arc::new(TwinFile(self.clone(), id)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.state();
        let id = state.id(from)?;
        state.change(vec![from.into()], Some((to.into(), id)))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.state();
        state.id(name)?;
        state.change(vec![name.into()], None)
    }

    fn sync(&self) -> io::Result<()> {
        let state = &mut *self.state();
        state.begin(Operation::Sync)?.answer()?;
        for naming in std::mem::take(&mut state.namings) {
            naming.apply(&mut state.synced_names);
        }
        Ok(())
    }
}

impl DiskFile for TwinFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.state().files[self.1].now.len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let state = self.0.state();
        let bad = state.unreadable.as_ref().filter(|(name, _)| state.names.get(name) == Some(&self.1));
        if bad.is_some_and(|(_, from)| offset + buffer.len() as u64 > *from) {
            return Err(io::Error::other("unreadable"));
        }
        let bytes = state.files[self.1].now.get(offset as usize..).unwrap_or_default();
        let count = bytes.len().min(buffer.len());
        buffer[..count].copy_from_slice(&bytes[..count]);
        Ok(count)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let (state, at) = (&mut *self.0.state(), offset as usize);
        let outcome = state.begin(Operation::Write)?;
        let fitting = state.most(self.1).saturating_sub(at).min(bytes.len());
        let whole = matches!(outcome, Outcome::Done);
        let length = if whole { fitting } else { state.random.below(fitting as u64 + 1) as usize };
        state.files[self.1].edit(Edit::Write(at, bytes[..length].to_vec()));
        outcome.answer()?;
        if fitting < bytes.len() { Err(ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let state = &mut *self.0.state();
        let outcome = state.begin(Operation::Write)?;
        if !matches!(outcome, Outcome::Fails(_)) {
            state.files[self.1].edit(Edit::SetLen(length as usize));
        }
        outcome.answer()
    }

    fn sync(&self) -> io::Result<()> {
        let state = &mut *self.0.state();
        let outcome = state.begin(Operation::Sync)?;
        let file = &mut state.files[self.1];
        match outcome {
            Outcome::Done => file.edits.drain(..).for_each(|edit| edit.apply(&mut file.synced)),
            Outcome::Fails(_) => file.lose(&mut state.random),
            Outcome::Dies => {}
        }
        outcome.answer()
    }
}
