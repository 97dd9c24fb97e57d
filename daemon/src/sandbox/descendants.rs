//! The processes below one of ours, as `/proc` shows them, and signals to exactly those.
//!
//! A process id may be used again by a stranger at any moment. A signal goes through a pidfd that was opened first and
//! checked for kinship afterwards, so nothing is ever signalled that does not descend from us.

use std::collections::HashMap;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;

use rustix::process::{Pid, PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal};

/// What is needed of `/proc/PID/stat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stat {
    /// It has ended, and nobody has waited for it.
    pub zombie: bool,
    /// The process that would.
    pub parent: i32,
    /// When it began, in ticks since the machine did.
    pub started: u64,
}

/// Returns every living process below `root`, children of its children too.
pub fn descendants(root: i32) -> Vec<i32> {
    let all = all();
    all.iter().filter(|(pid, stat)| !stat.zombie && descends(**pid, root, &all)).map(|(pid, _)| *pid).collect()
}

/// Returns every living process that `belongs` says so of, or of the nearest one above it that it knows.
pub(super) fn chosen(belongs: &HashMap<i32, bool>) -> Vec<i32> {
    let all = all();
    all.iter().filter(|(pid, stat)| !stat.zombie && follows(**pid, belongs, &all)).map(|(pid, _)| *pid).collect()
}

/// How often children are looked for in a row.
const ROUNDS: usize = 100;

/// Kills those children of this process that `which` means, looking again and again: one that forks and ends at once is
/// gone before all of `/proc` was read, but what it left is a child of ours that is found within microseconds.
pub fn kill_children(which: impl Fn(i32) -> bool) {
    let own = getpid().as_raw_pid();
    for _ in 0..ROUNDS {
        for pid in children().into_iter().filter(|pid| which(*pid)) {
            let Some((_, handle)) = open(pid) else { continue };
            if of(pid).is_some_and(|stat| stat.parent == own && !stat.zombie) {
                pidfd_send_signal(handle, Signal::KILL).ok();
            }
        }
    }
}

/// Returns the children of this process, dead ones too, as the kernel lists them for each of its threads.
fn children() -> Vec<i32> {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect()
}

fn open(pid: i32) -> Option<(i32, OwnedFd)> {
    Some((pid, pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?))
}

/// Sends a signal to all that `kin` lists.
pub fn signal_all(wanted: Signal, kin: impl Fn() -> Vec<i32>) {
    let handles: Vec<_> = kin().into_iter().filter_map(open).collect();
    let still = kin();
    for (_, handle) in handles.iter().filter(|(pid, _)| still.contains(pid)) {
        // It may belong to another user: then nothing can be done.
        pidfd_send_signal(handle, wanted).ok();
    }
}

fn descends(pid: i32, root: i32, all: &HashMap<i32, Stat>) -> bool {
    above(pid, all).skip(1).any(|one| one == root)
}

fn follows(pid: i32, belongs: &HashMap<i32, bool>, all: &HashMap<i32, Stat>) -> bool {
    above(pid, all).find_map(|one| belongs.get(&one).copied()).unwrap_or(false)
}

/// Returns the process and those above it, the nearest first.
fn above(pid: i32, all: &HashMap<i32, Stat>) -> impl Iterator<Item = i32> {
    // The bound ends the walk where numbers were used again while `/proc` was read.
    std::iter::successors(Some(pid), |at| Some(all.get(at)?.parent)).take(all.len() + 1)
}

/// Returns every process that `/proc` shows.
pub(super) fn all() -> HashMap<i32, Stat> {
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid: i32| Some((pid, of(pid)?))).collect()
}

/// Returns what `/proc` shows of one process.
pub(super) fn of(pid: i32) -> Option<Stat> {
    parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Returns how many threads all processes of a user have.
pub(super) fn threads_of(user: u32) -> u64 {
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
    let theirs = pids.filter(|entry| entry.metadata().is_ok_and(|folder| folder.uid() == user));
    let threads = theirs.filter_map(|entry| fs::read_dir(entry.path().join("task")).ok());
    threads.map(|threads| threads.count() as u64).sum()
}

/// Parses what follows the command's name, which may hold anything, brackets and blanks too.
fn parse(stat: &str) -> Option<Stat> {
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let zombie = matches!(fields.next()?, "Z" | "X");
    let parent = fields.next()?.parse().ok()?;
    let started = fields.nth(17).and_then(|ticks| ticks.parse().ok()).unwrap_or(0);
    Some(Stat { zombie, parent, started })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;

    /// Each of them lives for less than it takes to read all of `/proc`.
    #[test]
    fn what_forks_and_ends_at_once_is_killed() {
        rustix::process::set_child_subreaper(Some(getpid())).unwrap();
        let endless = "import os\nwhile 1:\n if os.fork(): os._exit(0)";
        // Whoever waits for any child waits for this one too.
        drop(std::process::Command::new("python3").args(["-c", endless]).spawn().unwrap());
        let nobody_is_left = || loop {
            match rustix::process::wait(rustix::process::WaitOptions::NOHANG) {
                Ok(Some(_)) => {}
                Ok(None) => return false,
                Err(why) => return why == rustix::io::Errno::CHILD,
            }
        };
        let ended = (0..1000).any(|_| {
            kill_children(|_| true);
            nobody_is_left()
        });
        assert!(ended);
    }

    #[test]
    fn stat_lines() {
        let check = |line: &str, expected| assert_eq!(parse(line), expected, "{line}");
        let stat = |zombie, started| Some(Stat { zombie, parent: 3, started });
        check("7 (sh) S 3 7 5 0 -1", stat(false, 0));
        check("7 (a) b) (c) Z 3 7 5 0", stat(true, 0));
        check("7 (sh) S 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 4711 22 23", stat(false, 4711));
        check("7 (sh) S", None);
        check("", None);
    }

    /// 1 ← 2 ← 3 ← 4 ← 5, 1 ← 6; 8 and 9 are each other's parent, as numbers that were used again may be.
    fn tree() -> HashMap<i32, Stat> {
        let parents = [(1, 0), (2, 1), (3, 2), (4, 3), (5, 4), (6, 1), (8, 9), (9, 8)];
        parents.into_iter().map(|(pid, parent)| (pid, Stat { zombie: false, parent, started: 0 })).collect()
    }

    #[test]
    fn kinship() {
        for (pid, root, expected) in
            [(5, 2, true), (3, 2, true), (2, 2, false), (6, 2, false), (7, 2, false), (8, 2, false), (8, 9, true)]
        {
            assert_eq!(descends(pid, root, &tree()), expected, "{pid} below {root}");
        }
    }

    #[test]
    fn the_nearest_one_that_is_known_decides() {
        let belongs = HashMap::from([(2, true), (4, false)]);
        for (pid, expected) in
            [(1, false), (2, true), (3, true), (4, false), (5, false), (6, false), (7, false), (8, false)]
        {
            assert_eq!(follows(pid, &belongs, &tree()), expected, "{pid}");
        }
    }
}
