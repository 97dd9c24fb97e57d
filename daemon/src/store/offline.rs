//! Work on a store that no daemon holds: `nanod store check|export|import|repair`.

mod look;

use std::fs;
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::checkpoint::{CheckpointError, Checkpoints};
use super::disk::{Folder, RealFolder};
use super::looked::Looked;
use super::open;
use super::recall::{failed, lines};
use super::report::{Short, bounded};
use super::start::{Mode, Up, part};
use super::tail::Span;
use super::truth::Truth;
use super::{StoreError, aside, dump, memory, upgrade};
use look::Memory;

/// Why work on a store did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum OfflineError {
    /// The store is held, newer, or beyond use.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What was checked is damaged; this says how.
    #[error("{0}")]
    Damaged(String),
    /// What was given cannot be taken in.
    #[error("{0}")]
    Refused(String),
    /// Something else cannot be read or written.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// What the system says.
        source: io::Error,
    },
}

fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> OfflineError {
    let what = what.into();
    move |source| OfflineError::Io { what, source }
}

/// Looks at journal and checkpoints of a store, writing nothing.
fn look(path: &Path) -> Result<Looked, StoreError> {
    RealFolder::to_read(path).map_err(|why| failed(path, &why))?;
    let part = |name: &str| {
        let folder = RealFolder::to_read(&path.join(name)).map_err(|why| failed(path, &why))?;
        Ok(Arc::new(folder) as Arc<dyn Folder>)
    };
    Looked::at(path, &part)
}

/// Returns what is wrong with journal and checkpoints.
fn wrong(looked: &Looked) -> Vec<String> {
    let Looked { checkpoints, journal, lost, .. } = looked;
    let found = &journal.found;
    let mut wrong = bounded(lost.iter().map(|lost| format!("lost: {lost}")).collect());
    let (last, through) = (found.last, checkpoints.newest().through);
    wrong.extend((last < through && through > upgrade::LINE).then(|| Short { last, through }.to_string()));
    wrong.extend(checkpoints.unreadable().iter().map(|name| format!("checkpoint/{name} cannot be read")));
    let rotten = checkpoints.rotten().into_iter().map(|name| format!("checkpoint/{name} is not as it was written"));
    wrong.extend(bounded(rotten.collect()));
    wrong.extend(found.bad_headers.iter().map(|name| format!("the header of journal/{name} cannot be read")));
    let cut = found.cut.as_ref();
    wrong.extend(cut.map(|cut| format!("{} bytes behind the end of the journal, line {}", cut.bytes, cut.from)));
    wrong
}

