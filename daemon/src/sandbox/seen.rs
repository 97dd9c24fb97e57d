//! The versions of files that a session's tools have seen: who changed one since is not overwritten unawares.
//!
//! Kept in memory alone: after a restart nothing is known, and a change is taken as it comes.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::Stat;

/// How many files are remembered; beyond, all are forgotten.
const MOST: usize = 10_000;

/// What tells two versions of a file apart without reading them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Version {
    place: (u64, u64),
    bytes: i64,
    changed: (i64, u64),
}

impl Version {
    fn of(stat: &Stat) -> Self {
        let changed = (stat.st_mtime, stat.st_mtime_nsec);
        Self { place: (stat.st_dev, stat.st_ino), bytes: stat.st_size, changed }
    }
}

/// The versions that one session has seen, by where the files really are.
#[derive(Debug, Default)]
pub struct Seen(Mutex<HashMap<PathBuf, Version>>);

impl Seen {
    /// Remembers a version that was read or written.
    pub fn note(&self, path: &Path, stat: &Stat) {
        let mut files = self.files();
        if files.len() >= MOST {
            files.clear();
        }
        files.insert(path.to_owned(), Version::of(stat));
    }

    /// Tells whether the file is another one than the one that was seen last.
    pub fn is_stale(&self, path: &Path, now: &Stat) -> bool {
        self.files().get(path).is_some_and(|seen| *seen != Version::of(now))
    }

    fn files(&self) -> MutexGuard<'_, HashMap<PathBuf, Version>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
