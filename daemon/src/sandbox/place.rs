//! Where a file is written: its folder, opened, and its name there; and how it is replaced in one step.
//!
//! A file is never seen half written: the new one is complete on disk before it takes the old one's name.

use std::fs::File;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::{Access, AtFlags, FileType, Gid, Mode, OFlags, Stat, Uid};
use rustix::io::Errno;
use ulid::Ulid;

use super::reach::Reach;
use super::workspace::{PathError, Workspace, check, io_error, not_regular, real_path, shown};
use crate::crash;

/// What the names of files that are being written begin and end with; between stands when that began.
const BEGIN: &str = ".nano-";
const END: &str = ".tmp";
/// As many links as Linux follows.
const LINKS: usize = 40;
/// Changes of one file take turns; files that share a lock merely wait longer.
static TURNS: [Mutex<()>; 64] = [const { Mutex::new(()) }; 64];

/// A file's folder and name, links followed; the file need not be there.
#[derive(Debug)]
pub struct Place {
    given: String,
    folder: OwnedFd,
    name: PathBuf,
    old: Option<Stat>,
}

impl Workspace {
    /// Finds where `path` is to be written; makes its parents if `make_parents`.
    pub fn place(&self, path: &str, make_parents: bool) -> Result<Place, PathError> {
        if path.ends_with('/') {
            return Err(PathError::Bad(format!("`{}` names a folder", shown(path))));
        }
        let mut at = PathBuf::from(check(path)?);
        for _ in 0..LINKS {
            let (folder, name) = self.parent(path, &at, make_parents)?;
            let old = match rustix::fs::statat(&folder, &name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => Some(stat),
                Err(Errno::NOENT) => None,
                Err(why) => return Err(io_error(path, why)),
            };
            match old.map(|stat| FileType::from_raw_mode(stat.st_mode)) {
                None | Some(FileType::RegularFile) => {
                    self.may_write(path, &folder, &name)?;
                    return Ok(Place { given: path.to_owned(), folder, name, old });
                }
                Some(FileType::Symlink) => at = follow(&at, &folder, &name).map_err(|why| io_error(path, why))?,
                Some(other) => return Err(not_regular(path, other)),
            }
        }
        Err(io_error(path, Errno::LOOP))
    }

    fn parent(&self, given: &str, path: &Path, make: bool) -> Result<(OwnedFd, PathBuf), PathError> {
        let Some(name) = path.file_name() else {
            return Err(PathError::Bad(format!("`{}` names a folder", shown(given))));
        };
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Ok((self.made_folder(given, parent, make)?, name.into()))
    }

    fn may_write(&self, given: &str, folder: &OwnedFd, name: &Path) -> Result<(), PathError> {
        let folder = real_path(folder).map_err(|source| PathError::Io { path: shown(given), source })?;
        self.check_reach(given, &folder.join(name), Reach::bars_writing)
    }

    /// Opens a folder, made with its parents if need be, each step resolved beneath the root.
    fn made_folder(&self, given: &str, path: &Path, make: bool) -> Result<OwnedFd, PathError> {
        match self.open_at(given, path, OFlags::PATH | OFlags::DIRECTORY, &[]) {
            Err(PathError::Io { source, .. }) if make && source.kind() == io::ErrorKind::NotFound => {}
            result => return result,
        }
        let (Some(parent), name) = (path.parent(), path.file_name()) else {
            return Err(io_error(given, Errno::NOENT));
        };
        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        let folder = self.made_folder(given, parent, make)?;
        if let Some(name) = name {
            self.may_write(given, &folder, Path::new(name))?;
            match rustix::fs::mkdirat(&folder, name, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(why) => return Err(io_error(given, why)),
            }
        }
        self.open_at(given, path, OFlags::PATH | OFlags::DIRECTORY, &[])
    }
}

/// Returns when a file began to be written, if its name says that it is one.
fn begun_ms(name: &str) -> Option<u64> {
    let began = name.strip_prefix(BEGIN)?.strip_suffix(END)?;
    Ulid::from_string(began).ok().map(|began| began.timestamp_ms())
}

/// Returns what the link `name` in `folder`, found at `path`, points to.
fn follow(path: &Path, folder: &OwnedFd, name: &Path) -> Result<PathBuf, Errno> {
    let target = rustix::fs::readlinkat(folder, name, Vec::new())?;
    let target = PathBuf::from(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(target.as_bytes()));
    Ok(path.parent().unwrap_or(Path::new(".")).join(target))
}

impl Place {
    /// Tells whether the file is there.
    pub fn exists(&self) -> bool {
        self.old.is_some()
    }

    /// Returns where the file really is, or will be.
    pub fn path(&self) -> Result<PathBuf, PathError> {
        let folder = real_path(&self.folder).map_err(|source| PathError::Io { path: shown(&self.given), source })?;
        Ok(folder.join(&self.name))
    }

