//! The files beside a SKILL.md: its scripts, references and assets.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};

use super::folder::{Kind, entries};
use crate::sandbox::workspace::Workspace;

/// How many files are named at most.
pub const MOST: usize = 100;
/// How deep below the skill's folder is looked.
const DEPTH: usize = 4;
/// How many names are looked at.
const LOOKED_AT: usize = 10_000;

/// Returns the files below a skill's folder, relative to it, by name: no hidden ones, no links, at most 100.
///
/// The folder is opened beneath `ground`, for it may have become a link since it was read.
pub async fn beside(ground: Arc<Workspace>, folder: PathBuf) -> Vec<PathBuf> {
    let found = tokio::task::spawn_blocking(move || {
        let mut found = Found { files: Vec::new(), left: LOOKED_AT };
        if let Ok(opened) = ground.folder_at(&folder.to_string_lossy(), &folder) {
            found.collect(&opened, Path::new(""), 0);
        }
        found.files.sort();
        found.files.truncate(MOST);
        found.files
    });
    found.await.unwrap_or_default()
}

struct Found {
    files: Vec<PathBuf>,
    left: usize,
}

impl Found {
    fn collect(&mut self, folder: &OwnedFd, below: &Path, depth: usize) {
        let mut names = entries(folder).unwrap_or_default();
        names.sort_unstable();
        for (name, kind) in names {
            if self.left == 0 || name.to_string_lossy().starts_with('.') {
                continue;
            }
            self.left -= 1;
            let path = below.join(&name);
            match kind {
                Kind::Folder if depth < DEPTH => {
                    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                    if let Ok(opened) = rustix::fs::openat(folder, &name, flags, Mode::empty()) {
                        self.collect(&opened, &path, depth + 1);
                    }
                }
                Kind::File if path.as_os_str().eq_ignore_ascii_case("SKILL.md") => {}
                Kind::File => self.files.push(path),
                Kind::Folder | Kind::Link | Kind::Other => {}
            }
        }
    }
}
