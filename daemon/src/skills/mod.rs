//! Skills: SKILL.md documents that inform a model.
//!
//! A [`library::Library`] knows the folders that skills lie in and keeps a [`shelf::Shelf`] of each: what was last read
//! well. An [`offer::Offer`] is what one session gets of them: names and descriptions in its prompt (the first layer),
//! a body when the model asks for it (the second). The document itself is read by `nano_skill`.

mod catalogue;
pub mod disk;
pub mod edit;
mod file;
pub mod files;
mod folder;
pub mod library;
mod named;
pub mod offer;
pub mod shelf;
pub mod shipped;
pub mod watch;

use std::path::{Path, PathBuf};

use nano_protocol::skill::SkillInfo;
use nano_skill::Document;

use file::Stamp;

/// Where a skill comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// A folder of `skills.paths`.
    Config,
    /// The session's workspace: not to be trusted without a word of the config.
    Workspace,
    /// A folder of the daemon's user.
    User,
    /// A folder of the machine.
    System,
    /// Built into the daemon.
    Shipped,
}

impl Source {
    /// Returns the word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Config => "config",
            Self::Workspace => "workspace",
            Self::User => "user",
            Self::System => "system",
            Self::Shipped => "shipped",
        }
    }
}

/// Returns a path as text for a model or a person: nothing in it acts.
pub fn plain(path: &Path) -> String {
    path.to_string_lossy().chars().map(|one| if one.is_control() { '\u{fffd}' } else { one }).collect()
}

/// A skill as it was last read.
#[derive(Debug, Clone, PartialEq)]
pub struct Skill {
    /// What it says.
    pub document: Document,
    /// The file.
    pub path: PathBuf,
    /// Its folder; none for a file that lies directly in a root, and for a shipped one.
    pub folder: Option<PathBuf>,
    /// Where it comes from.
    pub source: Source,
    stamp: Option<Stamp>,
}

impl Skill {
    /// Tells whether a model may come to see it.
    pub fn is_offerable(&self) -> bool {
        self.document.valid && !self.document.hidden
    }

    /// Returns it as lists show it.
    pub fn info(&self) -> SkillInfo {
        let document = &self.document;
        SkillInfo {
            name: document.name.clone(),
            description: document.description.clone(),
            path: self.path.to_string_lossy().into_owned(),
            source: self.source.as_str().into(),
            always_load: document.always_load,
            valid: document.valid,
            problems: document.problems.clone(),
        }
    }
}
