//! What cannot be used is set aside by name, never removed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::checkpoint::line;
use super::disk;
use super::tail::Record;
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

/// Keeps records as JSON Lines in a file of this name, or one like it, and returns where it lies.
pub fn keep(path: &Path, name: &str, records: &[Record]) -> io::Result<PathBuf> {
    let to = free(path, name);
    disk::make(&folder(path))?;
    let mut text = Vec::new();
    records.iter().try_for_each(|(key, value)| line::encode(&mut text, key, value))?;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&to)?;
    file.write_all(&text)?;
    file.sync_all()?;
    sync(&folder(path))?;
    Ok(to)
}

/// Makes the names in a folder durable.
pub fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
