//! Sockets with a name that others made, and that are closed to a command.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::fd::BorrowedFd;
use std::path::PathBuf;

use rustix::io::Errno;
use rustix::mount::mount_bind;
use rustix::process::getppid;

use super::mounting::held;
use crate::sandbox::descendants::{descendants, of};
use crate::sandbox::reach::Reach;

/// The sockets of this machine that have a name, closed or not.
const LIST: &str = "/proc/net/unix";
/// So many are closed; where there are more, commands have no Unix sockets.
const MOST: usize = 500;

/// The sockets of others, by where they are.
pub struct Sockets(BTreeSet<PathBuf>);

impl Sockets {
    /// Lists all of this machine but those in the writable folders that commands have made. To be called while other
    /// processes can still be looked into.
    pub fn look(reach: &Reach) -> Option<Self> {
        let list = File::open(LIST).ok()?;
        let lines = BufReader::new(list).lines().map_while(Result::ok);
        let named: BTreeMap<PathBuf, String> = lines.filter_map(|line| entry(&line)).collect();
        let folders = [&reach.workspace, &reach.temporary];
        let (within, mut others): (BTreeMap<_, _>, BTreeMap<_, _>) =
            named.into_iter().partition(|(path, _)| folders.iter().any(|folder| path.starts_with(folder)));
        let made = if within.is_empty() { BTreeSet::new() } else { made_by_commands() };
        others.extend(within.into_iter().filter(|(_, number)| !made.contains(number)));
        Some(Self(others.into_keys().collect()))
    }

    /// Covers every one of them: D-Bus, systemd, Docker, nanod itself. A socket counts no rights to files before
    /// Landlock's ninth version, and who may talk to one of these may do what it does.
    pub fn close(self, nothing: BorrowedFd<'_>) -> bool {
        let close = |path: &PathBuf| match mount_bind(held(nothing), path) {
            // What we cannot get at, the command cannot either.
            Ok(()) | Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) => true,
            Err(_) => false,
        };
        self.0.len() <= MOST && self.0.iter().all(close)
    }
}

/// Returns where a socket of the list is, and its number.
fn entry(line: &str) -> Option<(PathBuf, String)> {
    let at = line.find(" /")?;
    let number = line.get(..at)?.split_whitespace().last()?;
    Some((line.get(at + 1..)?.into(), format!("socket:[{number}]")))
}

/// Returns the sockets of processes that the daemon has running in confinement. Between it and this process are a helper
/// and a keeper.
fn made_by_commands() -> BTreeSet<String> {
    let helper = getppid().map_or(0, rustix::process::Pid::as_raw_pid);
    let parent = |pid| of(pid).map(|stat| stat.parent);
    let daemon = parent(helper).and_then(parent).filter(|pid| *pid > 1);
    let below = daemon.map(descendants).unwrap_or_default();
    below.into_iter().filter(|pid| is_confined(*pid)).flat_map(sockets_of).collect()
}

fn is_confined(pid: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    ["NoNewPrivs:\t1", "Seccomp:\t2"].iter().all(|mark| status.contains(mark))
}

fn sockets_of(pid: i32) -> Vec<String> {
    let open = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let links = open.filter_map(|entry| fs::read_link(entry.path()).ok()?.into_os_string().into_string().ok());
    links.filter(|link| link.starts_with("socket:")).collect()
}
