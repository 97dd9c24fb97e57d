//! The files beside a SKILL.md: its scripts, references and assets.

use std::path::{Path, PathBuf};

use super::folder::{Kind, entries};

/// How deep below the skill's folder, and how many files are named.
const DEPTH: usize = 4;
const MOST: usize = 100;
/// How many names are looked at.
const LOOKED_AT: usize = 10_000;

/// Returns the files below a skill's folder, relative to it, by name: no hidden ones, no links, at most 100.
pub async fn beside(folder: PathBuf) -> Vec<PathBuf> {
    let found = tokio::task::spawn_blocking(move || {
        let mut found = Found { files: Vec::new(), left: LOOKED_AT };
        found.collect(&folder, Path::new(""), 0);
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
    fn collect(&mut self, folder: &Path, below: &Path, depth: usize) {
        let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::CLOEXEC;
        let Ok(opened) = rustix::fs::open(folder, flags, rustix::fs::Mode::empty()) else { return };
        let mut names = entries(&opened).unwrap_or_default();
        names.sort_unstable();
        for (name, kind) in names {
            if self.left == 0 || name.to_string_lossy().starts_with('.') {
                continue;
            }
            self.left -= 1;
            let path = below.join(&name);
            match kind {
                Kind::Folder if depth < DEPTH => self.collect(&folder.join(&name), &path, depth + 1),
                Kind::File if path.as_os_str().eq_ignore_ascii_case("SKILL.md") => {}
                Kind::File => self.files.push(path),
                Kind::Folder | Kind::Link | Kind::Other => {}
            }
        }
    }
}
