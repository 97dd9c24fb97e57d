//! The skills that come with the daemon: `cargo install` carries no data files, so they are built in.

use std::path::PathBuf;
use std::sync::Arc;

use nano_skill::Document;

use super::{Skill, Source};

macro_rules! shipped {
    ($($name:literal),+) => {
        /// Each one's name and text.
        const ALL: &[(&str, &str)] = &[$(($name, include_str!(concat!("../../../skills/", $name, "/SKILL.md")))),+];
    };
}

shipped!("code-review", "git-workflow", "nanod-operations", "write-a-skill");

/// Returns each of them, read.
pub fn all() -> Vec<Arc<Skill>> {
    let skill = |(name, text): &(&str, &str)| Skill {
        document: Document::read(text.as_bytes(), name),
        path: PathBuf::from(format!("nanod:{name}/SKILL.md")),
        folder: None,
        source: Source::Shipped,
        stamp: None,
    };
    ALL.iter().map(skill).map(Arc::new).collect()
}

/// Returns the text of the one with this name.
pub fn text(name: &str) -> Option<&'static str> {
    ALL.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}
