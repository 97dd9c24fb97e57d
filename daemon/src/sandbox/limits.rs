//! How much a command may take of the machine.

use std::fs;
use std::io;
use std::path::Path;

use rustix::fs::statvfs;
use rustix::process::{Resource, Rlimit, geteuid, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

use super::cgroup::{self, Groups};
use super::descendants;

const MIB: u64 = 1024 * 1024;
/// How many processes and threads the commands of a session may have.
pub const PROCESSES: u64 = 1024;
/// How many files a process may have open.
const FILES: u64 = 65_536;
/// What must stay free on the disk of the workspace, or an eighth of a small one: what the store asks for too.
const FREE: u64 = 64 * MIB;
/// A file may always be so long.
const SHORT_FILE: u64 = MIB;
/// The first to be killed where the machine has no memory left.
const OOM_SCORE: &str = "1000";
/// Behind everything that people wait for.
const NICE: i32 = 5;

/// How much a command may take.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// The control groups it is in.
    pub groups: Groups,
    /// How many processes its user may have beyond those there are now, where no control group counts them.
    processes: Option<u64>,
    /// How many bytes of memory a process of it may have, where no control group counts them.
    memory: Option<u64>,
    /// How long a file may get.
    file: Option<u64>,
}

impl Limits {
    /// Returns those of a command of this session that starts in `cwd`.
    pub fn of_command(session: &str, cwd: &Path) -> Self {
        let groups = cgroup::ground().groups(session);
        let processes = (!groups.limits_processes()).then_some(PROCESSES);
        let memory = (!groups.limits_memory()).then(cgroup::memory).flatten();
        Self { groups, processes, memory, file: longest_file(cwd) }
    }

    /// Sets them for this process and all that it starts; before it loses sight of the files that this takes.
    pub fn apply(&self) -> io::Result<()> {
        self.groups.enter();
        // Any process may make these worse for itself.
        fs::write("/proc/self/oom_score_adj", OOM_SCORE)?;
        rustix::process::nice(NICE)?;
        // A core would hold what the program had in memory, and fill the disk.
        lower(Resource::Core, 0)?;
        lower(Resource::Nofile, FILES)?;
        if let Some(more) = self.processes.filter(|_| !geteuid().is_root()) {
            lower(Resource::Nproc, threads_of_user() + more)?;
        }
        if let Some(bytes) = self.memory {
            lower(Resource::Data, bytes)?;
        }
        self.file.map_or(Ok(()), |bytes| lower(Resource::Fsize, bytes))
    }

    /// Says which of them it came up against that ended in this way, after what its groups told.
    pub fn reached(&self, of_groups: Vec<String>, status: Option<i32>, signal: Option<i32>) -> Vec<String> {
        let too_long = signal == Some(libc::SIGXFSZ) || status == Some(128 + libc::SIGXFSZ);
        let file = self
            .file
            .filter(|_| too_long)
            .map(|bytes| format!("killed: the disk would be full; a file may have {} MiB here now", bytes / MIB));
        of_groups.into_iter().chain(file).collect()
    }
}

/// Lowers a limit for good; one that is lower already stays.
fn lower(resource: Resource, to: u64) -> io::Result<()> {
    let was = getrlimit(resource);
    let least = |was: Option<u64>| Some(was.map_or(to, |was| was.min(to)));
    setrlimit(resource, Rlimit { current: least(was.current), maximum: least(was.maximum) })?;
    Ok(())
}

fn threads_of_user() -> u64 {
    descendants::threads_of(geteuid().as_raw())
}

/// Returns how long a file may get on the disk of `folder`, so that the disk is not full then.
fn longest_file(folder: &Path) -> Option<u64> {
    let disk = statvfs(folder).ok()?;
    let bytes = |blocks: u64| blocks.saturating_mul(disk.f_frsize);
    // Some do not tell.
    (disk.f_blocks > 0).then(|| room(bytes(disk.f_blocks), bytes(disk.f_bavail)))
}

/// Tells whether the disk of `folder` has less free than what must stay so.
pub fn is_short(folder: &Path) -> bool {
    longest_file(folder).is_some_and(|bytes| bytes <= SHORT_FILE)
}

fn room(total: u64, free: u64) -> u64 {
    free.saturating_sub(FREE.min(total / 8)).max(SHORT_FILE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_leaves_room_on_its_disk() {
        for (total, free, expected) in [
            (1 << 40, 1 << 39, (1 << 39) - FREE),
            (80 * MIB, 80 * MIB, 70 * MIB),
            (80 * MIB, 10 * MIB, MIB),
            (80 * MIB, 0, MIB),
            (u64::MAX, u64::MAX, u64::MAX - FREE),
        ] {
            assert_eq!(room(total, free), expected, "{free} of {total}");
        }
    }

    #[test]
    fn what_was_reached_is_told() {
        let limits = Limits { file: Some(70 * MIB), ..Limits::default() };
        for (status, signal, told) in
            [(Some(0), None, false), (Some(153), None, true), (None, Some(25), true), (None, Some(9), false)]
        {
            assert_eq!(
                limits.reached(Vec::new(), status, signal).iter().any(|it| it.contains("70 MiB")),
                told,
                "{status:?} {signal:?}"
            );
        }
    }
}
