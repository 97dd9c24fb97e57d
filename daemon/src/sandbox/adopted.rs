//! Processes of commands whose keeper and helper were both killed: they become the daemon's own children, and end at once.
//!
//! The daemon is a subreaper, so that nothing a command starts ever gets out from below it.

use std::collections::HashSet;
use std::io;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, getpid, set_child_subreaper, waitpid};
use tokio::signal::unix::{SignalKind, signal};

use super::cgroup;
use super::descendants::{all, descendants, kill_children, signal_all};

/// How soon is looked again while something that was killed is still there.
const AGAIN: Duration = Duration::from_millis(25);
/// Children that the daemon started itself; who started them waits for them.
static OWN: Mutex<Option<HashSet<i32>>> = Mutex::new(None);
/// Children that this process had before it became the daemon, as one that a script became has.
static ELDER: OnceLock<HashSet<i32>> = OnceLock::new();

fn own() -> MutexGuard<'static, Option<HashSet<i32>>> {
    OWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a child of the daemon's own; `pid` tells its id.
pub(super) fn started<C>(spawn: impl FnOnce() -> io::Result<C>, pid: impl FnOnce(&C) -> Option<u32>) -> io::Result<C> {
    // Held over both, or it would look like a stranger for a moment.
    let mut own = own();
    let child = spawn()?;
    own.get_or_insert_default().extend(pid(&child).map(u32::cast_signed));
    Ok(child)
}

/// Returns the children that this process had before it became the daemon.
pub(super) fn elders() -> &'static HashSet<i32> {
    ELDER.get_or_init(HashSet::new)
}

/// Makes this process the parent of everything orphaned below it, and ends that; to be called before it starts anything.
pub fn watch() {
    ELDER.get_or_init(|| children().map(|(pid, _)| pid).collect());
    if !ends_strangers() {
        tracing::warn!(
            "started as the first process or with children: a command that kills its keeper is ended only at the next start"
        );
    }
    match set_child_subreaper(Some(getpid())) {
        Ok(()) => drop(tokio::spawn(keep_ending())),
        Err(error) => tracing::warn!(%error, "a command that kills its keeper is not ended"),
    }
}

fn children() -> impl Iterator<Item = (i32, bool)> {
    let parent = getpid().as_raw_pid();
    all().into_iter().filter(move |(_, stat)| stat.parent == parent).map(|(pid, stat)| (pid, stat.zombie))
}

/// Ends what the daemon did not start itself, whenever a child has ended.
async fn keep_ending() {
    let Ok(mut child_ended) = signal(SignalKind::child()) else {
        return tracing::error!("SIGCHLD cannot be caught: what escapes its keeper is not ended");
    };
    while child_ended.recv().await.is_some() {
        let mut escaped = false;
        while tokio::task::spawn_blocking(end).await.unwrap_or(false) {
            escaped = true;
            tokio::time::sleep(AGAIN).await;
        }
        if escaped {
            cgroup::ground().tidy();
        }
    }
}

/// Tells whether what nobody started here is a command's: as the first process of a container, or below a script, there
/// are orphans of others.
fn ends_strangers() -> bool {
    !getpid().is_init() && elders().is_empty()
}

/// Reaps and kills once; tells whether something is left to do.
fn end() -> bool {
    let mut own = own();
    let own = own.get_or_insert_default();
    let (gone, living): (Vec<_>, Vec<_>) = children().partition(|(_, zombie)| *zombie);
    own.retain(|pid| gone.contains(&(*pid, true)) || living.contains(&(*pid, false)));
    let is_stranger = |pid: &i32| !own.contains(pid) && !elders().contains(pid);
    for (pid, _) in gone.into_iter().filter(|(pid, _)| is_stranger(pid)) {
        // It cannot be anybody else by now: nobody else waits for it.
        waitpid(Pid::from_raw(pid), WaitOptions::NOHANG).ok();
    }
    if !ends_strangers() {
        return false;
    }
    let strangers = || children().map(|(pid, _)| pid).filter(is_stranger).collect::<Vec<_>>();
    let kin = || strangers().into_iter().flat_map(|pid| [vec![pid], descendants(pid)].concat()).collect();
    let found: usize = strangers().len();
    if found > 0 {
        tracing::warn!(found, "processes that had escaped their keeper were ended");
        signal_all(Signal::KILL, kin);
        kill_children(|pid| is_stranger(&pid));
    }
    found > 0
}
