//! Which paths of a workspace, as it is now, commands must not write: those that programs or the daemon act on.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

/// What git runs, or takes the names of programs from.
const OF_GIT: [&str; 4] = ["hooks", "config", "config.worktree", COMMON];
/// The file that says where most of a repository is; a repository that has none must not get one.
const COMMON: &str = "commondir";
/// What a folder holds that git takes for a repository, or that had been protected before what else it held was removed.
const SIGNS: [&str; 3] = ["HEAD", "hooks", "config"];
/// What of a repository holds no other one.
const INNARDS: [&str; 6] = ["hooks", "info", "logs", "lfs", "objects", "refs"];
/// So many folders are looked at for the modules and worktrees of a repository.
const FOLDERS: usize = 2000;
/// No file that points to a repository is longer.
const POINTER: u64 = 8 * 1024;

/// Returns what is protected in `workspace`, whose steering file has this name; not all of it need be there.
pub fn of(workspace: &Path, steering: &str) -> Vec<PathBuf> {
    let mut all = vec![workspace.join(".agents/skills"), workspace.join(".nanod"), workspace.join(steering)];
    let git = workspace.join(".git");
    if git.is_dir() {
        all.extend(repository(&git));
        all.extend(["modules", "worktrees"].iter().flat_map(|name| below(git.join(name))));
    } else if let Some(place) = pointed_to(&git, "gitdir: ", workspace) {
        let common = pointed_to(&place.join(COMMON), "", &place);
        all.push(git);
        all.extend([Some(place), common].into_iter().flatten().flat_map(|place| repository(&place)));
    }
    all
}

/// Tells whether the path is missing and may be made, empty, so that it can be kept from being written.
pub fn may_be_made(path: &Path) -> bool {
    let is_git = |folder: &Path| folder.ends_with(".git") || folder.join("HEAD").exists();
    match path.file_name().and_then(|name| name.to_str()) {
        Some(COMMON) => false,
        Some(name) if OF_GIT.contains(&name) => path.parent().is_some_and(is_git),
        _ => true,
    }
}

/// Returns, of what is protected, the files that would send git somewhere else and are not there.
pub fn unwanted(protected: &[PathBuf]) -> Vec<PathBuf> {
    let missing = |path: &&PathBuf| path.ends_with(COMMON) && fs::symlink_metadata(path).is_err();
    protected.iter().filter(missing).cloned().collect()
}

fn repository(git: &Path) -> [PathBuf; 4] {
    OF_GIT.map(|name| git.join(name))
}

/// Returns what is protected of every repository below `top`, however deep; all of `top` where that is too much to look at.
fn below(top: PathBuf) -> Vec<PathBuf> {
    let (mut all, mut folders, mut at) = (Vec::new(), vec![top.clone()], 0);
    while let Some(folder) = folders.get(at).cloned() {
        if at == FOLDERS {
            return vec![top];
        }
        let is_repository = SIGNS.iter().any(|sign| fs::symlink_metadata(folder.join(sign)).is_ok());
        if is_repository {
            all.extend(repository(&folder));
        }
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        let inner = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        let inner = inner.filter(|entry| !is_repository || !INNARDS.iter().any(|name| entry.file_name() == *name));
        folders.extend(inner.take(FOLDERS).map(|entry| entry.path()));
        at += 1;
    }
    all
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

    use super::{FOLDERS, of};

    #[test]
    fn repositories_of_every_shape() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for path in ["main/.git/worktrees/w", "main/.git/modules/m/modules/n/o", "main/.git/modules/a/b", "w", "plain"]
        {
            fs::create_dir_all(root.join(path)).unwrap();
        }
        for module in ["m", "m/modules/n/o", "a/b"] {
            fs::write(root.join("main/.git/modules").join(module).join("HEAD"), "ref: refs/heads/main\n").unwrap();
        }
        fs::write(root.join("w/.git"), "gitdir: ../main/.git/worktrees/w\n").unwrap();
        fs::write(root.join("main/.git/worktrees/w/commondir"), "../..\n").unwrap();
        for (workspace, expected) in [
            ("plain", vec![]),
            (
                "main",
                vec![
                    "main/.git/hooks",
                    "main/.git/config",
                    "main/.git/commondir",
                    "main/.git/modules/m/hooks",
                    "main/.git/modules/m/modules/n/o/config",
                    "main/.git/modules/a/b/hooks",
                ],
            ),
            ("w", vec!["w/.git", "main/.git/hooks", "main/.git/config", "main/.git/worktrees/w/config.worktree"]),
        ] {
            let found = of(&root.join(workspace), "steer");
            let always = [".agents/skills", "steer"].map(|name| root.join(workspace).join(name));
            for path in always.into_iter().chain(expected.iter().map(|path| root.join(path))) {
                assert!(found.contains(&path), "{workspace}: {} is not in {found:?}", path.display());
            }
            let git = found.iter().filter(|path| path.to_string_lossy().contains(".git"));
            assert_eq!(git.count() > 0, !expected.is_empty(), "{found:?}");
            assert!(!found.contains(&root.join("main/.git/modules/a/hooks")), "{found:?}");
        }
        fs::remove_file(root.join("main/.git/modules/m/HEAD")).unwrap();
        fs::create_dir(root.join("main/.git/modules/m/hooks")).unwrap();
        let hooks = root.join("main/.git/modules/m/hooks");
        assert!(of(&root.join("main"), "steer").contains(&hooks), "its head was taken away");
        for at in 0..FOLDERS {
            fs::create_dir(root.join(format!("main/.git/modules/{at}"))).unwrap();
        }
        assert!(of(&root.join("main"), "steer").contains(&root.join("main/.git/modules")), "too many to look at");
    }
}
