//! Changes of records as changes of sled: large values are cut, and what was there before leaves nothing behind.

use std::collections::HashMap;

use super::super::journal::line::Entry;

/// A larger value is cut. sled keeps some twenty entries in a node before it splits it, and puts a node above 128 KiB
/// into a file of its own that it never syncs.
const PIECE: usize = 6 * 1024;

/// One batch in the making.
pub(super) struct Batch<'a> {
    db: &'a sled::Db,
    changes: sled::Batch,
    /// What this batch has put, with its pieces: sled does not show it yet.
    put: HashMap<Vec<u8>, usize>,
}

impl<'a> Batch<'a> {
    pub(super) fn new(db: &'a sled::Db) -> Self {
        Self { db, changes: sled::Batch::default(), put: HashMap::new() }
    }

    pub(super) fn entry(&mut self, entry: &Entry) -> sled::Result<()> {
        match entry {
            Entry::Put(key, value) => self.put(key, value),
            Entry::Delete(key) => self.delete(key),
            Entry::DeleteAll(prefix) => self.delete_all(prefix),
        }
    }

    pub(super) fn finish(self) -> sled::Batch {
        self.changes
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> sled::Result<()> {
        self.delete_pieces(key)?;
        self.put.insert(key.to_vec(), value.len().div_ceil(PIECE));
        if value.len() < PIECE {
            self.changes.insert(key, [b"=", value].concat());
            return Ok(());
        }
        let pieces = value.chunks(PIECE);
        self.changes.insert(key, format!("+{}", pieces.len()).into_bytes());
        for (n, piece) in pieces.enumerate() {
            self.changes.insert(piece_key(key, n), piece);
        }
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> sled::Result<()> {
        self.delete_pieces(key)?;
        self.changes.remove(key);
        Ok(())
    }

    fn delete_all(&mut self, prefix: &[u8]) -> sled::Result<()> {
        let stored = self.db.scan_prefix(prefix).keys().map(|key| key.map(|key| key.to_vec()));
        let fresh = self.put.keys().filter(|key| key.starts_with(prefix)).cloned().map(Ok);
        let keys: Vec<Vec<u8>> = stored.chain(fresh).collect::<sled::Result<_>>()?;
        keys.iter().try_for_each(|key| self.delete(key))
    }

    /// Removes the pieces of what lies at `key`, in sled or in this batch.
    fn delete_pieces(&mut self, key: &[u8]) -> sled::Result<()> {
        let old = self.db.get(key)?.and_then(|old| piece_count(&old));
        let count = old.max(self.put.remove(key)).unwrap_or(0);
        for n in 0..count {
            self.changes.remove(piece_key(key, n));
        }
        Ok(())
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
