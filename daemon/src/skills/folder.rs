//! One folder: the names in it, and which of them matter.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;

use rustix::fs::FileType;

use crate::sandbox::workspace;

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
    let kind = |kind| match kind {
        FileType::Directory => Kind::Folder,
        FileType::Symlink => Kind::Link,
        FileType::RegularFile => Kind::File,
        _ => Kind::Other,
    };
    Ok(workspace::entries(folder, ENTRIES + 1)?.into_iter().map(|(name, of)| (name, kind(of))).collect())
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
