//! The disk as the journal and its checkpoints see it: one folder of files, and what a sync promises.
//!
//! A seam, so that tests can have one that fails at the n-th write or sync, or forgets what was never synced.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::OFlags;

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

/// A folder of the file system. Only regular files are opened: a pipe would keep the daemon waiting.
pub struct RealFolder {
    path: PathBuf,
    /// Itself, to sync it; none where it is only read.
    folder: Option<File>,
}

impl RealFolder {
    /// Opens the folder at `path`; makes it if it is missing, so that a power cut does not take it away again.
    pub fn open(path: &Path) -> io::Result<Self> {
        make(path)?;
        // Also where it was there: who made it may have died before this.
        File::open(path.join(".."))?.sync_all()?;
        Ok(Self { path: path.to_owned(), folder: Some(File::open(path)?) })
    }

    /// Looks at the folder at `path`, which may be missing and whose disk may take nothing; nothing is written.
    pub fn to_read(path: &Path) -> io::Result<Self> {
        if path.exists() && !path.is_dir() {
            return Err(not(path, "folder"));
        }
        Ok(Self { path: path.to_owned(), folder: None })
    }

    fn file(&self, name: &str, create: bool) -> io::Result<Arc<dyn DiskFile>> {
        let path = self.path.join(name);
        let mut options = OpenOptions::new();
        options.read(true).write(self.folder.is_some()).create(create).truncate(create).mode(0o600);
        let file = options.custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(&path)?;
        if file.metadata()?.is_file() { Ok(Arc::new(RealFile(file))) } else { Err(not(&path, "regular file")) }
    }
}

/// Makes a folder where it is missing, and says so where something else has its name.
pub fn make(path: &Path) -> io::Result<()> {
    match DirBuilder::new().recursive(true).mode(0o700).create(path) {
        // Something on the way to it may be the file.
        Err(why) if !path.is_dir() => match path.ancestors().find(|above| above.exists()) {
            Some(above) if !above.is_dir() => Err(not(above, "folder")),
            _ => Err(why),
        },
        made => made,
    }
}

/// Copies what a folder holds, as far as it is wanted by its name, with all that lies in folders below it.
pub fn copy(from: &Path, to: &Path, wants: &dyn Fn(&str) -> bool) -> io::Result<()> {
    make(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (name, path) = (entry.file_name(), entry.path());
        match fs::metadata(&path)? {
            _ if !name.to_str().is_some_and(wants) => {}
            kind if kind.is_dir() => copy(&path, &to.join(name), &|_| true)?,
            kind if kind.is_file() => fs::copy(&path, to.join(name)).map(drop)?,
            _ => return Err(not(&path, "regular file")),
        }
    }
    Ok(())
}

/// Refuses what in a folder is neither a file nor a folder: who opens a pipe waits for ever.
pub fn check_kinds(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        match fs::metadata(&path)? {
            kind if kind.is_dir() => check_kinds(&path)?,
            kind if kind.is_file() => {}
            _ => return Err(not(&path, "regular file")),
        }
    }
    Ok(())
}

fn not(path: &Path, what: &str) -> io::Error {
    io::Error::other(format!("{} is no {what}", path.display()))
}

impl Folder for RealFolder {
    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        let entries = match fs::read_dir(&self.path) {
            Err(why) if why.kind() == io::ErrorKind::NotFound && self.folder.is_none() => return Ok(names),
            entries => entries?,
        };
        for entry in entries {
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
        self.folder.as_ref().map_or(Ok(()), File::sync_all)
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

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::{Folder, RealFolder, check_kinds, copy, fs, io, make};

    #[test]
    fn what_is_no_file_or_folder_is_named_and_nobody_waits_for_it() {
        let temporary = tempfile::tempdir().unwrap();
        let (path, copied) = (temporary.path().join("a"), temporary.path().join("copied"));
        let folder = RealFolder::open(&path).unwrap();
        mknodat(CWD, path.join("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        fs::write(path.join("file"), "x").unwrap();
        let check = |result: io::Result<()>, named: &str| {
            let told = result.unwrap_err().to_string();
            assert!(told.contains(named) && told.contains(" is no "), "{told}");
        };
        check(folder.open("pipe").map(drop), "a/pipe");
        check(RealFolder::to_read(&path).unwrap().open("pipe").map(drop), "a/pipe");
        check(check_kinds(&path), "a/pipe");
        check(copy(&path, &copied, &|_| true), "a/pipe");
        copy(&path, &copied, &|name| name == "file").unwrap();
        assert_eq!(fs::read(copied.join("file")).unwrap(), b"x");
        check(make(&path.join("file/below")), "a/file");
        check(RealFolder::open(&path.join("file")).map(drop), "a/file");
        check(RealFolder::to_read(&path.join("file")).map(drop), "a/file");
        assert_eq!(folder.list().unwrap(), ["file"]);
    }

    #[test]
    fn who_only_reads_makes_nothing() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = RealFolder::to_read(&temporary.path().join("none")).unwrap();
        assert_eq!(folder.list().unwrap(), Vec::<String>::new());
        assert!(folder.create("one").is_err());
        assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0);
    }

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
