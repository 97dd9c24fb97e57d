//! The disk as the journal and its checkpoints see it: one folder of files, and what a sync promises.
//!
//! A seam, so that tests can have one that fails at the n-th write or sync, or forgets what was never synced.

use std::io;
use std::sync::Arc;

/// A folder and the files in it.
pub trait Folder: Send + Sync {
    /// Returns the names of the files in it, in no order.
    fn list(&self) -> io::Result<Vec<String>>;
    /// Opens a file that is there, for reading and writing.
    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>>;
    /// Makes an empty file for reading and writing, in the place of one of that name.
    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>>;
    /// Gives a file another name, in the place of one that had it.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Makes the names in it durable.
    fn sync(&self) -> io::Result<()>;
}

/// An open file.
pub trait DiskFile: Send + Sync {
    /// Returns its length in bytes.
    fn len(&self) -> io::Result<u64>;
    /// Fills `buffer` from `offset` on and returns how many bytes there were before the end.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes all of `bytes` from `offset` on; after an error any part of them may be there.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Cuts or extends it.
    fn set_len(&self, length: u64) -> io::Result<()>;
    /// Makes what it holds durable, power cuts included (`fdatasync`). After an error a second try may lie.
    fn sync(&self) -> io::Result<()>;
}
