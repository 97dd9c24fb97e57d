//! What the twin knows: files and names with their synced halves, and what is to fail.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};

use nano_tests::random::Random;

use super::{Fault, Operation};

pub(super) struct State {
    pub random: Random,
    pub files: Vec<Stored>,
    pub names: BTreeMap<String, usize>,
    pub synced_names: BTreeMap<String, usize>,
    pub namings: Vec<Naming>,
    pub counts: [u64; 2],
    pub faults: Vec<Fault>,
    /// Operations before the power goes; at 0 nothing is done any more.
    pub left: u64,
    pub room: u64,
    pub unreadable: Option<(String, u64)>,
}

#[derive(Default)]
pub(super) struct Stored {
    pub now: Vec<u8>,
    pub synced: Vec<u8>,
    pub edits: Vec<Edit>,
}

#[derive(Clone)]
pub(super) enum Edit {
    Write(usize, Vec<u8>),
    SetLen(usize),
}

/// Names that go, and a name that a file gets, at once.
pub(super) struct Naming {
    pub gone: Vec<String>,
    pub fresh: Option<(String, usize)>,
}

pub(super) enum Outcome {
    Done,
    Fails(ErrorKind),
    Dies,
}

impl State {
    /// Counts an operation and returns what becomes of it; an error means that nothing is done at all.
    pub fn begin(&mut self, of: Operation) -> io::Result<Outcome> {
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

    pub fn change(&mut self, gone: Vec<String>, fresh: Option<(String, usize)>) -> io::Result<()> {
        let outcome = self.begin(Operation::Write)?;
        if !matches!(outcome, Outcome::Fails(_)) {
            let naming = Naming { gone, fresh };
            naming.apply(&mut self.names);
            self.namings.push(naming);
        }
        outcome.answer()
    }

    /// Returns how long `file` may become.
    pub fn most(&self, file: usize) -> usize {
        let others = self.names.values().filter(|id| **id != file).map(|id| self.files[*id].now.len());
        usize::try_from(self.room).unwrap_or(usize::MAX).saturating_sub(others.sum()).max(self.files[file].now.len())
    }

    pub fn id(&self, name: &str) -> io::Result<usize> {
        self.names.get(name).copied().ok_or_else(|| ErrorKind::NotFound.into())
    }
}

impl Outcome {
    pub fn answer(self) -> io::Result<()> {
        match self {
            Self::Done => Ok(()),
            Self::Fails(kind) => Err(kind.into()),
            Self::Dies => Err(io::Error::other("the power goes")),
        }
    }
}

impl Naming {
    pub fn apply(&self, names: &mut BTreeMap<String, usize>) {
        names.retain(|name, _| !self.gone.contains(name));
        names.extend(self.fresh.clone());
    }
}

impl Stored {
    pub fn edit(&mut self, edit: Edit) {
        edit.apply(&mut self.now);
        self.edits.push(edit);
    }

    /// Makes any part of what was not synced durable and forgets that there is more.
    pub fn lose(&mut self, random: &mut Random) {
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
    pub fn apply(&self, to: &mut Vec<u8>) {
        match self {
            Self::SetLen(length) => to.resize(*length, 0),
            Self::Write(at, bytes) => {
                to.resize(to.len().max(at + bytes.len()), 0);
                to[*at..at + bytes.len()].copy_from_slice(bytes);
            }
        }
    }
}
