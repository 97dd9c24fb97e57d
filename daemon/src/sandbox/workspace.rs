//! A session's folder, and the paths below it.
//!
//! Where file tools are restricted, the kernel resolves every path beneath the opened root (`openat2`): neither `..`,
//! nor links, nor a rename at the wrong moment leads out. Strings only guess; what they guess is opened beneath again.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

pub use super::path_error::{PathError, shown};
use super::path_error::{io_error, not_regular};
use super::reach::Reach;
use super::seen::Seen;

/// The deepest path that is taken.
const DEPTH: usize = 256;
/// The longest name and the longest path that Linux takes, in bytes.
const NAME: usize = 255;
const PATH: usize = 4095;

/// An opened workspace, and how far beyond it file tools reach.
#[derive(Debug)]
pub struct Workspace {
    root: Root,
    restrict: bool,
    readable: Vec<PathBuf>,
    reach: Option<Arc<Reach>>,
    pub(super) seen: Arc<Seen>,
}

/// Why a path is out of reach, if it is.
pub(super) type Bars = fn(&Reach, &Path) -> Option<&'static str>;

/// A folder that is opened once and resolved beneath.
#[derive(Debug)]
struct Root {
    path: PathBuf,
    folder: OwnedFd,
}

impl Workspace {
    /// Opens the folder `path`; `restrict` keeps file tools below it.
    pub fn open(path: &Path, restrict: bool) -> io::Result<Self> {
        Ok(Self { root: Root::open(path)?, restrict, readable: Vec::new(), reach: None, seen: Arc::default() })
    }

    /// Adds folders, absolute, that may be read although they lie outside, as soon as they are there.
    #[must_use]
    pub fn with_readable(mut self, folders: Vec<PathBuf>) -> Self {
        self.readable.extend(folders);
        self
    }

    /// Remembers in `seen` what is read and written, and refuses to write over what somebody else changed since.
    #[must_use]
    pub fn with_seen(mut self, seen: Arc<Seen>) -> Self {
        self.seen = seen;
        self
    }

    /// Keeps tools within `reach`, too; what it shows may be read.
    #[must_use]
    pub fn with_reach(self, reach: Reach) -> Self {
        let readable = reach.shown.iter().chain([&reach.temporary]).cloned().collect();
        Self { reach: Some(Arc::new(reach)), ..self.with_readable(readable) }
    }

    /// Returns how far commands reach that are run for it.
    pub fn reach(&self) -> Option<Arc<Reach>> {
        self.reach.clone()
    }

    /// Refuses what is out of reach.
    pub(super) fn check_reach(&self, given: &str, path: &Path, bars: Bars) -> Result<(), PathError> {
        let why = self.reach.as_ref().and_then(|reach| bars(reach, path));
        why.map_or(Ok(()), |why| Err(PathError::Protected { path: shown(given), why }))
    }

    /// Returns where the folder really is.
    pub fn path(&self) -> &Path {
        &self.root.path
    }

    /// Opens a regular file to be read; never waits for a pipe or a device.
    pub fn file(&self, path: &str) -> Result<File, PathError> {
        let file = self.file_at(path, Path::new(check(path)?))?;
        let stat = rustix::fs::fstat(&file).map_err(|why| io_error(path, why))?;
        let place = real_path(&file).map_err(|source| PathError::Io { path: shown(path), source })?;
        self.seen.note(&place, &stat);
        Ok(file)
    }

