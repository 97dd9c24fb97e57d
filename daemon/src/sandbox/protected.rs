//! Which paths of a workspace, as it is now, commands must not write: those that programs or the daemon act on.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

/// What git runs, or takes the names of programs from.
const OF_GIT: [&str; 3] = ["hooks", "config", "config.worktree"];
/// So many modules of a repository are looked at.
const MODULES: usize = 100;
/// No file that points to a repository is longer.
const POINTER: u64 = 8 * 1024;

/// Returns what is protected in `workspace`, whose steering file has this name; not all of it need be there.
pub fn of(workspace: &Path, steering: &str) -> Vec<PathBuf> {
    let mut all = vec![workspace.join(".agents/skills"), workspace.join(".nanod"), workspace.join(steering)];
    let git = workspace.join(".git");
    if git.is_dir() {
        all.extend(repository(&git));
        let modules = fs::read_dir(git.join("modules")).into_iter().flatten().flatten().take(MODULES);
        all.extend(modules.flat_map(|module| repository(&module.path())));
    } else if let Some(place) = pointed_to(&git, "gitdir: ", workspace) {
        let common = pointed_to(&place.join("commondir"), "", &place);
        all.push(git);
        all.extend([Some(place), common].into_iter().flatten().flat_map(|place| repository(&place)));
    }
    all
}

fn repository(git: &Path) -> [PathBuf; 3] {
    OF_GIT.map(|name| git.join(name))
}

/// Returns where a file points to whose line begins with `mark`.
fn pointed_to(file: &Path, mark: &str, from: &Path) -> Option<PathBuf> {
    let is_file = fs::metadata(file).is_ok_and(|meta| meta.is_file());
    let mut text = String::new();
    File::open(file).ok().filter(|_| is_file)?.take(POINTER).read_to_string(&mut text).ok()?;
    from.join(text.strip_prefix(mark)?.trim_end()).canonicalize().ok()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use std::fs;

    use super::of;

    #[test]
    fn repositories_of_every_shape() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for path in ["main/.git/worktrees/w", "main/.git/modules/m", "w", "plain"] {
            fs::create_dir_all(root.join(path)).unwrap();
        }
        fs::write(root.join("w/.git"), "gitdir: ../main/.git/worktrees/w\n").unwrap();
        fs::write(root.join("main/.git/worktrees/w/commondir"), "../..\n").unwrap();
        for (workspace, expected) in [
            ("plain", vec![]),
            ("main", vec!["main/.git/hooks", "main/.git/config", "main/.git/modules/m/hooks"]),
            ("w", vec!["w/.git", "main/.git/hooks", "main/.git/config", "main/.git/worktrees/w/config.worktree"]),
        ] {
            let found = of(&root.join(workspace), "steer");
            let always = [".agents/skills", "steer"].map(|name| root.join(workspace).join(name));
            for path in always.into_iter().chain(expected.iter().map(|path| root.join(path))) {
                assert!(found.contains(&path), "{workspace}: {} is not in {found:?}", path.display());
            }
            let git = found.iter().filter(|path| path.to_string_lossy().contains(".git"));
            assert_eq!(git.count() > 0, !expected.is_empty(), "{found:?}");
        }
    }
}
