//! Why a path cannot be used, in words that a model can act on.

use std::io;
use std::path::PathBuf;

use rustix::fs::FileType;
use rustix::io::Errno;

/// Why a path cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PathError {
    /// It leads out.
    #[error("`{path}` is outside the workspace {root}; use a path below it")]
    Outside {
        /// As it was given.
        path: String,
        /// The workspace.
        root: PathBuf,
    },
    /// It is kept from tools.
    #[error("`{path}` is protected: {why}")]
    Protected {
        /// As it was given.
        path: String,
        /// In a clause.
        why: &'static str,
    },
    /// It cannot name a file.
    #[error("bad path: {0}")]
    Bad(String),
    /// It names something else than a file with contents.
    #[error("`{path}` is not a regular file but {what}")]
    NotRegular {
        /// As it was given.
        path: String,
        /// What it is.
        what: &'static str,
    },
    /// Somebody else changed it.
    #[error("`{path}` was not changed: conflict: somebody else changed it since it was read; read it again")]
    Changed {
        /// As it was given.
        path: String,
    },
    /// The system refused.
    #[error("`{path}`: {}", Errno::from_io_error(source).map_or_else(|| source.to_string(), explain))]
    Io {
        /// As it was given.
        path: String,
        /// Why.
        source: io::Error,
    },
}

/// Returns `path` short enough for a message, without control characters.
pub fn shown(path: &str) -> String {
    let mut text: String = path.chars().map(|one| if one.is_control() { '\u{fffd}' } else { one }).take(200).collect();
    if path.chars().nth(200).is_some() {
        text.push('…');
    }
    text
}

pub(super) fn io_error(path: &str, why: Errno) -> PathError {
    PathError::Io { path: shown(path), source: why.into() }
}

pub(super) fn not_regular(path: &str, kind: FileType) -> PathError {
    let what = match kind {
        FileType::Directory => "a folder",
        FileType::Fifo => "a pipe",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Symlink => "a link",
        FileType::RegularFile | FileType::Unknown => "something that cannot be opened",
    };
    PathError::NotRegular { path: shown(path), what }
}

fn explain(why: Errno) -> String {
    match why {
        Errno::NOENT => "no such file or folder".into(),
        Errno::ACCESS | Errno::PERM => "permission denied".into(),
        Errno::NOTDIR => "not a folder".into(),
        Errno::LOOP => "too many links".into(),
        other => other.to_string(),
    }
}