    /// Waits until no other change of this file is under way; hold it from reading to writing.
    pub fn turn(&self) -> Result<MutexGuard<'static, ()>, PathError> {
        let folder = rustix::fs::fstat(&self.folder).map_err(|why| self.error(why))?;
        let hash = BuildHasherDefault::<DefaultHasher>::new().hash_one((folder.st_dev, folder.st_ino, &self.name));
        let lock = &TURNS[usize::try_from(hash % TURNS.len() as u64).unwrap_or(0)];
        Ok(lock.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Opens the file to be read, and remembers it as it is now.
    pub fn open(&mut self) -> Result<File, PathError> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.folder, &self.name, flags, Mode::empty()).map_err(|why| self.error(why))?;
        self.old = Some(rustix::fs::fstat(&file).map_err(|why| self.error(why))?);
        Ok(file.into())
    }

    /// Tells whether the file still is what [`Place::open`] found.
    pub fn unchanged(&self) -> bool {
        let now = rustix::fs::statat(&self.folder, &self.name, AtFlags::SYMLINK_NOFOLLOW).ok();
        let mark = |stat: &Stat| (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime, stat.st_mtime_nsec);
        now.as_ref().map(mark) == self.old.as_ref().map(mark)
    }

    /// Puts `contents` in the file's place; mode and, where permitted, owner stay.
    pub fn replace(&self, mut contents: &[u8]) -> Result<(), PathError> {
        self.replace_with(&mut contents)
    }

    /// The same with contents that are not all in memory.
    pub fn replace_with(&self, contents: &mut dyn Read) -> Result<(), PathError> {
        if self.exists() {
            // A rename needs no right to the file itself, but who protected it meant it.
            rustix::fs::accessat(&self.folder, &self.name, Access::WRITE_OK, AtFlags::EACCESS)
                .map_err(|why| self.error(why))?;
        }
        let temporary = PathBuf::from(format!("{BEGIN}{}{END}", Ulid::generate()));
        crash::point("file.write.before");
        let written = self.write(&temporary, contents).and_then(|()| {
            crash::point("file.write.after");
            crash::point("file.rename.before");
            rustix::fs::renameat(&self.folder, &temporary, &self.folder, &self.name)?;
            crash::point("file.rename.after");
            Ok(())
        });
        if written.is_err() {
            rustix::fs::unlinkat(&self.folder, &temporary, AtFlags::empty()).ok();
        }
        written.map_err(|source| PathError::Io { path: shown(&self.given), source })?;
        self.keep()
    }

    /// Makes its name durable.
    pub fn keep(&self) -> Result<(), PathError> {
        self.sync().map_err(|why| self.error(why))
    }

    /// Removes from the folder what was begun to be written in this time, of which nobody who wrote then is left.
    pub fn sweep(&self, from_ms: u64, until_ms: u64) {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let Ok(folder) = rustix::fs::openat(&self.folder, ".", flags, Mode::empty()) else { return };
        let Ok(entries) = rustix::fs::Dir::read_from(&folder) else { return };
        for entry in entries.flatten() {
            let begun = entry.file_name().to_str().ok().and_then(begun_ms);
            if begun.is_some_and(|begun| (from_ms..until_ms).contains(&begun)) {
                rustix::fs::unlinkat(&folder, entry.file_name(), AtFlags::empty()).ok();
            }
        }
    }

    fn write(&self, temporary: &Path, contents: &mut dyn Read) -> io::Result<()> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // A file that replaces a private one must not be open to others for a moment.
        let mode = Mode::from_raw_mode(if self.exists() { 0o600 } else { 0o666 });
        let mut file = File::from(rustix::fs::openat(&self.folder, temporary, flags, mode)?);
        io::copy(contents, &mut file)?;
        if let Some(old) = &self.old {
            let owner = (Uid::from_raw(old.st_uid), Gid::from_raw(old.st_gid));
            let kept = rustix::fs::fchown(&file, Some(owner.0), Some(owner.1)).is_ok();
            // Another owner's set-id bits would hand out our rights.
            rustix::fs::fchmod(&file, Mode::from_raw_mode(old.st_mode & if kept { 0o7777 } else { 0o777 }))?;
        }
        file.sync_all()
    }

    /// Makes the new name durable; the folder is opened to be read for that.
    fn sync(&self) -> Result<(), Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match rustix::fs::openat(&self.folder, ".", flags, Mode::empty()) {
            Ok(folder) => rustix::fs::fsync(folder),
            // A folder that may be written but not read cannot be synced.
            Err(_) => Ok(()),
        }
    }

    fn error(&self, why: Errno) -> PathError {
        io_error(&self.given, why)
    }
}
