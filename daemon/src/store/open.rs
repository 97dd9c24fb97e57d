//! Opening: the folder's lock, start-up hygiene, the schema, and the writer's start.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use tokio::sync::{mpsc, watch};

use super::{Gate, Key, Opened, Publish, SCHEMA, Store, StoreError, writer};

/// The state directory, held against other daemons while this lives.
pub struct StateLock {
    _file: File,
}

/// How often a folder is tried again whose holder is dead: a child of it may have to reach its `exec` first.
const TRIES: u32 = 100;

/// Makes the state directory where it is missing and holds it, or names who does; waits a little for a dead holder.
pub async fn lock(state: &Path) -> Result<StateLock, StoreError> {
    let mut tries = 0;
    loop {
        match try_lock(state) {
            Err(StoreError::Held { pid, .. }) if tries < TRIES && is_dead(&pid) => {
                tries += 1;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            other => return other,
        }
    }
}

fn is_dead(pid: &str) -> bool {
    // A holder that has not written itself down yet lives.
    !pid.is_empty() && !Path::new("/proc").join(pid).exists()
}

fn try_lock(state: &Path) -> Result<StateLock, StoreError> {
    let failed = |why: std::io::Error| StoreError::Open { path: state.to_owned(), why: why.to_string() };
    fs::DirBuilder::new().recursive(true).mode(0o700).create(state).map_err(failed)?;
    let path = state.join("lock");
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&path)
        .map_err(failed)?;
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        let mut pid = String::new();
        // An empty answer is answer enough: the holder is just starting.
        file.read_to_string(&mut pid).map_err(failed)?;
        return Err(StoreError::Held { path: state.to_owned(), pid: pid.trim().to_owned() });
    }
    file.set_len(0).map_err(failed)?;
    writeln!(file, "{}", rustix::process::getpid().as_raw_pid()).map_err(failed)?;
    Ok(StateLock { _file: file })
}

impl Store {
    /// Opens the store in `path`, whose state directory the caller holds, and starts its writer.
    pub async fn open(path: &Path, _held: &StateLock, publish: Publish) -> Result<Self, StoreError> {
        set_generating_aside(path)?;
        let db = open_free_sled(path).await?;
        let epoch = check_schema(&db, path)?;
        let head = number(&db, path, "seq")?;
        let failed = |why: std::io::Error| StoreError::Open { path: path.to_owned(), why: why.to_string() };
        let file = File::open(path.join("db")).map_err(failed)?;
        // A new store's files must be found again after a power cut: what they hold, and their names.
        for what in [path.join("db"), path.to_owned(), path.join("..")] {
            File::open(what).and_then(|what| what.sync_all()).map_err(failed)?;
        }
        let (inbox, requests) = mpsc::channel(1024);
        let opened = Opened { epoch, head };
        let gate = Gate::default();
        let (failing, failure) = watch::channel(None);
        let writer = writer::Writer { db: db.clone(), file, opened, publish, gate: gate.clone(), failure: failing };
        writer::start(writer, requests).map_err(failed)?;
        Ok(Self { db, inbox, path: Arc::from(path), opened, gate, failure })
    }
}

/// A snapshot that sled was writing when it was stopped makes it refuse to open for ever; the log has it all.
fn set_generating_aside(path: &Path) -> Result<(), StoreError> {
    let Ok(entries) = fs::read_dir(path) else { return Ok(()) };
    for entry in entries.flatten() {
        let from = entry.path();
        if from.extension().is_some_and(|end| end == "generating") {
            let aside = path.join("set-aside");
            let moved = fs::create_dir_all(&aside).and_then(|()| fs::rename(&from, aside.join(entry.file_name())));
            moved.map_err(|why| StoreError::Open { path: from.clone(), why: why.to_string() })?;
            tracing::warn!(file = %from.display(), "an unfinished snapshot was set aside; nothing is lost by that");
        }
    }
    Ok(())
}

/// Opens sled, patient where its own lock is held: the folder is ours, so the holder is on its way out.
async fn open_free_sled(path: &Path) -> Result<sled::Db, StoreError> {
    let mut tries = 0;
    loop {
        match open_sled(path) {
            Err(StoreError::Open { why, .. }) if tries < TRIES && why.contains("acquire lock") => {
                tries += 1;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            other => return other,
        }
    }
}

/// sled panics on some damage: a panic is an answer here, not an end.
fn open_sled(path: &Path) -> Result<sled::Db, StoreError> {
    let config = sled::Config::new().path(path).flush_every_ms(None).cache_capacity(16 * 1024 * 1024);
    let opened = catch_unwind(AssertUnwindSafe(|| config.open()));
    let failed = |why: String| StoreError::Open { path: PathBuf::from(path), why };
    match opened {
        Ok(Ok(db)) => Ok(db),
        Ok(Err(why)) => Err(failed(why.to_string().replace('\n', " "))),
        Err(_) => Err(failed("sled found it damaged and panicked".into())),
    }
}

/// Refuses a newer schema, writes ours into a new store, and counts the opening.
fn check_schema(db: &sled::Db, path: &Path) -> Result<u64, StoreError> {
    let found = u32::try_from(number(db, path, "schema")?).unwrap_or(u32::MAX);
    if found > SCHEMA {
        return Err(StoreError::Newer { path: path.to_owned(), found });
    }
    let epoch = number(db, path, "epoch")? + 1;
    let mut batch = sled::Batch::default();
    batch.insert(Key::meta("schema").0, &u64::from(SCHEMA).to_be_bytes());
    batch.insert(Key::meta("epoch").0, &epoch.to_be_bytes());
    let written = db.apply_batch(batch).and_then(|()| db.flush());
    written.map_err(|why| StoreError::Open { path: path.to_owned(), why: why.to_string() })?;
    Ok(epoch)
}

/// Returns a number that the store keeps of itself; 0 in a new store. One that cannot be read must not pass for 0.
fn number(db: &sled::Db, path: &Path, name: &str) -> Result<u64, StoreError> {
    let failed = |why: String| StoreError::Open { path: path.to_owned(), why };
    let Some(bytes) = db.get(Key::meta(name).0).map_err(|why| failed(why.to_string()))? else { return Ok(0) };
    let bytes = bytes.as_ref().try_into().map_err(|_| failed(format!("its number {name} is damaged")))?;
    Ok(u64::from_be_bytes(bytes))
}
