//! The daemon's own files: a workspace may hold them, and what goes to a remote computer must not.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::workspace::real_path;

/// Where service managers put the secrets of services.
const CREDENTIALS: [&str; 1] = ["/run/credentials"];

/// Where the daemon's own files are.
#[derive(Debug, Clone, Default)]
pub struct Private {
    files: Vec<PathBuf>,
    folders: Vec<Folder>,
    known: Vec<PathBuf>,
}

#[derive(Debug, Clone)]
struct Folder {
    path: PathBuf,
    /// A workspace that lies here was meant to be used.
    but_in: PathBuf,
}

impl Private {
    /// Makes it: the config file with the folder it lies in, the state folder, and further files.
    pub fn new(config: &Path, state: &Path, further: impl IntoIterator<Item = PathBuf>) -> Self {
        let files = std::iter::once(config.to_owned()).chain(further).collect();
        let beside = config.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let of_config = Folder { path: beside.to_owned(), but_in: beside.to_owned() };
        let of_state = Folder { path: state.to_owned(), but_in: state.join("workspaces") };
        let made = Self { files, folders: vec![of_config, of_state], known: Vec::new() };
        Self { known: made.hidden().into_iter().filter(|path| path.exists()).collect(), ..made }
    }

    /// Adds the folder of what a service manager entrusted to the daemon; nobody works in there.
    #[must_use]
    pub fn with_credentials(mut self, folder: Option<PathBuf>) -> Self {
        let nowhere = PathBuf::from("/dev/null/nowhere");
        self.folders.extend(folder.map(|path| Folder { path, but_in: nowhere }));
        self
    }

    /// Returns what tools must not even read: these files, the state folder, and the config's folder where it is of that
    /// alone.
    pub fn hidden(&self) -> Vec<PathBuf> {
        let is_own = |folder: &&Folder| folder.path != folder.but_in || folder.path.ends_with("nanod");
        let folders = self.folders.iter().filter(is_own).map(|folder| &folder.path);
        let mut all: Vec<PathBuf> = self.files.iter().chain(folders).map(|path| real(path)).collect();
        all.extend(CREDENTIALS.iter().map(PathBuf::from));
        all.retain(|path| path.is_absolute());
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Returns those of what is hidden that were there at first.
    pub fn known(&self) -> &[PathBuf] {
        &self.known
    }

    /// Tells whether an opened file, found below this workspace, is one of them, under whatever name.
    pub fn holds(&self, file: &File, workspace: &Path) -> io::Result<bool> {
        let meta = file.metadata()?;
        let same = |own: &PathBuf| own.metadata().is_ok_and(|own| (own.dev(), own.ino()) == (meta.dev(), meta.ino()));
        Ok(self.files.iter().any(same) || self.covers(&real_path(file)?, workspace))
    }

    /// Tells whether a real path below this workspace, be something there or not, is one of theirs.
    pub fn covers(&self, path: &Path, workspace: &Path) -> bool {
        let meant = |own: &Folder| workspace.starts_with(real(&own.but_in));
        self.files.iter().any(|own| path == real(own))
            || self.folders.iter().any(|own| path.starts_with(real(&own.path)) && !meant(own))
    }
}

/// Returns where `path` leads; what is not there leads to itself.
fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use std::fs::{self, File};
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::Private;

    /// A home with everything in its usual place; `alias` is another name of it.
    fn home() -> tempfile::TempDir {
        let home = tempfile::tempdir().unwrap();
        let write = |path: &str| {
            let path = home.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        };
        for path in [
            "config/nanod.toml",
            "config/skills/a/SKILL.md",
            "state/store/db",
            "state/workspaces/s1/notes",
            "state/workspaces/s2/notes",
            "keys/openai",
            "project/notes",
        ] {
            write(path);
        }
        fs::hard_link(home.path().join("config/nanod.toml"), home.path().join("project/hard")).unwrap();
        fs::hard_link(home.path().join("keys/openai"), home.path().join("state/workspaces/s1/hard")).unwrap();
        symlink(home.path().join("state/store/db"), home.path().join("project/soft")).unwrap();
        symlink(home.path(), home.path().join("alias")).unwrap();
        home
    }

    #[test]
    fn own_files_are_known_under_every_name() {
        let home = home();
        let at = |path: &str| home.path().canonicalize().unwrap().join(path);
        for named in ["", "alias"] {
            let usual = |path: &str| home.path().join(named).join(path);
            let private = Private::new(&usual("config/nanod.toml"), &usual("state"), [usual("keys/openai")]);
            for (workspace, file, expected) in [
                ("", "config/nanod.toml", true),
                ("", "config/skills/a/SKILL.md", true),
                ("", "state/store/db", true),
                ("", "state/workspaces/s1/notes", true),
                ("", "keys/openai", true),
                ("", "project/notes", false),
                ("project", "project/notes", false),
                ("project", "project/hard", true),
                ("project", "project/soft", true),
                ("keys", "keys/openai", true),
                ("config", "config/nanod.toml", true),
                ("config", "config/skills/a/SKILL.md", false),
                ("config/skills", "config/skills/a/SKILL.md", false),
                ("state", "state/store/db", true),
                ("state/store", "state/store/db", true),
                ("state/workspaces/s1", "state/workspaces/s1/notes", false),
                ("state/workspaces/s1", "state/workspaces/s1/hard", true),
            ] {
                let found = private.holds(&File::open(at(file)).unwrap(), &at(workspace)).unwrap();
                assert_eq!(found, expected, "{named}: {file} in {workspace}");
            }
        }
    }

    #[test]
    fn places_that_are_still_free_count_too() {
        let home = home();
        let at = |path: &str| home.path().canonicalize().unwrap().join(path);
        let private = Private::new(&at("config/nanod.toml"), &at("state"), []);
        for (path, expected) in [("config/new", true), ("state/new", true), ("configs/new", false), ("new", false)] {
            assert_eq!(private.covers(&at(path), &at("")), expected, "{path}");
        }
        assert!(!Private::default().covers(Path::new("/x"), Path::new("/")));
    }
}
