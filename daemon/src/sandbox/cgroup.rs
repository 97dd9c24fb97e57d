//! Control groups of commands: how many processes and how much memory they may have, and which share of the machine.
//!
//! ```text
//! the daemon's own group ─ nanod-MARK: memory, CPU ─ SESSION: processes ─ one for each command
//! ```
//!
//! The helper of a command makes what is missing of that and removes what is empty, so nothing is left behind whoever
//! dies first. Where there are none that may be written, the limits of [`super::limits`] do for a process what they can.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use rustix::process::{Pid, Signal, getpid, kill_process};
use serde::{Deserialize, Serialize};
use ulid::Ulid;

use super::limits::PROCESSES;

mod found;

pub use found::{Kind, memory};

/// How often a group is made that another one's helper removes at the same moment.
const TRIES: usize = 20;
/// How often, and after which pauses, what an earlier run left is killed.
const SWEEPS: usize = 100;
const BETWEEN: Duration = Duration::from_millis(20);
/// The group of the daemon itself below its own, where that may hold no process because it has groups.
const LEAF: &str = "nanod-itself";
static GROUND: OnceLock<Ground> = OnceLock::new();

/// One control group: its folder and what is written there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Group {
    path: PathBuf,
    settings: Vec<(String, String)>,
    enter: bool,
}

/// The control groups of one command, outer ones before inner ones.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Groups(Vec<Group>);

/// Where groups can be made.
#[derive(Debug, Default)]
pub struct Ground {
    roots: Vec<(Kind, PathBuf)>,
    mark: String,
    memory: Option<u64>,
}

/// Finds out where groups can be made, and removes those that an earlier run with this mark left.
pub async fn prepare(mark: &str) {
    let mark = format!("nanod-{mark}");
    let found = tokio::task::spawn_blocking(move || {
        let roots: Vec<_> = found::roots().into_iter().filter(|(kind, own)| serves(*kind, own, &mark)).collect();
        tracing::debug!(?roots, "control groups");
        Ground { roots, mark, memory: memory() }
    });
    if let Ok(found) = found.await {
        drop(GROUND.set(found));
    }
}

/// Returns where groups can be made; nowhere before [`prepare`].
pub fn ground() -> &'static Ground {
    static NOWHERE: Ground = Ground { roots: Vec::new(), mark: String::new(), memory: None };
    GROUND.get().unwrap_or(&NOWHERE)
}

/// Tells whether groups can be made below `own`, and makes that so if it is possible.
fn serves(kind: Kind, own: &Path, mark: &str) -> bool {
    let ours = own.join(mark);
    sweep(&ours);
    if kind == Kind::Unified && hand_down(own).is_err() {
        return false;
    }
    let made = fs::create_dir(&ours).is_ok() && kind.serves(&ours);
    drop(fs::remove_dir(&ours));
    made
}

/// Has groups below `own` take part in what it may limit; the daemon then has to be in one of them itself.
fn hand_down(own: &Path) -> io::Result<()> {
    let enable = || fs::write(own.join("cgroup.subtree_control"), "+pids +memory +cpu");
    let alone = fs::read_to_string(own.join("cgroup.procs"))?.trim() == getpid().as_raw_pid().to_string();
    match enable() {
        Err(why) if why.kind() == io::ErrorKind::ResourceBusy && alone => {
            let leaf = own.join(LEAF);
            fs::create_dir_all(&leaf)?;
            fs::write(leaf.join("cgroup.procs"), "0")?;
            enable()
        }
        other => other,
    }
}

/// Ends what is in a group of an earlier run and removes it, with all below it.
#[expect(clippy::disallowed_methods, reason = "it runs on a thread of its own, before anything is served")]
fn sweep(group: &Path) {
    for _ in 0..SWEEPS {
        end_within(group);
        tidy(group);
        if !group.exists() {
            return;
        }
        std::thread::sleep(BETWEEN);
    }
    tracing::warn!(group = %group.display(), "a control group of an earlier run does not get empty");
}

/// Lets nothing more start in a group, and ends what is in it where the kernel does that at once.
fn close(group: &Path) {
    // Which of the two there are depends on kind and kernel. One that is missing is not made: these are no plain files.
    for (file, value) in [("pids.max", "0"), ("cgroup.kill", "1")] {
        fs::write(group.join(file), value).ok();
    }
}

