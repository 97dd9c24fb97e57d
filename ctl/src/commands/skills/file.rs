//! A skill's file: what it is called, which folder it belongs to, and its bytes, whatever lies there.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use nano_skill::MAX_FILE;
use rustix::fs::OFlags;

/// What a skill's file is called.
pub const NAME: &str = "SKILL.md";

/// Returns the name of the folder that a skill's file lies in; that of the file itself for a flat `NAME.md`.
pub fn folder(path: &Path) -> String {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let is_flat = path.file_name().is_some_and(|name| !is_skill(name)) && path.extension().is_some();
    if is_flat {
        return whole.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    }
    let parent = whole.parent().unwrap_or(&whole);
    // A link's own name counts, but `..` is none.
    let named = parent.file_name().map(OsStr::to_owned);
    let named = named.or_else(|| Some(parent.canonicalize().ok()?.file_name()?.to_owned()));
    named.unwrap_or_default().to_string_lossy().into_owned()
}

/// Tells whether a skill's file is spelt in another case.
pub fn is_misspelt(name: &OsStr) -> bool {
    is_skill(name) && name != NAME
}

/// Tells whether a file is meant as a skill: in another case, too.
pub fn is_skill(name: &OsStr) -> bool {
    name.eq_ignore_ascii_case(NAME)
}

/// Returns the bytes of a SKILL.md, or why it has none.
pub fn read(path: &Path) -> Result<Vec<u8>, String> {
    let unreadable = |error: io::Error| format!("it cannot be read ({error})");
    // Opening some devices already does something, so a look at the name comes first.
    regular(&std::fs::metadata(path).map_err(unreadable)?)?;
    // What has become a FIFO since then must not block.
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or(0);
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(unreadable)?;
    regular(&file.metadata().map_err(unreadable)?)?;
    bounded(&file).map_err(unreadable)?.ok_or_else(too_large)
}

/// Returns at most [`MAX_FILE`] bytes; none where there are more.
pub fn bounded(file: &File) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    file.take(MAX_FILE + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= MAX_FILE).then_some(bytes))
}

fn regular(meta: &std::fs::Metadata) -> Result<(), String> {
    if meta.is_dir() {
        return Err("it is a folder, not a file: put the text into a file of this name".into());
    }
    if !meta.is_file() {
        return Err("it is not a regular file: put the text into one".into());
    }
    if meta.len() > MAX_FILE { Err(too_large()) } else { Ok(()) }
}

fn too_large() -> String {
    format!("it is longer than {} KiB: move parts of it into files beside it", MAX_FILE / 1024)
}
