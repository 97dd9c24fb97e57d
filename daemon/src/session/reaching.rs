//! How far the tools of a session reach, put together from its level, its agent, and where the daemon's own files are.

use std::path::{Path, PathBuf};

use nano_protocol::session::Session;

use super::deps::Deps;
use crate::sandbox::protected;
use crate::sandbox::reach::Reach;

/// Returns how far they reach from `workspace`, a real path; `skills` are the folders of those that are offered.
pub fn reach(deps: &Deps, session: &Session, restrict: bool, skills: Vec<PathBuf>, workspace: &Path) -> Reach {
    let configured = deps.configured();
    // A result that was too long names a file there.
    let [spill, temporary] =
        [deps.spill(&session.id), deps.temporary(&session.id)].map(|path| below(&deps.state, &path));
    let steering = &configured.config.steering.file;
    let skills: Vec<PathBuf> = skills.into_iter().map(real).collect();
    let mut protected = protected::of(workspace, steering);
    let roots = deps.skills.writable().into_iter().map(|root| real(root.path));
    protected.extend(skills.iter().cloned().chain(roots));
    Reach {
        level: session.level,
        elsewhere: !restrict,
        hidden: configured.private.hidden(),
        known: configured.private.known().to_vec(),
        shown: skills.into_iter().chain([spill]).collect(),
        protected,
        steering: steering.clone(),
        ..Reach::of(workspace.to_owned(), temporary)
    }
}

/// Returns where `path` is, which lies below `folder` and need not be there.
fn below(folder: &Path, path: &Path) -> PathBuf {
    path.strip_prefix(folder).map_or_else(|_| path.to_owned(), |rest| real(folder.to_owned()).join(rest))
}

/// Returns where `path` leads; what is not there leads to itself.
fn real(path: PathBuf) -> PathBuf {
    path.canonicalize().unwrap_or(path)
}
