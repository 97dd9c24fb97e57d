//! The steering file of a workspace: lines that any program may append, each taken exactly once.
//!
//! ```text
//!            no writer, last line complete            committed, no writer, quiet for a while
//!   NAME ───────────── rename ─────────────▶ NAME.taken ───────────── unlink ─────────────▶ gone
//!     ▲                                          │
//!     └──── no writer, last line incomplete ─────┘
//! ```
//!
//! [`scan`] returns complete lines beyond a [`Position`]; the caller commits each line's message together with the line's
//! position, then calls [`retire`]. A position names files by identity, not by name, so a crash between any two steps
//! neither loses nor doubles a good line. It belongs to the workspace's folder, whichever session takes from it.
//! Whether a writer holds the file is told by a lease, which also makes new writers wait while it is renamed. Where
//! leases are not to be had (file systems without them, files of another user) nothing is renamed or removed: the file
//! stays where it is and its position alone says what was taken.
//!
//! A writer that has found the name and not yet opened the file slips past the lease; it is the reason why a renamed
//! file is kept, and read, for a while. Everything here blocks; one caller per workspace at a time.

mod line;
mod place;
mod read;

use std::io;
use std::path::Path;

use nano_protocol::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::sandbox::lease::Lease;
pub use line::{SteeringLine, WrittenBy};
pub use place::reject;
use place::{Place, Source};

/// A renamed file is removed when nothing has happened to it for so long: ample for any `open` under way.
const QUIET_MS: i64 = 2000;
/// What a file's time of change may lie behind the clock: the tick of file systems.
const TICK_MS: i64 = 10;

/// How far the files of a workspace have been taken; to be stored in the same commit as the lines' messages.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    marks: Vec<Mark>,
}

/// How far one file has been taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Mark {
    file: Identity,
    offset: u64,
    /// The line at `offset` is the rest of one that was too long.
    skipping: bool,
    /// So many bytes before `offset` have this digest: else the file was written anew in place.
    tail_length: u64,
    tail: u64,
}

/// Which file it is, under whatever name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Identity {
    device: (u32, u32),
    inode: u64,
    /// Nanoseconds of its birth: inode numbers are used again. 0 where the file system does not say.
    born: i64,
}

/// What [`scan`] found.
#[derive(Debug, Default)]
pub struct Scan {
    /// New complete lines in order.
    pub lines: Vec<Line>,
    /// The position after all of them; for [`retire`] once they are committed.
    pub position: Position,
    /// There is more: scan again from `position` after the commit.
    pub more: bool,
    /// Why a file of the right name was left alone.
    pub refused: Option<String>,
}

/// One complete line.
#[derive(Debug)]
pub struct Line {
    /// What to store when it has been dealt with.
    pub end: Position,
    /// The text, for [`reject`]; the beginning of one that is too long.
    pub raw: String,
    /// What it says, or why it is not valid.
    pub parsed: Result<SteeringLine, String>,
}

/// What became of the renamed file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retired {
    /// There is none that was committed.
    Nothing,
    /// It must stay for now: scan and retire again later.
    Kept,
    /// It is gone.
    Removed,
}

/// Returns the complete lines beyond `from` of the steering file `name` in `folder`.
///
/// Only a regular file of `owner` that nobody else may write and that changed after `newer_than` is taken.
pub fn scan(folder: &Path, name: &str, owner: u32, newer_than: Timestamp, from: Option<&Position>) -> io::Result<Scan> {
    let place = Place::open(folder, name)?;
    let mut scan = Scan::default();
    let is_new = |source: &Source| source.modified_ms + TICK_MS >= newer_than.0;
    let mark = |source: &Source| from.and_then(|from| from.mark_of(source.identity));

    let taken = place.source(&place.taken, owner).ok();
    // What was begun is finished, whatever task runs now.
    let mut taken = taken.filter(|source| is_new(source) || mark(source).is_some());
    let mut fresh = match place.source(&place.name, owner) {
        Ok(source) => Some(source).filter(is_new),
        Err(why) => {
            scan.refused = why;
            None
        }
    };
    if let Some(source) = fresh.take_if(|source| taken.is_none() && place.take(source).unwrap_or(false)) {
        taken = Some(source);
    }

    let sources: Vec<Source> = taken.into_iter().chain(fresh).collect();
    for source in &sources {
        scan.position.marks.push(source.resume(mark(source))?);
    }
    // A file that is not taken now may be taken later: its mark must not be forgotten while it is there.
    let idle = [&place.taken, &place.name].into_iter().filter_map(|name| from?.mark_of(place.identity(name)?).copied());
    let idle: Vec<Mark> = idle.filter(|mark| scan.position.mark_of(mark.file).is_none()).collect();
    scan.position.marks.extend(idle);
    for (index, source) in sources.iter().enumerate() {
        read::lines(source, index, &mut scan)?;
    }
    Ok(scan)
}

/// Removes the renamed file once `at`, which must be committed, covers all of it and no writer holds it; gives it its
/// name back if a writer left it in the middle of a line. `now` is the time of day.
pub fn retire(folder: &Path, name: &str, at: &Position, now: Timestamp) -> io::Result<Retired> {
    let place = Place::open(folder, name)?;
    let Some(source) = place.any_source(&place.taken)? else { return Ok(Retired::Nothing) };
    let Some(mark) = at.mark_of(source.identity) else { return Ok(Retired::Nothing) };
    // Under the lease nobody writes, so what is seen from here on stays true until it is released.
    let Some(lease) = Lease::take(&source.file) else { return Ok(Retired::Kept) };
    let source = source.refreshed()?;
    if mark.offset == source.size && !mark.skipping {
        let quiet = now.0.saturating_sub(source.modified_ms.max(source.changed_ms)) >= QUIET_MS;
        if !quiet || lease.somebody_waits() {
            return Ok(Retired::Kept);
        }
        place.remove_taken()?;
        return Ok(Retired::Removed);
    }
    if source.ends_within_a_line(mark)? {
        // A new file of that name may be there already: then this one waits for its line where it is.
        place.give_back();
    }
    Ok(Retired::Kept)
}

impl Position {
    fn mark_of(&self, file: Identity) -> Option<&Mark> {
        self.marks.iter().find(|mark| mark.file == file)
    }
}

impl Mark {
    fn start(file: Identity) -> Self {
        Self { file, offset: 0, skipping: false, tail_length: 0, tail: 0 }
    }
}

#[cfg(test)]
mod tests;
