//! What both servers do with files, by the paths they show.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde_json::{Value, json};

/// Writes a file, making the folders above it.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, bytes)
}

/// Removes a file, or a folder with all in it.
pub fn remove(path: &Path) -> io::Result<()> {
    if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
}

/// Lists a folder that the sandbox calls `shown`, folders first.
pub fn list(folder: &Path, shown: &str, hidden: bool) -> io::Result<Vec<Value>> {
    let mut entries = fs::read_dir(folder)?
        .flatten()
        .map(|entry| (entry.path().is_file(), entry.file_name().to_string_lossy().into_owned(), entry))
        .filter(|(_, name, _)| hidden || !name.starts_with('.'))
        .collect::<Vec<_>>();
    entries.sort_by(|one, other| (one.0, &one.1).cmp(&(other.0, &other.1)));
    entries.into_iter().map(|(is_file, name, entry)| describe(&entry.path(), is_file, &name, shown)).collect()
}

fn describe(path: &Path, is_file: bool, name: &str, shown: &str) -> io::Result<Value> {
    let meta = fs::symlink_metadata(path)?;
    let size = is_file.then_some(meta.len());
    let time = meta.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    let path = format!("{}/{name}", shown.trim_end_matches('/'));
    Ok(json!({"name": name, "path": path, "is_file": is_file, "is_dir": !is_file, "size": size, "modified_time": time}))
}

/// Resolves `.` and `..` by name alone; nothing where the path climbs out.
pub fn normalise(path: &str) -> Option<PathBuf> {
    let mut out = PathBuf::new();
    for part in Path::new(path).components() {
        match part {
            Component::Normal(name) => out.push(name),
            Component::ParentDir if !out.pop() => return None,
            _ => {}
        }
    }
    Some(out)
}

/// Returns what a path inside the workspace is called by the sandbox.
pub fn shown(workspace: &str, inner: &Path) -> String {
    if inner.as_os_str().is_empty() { workspace.to_owned() } else { format!("{workspace}/{}", inner.display()) }
}