fn end_within(group: &Path) {
    close(group);
    let below = fs::read_dir(group).into_iter().flatten().flatten().filter(|it| it.path().is_dir());
    below.for_each(|it| end_within(&it.path()));
    let left = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    for pid in left.lines().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)) {
        kill_process(pid, Signal::KILL).ok();
    }
}

fn tidy(group: &Path) {
    let below = fs::read_dir(group).into_iter().flatten().flatten().filter(|it| it.path().is_dir());
    below.for_each(|it| tidy(&it.path()));
    drop(fs::remove_dir(group));
}

impl Ground {
    /// Removes what killed helpers did not, where nobody is in it.
    pub fn tidy(&self) {
        self.roots.iter().for_each(|(_, own)| tidy(&own.join(&self.mark)));
    }

    /// Tells in words what is limited by control groups.
    pub fn words(&self) -> Vec<&'static str> {
        self.roots.iter().flat_map(|(kind, _)| kind.words()).copied().collect()
    }

    /// Returns the groups of one more command of a session.
    pub fn groups(&self, session: &str) -> Groups {
        let command = Ulid::generate().to_string();
        let all = self.roots.iter().flat_map(|(kind, own)| {
            let top = own.join(&self.mark);
            let of_session = top.join(session);
            let inner = of_session.join(&command);
            let [top_settings, session_settings] = kind.settings(self.memory, PROCESSES);
            let group = |path, settings, enter| Group { path, settings, enter };
            [group(top, top_settings, false), group(of_session, session_settings, false), group(inner, vec![], true)]
        });
        Groups(all.collect())
    }
}

impl Groups {
    fn has(&self, file: &str) -> bool {
        self.0.iter().any(|group| group.settings.iter().any(|(name, _)| name == file))
    }

    /// Tells whether they limit the number of processes.
    pub fn limits_processes(&self) -> bool {
        self.has("pids.max")
    }

    /// Tells whether they limit memory.
    pub fn limits_memory(&self) -> bool {
        self.has("memory.max") || self.has("memory.limit_in_bytes")
    }

    /// Makes those that are missing; which cannot be had is gone without.
    pub fn make(&self) {
        for _ in 0..TRIES {
            if self.0.iter().all(|group| group.make().is_ok()) {
                return;
            }
        }
    }

    /// Puts this process into them.
    pub fn enter(&self) {
        for group in self.0.iter().filter(|group| group.enter) {
            let enter = || fs::write(group.path.join("cgroup.procs"), "0");
            if enter().is_err() {
                // Somebody thought it was empty for good.
                self.make();
                enter().ok();
            }
        }
    }

    /// Lets nothing more start in those of this command alone: what forks faster than one can look stands still then.
    pub fn close(&self) {
        self.0.iter().filter(|group| group.enter).for_each(|group| close(&group.path));
    }

    /// Removes those that nobody is in.
    pub fn remove(&self) {
        self.0.iter().rev().for_each(|group| drop(fs::remove_dir(&group.path)));
    }

    /// Says in words which limits were reached.
    pub fn reached(&self) -> Vec<String> {
        let limit = |file: &str| {
            let settings = self.0.iter().flat_map(|group| &group.settings);
            settings.filter(|(name, _)| name == file).find_map(|(_, value)| value.parse::<u64>().ok())
        };
        let count = |file: &str, what: &str| {
            let files = self.0.iter().filter_map(|group| fs::read_to_string(group.path.join(file)).ok());
            files.map(|text| found::count(&text, what)).sum::<u64>()
        };
        let mut told = Vec::new();
        if count("memory.oom_control", "oom_kill") + count("memory.events", "oom_kill") > 0 {
            let most = limit("memory.limit_in_bytes").or(limit("memory.max")).unwrap_or(0) >> 20;
            told.push(format!("killed: out of memory; commands may use {most} MiB"));
        }
        if count("pids.events", "max") > 0 {
            told.push(format!("a process could not be started: the commands of a session may have {PROCESSES}"));
        }
        told
    }
}

impl Group {
    fn make(&self) -> io::Result<()> {
        match fs::create_dir(&self.path) {
            Err(why) if why.kind() == io::ErrorKind::AlreadyExists => {}
            Err(why) => return Err(why),
            Ok(()) => {}
        }
        for (file, value) in &self.settings {
            // An old kernel has not all of them.
            fs::write(self.path.join(file), value).ok();
        }
        Ok(())
    }
}