fn with_truth<T>(looked: &Looked, work: impl FnOnce(&mut Truth<'_>) -> T) -> T {
    let reader = looked.journal.reader();
    let mut lines = lines(&reader);
    work(&mut Truth::new(&looked.checkpoints, &looked.tail, &mut lines))
}

fn there(state: &Path) -> Result<(), StoreError> {
    let why = if state.exists() { "this is no folder" } else { "there is no such folder" };
    if state.is_dir() { Ok(()) } else { Err(failed(state, &why)) }
}

/// Checks the store of a state directory and says what there is. Nothing of it is written; the memory is opened as a
/// copy, for sled writes wherever it opens: beside it, or in `scratch` where there is no room.
pub async fn check(state: &Path, scratch: &Path) -> Result<String, OfflineError> {
    there(state)?;
    let _held = open::lock_to_read(state).await?;
    let path = state.join("store");
    if upgrade::is_due(&path) {
        return Ok(format!("{}: the first layout; the next start of nanod brings it to this one", path.display()));
    }
    let looked = look(&path)?;
    let (mut count, mut missing) = (0_u64, Vec::new());
    with_truth(&looked, |truth| {
        truth.records(&Span::all()).for_each(|record| match record {
            Ok(_) => count += 1,
            Err(lost) => missing.push(format!("lost from the checkpoint: {lost}")),
        });
    });
    let mut wrong = [wrong(&looked), bounded(missing)].concat();
    let places =
        [path.join("checking"), scratch.join(format!("nanod-checking-{}", rustix::process::getpid().as_raw_pid()))];
    let memory = look::at_memory(&path, &places, &looked);
    let newest = looked.checkpoints.newest();
    let said = format!(
        "{}: {count} records, events up to {}; checkpoint {} with the journal up to line {}, the journal up to line {}",
        path.display(),
        looked.head,
        newest.generation,
        newest.through,
        looked.journal.found.last,
    );
    let said = match memory {
        Memory::IsWell => said,
        Memory::IsWrong(why) => {
            wrong.push(why);
            said
        }
        Memory::Unseen(why) => format!("{said}\nthe memory was not looked at: {why}; the next start compares it"),
    };
    if wrong.is_empty() {
        return Ok(format!("{said}\nall is well"));
    }
    Err(OfflineError::Damaged(format!("{said}\n{}\nnanod store repair puts right what can be", wrong.join("\n"))))
}

/// Writes all that the store holds as JSON Lines; what is lost is named in the error, after the rest was written.
pub async fn export(state: &Path, mut out: impl Write) -> Result<u64, OfflineError> {
    there(state)?;
    let _held = open::lock_to_read(state).await?;
    let path = state.join("store");
    if upgrade::is_due(&path) {
        return Err(OfflineError::Refused("this store has the first layout; start nanod once to bring it up".into()));
    }
    let looked = look(&path)?;
    let mut missing = Vec::new();
    if looked.is_empty() && has_files(&memory::folder(&path)) {
        let why = "the journal and its checkpoints are gone, only the memory is there; nanod store repair first";
        return Err(failed(&path, &why).into());
    }
    let written = with_truth(&looked, |truth| {
        let all = Span::all();
        let records = truth.records(&all).filter_map(|record| record.map_err(|lost| missing.push(lost)).ok());
        dump::write(&mut out, looked.head, records)
    });
    let count = written.map_err(io("the export"))?;
    if missing.is_empty() {
        return Ok(count);
    }
    let missing = bounded(missing.iter().map(ToString::to_string).collect());
    Err(OfflineError::Damaged(format!("{count} records were written; these are lost:\n{}", missing.join("\n"))))
}

/// Takes an export into a state directory that has no store.
pub async fn import(state: &Path, input: impl BufRead) -> Result<u64, OfflineError> {
    let _held = open::lock(state).await?;
    let path = state.join("store");
    if upgrade::is_due(&path) || ["journal", "checkpoint", "memory"].iter().any(|part| has_files(&path.join(part))) {
        let why = format!("{} holds a store already; only an empty one takes an import", path.display());
        return Err(OfflineError::Refused(why));
    }
    let reader = dump::Reader::open(input).map_err(|why| OfflineError::Refused(why.to_string()))?;
    let (head, mut count) = (reader.header().head, 0);
    let making = path.join("importing");
    drop(fs::remove_dir_all(&making));
    let mut checkpoints = Checkpoints::read(part(&path, "importing")?).map_err(|why| failed(&path, &why))?;
    let built = checkpoints.build(reader.inspect(|_| count += 1), upgrade::LINE, head);
    if let Err(why) = built {
        drop(fs::remove_dir_all(&making));
        let refused = matches!(why, CheckpointError::Records(_));
        return Err(if refused { OfflineError::Refused(why.to_string()) } else { failed(&path, &why).into() });
    }
    let place = path.join("checkpoint");
    // An empty one may be there.
    drop(fs::remove_dir(&place));
    fs::rename(&making, &place).and_then(|()| aside::sync(&path)).map_err(io(place.display().to_string()))?;
    let up = bring(path.clone(), Mode::Serve).await.and_then(|up| {
        up.has_room()?;
        up.put_down()
    });
    if let Err(why) = up {
        // Nothing of it is anybody's yet.
        for part in ["memory", "journal", "checkpoint"] {
            drop(fs::remove_dir_all(path.join(part)));
        }
        return Err(why.into());
    }
    Ok(count)
}

/// Brings a store up on a thread that may wait.
async fn bring(path: PathBuf, mode: Mode) -> Result<Up, StoreError> {
    let place = path.clone();
    let brought = tokio::task::spawn_blocking(move || Up::bring(&place, mode)).await;
    brought.unwrap_or_else(|why| Err(failed(&path, &why)))
}

fn has_files(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some())
}

/// Brings a store up with whatever can be had, and says what was done.
pub async fn repair(state: &Path) -> Result<String, OfflineError> {
    there(state)?;
    let _held = open::lock(state).await?;
    let up = bring(state.join("store"), Mode::Repair).await?;
    let said = if up.report.is_damage() { up.report.lines().join("\n") } else { "nothing was wrong".into() };
    up.put_down()?;
    Ok(said)
}
