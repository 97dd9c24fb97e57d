//! What a run must not leave on the disk.

use std::fs;
use std::path::{Path, PathBuf};

/// Checks that no file is left that was only for a while, and that none holds the key of the model.
pub fn check(root: &Path) {
    let all = below(root);
    let name = |path: &PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let for_a_while = |name: &str| name.starts_with(".nano-") || name.starts_with("running-");
    let left: Vec<_> = all.iter().filter(|path| for_a_while(&name(path))).collect();
    assert!(left.is_empty(), "files are left that were for a while only: {left:?}");
    for path in all.iter().filter(|path| name(path) != "nanod.toml") {
        let content = fs::read(path).unwrap_or_default();
        let secret = content.windows(8).any(|bytes| bytes == b"test-key");
        assert!(!secret, "the key of the model is in {}", path.display());
    }
}

fn below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => found.extend(below(&entry.path())),
            Ok(kind) if kind.is_file() => found.push(entry.path()),
            _ => {}
        }
    }
    found
}
