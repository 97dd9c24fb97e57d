//! Which processes belong to a test: those that stand in its folder, or carry its path.

use std::fs;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};

/// A process that belongs to a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its id.
    pub pid: i32,
    /// Its command line, for people.
    pub command: String,
}

/// Returns every living process whose folder, command line or environment names `root`, this one apart.
pub fn of(root: &Path) -> Vec<Process> {
    let own = i32::try_from(std::process::id()).unwrap_or_default();
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter(|pid| *pid != own)
        .filter_map(|pid| belongs(pid, root))
        .collect()
}

fn belongs(pid: i32, root: &Path) -> Option<Process> {
    let place = Path::new("/proc").join(pid.to_string());
    let command = fs::read(place.join("cmdline")).ok()?;
    // Empty for a zombie, which has no folder either, but also in the midst of an exec: the folder tells them apart.
    let command = String::from_utf8_lossy(&command).replace('\0', " ");
    let root = root.to_str()?;
    let stands = fs::read_link(place.join("cwd")).is_ok_and(|cwd| cwd.starts_with(root));
    let carries = || {
        let environment = fs::read(place.join("environ")).unwrap_or_default();
        String::from_utf8_lossy(&environment).contains(root)
    };
    (stands || command.contains(root) || carries()).then_some(Process { pid, command })
}

/// Returns the children of a process; the kernel's own list of them may miss some while others end.
pub fn children(pid: i32) -> Vec<i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|child| stat(*child).is_some_and(|(parent, _)| parent == pid)).collect()
}

/// Returns the id and the start of every process below this one: also those that nothing else tells whose they are.
pub fn below(pid: u32) -> Vec<(i32, u64)> {
    let (mut parents, mut found) = (vec![i32::try_from(pid).unwrap_or_default()], Vec::new());
    while let Some(parent) = parents.pop() {
        for child in children(parent) {
            parents.push(child);
            found.extend(stat(child).map(|(_, start)| (child, start)));
        }
    }
    found
}

/// Tells whether there is a process of this id that has not ended.
pub fn is_alive(pid: i32) -> bool {
    stat(pid).is_some()
}

/// Tells whether the process of this id that began then has ended.
pub fn has_ended((pid, start): (i32, u64)) -> bool {
    stat(pid).is_none_or(|(_, of)| of != start)
}

/// Returns the parent and the start of a process that lives, as `proc_pid_stat(5)` has them.
fn stat(pid: i32) -> Option<(i32, u64)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = text.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split(' ').collect();
    let lives = !matches!(fields.first(), Some(&("Z" | "X")));
    lives.then_some((fields.get(1)?.parse().ok()?, fields.get(19)?.parse().ok()?))
}

/// Ends a process at once.
pub fn kill(process: &Process) {
    signal(process.pid, Signal::KILL);
}

/// Sends a signal to a process, which may have ended already.
pub fn signal(pid: i32, signal: Signal) {
    let Some(pid) = Pid::from_raw(pid) else { return };
    kill_process(pid, signal).ok();
}
