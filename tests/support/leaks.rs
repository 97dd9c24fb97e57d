//! That a test leaves nothing behind: no process below the daemon, no descriptor in it, no file that was only for a while.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Once;

use crate::daemon::Daemon;
use crate::{skip, wait};

/// What there was before, of a daemon that has nothing to do and has run a first task: what that opens stays open.
#[derive(Debug)]
pub struct Before {
    descriptors: Vec<String>,
    passing: BTreeSet<PathBuf>,
}

impl Before {
    /// Looks at a daemon; the connections that are open now are to be open at the check as well.
    pub fn of(daemon: &Daemon) -> Self {
        Self { descriptors: descriptors(daemon), passing: passing(daemon.root()) }
    }

    /// Waits until the daemon has no process below it, no descriptor more and no passing file more than before.
    pub fn check(&self, daemon: &Daemon) {
        wait::until("the end of every process below the daemon", || children(daemon).is_empty().then_some(()));
        let within = || descriptors(daemon).len() <= self.descriptors.len();
        let settled = wait::tried(wait::DEADLINE / 4, || within().then_some(()));
        assert!(
            settled.is_some(),
            "descriptors are left: {:?}, and before {:?}",
            descriptors(daemon),
            self.descriptors
        );
        let left: Vec<PathBuf> = passing(daemon.root()).difference(&self.passing).cloned().collect();
        assert!(left.is_empty(), "files that were only for a while are left: {left:?}");
    }
}

/// Returns the command lines of what belongs to the daemon and is not itself.
fn children(daemon: &Daemon) -> Vec<String> {
    let others = daemon.left().into_iter().filter(|one| u32::try_from(one.pid).ok() != Some(daemon.pid()));
    others.map(|one| one.command).collect()
}

/// Returns what the daemon has open, but for connections: those to a model are kept for a while. To look there takes root,
/// for a daemon lets nobody look into it.
pub fn descriptors(daemon: &Daemon) -> Vec<String> {
    static SAID: Once = Once::new();
    let all = match fs::read_dir(format!("/proc/{}/fd", daemon.pid())) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            SAID.call_once(|| skip::say("whether a daemon keeps descriptors open: only root can look"));
            return Vec::new();
        }
        all => all.expect("the daemon's descriptors").flatten(),
    };
    let names = all.filter_map(|entry| fs::read_link(entry.path()).ok()).map(|to| to.to_string_lossy().into_owned());
    names.filter(|name| !name.starts_with("socket:")).collect()
}

/// Returns the files below `folder` whose names say that they are not to stay.
fn passing(folder: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(passing(&path));
        } else if name.starts_with("running-")
            || name.starts_with(".nano-")
            || [".new", ".tmp", "~"].iter().any(|end| name.ends_with(end))
        {
            found.insert(path);
        }
    }
    found
}
