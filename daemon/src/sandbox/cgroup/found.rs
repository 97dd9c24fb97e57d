//! What `/proc` tells of control groups: which hierarchies there are, where the daemon's own group is in each, and how
//! much memory there is to share out.

use std::fs;
use std::path::{Path, PathBuf};

/// A kind of hierarchy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The one of version 2.
    Unified,
    /// One of version 1 that counts processes.
    Pids,
    /// One of version 1 that counts memory.
    Memory,
    /// One of version 1 that shares out processors.
    Cpu,
}

/// Commands together get as much of the processors as this of the usual weight, where others want them too.
const SHARES: &str = "512";
const WEIGHT: &str = "50";

impl Kind {
    fn of(controllers: &str) -> Option<Self> {
        let has = |name: &str| controllers.split(',').any(|one| one == name);
        let named = [("pids", Self::Pids), ("memory", Self::Memory), ("cpu", Self::Cpu)];
        named.into_iter().find(|(name, _)| has(name)).map(|(_, kind)| kind)
    }

    /// Returns what it limits.
    pub(super) fn words(self) -> &'static [&'static str] {
        match self {
            Self::Unified => &["processes", "memory", "cpu"],
            Self::Pids => &["processes"],
            Self::Memory => &["memory"],
            Self::Cpu => &["cpu"],
        }
    }

    /// Tells whether a group that has just been made can be limited.
    pub(super) fn serves(self, group: &Path) -> bool {
        let file = match self {
            Self::Unified | Self::Pids => "pids.max",
            Self::Memory => "memory.limit_in_bytes",
            Self::Cpu => "cpu.shares",
        };
        group.join(file).exists()
    }

    /// Returns what is set for the group of all commands and for that of a session.
    pub(super) fn settings(self, memory: Option<u64>, processes: u64) -> [Vec<(String, String)>; 2] {
        let set = |name: &str, value: &dyn ToString| (name.to_owned(), value.to_string());
        let all = |name: &str| memory.map(|bytes| set(name, &bytes));
        match self {
            Self::Unified => {
                let down = set("cgroup.subtree_control", &"+pids +memory");
                let top = all("memory.max").into_iter().chain([
                    set("memory.swap.max", &0),
                    set("cpu.weight", &WEIGHT),
                    down.clone(),
                ]);
                [top.collect(), vec![set("pids.max", &processes), down]]
            }
            Self::Pids => [vec![], vec![set("pids.max", &processes)]],
            Self::Memory => [all("memory.limit_in_bytes").into_iter().collect(), vec![]],
            Self::Cpu => [vec![set("cpu.shares", &SHARES)], vec![]],
        }
    }
}

/// Returns the folder of the daemon's own group in each hierarchy that is of use.
pub(super) fn roots() -> Vec<(Kind, PathBuf)> {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    parse(&read("/proc/self/mountinfo"), &read("/proc/self/cgroup"))
}

/// Returns how many bytes of memory commands may have together: three quarters of what there is for the daemon.
pub fn memory() -> Option<u64> {
    let total = fs::read_to_string("/proc/meminfo").ok()?;
    let total = total.lines().find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB")?.parse().ok());
    let total: u64 = total.map(|kib: u64| kib * 1024)?;
    let groups = roots().into_iter().flat_map(|(_, own)| own.ancestors().map(Path::to_owned).collect::<Vec<_>>());
    let limits = groups.flat_map(|group| ["memory.max", "memory.limit_in_bytes"].map(|file| group.join(file)));
    let limits = limits.filter_map(|file| fs::read_to_string(file).ok()?.trim().parse::<u64>().ok());
    limits.chain([total]).min().map(|least| least / 4 * 3)
}

/// Returns the count that a line `what COUNT` tells.
pub(super) fn count(text: &str, what: &str) -> u64 {
    let named = text.lines().find_map(|line| line.strip_prefix(what)?.strip_prefix(' '));
    named.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

fn parse(mounts: &str, groups: &str) -> Vec<(Kind, PathBuf)> {
    let mounts: Vec<_> = mounts.lines().filter_map(mount).collect();
    let own = |line: &str| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        let kind = if controllers.is_empty() { Kind::Unified } else { Kind::of(controllers)? };
        let (_, root, at) = mounts.iter().find(|(one, ..)| *one == kind)?;
        // What is mounted may be a part of the hierarchy, as in a container.
        let below = Path::new(path).strip_prefix(root).ok()?;
        Some((kind, if below.as_os_str().is_empty() { at.clone() } else { at.join(below) }))
    };
    groups.lines().filter_map(own).collect()
}

/// Returns kind, root and place of a mounted hierarchy (proc(5)).
fn mount(line: &str) -> Option<(Kind, PathBuf, PathBuf)> {
    let (before, after) = line.split_once(" - ")?;
    let mut before = before.split(' ').skip(3);
    let (root, at) = (before.next()?.into(), before.next()?.into());
    let mut after = after.split(' ');
    match after.next()? {
        "cgroup2" => Some((Kind::Unified, root, at)),
        "cgroup" => Some((Kind::of(after.nth(1)?)?, root, at)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: &str = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n\
        35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
        39 31 0:36 / /sys/fs/cgroup/pids rw,relatime shared:4 - cgroup cgroup rw,pids\n\
        33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
        41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
    const V2: &str = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";
    const IN_CONTAINER: &str = "30 23 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n";

    #[test]
    fn own_groups_are_found() {
        for (mounts, groups, expected) in [
            ("", "0::/\n", vec![]),
            (V2, "", vec![]),
            (V2, "0::/\n", vec![(Kind::Unified, "/sys/fs/cgroup")]),
            (V2, "0::/system.slice/a:b.service\n", vec![(Kind::Unified, "/sys/fs/cgroup/system.slice/a:b.service")]),
            (IN_CONTAINER, "0::/docker/abc/x\n", vec![(Kind::Unified, "/sys/fs/cgroup/x")]),
            (IN_CONTAINER, "0::/elsewhere\n", vec![]),
            (
                V1,
                "9:name=systemd:/\n8:pids:/a\n5:devices:/\n4:memory:/b\n2:cpu,cpuacct:/\n0::/\n",
                vec![
                    (Kind::Pids, "/sys/fs/cgroup/pids/a"),
                    (Kind::Memory, "/sys/fs/cgroup/memory/b"),
                    (Kind::Cpu, "/sys/fs/cgroup/cpu,cpuacct"),
                    (Kind::Unified, "/sys/fs/cgroup/unified"),
                ],
            ),
        ] {
            let expected: Vec<_> = expected.into_iter().map(|(kind, path)| (kind, PathBuf::from(path))).collect();
            assert_eq!(parse(mounts, groups), expected, "{groups}");
        }
    }

    #[test]
    fn counts_are_read() {
        for (text, what, expected) in [
            ("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n", "oom_kill", 3),
            ("low 0\noom 5\noom_kill 0\n", "oom_kill", 0),
            ("max 12\n", "max", 12),
            ("maximum 12\n", "max", 0),
            ("", "max", 0),
        ] {
            assert_eq!(count(text, what), expected, "{text}");
        }
    }
}
