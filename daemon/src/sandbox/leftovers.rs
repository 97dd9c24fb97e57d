//! Processes that an earlier run of this daemon left, where its helpers died with it: found by a mark in the environment
//! that every command begins with, and ended before any session goes on.
//!
//! The mark names the state folder by a random word and by the file that holds it, so that a copy of the folder has
//! another one. A daemon that is started from within a command begins its environment with an empty mark: it, and what is
//! below it, belongs to nobody.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Signal, geteuid, getpid};

use super::cgroup;
use super::descendants::{chosen, signal_all};
use super::helper::GRACE;
use crate::clock::Clock;

/// The variable that holds the mark.
pub const MARK: &str = "NANO_COMMAND_OF";
/// A helper that is still there ends what is below it itself; it gets so much longer than it gives.
const AIR: Duration = Duration::from_secs(1);
/// How long what was killed may take to be gone, for instance while it waits for a disk.
const GONE: Duration = Duration::from_secs(3);
/// How often is looked.
const LOOK: Duration = Duration::from_millis(10);

/// Starts this program anew, with an empty mark, if a command of a daemon started it; returns only if that was not so, or
/// why it did not work.
pub fn step_out(mark: Option<&str>, mut arguments: impl Iterator<Item = OsString>) -> io::Result<()> {
    if mark.is_none() {
        return Ok(());
    }
    let mut command = Command::new("/proc/self/exe");
    command.arg0(arguments.next().unwrap_or_default()).args(arguments).env(MARK, "");
    Err(command.exec())
}

/// Returns the mark of the daemon whose state is in `state`, which only one runs on.
fn mark(state: &Path) -> io::Result<String> {
    let path = state.join("instance");
    if !path.exists() {
        let fresh = state.join("instance.new");
        fs::write(&fresh, Clock::default().ulid())?;
        fs::rename(fresh, &path)?;
    }
    let (word, file) = (fs::read_to_string(&path)?, fs::metadata(&path)?);
    Ok(format!("{}-{:x}-{:x}", word.trim(), file.dev(), file.ino()))
}

/// Ends what an earlier run on `state` left running, and returns the variable by which the next one finds what this one
/// leaves.
pub async fn end_all(state: &Path) -> Option<(String, String)> {
    let state = state.to_owned();
    let ended = tokio::task::spawn_blocking(move || {
        let mark = mark(&state)?;
        let (found, left) = end(&mark);
        io::Result::Ok((mark, found, left))
    });
    match ended.await.unwrap_or_else(|panic| Err(io::Error::other(panic))) {
        Ok((mark, found, left)) => {
            match (found, left) {
                (0, _) => {}
                (_, 0) => tracing::warn!(found, "processes that an earlier run left were ended"),
                _ => tracing::error!(found, left, "processes that an earlier run left do not end"),
            }
            cgroup::prepare(&mark).await;
            Some((MARK.to_owned(), mark))
        }
        Err(error) => {
            tracing::error!(%error, "what an earlier run left running cannot be looked for");
            None
        }
    }
}

/// Ends every process with this mark and what is below it: TERM, some time, KILL. Waits for that, and returns how many
/// were found and how many are left.
#[expect(clippy::disallowed_methods, reason = "it runs on a thread of its own, before anything is served")]
fn end(mark: &str) -> (usize, usize) {
    let kin = || chosen(&belongs(mark));
    let found = kin();
    if found.is_empty() {
        return (0, 0);
    }
    signal_all(Signal::TERM, kin);
    // What is stopped takes the TERM only once it goes on.
    signal_all(Signal::CONT, kin);
    let (polite, last) = (Instant::now() + GRACE + AIR, Instant::now() + GRACE + AIR + GONE);
    let mut left = kin();
    while !left.is_empty() && Instant::now() < last {
        if Instant::now() >= polite {
            signal_all(Signal::KILL, kin);
        }
        thread::sleep(LOOK);
        left = kin();
    }
    (found.len(), left.len())
}

/// Tells of every process of our user that has a mark whether it belongs to the daemon of this one.
fn belongs(mark: &str) -> HashMap<i32, bool> {
    let own = getpid().as_raw_pid();
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let marked = pids.filter_map(|pid| Some((pid, marked(&environment(pid)?)? == mark.as_bytes())));
    marked.chain([(own, false)]).collect()
}

/// Tells whether the environment of a process of our user has this mark.
pub(super) fn is_marked(pid: i32, mark: &str) -> bool {
    environment(pid).is_some_and(|environment| marked(&environment) == Some(mark.as_bytes()))
}

fn environment(pid: i32) -> Option<Vec<u8>> {
    let folder = format!("/proc/{pid}");
    let ours = fs::metadata(&folder).is_ok_and(|folder| folder.uid() == geteuid().as_raw());
    ours.then(|| fs::read(format!("{folder}/environ")).ok()).flatten()
}

/// Returns the mark in an environment, as `/proc` shows it.
fn marked(environment: &[u8]) -> Option<&[u8]> {
    environment.split(|byte| *byte == 0).find_map(|one| one.strip_prefix(MARK.as_bytes())?.strip_prefix(b"="))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn marks_in_environments() {
        for (environment, expected) in [
            (&b"A=1\0NANO_COMMAND_OF=x-1\0B=2\0"[..], Some(&b"x-1"[..])),
            (b"NANO_COMMAND_OF=", Some(b"")),
            (b"NANO_COMMAND_OFF=x\0", None),
            (b"A=NANO_COMMAND_OF=x\0", None),
            (b"NANO_COMMAND_OF\0", None),
            (b"", None),
        ] {
            assert_eq!(marked(environment), expected);
        }
    }

    #[test]
    fn a_state_folder_keeps_its_mark_and_a_copy_has_another() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let first = mark(one.path()).unwrap();
        assert_eq!(mark(one.path()).unwrap(), first);
        fs::copy(one.path().join("instance"), two.path().join("instance")).unwrap();
        let copied = mark(two.path()).unwrap();
        assert_ne!(copied, first);
        let moved = one.path().join("moved");
        fs::create_dir(&moved).unwrap();
        fs::rename(one.path().join("instance"), moved.join("instance")).unwrap();
        assert_eq!(mark(&moved).unwrap(), first);
    }
}
