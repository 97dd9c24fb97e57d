//! The files by name: opening them warily, renaming, removing, and setting bad lines aside.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

use nano_protocol::time::Timestamp;
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, Statx, StatxFlags, StatxTimestamp};
use rustix::io::Errno;
use serde::Serialize;

use super::Identity;
use crate::sandbox::lease::Lease;

/// Set-aside lines beyond this are dropped: a runaway writer must not fill the disk twice.
const MOST_REJECTED: u64 = 16 * 1024 * 1024;

/// The folder and the names in it.
pub struct Place {
    folder: OwnedFd,
    pub name: String,
    pub taken: String,
    stale: String,
}

/// An open file and what was known of it when it was opened.
pub struct Source {
    pub file: File,
    pub identity: Identity,
    pub size: u64,
    pub modified_ms: i64,
    pub changed_ms: i64,
    /// Why it must not be read, for whoever asks.
    kind: Kind,
}

struct Kind {
    mode: u32,
    owner: u32,
    links: u32,
}

impl Place {
    pub fn open(folder: &Path, name: &str) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::open(folder, flags, Mode::empty())?;
        Ok(Self { folder, name: name.to_owned(), taken: format!("{name}.taken"), stale: format!("{name}.stale") })
    }

    /// Opens a file that may be read as `owner`'s words; otherwise says why not, or nothing where there is none.
    pub fn source(&self, name: &str, owner: u32) -> Result<Source, Option<String>> {
        let source = self.any_source(name).map_err(|error| match Errno::from_io_error(&error) {
            Some(Errno::LOOP) => format!("{name} is a symbolic link"),
            _ => format!("{name} cannot be opened: {error}"),
        })?;
        let source = source.ok_or(None)?;
        match source.kind.objection(owner) {
            Some(why) => Err(Some(format!("{name} {why}"))),
            None => Ok(source),
        }
    }

    /// Opens a file without following a link or waiting for a pipe's other end.
    pub fn any_source(&self, name: &str) -> io::Result<Option<Source>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        match rustix::fs::openat(&self.folder, name, flags, Mode::empty()) {
            Ok(file) => Source::of(file.into()).map(Some),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns which file bears a name, without opening it.
    pub fn identity(&self, name: &str) -> Option<Identity> {
        let flags = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
        rustix::fs::statx(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW, flags).ok().map(|stat| identity(&stat))
    }

    /// Renames the steering file if no writer holds it and its last line is complete; returns whether that was done.
    pub fn take(&self, source: &Source) -> io::Result<bool> {
        // Without its birth a file cannot be told from the next one with its inode: it must not go.
        let lease = if source.identity.born == 0 { None } else { Lease::take(&source.file) };
        let Some(lease) = lease else { return Ok(false) };
        let size = source.file.metadata()?.len();
        if size == 0 || source.read(size - 1, 1)? != b"\n" {
            return Ok(false);
        }
        if self.rename(&self.name, &self.taken) == Err(Errno::EXIST) {
            // Whoever calls has found that this one is nobody's: a leftover, or it came with a repository.
            rustix::fs::renameat(&self.folder, &self.taken, &self.folder, &self.stale)?;
            self.rename(&self.name, &self.taken)?;
        }
        let is_ours = self.identity(&self.taken) == Some(source.identity);
        // Whoever waits has found the old name and may write the beginning of a line: its end must find the same file.
        if is_ours && !lease.somebody_waits() { Ok(true) } else { Ok(!self.give_back()) }
    }

    /// Gives the renamed file its name back unless there is a new one; returns whether that was done.
    pub fn give_back(&self) -> bool {
        self.rename(&self.taken, &self.name).is_ok()
    }

    pub fn remove_taken(&self) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.folder, &self.taken, AtFlags::empty())?)
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), Errno> {
        rustix::fs::renameat_with(&self.folder, from, &self.folder, to, RenameFlags::NOREPLACE)
    }
}

impl Source {
    fn of(file: File) -> io::Result<Self> {
        let stat = rustix::fs::statx(&file, "", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS | StatxFlags::BTIME)?;
        Ok(Self {
            file,
            identity: identity(&stat),
            size: stat.stx_size,
            modified_ms: nanoseconds(stat.stx_mtime) / 1_000_000,
            changed_ms: nanoseconds(stat.stx_ctime) / 1_000_000,
            kind: Kind { mode: stat.stx_mode.into(), owner: stat.stx_uid, links: stat.stx_nlink },
        })
    }

    /// Returns the same file as it is now.
    pub fn refreshed(&self) -> io::Result<Self> {
        Self::of(self.file.try_clone()?)
    }
}

impl Kind {
    fn objection(&self, owner: u32) -> Option<&'static str> {
        if rustix::fs::FileType::from_raw_mode(self.mode) != rustix::fs::FileType::RegularFile {
            Some("is not a regular file")
        } else if self.owner != owner {
            Some("does not belong to the session's owner")
        } else if self.mode & 0o022 != 0 {
            Some("may be written by others; chmod go-w it")
        } else if self.links != 1 {
            Some("has another name: it is a hard link")
        } else {
            None
        }
    }
}

fn identity(stat: &Statx) -> Identity {
    let is_born = stat.stx_mask & StatxFlags::BTIME.bits() != 0;
    let born = if is_born { nanoseconds(stat.stx_btime) } else { 0 };
    Identity { device: (stat.stx_dev_major, stat.stx_dev_minor), inode: stat.stx_ino, born }
}

fn nanoseconds(time: StatxTimestamp) -> i64 {
    time.tv_sec.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec.into())
}

#[derive(Serialize)]
struct Rejected<'a> {
    line: &'a str,
    reason: &'a str,
    at: Timestamp,
}

/// Appends a bad line with its reason to the file for such lines beside the steering file `name`.
pub fn reject(folder: &Path, name: &str, line: &str, reason: &str, at: Timestamp) -> io::Result<()> {
    let place = Place::open(folder, name)?;
    let flags =
        OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::openat(&place.folder, rejected_name(name), flags, Mode::RUSR | Mode::WUSR)?;
    let source = Source::of(file.into())?;
    if let Some(why) = source.kind.objection(rustix::process::geteuid().as_raw()) {
        return Err(io::Error::other(format!("{} {why}", rejected_name(name))));
    }
    if source.size > MOST_REJECTED {
        return Err(io::Error::other(format!("{} is full; remove it", rejected_name(name))));
    }
    let mut record = serde_json::to_vec(&Rejected { line, reason, at })?;
    record.push(b'\n');
    (&source.file).write_all(&record)
}

/// `.steering.jsonl` has `.steering.rejected.jsonl`.
fn rejected_name(name: &str) -> String {
    match name.rsplit_once('.') {
        Some((stem, extension)) if !stem.is_empty() => format!("{stem}.rejected.{extension}"),
        _ => format!("{name}.rejected"),
    }
}
