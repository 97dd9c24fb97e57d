//! The memory: sled, which answers every question and promises nothing.
//!
//! It holds what the journal says up to the line named at `@/applied`, and can be dropped, begun anew and filled again
//! at any time. `sled` is named in this folder and nowhere else. Keys that begin with `@` are its own; `~` holds the
//! pieces of large values.

mod batch;
mod open;

use std::borrow::Cow;
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, fallocate, statvfs};

use super::StoreError;
use super::journal::line::Entry;
use crate::crash;
pub use open::open;

/// Where the number of the newest line that was applied lies.
const APPLIED: &[u8] = b"@/applied";

/// How much room is kept behind the end of sled's file, in bytes; on a disk with little room less.
const RESERVE: u64 = 8 * 1024 * 1024;

/// An open sled.
#[derive(Clone)]
pub struct Memory {
    db: sled::Db,
    path: PathBuf,
}

/// A key and the head of its value.
pub struct Stored {
    key: sled::IVec,
    head: sled::IVec,
}

impl Stored {
    /// Returns the key.
    pub fn key(&self) -> &[u8] {
        &self.key
    }
}

impl Memory {
    /// Returns the value at `key`, if there is one.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let Some(head) = self.raw(key)? else { return Ok(None) };
        self.join(key, &head).map(|value| Some(value.into_owned()))
    }

    /// Returns what lies between two keys, in order.
    pub fn range(
        &self,
        from: Bound<Vec<u8>>,
        to: Bound<Vec<u8>>,
    ) -> impl DoubleEndedIterator<Item = Result<Stored, StoreError>> + use<> {
        // sled panics on a range that begins behind its end.
        Entries(Some(self.db.range::<Vec<u8>, _>((from, to))))
    }

    fn raw(&self, key: &[u8]) -> Result<Option<sled::IVec>, StoreError> {
        settled(catch_unwind(AssertUnwindSafe(|| self.db.get(key))))
    }

    /// Returns the value of what was found, joined where it was cut.
    pub fn value<'a>(&self, stored: &'a Stored) -> Result<Cow<'a, [u8]>, StoreError> {
        self.join(&stored.key, &stored.head)
    }

    fn join<'a>(&self, key: &[u8], head: &'a [u8]) -> Result<Cow<'a, [u8]>, StoreError> {
        if let Some(value) = head.strip_prefix(b"=") {
            return Ok(Cow::Borrowed(value));
        }
        let count = batch::piece_count(head).ok_or_else(|| damaged(key, "its head is unreadable"))?;
        let mut joined = Vec::new();
        for n in 0..count {
            let piece = self.raw(&batch::piece_key(key, n))?;
            joined.extend_from_slice(&piece.ok_or_else(|| damaged(key, "a piece is missing"))?);
        }
        Ok(Cow::Owned(joined))
    }

    /// Returns the number of the newest line that was applied; nothing where that cannot be told.
    pub fn applied(&self) -> Result<Option<u64>, StoreError> {
        self.number(APPLIED)
    }

    /// Returns a bare number, as the first layout and the memory itself keep them.
    pub fn number(&self, key: &[u8]) -> Result<Option<u64>, StoreError> {
        let found = self.raw(key)?;
        Ok(found.and_then(|bytes| bytes.as_ref().try_into().ok()).map(u64::from_be_bytes))
    }

    /// Returns the records in a range of keys, in order; nothing for a value that cannot be read.
    pub fn records(
        &self,
        from: Vec<u8>,
        to: Option<Vec<u8>>,
    ) -> impl Iterator<Item = Result<(Vec<u8>, Option<Vec<u8>>), StoreError>> {
        let to = to.map_or(Bound::Unbounded, Bound::Excluded);
        let entries = self.range(Bound::Included(from), to);
        let records = entries.filter(|entry| entry.as_ref().map_or(true, |entry| is_record(entry.key())));
        records.map(|entry| {
            let entry = entry?;
            let value = match self.value(&entry) {
                Ok(value) => Some(value.into_owned()),
                Err(StoreError::Damaged(_)) => None,
                Err(error) => return Err(error),
            };
            Ok((entry.key().to_vec(), value))
        })
    }

    /// Makes changes as one, and notes that lines up to `through` are applied with them.
    pub fn apply<'a>(
        &self,
        entries: impl IntoIterator<Item = &'a Entry>,
        through: Option<u64>,
    ) -> Result<(), StoreError> {
        crash::point("memory.apply.before");
        let written = catch_unwind(AssertUnwindSafe(|| {
            let mut batch = batch::Batch::new(&self.db);
            for entry in entries {
                batch.entry(entry)?;
            }
            let mut batch = batch.finish();
            if let Some(through) = through {
                batch.insert(APPLIED, &through.to_be_bytes());
            }
            self.db.apply_batch(batch)
        }));
        crash::point("memory.apply.after");
        settled(written)
    }

    /// Writes bytes as they are, as the first layout did.
    #[cfg(test)]
    pub fn apply_raw(&self, key: &[u8], bytes: &[u8]) -> Result<(), StoreError> {
        self.db.insert(key, bytes).map(|_| ()).map_err(|why| failed(&why))
    }

    /// Makes all of it durable: sled's own flush leaves the disk's cache alone.
    pub fn make_durable(&self) -> Result<(), StoreError> {
        settled(catch_unwind(AssertUnwindSafe(|| self.db.flush().map(|_| ()))))?;
        let file = std::fs::OpenOptions::new().write(true).open(self.path.join("db"));
        let synced = file.and_then(|file| file.sync_data().map(|()| self.reserve(&file)));
        synced.map_err(|why| StoreError::Failed(format!("the memory's file: {why}")))
    }

    /// Takes some room behind the end of the file, so that what is applied on a full disk still has a place: sled does not
    /// survive a write that fails. A precaution: that it fails is no harm.
    fn reserve(&self, file: &std::fs::File) {
        let free = statvfs(&self.path).map_or(0, |disk| disk.f_bavail.saturating_mul(disk.f_frsize));
        let (length, room) = (file.metadata().map_or(0, |file| file.len()), RESERVE.min(free / 8));
        if room > 0
            && let Err(error) = fallocate(file, FallocateFlags::KEEP_SIZE, length, room)
        {
            tracing::debug!(%error, "no room is reserved for the memory");
        }
    }
}

