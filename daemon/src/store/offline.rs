//! Work on a store that no daemon holds: `nanod store check|export|import|repair`.

use std::fs;
use std::io::{self, BufRead, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use super::checkpoint::{CheckpointError, Checkpoints};
use super::journal::reader::Reader;
use super::open::{self, StateLock};
use super::recall::{lines, tail};
use super::start::{Mode, Up, part};
use super::tail::{Span, Tail};
use super::truth::Truth;
use super::verify::is_same;
use super::{StoreError, aside, dump, journal, memory, upgrade};

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

/// Journal and checkpoints of a store, looked at and not changed.
struct Parts {
    checkpoints: Checkpoints,
    reader: Reader,
    tail: Tail,
    head: u64,
    /// What is wrong with them.
    wrong: Vec<String>,
}

fn unusable(path: &Path, why: &impl ToString) -> StoreError {
    StoreError::Open { path: path.to_owned(), why: why.to_string() }
}

fn look(path: &Path) -> Result<Parts, StoreError> {
    let checkpoints = Checkpoints::read(part(path, "checkpoint")?).map_err(|why| unusable(path, &why))?;
    let (reader, found) = journal::inspect(part(path, "journal")?).map_err(|why| unusable(path, &why))?;
    let (tail, head, lost) = tail(&checkpoints, &reader);
    let mut wrong: Vec<String> = lost.iter().map(|lost| format!("lost: {lost}")).collect();
    wrong.extend(checkpoints.unreadable().iter().map(|name| format!("checkpoint/{name} cannot be read")));
    wrong.extend(checkpoints.rotten().iter().map(|name| format!("checkpoint/{name} is not as it was written")));
    wrong.extend(found.bad_headers.iter().map(|name| format!("the header of journal/{name} cannot be read")));
    wrong.extend(found.cut.map(|cut| format!("{} bytes behind the end of the journal, line {}", cut.bytes, cut.from)));
    Ok(Parts { checkpoints, reader, tail, head, wrong })
}

impl Parts {
    fn with_truth<T>(&self, work: impl FnOnce(&mut Truth<'_>) -> T) -> T {
        let mut lines = lines(&self.reader);
        work(&mut Truth::new(&self.checkpoints, &self.tail, &mut lines))
    }
}

async fn held(state: &Path) -> Result<StateLock, StoreError> {
    if !state.is_dir() {
        return Err(unusable(state, &"there is no such folder"));
    }
    open::lock(state).await
}

/// Checks the store of a state directory and says what there is. Journal and checkpoints are only read; the memory is
/// opened as a copy, for sled writes wherever it opens.
pub async fn check(state: &Path) -> Result<String, OfflineError> {
    let _held = held(state).await?;
    let path = state.join("store");
    if upgrade::is_due(&path) {
        return Ok(format!("{}: the first layout; the next start of nanod brings it to this one", path.display()));
    }
    let parts = look(&path)?;
    let mut wrong = parts.wrong.clone();
    let mut count = 0_u64;
    parts.with_truth(|truth| {
        truth.records(&Span::all()).for_each(|record| match record {
            Ok(_) => count += 1,
            Err(missing) => wrong.push(format!("lost from the checkpoint: {missing}")),
        });
    });
    let copy = path.join("checking");
    let memory = catch_unwind(AssertUnwindSafe(|| look_at_memory(&path, &copy, &parts)));
    let memory = memory.unwrap_or_else(|_| Err("the memory is damaged: sled panicked".into()));
    drop(fs::remove_dir_all(&copy));
    wrong.extend(memory.err());
    let newest = parts.checkpoints.newest();
    let said = format!(
        "{}: {count} records, events up to {}; checkpoint {} with the journal up to line {}, the journal up to line {}",
        path.display(),
        parts.head,
        newest.generation,
        newest.through,
        parts.reader.last(),
    );
    if wrong.is_empty() {
        return Ok(format!("{said}\nall is well"));
    }
    Err(OfflineError::Damaged(format!("{said}\n{}\nnanod store repair puts right what can be", wrong.join("\n"))))
}

/// Compares a copy of the memory, filled from the journal, with the truth.
fn look_at_memory(path: &Path, copy: &Path, parts: &Parts) -> Result<(), String> {
    let folder = memory::folder(path);
    if !folder.exists() {
        return if parts.reader.last() == 0 { Ok(()) } else { Err("the memory is not there".into()) };
    }
    drop(fs::remove_dir_all(copy));
    copy_all(&folder, copy).map_err(|why| format!("the memory cannot be copied to be looked at: {why}"))?;
    let sled = memory::open(copy, &copy.join("set-aside")).map_err(|why| format!("the memory does not open: {why}"))?;
    let told = |error: StoreError| format!("the memory: {error}");
    let applied = sled.applied().map_err(told)?.ok_or("the memory does not know how far it has come")?;
    if applied > parts.reader.last().max(parts.checkpoints.newest().through) {
        return Err(format!("the memory knows line {applied}, which the journal has lost"));
    }
    for line in parts.reader.lines(applied, u64::MAX).filter_map(Result::ok) {
        sled.apply(&line.entries, Some(line.number)).map_err(told)?;
    }
    let wrong = parts.with_truth(|truth| {
        let parts = truth.parts();
        let mut wrong = 0_u64;
        for part in &parts {
            wrong += u64::from(!is_same(&sled, truth, part)?);
        }
        Ok::<_, StoreError>((wrong, parts.len()))
    });
    match wrong.map_err(told)? {
        (0, _) => Ok(()),
        (wrong, all) => Err(format!("the memory differs from the truth in {wrong} of {all} parts")),
    }
}

fn copy_all(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_all(&entry.path(), &to)?;
        } else {
            fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}

/// Writes all that the store holds as JSON Lines; what is lost is named in the error, after the rest was written.
pub async fn export(state: &Path, mut out: impl Write) -> Result<u64, OfflineError> {
    let _held = held(state).await?;
    let path = state.join("store");
    if upgrade::is_due(&path) {
        return Err(OfflineError::Refused("this store has the first layout; start nanod once to bring it up".into()));
    }
    let parts = look(&path)?;
    let mut missing = Vec::new();
    if parts.reader.last() == 0 && has_files(&memory::folder(&path)) {
        let why = "the journal and its checkpoints are gone, only the memory is there; nanod store repair first";
        return Err(unusable(&path, &why).into());
    }
    let written = parts.with_truth(|truth| {
        let all = Span::all();
        let records = truth.records(&all).filter_map(|record| record.map_err(|lost| missing.push(lost)).ok());
        dump::write(&mut out, parts.head, records)
    });
    let count = written.map_err(io("the export"))?;
    if missing.is_empty() {
        return Ok(count);
    }
    let missing: Vec<String> = missing.iter().map(ToString::to_string).collect();
    Err(OfflineError::Damaged(format!("{count} records were written; these are lost: {}", missing.join("; "))))
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
    let mut checkpoints = Checkpoints::read(part(&path, "importing")?).map_err(|why| unusable(&path, &why))?;
    let built = checkpoints.build(reader.inspect(|_| count += 1), upgrade::LINE, head);
    if let Err(why) = built {
        drop(fs::remove_dir_all(&making));
        let refused = matches!(why, CheckpointError::Records(_));
        return Err(if refused { OfflineError::Refused(why.to_string()) } else { unusable(&path, &why).into() });
    }
    let place = path.join("checkpoint");
    // An empty one may be there.
    drop(fs::remove_dir(&place));
    fs::rename(&making, &place).and_then(|()| aside::sync(&path)).map_err(io(place.display().to_string()))?;
    Ok(count)
}

fn has_files(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some())
}

/// Brings a store up with whatever can be had, and says what was done.
pub async fn repair(state: &Path) -> Result<String, OfflineError> {
    let _held = held(state).await?;
    let path = state.join("store");
    let brought = tokio::task::spawn_blocking(move || {
        let up = Up::bring(&path, Mode::Repair)?;
        let said = if up.report.is_damage() { up.report.to_string() } else { "nothing was wrong".into() };
        up.put_down()?;
        Ok::<_, StoreError>(said)
    });
    brought.await.map_err(|why| OfflineError::Refused(why.to_string()))?.map_err(OfflineError::from)
}
