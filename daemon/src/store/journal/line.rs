//! One line of the journal: a commit, numbered, whole or not at all.

/// One change of a commit as it is kept: keys in bytes, values as the JSON they are stored as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A record is written.
    Put(Vec<u8>, Vec<u8>),
    /// A record is removed.
    Delete(Vec<u8>),
    /// Every record whose key begins so is removed.
    DeleteAll(Vec<u8>),
}

/// A commit in the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Its number: one more than that of the line before.
    pub number: u64,
    /// The newest line that was known to be on disk when this one was written.
    pub synced: u64,
    /// The newest event number that was given out, with this commit.
    pub head: u64,
    /// What changes, in order.
    pub entries: Vec<Entry>,
}
