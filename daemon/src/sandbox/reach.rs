//! How far a session's tools reach on this machine: one answer for commands and for file tools, so that neither is the
//! way round the other. Pure: it decides about paths that somebody else has resolved.

use std::path::{Component, Path, PathBuf};

use nano_protocol::session::Level;
use serde::{Deserialize, Serialize};

/// What nobody writes to below `host`, wherever else may be written: what the machine runs on.
pub const SYSTEM: [&str; 16] = [
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/nix", "/proc", "/run", "/sbin", "/snap",
    "/sys", "/usr", "/var",
];

/// What a workspace must not lie in, for commands may do there what they like.
const NOT_FOR_WORK: [&str; 4] = ["/dev", "/proc", "/run", "/sys"];

/// How far a session's tools reach; all paths are real ones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reach {
    /// The session's level.
    pub level: Level,
    /// Its folder.
    pub workspace: PathBuf,
    /// The folder for what it needs for a while; its own, and gone with it.
    pub temporary: PathBuf,
    /// Whether it may write outside its workspace, too.
    pub elsewhere: bool,
    /// The daemon's own places, which it cannot even read.
    pub hidden: Vec<PathBuf>,
    /// Those of them that were there when the daemon looked first: without one no command is started.
    pub known: Vec<PathBuf>,
    /// What it may read although it lies in one of those.
    pub shown: Vec<PathBuf>,
    /// What commands cannot write although it lies where they may write.
    pub protected: Vec<PathBuf>,
    /// The name of the file that steers sessions of a workspace.
    pub steering: String,
}

impl Reach {
    /// Makes the narrowest one for a workspace that may be written.
    pub fn of(workspace: PathBuf, temporary: PathBuf) -> Self {
        let level = Level::WorkspaceWrite;
        let (hidden, known, shown, protected) = (vec![], vec![], vec![], vec![]);
        Self { level, workspace, temporary, elsewhere: false, hidden, known, shown, protected, steering: String::new() }
    }

    /// Says what commands may do.
    pub fn told(&self) -> String {
        told(self.level, &self.workspace, self.elsewhere)
    }

    /// Returns the folders below which may be written.
    pub fn writable(&self) -> Vec<&Path> {
        let root = Path::new("/");
        match self.level {
            Level::ReadOnly => vec![&self.temporary],
            Level::WorkspaceWrite if self.elsewhere => vec![&self.workspace, &self.temporary, root],
            Level::WorkspaceWrite => vec![&self.workspace, &self.temporary],
            Level::Host => vec![root],
        }
    }

    /// Tells whether commands have the network.
    pub fn has_network(&self) -> bool {
        self.level != Level::ReadOnly
    }

    /// Tells whether commands can have a `/tmp` of their own: nothing that they need lies there.
    pub fn has_own_tmp(&self) -> bool {
        !self.elsewhere && !self.open().any(|path| path.starts_with("/tmp"))
    }

    /// Returns what stays within reach though it may lie in a hidden place.
    pub fn open(&self) -> impl Iterator<Item = &Path> {
        [&self.workspace, &self.temporary].into_iter().chain(&self.shown).map(PathBuf::as_path)
    }

    /// Tells whether the path is one of the daemon's own: the innermost place that holds it decides.
    pub fn hides(&self, path: &Path) -> bool {
        deepest(path, self.hidden.iter().map(PathBuf::as_path)) > deepest(path, self.open())
    }

    /// Returns, in one clause, why a file tool must not read this.
    pub fn bars_reading(&self, path: &Path) -> Option<&'static str> {
        match () {
            () if self.hides(path) => Some("it belongs to nanod itself, and tools cannot reach it"),
            () if is_of_a_process(path) => Some("it shows what a process has in memory, and tools cannot reach it"),
            () => None,
        }
    }

    /// Returns, in one clause, why a file tool must not write this.
    pub fn bars_writing(&self, path: &Path) -> Option<&'static str> {
        let below = path.strip_prefix(&self.workspace).unwrap_or(path);
        let own = [self.workspace.as_path(), &self.temporary].into_iter();
        let is_system = || deepest(path, SYSTEM.iter().map(Path::new)) > deepest(path, own.clone());
        match () {
            () if self.hides(path) => self.bars_reading(path),
            () if self.level == Level::ReadOnly && !path.starts_with(&self.temporary) => {
                Some("this session's level is read-only")
            }
            () if self.level != Level::Host && is_system() => Some("it belongs to the system"),
            () if self.is_protected(below) || self.protected.iter().any(|one| path.starts_with(one)) => {
                Some("programs, or nanod, act on what it says; a person has to change it")
            }
            () => None,
        }
    }

    /// Tells whether the names alone say that programs or the daemon act on this.
    fn is_protected(&self, path: &Path) -> bool {
        let names: Vec<String> = path
            .components()
            .filter(|one| matches!(one, Component::Normal(_)))
            .map(|one| one.as_os_str().to_string_lossy().to_ascii_lowercase())
            .collect();
        let last = names.last().map(String::as_str);
        let pair = |at: usize, name: &str| names.get(at + 1).is_some_and(|next| next == name);
        let inner = ["hooks", "config", "config.worktree", "modules", "worktrees", "commondir"];
        let is_own = names.iter().enumerate().any(|(at, name)| match name.as_str() {
            ".nanod" => true,
            ".agents" => pair(at, "skills"),
            name if name.rsplit('.').next() == Some("git") && name.contains('.') => {
                inner.iter().any(|inner| pair(at, inner))
            }
            _ => false,
        });
        let steering = self.steering.to_ascii_lowercase();
        is_own || last.is_some_and(|last| last == "skill.md" || last == ".git" || last == steering)
    }
}

/// Returns, in one clause, why no session may have this folder, a real path, as its workspace.
pub fn bars_workspace(path: &Path, hidden: &[PathBuf]) -> Option<&'static str> {
    match () {
        () if hidden.iter().any(|place| path.starts_with(place)) => Some("it belongs to nanod itself"),
        () if path == Path::new("/") => Some("it holds the whole system"),
        // Everybody's folder in memory; no device lies there.
        () if path.starts_with("/dev/shm") && path != Path::new("/dev/shm") => None,
        () if NOT_FOR_WORK.iter().any(|place| path.starts_with(place))
            || SYSTEM.iter().any(|one| path == Path::new(one)) =>
        {
            Some("it belongs to the system")
        }
        () => None,
    }
}

/// Tells whether the kernel shows there what a process, or itself, has in memory.
fn is_of_a_process(path: &Path) -> bool {
    let below = path.strip_prefix("/proc").ok().and_then(|below| below.components().next());
    let name = below.map(|one| one.as_os_str().to_string_lossy()).unwrap_or_default();
    name == "kcore" || (!name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Says what commands may do at this level.
pub fn told(level: Level, workspace: &Path, elsewhere: bool) -> String {
    let workspace = workspace.display();
    match level {
        Level::ReadOnly => "they can write to $TMPDIR alone, and have no network".into(),
        Level::WorkspaceWrite if elsewhere => {
            "they can write to all but system folders and protected files, and have the network".into()
        }
        Level::WorkspaceWrite => {
            format!("they can write to {workspace}, protected files excepted, and to $TMPDIR, and have the network")
        }
        Level::Host => "they are not confined: they can do what the daemon's user can".into(),
    }
}

/// Returns how deep the deepest of `places` lies that hold `path`; 0 where none does.
fn deepest<'a>(path: &Path, places: impl Iterator<Item = &'a Path>) -> usize {
    places.filter(|place| path.starts_with(place)).map(|place| place.components().count()).max().unwrap_or(0)
}

#[cfg(test)]
mod tests;
