//! The disk as the journal and its checkpoints see it: one folder of files, and what a sync promises.
//!
//! A seam, so that tests can have one that fails at the n-th write or sync, or forgets what was never synced.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
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

/// A folder of the file system.
pub struct RealFolder {
    path: PathBuf,
    /// Itself, to sync it.
    folder: File,
}

impl RealFolder {
    /// Opens the folder at `path`; makes it if it is missing, so that a power cut does not take it away again.
    pub fn open(path: &Path) -> io::Result<Self> {
        if !path.is_dir() {
            DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        }
        // Also where it was there: who made it may have died before this.
        File::open(path.join(".."))?.sync_all()?;
        Ok(Self { path: path.to_owned(), folder: File::open(path)? })
    }

    fn file(&self, name: &str, create: bool) -> io::Result<Arc<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(create).truncate(create).mode(0o600);
        Ok(Arc::new(RealFile(options.open(self.path.join(name))?)))
    }
}

impl Folder for RealFolder {
    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                // A name that is no text is not one of ours.
                names.extend(entry.file_name().into_string());
            }
        }
        Ok(names)
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.file(name, false)
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.file(name, true)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    fn sync(&self) -> io::Result<()> {
        self.folder.sync_all()
    }
}

struct RealFile(File);

impl DiskFile for RealFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut filled = 0;
        while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match self.0.read_at(rest, offset + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                Err(why) => return Err(why),
            }
        }
        Ok(filled)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.0.set_len(length)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::{Folder, RealFolder, fs, io};

    #[test]
    fn a_folder_of_the_file_system_does_what_it_says() {
        let temporary = tempfile::tempdir().unwrap();
        let path = temporary.path().join("a/b");
        let folder = RealFolder::open(&path).unwrap();
        let file = folder.create("one").unwrap();
        file.write_at(b"hello", 3).unwrap();
        file.set_len(6).unwrap();
        file.sync().unwrap();
        let mut buffer = [9; 8];
        assert_eq!((file.len().unwrap(), file.read_at(&mut buffer, 2).unwrap()), (6, 4));
        assert_eq!(&buffer, b"\0hel\x09\x09\x09\x09");
        assert_eq!(file.read_at(&mut buffer, 9).unwrap(), 0);
        folder.rename("one", "two").unwrap();
        folder.sync().unwrap();
        fs::create_dir(path.join("folder")).unwrap();
        let again = RealFolder::open(&path).unwrap();
        assert_eq!(again.list().unwrap(), ["two"]);
        assert_eq!(again.open("one").err().unwrap().kind(), io::ErrorKind::NotFound);
        assert_eq!(again.open("two").unwrap().len().unwrap(), 6);
        let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(&path.join("two"))), (0o700, 0o600));
        assert_eq!(again.create("two").unwrap().len().unwrap(), 0);
        again.remove("two").unwrap();
        assert_eq!(again.list().unwrap(), Vec::<String>::new());
    }
}
