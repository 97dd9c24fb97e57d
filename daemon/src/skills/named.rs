//! What the config names of skills; replaced as a whole while the daemon runs.

use std::path::PathBuf;
use std::sync::Arc;

use super::Source;
use super::shelf::Root;

/// What the config names of skills.
pub(super) struct Named {
    /// Roots that come before a workspace's.
    pub first: Vec<Root>,
    /// Workspaces below these are trusted.
    pub trust: Vec<PathBuf>,
}

impl Named {
    pub fn new(paths: Vec<PathBuf>, trust: Vec<PathBuf>) -> Arc<Self> {
        let root = |path| Root { path, source: Source::Config, workspace: None };
        Arc::new(Self { first: paths.into_iter().map(root).collect(), trust })
    }
}