/// What sled finds at one step through a range.
type Found = Option<sled::Result<(sled::IVec, sled::IVec)>>;

/// What lies in a range; a panic is its last entry.
struct Entries(Option<sled::Iter>);

impl Entries {
    fn take(&mut self, step: fn(&mut sled::Iter) -> Found) -> Option<Result<Stored, StoreError>> {
        let entries = self.0.as_mut()?;
        let found = catch_unwind(AssertUnwindSafe(|| step(entries).transpose()));
        if found.is_err() {
            self.0 = None;
        }
        settled(found).map(|found| found.map(|(key, head)| Stored { key, head })).transpose()
    }
}

impl Iterator for Entries {
    type Item = Result<Stored, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.take(Iterator::next)
    }
}

impl DoubleEndedIterator for Entries {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.take(DoubleEndedIterator::next_back)
    }
}

/// Tells of a panic as of any other error: sled panics on some damage that it meets late.
fn settled<T>(outcome: std::thread::Result<sled::Result<T>>) -> Result<T, StoreError> {
    outcome.unwrap_or_else(|_| Err(sled::Error::ReportableBug("sled panicked".into()))).map_err(|why| failed(&why))
}

/// Returns whether a key is a record's, and not the memory's own.
pub fn is_record(key: &[u8]) -> bool {
    !matches!(key.first(), None | Some(b'@' | b'~'))
}

/// Returns the folder's parts that belong to sled.
pub fn is_sled_file(name: &str) -> bool {
    matches!(name, "db" | "conf" | "blobs") || name.starts_with("snap.")
}

fn damaged(key: &[u8], why: &str) -> StoreError {
    StoreError::Damaged(format!("{}: {why}", String::from_utf8_lossy(key).escape_debug()))
}

/// An error of sled itself concerns the store as a whole.
fn failed(why: &sled::Error) -> StoreError {
    StoreError::Failed(why.to_string().replace('\n', " "))
}

/// Returns what lies in the folder `path`.
pub(super) fn folder(path: &Path) -> PathBuf {
    path.join("memory")
}