    /// Opens a regular file that was found by walking; errors name it as `given`.
    pub fn file_at(&self, given: &str, path: &Path) -> Result<File, PathError> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = File::from(self.open_at(given, path, flags, &self.readable)?);
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&file).map_err(|why| io_error(given, why))?.st_mode);
        if kind == FileType::RegularFile { Ok(file) } else { Err(not_regular(given, kind)) }
    }

    /// Opens a folder and returns where it really is.
    pub fn folder(&self, path: &str) -> Result<(OwnedFd, PathBuf), PathError> {
        let folder = self.folder_at(path, Path::new(check(path)?))?;
        let place = real_path(&folder).map_err(|source| PathError::Io { path: shown(path), source })?;
        Ok((folder, place))
    }

    /// Opens a folder that was found by walking; errors name it as `given`.
    pub fn folder_at(&self, given: &str, path: &Path) -> Result<OwnedFd, PathError> {
        self.open_at(given, path, OFlags::DIRECTORY, &self.readable)
    }

    /// Returns where `path` really is, be it a file or a folder, and which of the two.
    pub fn find(&self, path: &str) -> Result<(PathBuf, bool), PathError> {
        let found = self.open_at(path, Path::new(check(path)?), OFlags::PATH, &self.readable)?;
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&found).map_err(|why| io_error(path, why))?.st_mode);
        let place = real_path(&found).map_err(|source| PathError::Io { path: shown(path), source })?;
        Ok((place, kind == FileType::Directory))
    }

    /// Returns `path` as it is shown: relative where it lies below the workspace.
    pub fn relative<'a>(&self, path: &'a Path) -> &'a Path {
        path.strip_prefix(&self.root.path).unwrap_or(path)
    }

    /// Opens what `path` names, below the root or one of `readable`; errors name `given`.
    pub(super) fn open_at(
        &self,
        given: &str,
        path: &Path,
        flags: OFlags,
        readable: &[PathBuf],
    ) -> Result<OwnedFd, PathError> {
        let flags = flags | OFlags::CLOEXEC;
        let opened = if self.restrict {
            let mut opened = self.root.beneath(path, flags);
            for folder in readable.iter().filter(|_| path.is_absolute()) {
                let there = || Root::open(folder).map_err(|_| Errno::XDEV)?.beneath(path, flags);
                opened = opened.or_else(|why| if is_escape(why) { there() } else { Err(why) });
            }
            opened
        } else {
            // What a link of /proc leads to was opened by somebody else, and may have no name here.
            rustix::fs::openat2(&self.root.folder, path, flags, Mode::empty(), ResolveFlags::NO_MAGICLINKS)
        };
        let opened = opened.map_err(|why| match why {
            why if self.restrict && is_escape(why) => {
                PathError::Outside { path: shown(given), root: self.root.path.clone() }
            }
            Errno::NXIO | Errno::NODEV => not_regular(given, FileType::Unknown),
            Errno::NAMETOOLONG => PathError::Bad(format!("`{}` is too long", shown(given))),
            why => io_error(given, why),
        })?;
        if self.reach.is_some() {
            let real = real_path(&opened).map_err(|source| PathError::Io { path: shown(given), source })?;
            self.check_reach(given, &real, Reach::bars_reading)?;
        }
        Ok(opened)
    }
}

impl Root {
    fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::openat(CWD, path, flags, Mode::empty())?;
        Ok(Self { path: real_path(&folder)?, folder })
    }

    /// Opens `path` if it leads to somewhere below the root.
    fn beneath(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        match path.strip_prefix(&self.path) {
            Ok(below) => self.open_below(below, flags),
            Err(_) if path.is_relative() => self.open_below(path, flags),
            Err(_) => Err(Errno::XDEV),
        }
        .or_else(|why| if why == Errno::XDEV { self.by_real_path(path, flags) } else { Err(why) })
    }

    /// Absolute links and other names of the root lead in too, if what they mean, opened beneath, is there.
    fn by_real_path(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let look = OFlags::PATH | OFlags::CLOEXEC;
        let found = rustix::fs::openat2(&self.folder, path, look, Mode::empty(), ResolveFlags::NO_MAGICLINKS);
        // What is not there, or is no file system's, is as much outside as what is: no difference must tell.
        let real = found.ok().and_then(|found| real_path(&found).ok()).ok_or(Errno::XDEV)?;
        self.open_below(real.strip_prefix(&self.path).map_err(|_| Errno::XDEV)?, flags)
    }

    fn open_below(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let how = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        loop {
            match rustix::fs::openat2(&self.folder, path, flags, Mode::empty(), how) {
                // A rename in the path's way: the kernel cannot vouch for this attempt.
                Err(Errno::AGAIN) => {}
                result => return result,
            }
        }
    }
}

/// A path that leaves is `EXDEV`; one through a magic link, such as `/proc/self/root`, is `ELOOP`.
fn is_escape(why: Errno) -> bool {
    matches!(why, Errno::XDEV | Errno::LOOP)
}

/// Refuses what no file can be called.
pub(super) fn check(path: &str) -> Result<&str, PathError> {
    let components = || Path::new(path).components();
    let named = |what: &str| Err(PathError::Bad(format!("`{}` {what}", shown(path))));
    match () {
        () if path.is_empty() => Err(PathError::Bad("it is empty".into())),
        () if path.contains('\0') => named("has a NUL byte"),
        () if path.len() > PATH => named(&format!("is longer than {PATH} bytes")),
        () if components().any(|one| one.as_os_str().as_bytes().len() > NAME) => {
            named(&format!("has a name of more than {NAME} bytes"))
        }
        () if components().filter(|one| matches!(one, Component::Normal(_))).count() > DEPTH => {
            named(&format!("has more than {DEPTH} levels"))
        }
        () => Ok(path),
    }
}

/// Returns at most so many names in an opened folder and what each is, in no order.
pub fn entries(folder: &OwnedFd, most: usize) -> Result<Vec<(OsString, FileType)>, Errno> {
    let mut entries = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let kind = match entry.file_type() {
            // Some file systems do not say.
            FileType::Unknown => rustix::fs::statat(folder, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)
                .map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode)),
            known => known,
        };
        let name = entry.file_name().to_bytes();
        if !matches!(name, b"." | b"..") {
            entries.push((OsStr::from_bytes(name).to_owned(), kind));
        }
        if entries.len() == most {
            break;
        }
    }
    Ok(entries)
}

pub(super) fn real_path(file: impl AsFd) -> io::Result<PathBuf> {
    let file: BorrowedFd = file.as_fd();
    std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))
}
