//! One file: whether it has changed, whether somebody is writing it, and what it says.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use nano_protocol::skill::Problem;
use nano_skill::{Document, MAX_FILE};
use rustix::fs::Stat;

use crate::clock;
use crate::sandbox::lease::Lease;
use crate::sandbox::workspace::{PathError, Workspace};

/// A file that was written so recently may be written again without its times telling.
const RACY: Duration = Duration::from_millis(50);
/// So long a file is left alone that somebody holds open for writing.
const PATIENCE: Duration = Duration::from_secs(10);

/// What tells one version of a file or folder from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    pub inode: (u64, u64),
    size: i64,
    changed: [(i64, i64); 2],
}

impl Stamp {
    /// Returns that of what `path` leads to; none: nothing is there.
    pub fn of(path: &Path) -> Option<Self> {
        rustix::fs::stat(path).ok().map(|stat| Self::new(&stat))
    }

    #[expect(clippy::useless_conversion, reason = "the widths differ between architectures")]
    pub fn new(stat: &Stat) -> Self {
        let nanoseconds = |part| i64::try_from(part).unwrap_or(0);
        Self {
            inode: (stat.st_dev.into(), stat.st_ino.into()),
            size: stat.st_size,
            changed: [
                (stat.st_mtime.into(), nanoseconds(stat.st_mtime_nsec)),
                (stat.st_ctime.into(), nanoseconds(stat.st_ctime_nsec)),
            ],
        }
    }

    /// Returns how long ago it last changed, by the time that nobody can set.
    fn age(&self) -> Duration {
        let [_, (seconds, nanoseconds)] = self.changed;
        let at = Duration::new(seconds.try_into().unwrap_or(0), nanoseconds.try_into().unwrap_or(0));
        Duration::from_secs_f64((clock::seconds() - at.as_secs_f64()).max(0.0))
    }

    /// Returns it, or one that nothing is equal to where another change might leave it as it is.
    pub fn unless_racy(self) -> Self {
        if self.age() < RACY { Self { size: -1, ..self } } else { self }
    }
}

/// What came of reading a file.
pub enum Reading {
    /// It is as it was.
    Same,
    /// Somebody is writing it: what was read before counts.
    Busy,
    /// What it says, or why it says nothing.
    Read(Box<Document>, Option<Stamp>),
}

/// Tells of a file whether somebody has begun to write it and not ended, as far as is known.
pub type IsWritten<'a> = &'a dyn Fn(&Path) -> bool;

/// Reads the file at `path` unless it still is `known`; `name` is that of its folder.
pub fn read(ground: &Workspace, path: &Path, name: &str, known: Option<Stamp>, is_written: IsWritten<'_>) -> Reading {
    let file = match ground.file_at(&path.to_string_lossy(), path) {
        Ok(file) => file,
        Err(why) => {
            let stamp = Stamp::of(path).map(Stamp::unless_racy);
            return Reading::Read(Box::new(unusable(name, why.to_string())), stamp);
        }
    };
    let stamp = rustix::fs::fstat(&file).ok().map(|stat| Stamp::new(&stat));
    if stamp.is_some_and(|stamp| known == Some(stamp)) {
        return Reading::Same;
    }
    if is_busy(&file, stamp, is_written(path)) {
        return Reading::Busy;
    }
    let stamp = stamp.map(Stamp::unless_racy);
    let mut bytes = Vec::new();
    let document = match file.take(MAX_FILE + 1).read_to_end(&mut bytes) {
        Ok(_) if bytes.len() as u64 > MAX_FILE => unusable(name, format!("it is longer than {MAX_FILE} bytes")),
        Ok(_) => Document::read(&bytes, name),
        Err(why) => unusable(name, format!("it cannot be read: {why}")),
    };
    Reading::Read(Box::new(document), stamp)
}

/// Returns what is in the file now.
pub fn bytes(ground: &Workspace, path: &Path) -> Result<Vec<u8>, PathError> {
    let given = path.to_string_lossy();
    let mut bytes = Vec::new();
    let file = ground.file_at(&given, path)?;
    let read = file.take(MAX_FILE + 1).read_to_end(&mut bytes);
    match read.map_err(|source| PathError::Io { path: given.as_ref().into(), source })? {
        length if length as u64 > MAX_FILE => Err(PathError::Bad(format!("`{given}` is longer than {MAX_FILE} bytes"))),
        _ => Ok(bytes),
    }
}

/// Tells whether somebody is in the middle of writing the file.
fn is_busy(file: &File, stamp: Option<Stamp>, is_written: bool) -> bool {
    let age = stamp.map(|stamp| stamp.age()).unwrap_or_default();
    match Lease::is_written(file) {
        Some(written) => written && age < PATIENCE,
        // Leases are not to be had, as on another user's file: a writer that nobody told of is given a moment.
        None => age < RACY || (is_written && age < PATIENCE),
    }
}

/// Makes the document of something that cannot be read.
pub fn unusable(name: &str, why: String) -> Document {
    Document {
        name: name.to_owned(),
        description: String::new(),
        always_load: false,
        hidden: false,
        metadata: nano_protocol::Object::new(),
        body: String::new(),
        valid: false,
        unclosed: false,
        problems: vec![problem(why)],
    }
}

/// Makes a problem of the file as a whole.
pub fn problem(message: impl Into<String>) -> Problem {
    Problem { line: None, column: None, message: message.into() }
}
