//! What cannot be used is set aside by name, never removed.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::crash;

/// Returns the folder for what is set aside of the store in `path`.
pub fn folder(path: &Path) -> PathBuf {
    path.join("set-aside")
}

/// Returns where something of this name can be set aside.
pub fn free(path: &Path, name: &str) -> PathBuf {
    let mut to = folder(path).join(name);
    let mut n = 1;
    while to.exists() {
        n += 1;
        to = folder(path).join(format!("{name}-{n}"));
    }
    to
}

/// Moves a file or folder of the store in `path` aside and returns where it lies now.
pub fn put(path: &Path, name: &str) -> io::Result<PathBuf> {
    let (aside, to) = (folder(path), free(path, name));
    fs::create_dir_all(to.parent().unwrap_or(&aside))?;
    crash::point("aside.rename.before");
    fs::rename(path.join(name), &to)?;
    sync(&aside)?;
    sync(path)?;
    crash::point("aside.rename.after");
    Ok(to)
}

/// Makes the names in a folder durable.
pub fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
