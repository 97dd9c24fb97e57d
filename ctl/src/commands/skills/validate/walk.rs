//! Finds SKILL.md files below a folder: each real folder once, in the order of names, to a bounded depth and number.

use std::collections::HashSet;
use std::fs::{self, DirEntry};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::super::file::{NAME, is_misspelt, is_skill};
use crate::failure::{Failure, Kind};

const DEPTH: usize = 6;
/// Ten times what the largest collections have: beyond, it is no folder of skills.
const MOST_FOLDERS: usize = 200_000;

/// A walk below one path.
#[derive(Default)]
pub struct Walk {
    /// What is to be judged: each SKILL.md, and what could not be looked into.
    pub found: Vec<PathBuf>,
    seen: HashSet<(u64, u64)>,
}

impl Walk {
    /// Finds all there is at and below `path`; fails where that is nothing.
    pub fn start(&mut self, path: &Path) -> Result<(), Failure> {
        let shown = path.display();
        let hint = "name a SKILL.md or a folder with some, such as .agents/skills";
        match fs::metadata(path) {
            Ok(meta) if meta.is_dir() => self.enter(path, 0)?,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Err(Failure::new(Kind::NotFound, format!("there is no {shown}"), hint));
            }
            // Whatever else it is, the reader says so.
            Ok(_) | Err(_) => self.found.push(path.to_owned()),
        }
        if self.found.is_empty() {
            return Err(Failure::new(Kind::NotFound, format!("{shown} holds no {NAME}"), hint));
        }
        Ok(())
    }

    fn enter(&mut self, folder: &Path, depth: usize) -> Result<(), Failure> {
        let Ok(meta) = fs::metadata(folder) else { return Ok(()) };
        if !self.seen.insert((meta.dev(), meta.ino())) {
            return Ok(());
        }
        if self.seen.len() > MOST_FOLDERS {
            let why = format!("there are more than {MOST_FOLDERS} folders: the rest was not checked");
            return Err(Failure::new(Kind::Refused, why, "name a folder that holds skills"));
        }
        let Ok(entries) = fs::read_dir(folder) else {
            self.found.push(folder.to_owned());
            return Ok(());
        };
        let (mut files, mut folders) = (Vec::new(), Vec::new());
        for entry in entries.map_while(Result::ok) {
            if is_skill(&entry.file_name()) {
                files.push(entry.path());
            } else if depth < DEPTH && is_open(&entry) {
                folders.push(entry.path());
            }
        }
        // Of several spellings, the right one counts.
        self.found
            .extend(files.into_iter().min_by_key(|path| (path.file_name().is_some_and(is_misspelt), path.clone())));
        folders.sort();
        folders.iter().try_for_each(|folder| self.enter(folder, depth + 1))
    }
}

/// Tells whether to look into it: a folder, or a link to one, that is not put out of sight.
fn is_open(entry: &DirEntry) -> bool {
    let name = entry.file_name();
    // A project has its skills below .agents.
    let hidden = name.as_encoded_bytes().starts_with(b".") && name != ".agents" || name == "node_modules";
    !hidden
        && match entry.file_type() {
            Ok(kind) if kind.is_symlink() => fs::metadata(entry.path()).is_ok_and(|meta| meta.is_dir()),
            Ok(kind) => kind.is_dir(),
            Err(_) => false,
        }
}
