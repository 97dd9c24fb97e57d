//! One folder: the names in it, and which of them matter.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{AtFlags, Dir, FileType};

/// How many names of one folder are looked at.
pub const ENTRIES: usize = 200_000;

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Folder,
    Link,
    File,
    Other,
}

/// Returns the names in an opened folder, one more than is allowed at most.
pub fn entries(folder: &OwnedFd) -> Result<Vec<(OsString, Kind)>, rustix::io::Errno> {
    let mut entries = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let kind = match entry.file_type() {
            // Some file systems do not say.
            FileType::Unknown => rustix::fs::statat(folder, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)
                .map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode)),
            known => known,
        };
        let kind = match kind {
            FileType::Directory => Kind::Folder,
            FileType::Symlink => Kind::Link,
            FileType::RegularFile => Kind::File,
            _ => Kind::Other,
        };
        let name = entry.file_name().to_bytes();
        if !matches!(name, b"." | b"..") {
            entries.push((OsStr::from_bytes(name).to_owned(), kind));
        }
        if entries.len() > ENTRIES {
            break;
        }
    }
    Ok(entries)
}

/// Returns the name of the folder's document: `SKILL.md`, else one that differs from it in case alone.
pub fn skill_file(entries: &[(OsString, Kind)]) -> Option<&OsStr> {
    let names = || entries.iter().map(|(name, _)| name.as_os_str());
    let alike = |name: &&OsStr| name.as_bytes().eq_ignore_ascii_case(b"SKILL.md");
    names().find(|name| name.as_bytes() == b"SKILL.md").or_else(|| names().find(alike))
}

pub fn is_flat(name: &OsStr, kind: Kind) -> bool {
    let bytes = name.as_bytes();
    matches!(kind, Kind::File | Kind::Link)
        && bytes.ends_with(b".md")
        && !bytes.starts_with(b".")
        && !bytes.eq_ignore_ascii_case(b"SKILL.md")
}

/// Tells whether a folder never holds skills of people.
pub fn is_skipped(name: &OsStr) -> bool {
    name.as_bytes().starts_with(b".") || name == "node_modules"
}

/// Tells whether there simply is no folder.
pub fn is_no_folder(why: &std::io::Error) -> bool {
    matches!(why.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
}
