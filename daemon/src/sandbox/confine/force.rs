//! What of a level the operating system can hold here: tried once, and told to people.

use std::path::Path;
use std::time::Duration;

use landlock::{ABI, LandlockStatus};
use nano_protocol::session::Level;
use serde::{Deserialize, Serialize};

use super::{PROBE, filter, mounts, rights, rules};
use crate::sandbox::reach::Reach;
use crate::sandbox::service::first_line;

/// How long the attempt may take.
const WITHIN: Duration = Duration::from_secs(10);

/// The version of Landlock that keeps signals, and sockets without a file, within a command.
pub(super) const SCOPES: i32 = 6;

/// What works here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Force {
    /// The version of Landlock; none: the levels cannot be had.
    pub landlock: Option<i32>,
    /// Whether a command can have mounts of its own.
    pub mounts: bool,
    /// Whether there is a filter of system calls for this architecture.
    pub filter: bool,
}

impl Force {
    /// Finds out by a process of the executable `helper`.
    pub fn of_this_machine(helper: &Path) -> Self {
        let line = first_line(helper, PROBE, &[], WITHIN);
        line.and_then(|line| serde_json::from_str(&line).ok()).unwrap_or_default()
    }

    /// Tries on this process.
    pub(super) fn try_here() -> Self {
        let reach = Reach { level: Level::ReadOnly, ..Reach::of("/nowhere".into(), "/tmp".into()) };
        let mounts = mounts::enter(&reach).is_ok();
        let landlock = rights::drop_all().and_then(|()| rules::enforce(&reach, mounts)).ok().and_then(version);
        Self { landlock, mounts, filter: filter::is_there() && filter::apply(false, false).is_ok() }
    }

    /// Returns what is missing of the levels below `host`, a clause each.
    pub fn lacking(&self) -> Vec<&'static str> {
        let version = self.landlock.unwrap_or_default();
        [
            (version < 2, "no file can be moved to another folder (the kernel is older than 5.19)"),
            (version < 3, "files anywhere can be emptied (the kernel is older than 6.2)"),
            (version < 5, "devices can be asked for more than to be read (the kernel is older than 6.10)"),
            (
                version < SCOPES,
                "signals reach other processes of this user, and commands have no Unix sockets (the kernel is older \
                 than 6.12)",
            ),
            (
                !self.mounts,
                "protected files in the workspace are not kept from commands, modes and times of files elsewhere can be \
                 changed, names of hidden files can be seen, and commands have no Unix sockets, no terminals and no /dev/shm (no mount namespace can \
                 be had)",
            ),
            (!self.filter, "no system call is taken away (not on this architecture)"),
        ]
        .into_iter()
        .filter_map(|(is_missing, what)| is_missing.then_some(what))
        .collect()
    }

    /// Says it in a sentence.
    pub fn told(&self) -> String {
        let levels = "exec and python are confined by the operating system below the level host";
        match (self.landlock, self.lacking()) {
            (None, _) => {
                "exec and python are refused below the level host: this kernel has no Landlock to confine them \
                          with"
                    .into()
            }
            (Some(version), lacking) if lacking.is_empty() => format!("{levels}: in full (Landlock {version})"),
            (Some(version), lacking) => format!("{levels}: partial (Landlock {version}): {}", lacking.join("; ")),
        }
    }
}

/// Returns the version of Landlock that is in force.
pub(super) fn version(status: LandlockStatus) -> Option<i32> {
    match status {
        LandlockStatus::Available { effective_abi, kernel_abi } => Some(kernel_abi.unwrap_or(abi(effective_abi))),
        LandlockStatus::NotEnabled | LandlockStatus::NotImplemented => None,
    }
}

fn abi(abi: ABI) -> i32 {
    abi as i32
}

#[cfg(test)]
mod tests {
    use super::Force;

    #[test]
    fn what_is_missing_is_told() {
        let full = Force { landlock: Some(7), mounts: true, filter: true };
        for (force, expected) in [
            (full, "in full (Landlock 7)"),
            (Force { mounts: false, ..full }, "partial (Landlock 7): protected files"),
            (Force { landlock: Some(3), ..full }, "; signals reach"),
            (Force { landlock: Some(1), ..full }, "moved to another folder"),
            (Force { filter: false, ..full }, "no system call"),
            (Force::default(), "refused below the level host"),
        ] {
            assert!(force.told().contains(expected), "{force:?}: {}", force.told());
        }
    }
}
