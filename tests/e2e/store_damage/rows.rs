//! The rows of the table: which damage, how often.

/// Which of the store's files a row damages.
#[derive(Clone, Copy, PartialEq)]
pub enum Part {
    Sled,
    Snapshot,
    Conf,
    Journal,
    Chunk,
    Manifest,
}

/// What is done to one of them.
#[derive(Clone, Copy)]
pub enum Act {
    Nothing,
    /// One bit of what is written is another.
    Flip,
    /// So many bytes are missing at the end of what is written.
    Cut(usize),
    /// So many bytes at the end of what is written are NUL.
    Nul(usize),
    Empty,
    Delete,
    /// A file of this name lies beside it, empty.
    Leave(&'static str),
    /// All of its folder is gone.
    DeleteFolder,
}

/// One kind of damage, done so many times, each to a fresh copy.
pub struct Row {
    pub what: &'static str,
    pub times: u64,
    pub damage: &'static [(Part, Act)],
    /// Whether something may be missing, which then is named.
    pub loses: bool,
}

const fn row(what: &'static str, times: u64, damage: &'static [(Part, Act)]) -> Row {
    Row { what, times, damage, loses: false }
}

const fn losing(what: &'static str, times: u64, damage: &'static [(Part, Act)]) -> Row {
    Row { what, times, damage, loses: true }
}

use Act::{Cut, Delete, DeleteFolder, Empty, Flip, Leave, Nothing, Nul};
use Part::{Chunk, Conf, Journal, Manifest, Sled, Snapshot};

const NO_SLED: (Part, Act) = (Sled, DeleteFolder);

pub const BY_SLED: &[Row] = &[
    row("nothing", 1, &[(Sled, Nothing)]),
    row("a bit of sled's `db` flipped", 10, &[(Sled, Flip)]),
    row("sled's `db` one byte short", 1, &[(Sled, Cut(1))]),
    row("sled's `db` 1,000 bytes short", 1, &[(Sled, Cut(1000))]),
    row("the end of sled's `db` NUL", 1, &[(Sled, Nul(4096))]),
    row("a snapshot of sled empty", 1, &[(Snapshot, Empty)]),
    row("`snap.1.generating` left over", 1, &[(Sled, Leave("snap.1.generating"))]),
    row("sled's snapshots deleted", 1, &[(Snapshot, Delete)]),
    row("sled's `conf` deleted", 1, &[(Conf, Delete)]),
    row("a bit of sled's `conf` flipped", 3, &[(Conf, Flip)]),
    row("sled's folder deleted", 1, &[NO_SLED]),
];

pub const BY_JOURNAL: &[Row] = &[
    row("a bit of the journal flipped", 10, &[(Journal, Flip)]),
    losing("the journal's last line torn", 1, &[(Journal, Cut(20))]),
    losing("the end of the journal NUL", 1, &[(Journal, Nul(2000))]),
    row("a journal segment deleted", 1, &[(Journal, Delete)]),
];

pub const BY_CHECKPOINT: &[Row] = &[
    row("a bit of a chunk flipped", 10, &[(Chunk, Flip)]),
    row("a bit of a manifest flipped", 10, &[(Manifest, Flip)]),
    row("the newest manifest empty", 1, &[(Manifest, Empty)]),
    row("the newest manifest deleted", 1, &[(Manifest, Delete)]),
    row("a chunk deleted", 3, &[(Chunk, Delete)]),
];

pub const BY_TWO: &[Row] = &[
    row("sled's folder and the newest manifest deleted", 1, &[NO_SLED, (Manifest, Delete)]),
    losing("sled's folder deleted, a bit of the journal flipped", 5, &[NO_SLED, (Journal, Flip)]),
    losing("sled's folder deleted, a bit of a chunk flipped", 5, &[NO_SLED, (Chunk, Flip)]),
    losing("sled's folder and a chunk deleted", 3, &[NO_SLED, (Chunk, Delete)]),
    losing("sled's folder and a journal segment deleted", 1, &[NO_SLED, (Journal, Delete)]),
    losing("sled's folder deleted, the journal's last line torn", 1, &[NO_SLED, (Journal, Cut(20))]),
];
