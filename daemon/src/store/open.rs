//! The lock of the state directory, and the way in.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};

use super::start::{Mode, Up};
use super::{Publish, Store, StoreError, disk, recall};

/// The state directory, held against other daemons while this lives.
pub struct StateLock {
    /// None where there is none and none can be made: then nobody else holds it either.
    _file: Option<File>,
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

/// Holds the state directory for who only reads, whether its disk takes anything or not.
pub async fn lock_to_read(state: &Path) -> Result<StateLock, StoreError> {
    match lock(state).await {
        Err(StoreError::Open { .. } | StoreError::NoRoom(_)) => {}
        other => return other,
    }
    let path = state.join("lock");
    match File::open(&path) {
        Err(why) if why.kind() == ErrorKind::NotFound => Ok(StateLock { _file: None }),
        Err(why) => Err(recall::failed(&path, &why)),
        Ok(file) if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() => {
            Ok(StateLock { _file: Some(file) })
        }
        Ok(_) => {
            let pid = fs::read_to_string(&path).unwrap_or_default().trim().to_owned();
            Err(StoreError::Held { path: state.to_owned(), pid })
        }
    }
}

fn is_dead(pid: &str) -> bool {
    // A holder that has not written itself down yet lives.
    !pid.is_empty() && !Path::new("/proc").join(pid).exists()
}

fn try_lock(state: &Path) -> Result<StateLock, StoreError> {
    let failed = |why: std::io::Error| recall::failed(state, &why);
    disk::make(state).map_err(failed)?;
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
    // The lock holds without it: on a full disk the next one cannot be told who has it.
    if let Err(error) = file.set_len(0).and_then(|()| writeln!(file, "{}", rustix::process::getpid().as_raw_pid())) {
        tracing::warn!(%error, "the process id cannot be noted in the lock");
    }
    Ok(StateLock { _file: Some(file) })
}

impl Store {
    /// Opens the store in `path`, whose state directory the caller holds, and starts its threads.
    pub async fn open(path: &Path, _held: &StateLock, publish: Publish) -> Result<Self, StoreError> {
        let folder = path.to_owned();
        let opened = tokio::task::spawn_blocking(move || Up::bring(&folder, Mode::Serve)?.serve(publish)).await;
        opened.unwrap_or_else(|why| Err(StoreError::Open { path: path.to_owned(), why: why.to_string() }))
    }
}
