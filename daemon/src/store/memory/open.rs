//! Opening sled: what makes it refuse for ever is put aside first, its panics are answers, and it has a deadline.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use super::super::disk;
use super::Memory;

/// How long sled may take; it opens a million messages in a second.
const DEADLINE: Duration = Duration::from_mins(2);
/// How often it is tried again while its own lock is held: the folder is ours, so the holder is on its way out.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(20);

/// Opens or makes the sled in `path`; unfinished snapshots go to `aside`.
pub fn open(path: &Path, aside: &Path) -> Result<Memory, String> {
    disk::make(path).and_then(|()| disk::check_kinds(path)).map_err(|why| why.to_string())?;
    set_generating_aside(path, aside)?;
    let mut tries = 0;
    loop {
        match open_in_time(path) {
            Err(why) if tries < TRIES && why.contains("acquire lock") => {
                tries += 1;
                std::thread::park_timeout(PAUSE);
            }
            other => return other,
        }
    }
}

/// A snapshot that sled was writing when it was stopped makes it refuse to open for ever; the log has it all.
fn set_generating_aside(path: &Path, aside: &Path) -> Result<(), String> {
    let entries = fs::read_dir(path).map_err(|why| why.to_string())?;
    for entry in entries.flatten() {
        let from = entry.path();
        if from.extension().is_some_and(|end| end == "generating") {
            let moved = fs::create_dir_all(aside).and_then(|()| fs::rename(&from, aside.join(entry.file_name())));
            moved.map_err(|why| format!("{}: {why}", from.display()))?;
            tracing::warn!(file = %from.display(), "an unfinished snapshot was set aside; nothing is lost by that");
        }
    }
    Ok(())
}

/// A thread that does not come back keeps only what was set aside by then.
fn open_in_time(path: &Path) -> Result<Memory, String> {
    let (done, opened) = mpsc::channel();
    let path = path.to_owned();
    let open = move || drop(done.send(open_sled(&path)));
    std::thread::Builder::new().name("store-memory".into()).spawn(open).map_err(|why| why.to_string())?;
    opened.recv_timeout(DEADLINE).unwrap_or_else(|_| Err(format!("sled did not open in {DEADLINE:?}")))
}

/// sled panics on some damage: a panic is an answer here, not an end.
fn open_sled(path: &Path) -> Result<Memory, String> {
    let config = sled::Config::new().path(path).flush_every_ms(None).cache_capacity(16 * 1024 * 1024);
    match catch_unwind(AssertUnwindSafe(|| config.open())) {
        Ok(Ok(db)) => Ok(Memory { db, path: path.to_owned() }),
        Ok(Err(why)) => Err(why.to_string().replace('\n', " ")),
        Err(_) => Err("sled found it damaged and panicked".into()),
    }
}
