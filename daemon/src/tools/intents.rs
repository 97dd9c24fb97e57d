//! What a call is about to do to a file: on record before the file is touched, and looked at when the daemon died on the
//! way. So a tool of the class [`Verify`](super::Class::Verify) whose call left no intent has changed nothing.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;

use crate::sandbox::place::Place;
use crate::sandbox::workspace::Workspace;
use crate::store::record::call::{CallRecord, Intent, Mark};
use crate::store::{Change, Commit, Key, Store};

/// What is longer is told by where it lies and when it was changed, unless it has just been made.
const READ: u64 = 64 * 1024 * 1024;

/// Puts on record what one call is about to do.
pub struct Intents {
    store: Store,
    key: Key,
    record: CallRecord,
    stop: CancellationToken,
}

impl Intents {
    /// Makes it for the call with this record, until `stop` fires.
    pub fn new(store: Store, key: Key, record: CallRecord, stop: CancellationToken) -> Self {
        Self { store, key, record, stop }
    }

    /// Returns once the intent is durable; for a thread that may block.
    pub fn record(&self, intent: Intent) -> Result<(), String> {
        // A call that was given up may come to this late: its place is another call's by then.
        if self.stop.is_cancelled() {
            return Err("nothing was changed: the call was stopped".into());
        }
        let record = CallRecord { intent: Some(intent), ..self.record.clone() };
        let commit = self.store.commit(Commit::owed(vec![Change::put(self.key.clone(), &record)]));
        let written = tokio::runtime::Handle::current().block_on(commit);
        written.map(|_| ()).map_err(|why| format!("nothing was changed: it cannot be put on record ({why})"))
    }
}

/// Returns the mark of what is in a place before it is written to.
pub fn before(place: &mut Place) -> Option<Mark> {
    // One that may be written but not read cannot be looked at afterwards either.
    let unreadable = |_| Mark { bytes: 0, print: "not readable".into() };
    place.exists().then(|| {
        let read = place.open().map_err(|why| why.to_string());
        read.and_then(|mut old| of_file(&mut old).map_err(|why| why.to_string())).unwrap_or_else(unreadable)
    })
}

/// Puts on record what is about to take the place of a file, and what is told then.
pub fn intend(
    intents: Option<&Arc<Intents>>,
    place: &Place,
    before: Option<Mark>,
    after: Mark,
    says: &str,
) -> Result<(), String> {
    let Some(intents) = intents else { return Ok(()) };
    let path = place.path().map_err(|why| why.to_string())?.to_string_lossy().into_owned();
    intents.record(Intent { path, before, after, says: says.to_owned() })
}

/// Returns the mark of contents that are in memory.
pub fn of_bytes(contents: &[u8]) -> Mark {
    Mark { bytes: contents.len() as u64, print: format!("{:x}", Sha256::digest(contents)) }
}

/// Returns the mark of a whole file, however long it is, and rewinds it.
pub fn of_all(file: &mut File) -> io::Result<Mark> {
    let mut hash = Sha256::new();
    file.rewind()?;
    let bytes = io::copy(file, &mut hash)?;
    file.rewind()?;
    Ok(Mark { bytes, print: format!("{:x}", hash.finalize()) })
}

fn of_file(file: &mut File) -> io::Result<Mark> {
    let meta = file.metadata()?;
    if meta.len() > READ {
        let print =
            format!("inode {} of {}, changed {}.{:09}", meta.ino(), meta.dev(), meta.mtime(), meta.mtime_nsec());
        return Ok(Mark { bytes: meta.len(), print });
    }
    let mut contents = Vec::new();
    file.take(READ + 1).read_to_end(&mut contents)?;
    Ok(of_bytes(&contents))
}

/// Returns where what a call's program prints is while it runs: by a name of its own, for an id may be anything.
pub fn spool(folder: &Path, call: &str) -> PathBuf {
    folder.join(format!("running-{:x}.log", Sha256::digest(call)))
}

/// What a file says of a call that was about to change it.
#[derive(Debug, PartialEq, Eq)]
pub enum Looked {
    /// The change is there.
    Done,
    /// The file is what it was.
    Untouched,
    /// It is neither, or cannot be looked at; why.
    Else(String),
}

/// Looks what has become of an intent, and removes what it left beside its file in a time that is over.
pub fn look(workspace: &Workspace, intent: &Intent, from_ms: u64, until_ms: u64) -> Looked {
    let mut place = match workspace.place(&intent.path, false) {
        Ok(place) => place,
        // Its folder is gone, or was never made.
        Err(_) if intent.before.is_none() && !Path::new(&intent.path).exists() => return Looked::Untouched,
        Err(why) => return Looked::Else(why.to_string()),
    };
    place.sweep(from_ms, until_ms);
    if !place.exists() {
        let gone = || Looked::Else("the file is not there any more".into());
        return if intent.before.is_none() { Looked::Untouched } else { gone() };
    }
    let now = place.open().map_err(|why| why.to_string());
    match now.and_then(|mut file| compare(&mut file, intent).map_err(|why| why.to_string())) {
        // The daemon died before it did this itself, and what is told as done must not go with the power.
        Ok(Looked::Done) => place.keep().map_or_else(|why| Looked::Else(why.to_string()), |()| Looked::Done),
        Ok(looked) => looked,
        Err(why) => Looked::Else(why),
    }
}

fn compare(file: &mut File, intent: &Intent) -> io::Result<Looked> {
    let bytes = file.metadata()?.len();
    if bytes == intent.after.bytes && of_all(file)? == intent.after {
        return Ok(Looked::Done);
    }
    file.rewind()?;
    Ok(match &intent.before {
        Some(before) if bytes == before.bytes && of_file(file)? == *before => Looked::Untouched,
        _ => Looked::Else("the file is neither what it was before nor what the call would have made of it".into()),
    })
}

#[cfg(test)]
mod tests;
