//! What is left of a session that is deleted: its folders, which go after its records. That they are to go is on record
//! in the commit that removes those, so a daemon that dies in between leaves nothing behind for good.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nano_protocol::id::SessionId;

use super::deps::Deps;
use crate::crash;
use crate::store::{Change, Commit, Key};

/// Below this lie the ids of sessions whose folders are to go.
const GONE: &str = "gone";

/// Returns what records that the folders of a session are to go.
pub(super) fn mark(session: &SessionId) -> Change {
    Change::put(key(session), &true)
}

fn key(session: &SessionId) -> Key {
    Key::meta(&format!("{GONE}/{session}"))
}

/// Removes the folders of sessions that were deleted.
pub async fn remove_folders(deps: Arc<Deps>) {
    let all: Vec<SessionId> = deps.store.ids_backwards(&Key::below(b'!', GONE), None).map(SessionId).collect();
    for session in all {
        let folders = folders(&deps, &session);
        crash::point("session.folders.before");
        let removed = tokio::task::spawn_blocking(move || folders.iter().all(|folder| is_gone(folder))).await;
        crash::point("session.folders.after");
        if removed.unwrap_or(false) {
            // Where there is no room for that, the next start looks again.
            drop(deps.store.commit(Commit::asked(vec![Change::Delete(key(&session))])).await);
        }
    }
}

/// Returns the session's own folders; none of what is no id.
fn folders(deps: &Deps, session: &SessionId) -> Vec<PathBuf> {
    let is_id =
        session.0.starts_with("ses_") && session.0.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if is_id { vec![deps.spill(session), deps.own_workspace(session.as_str())] } else { Vec::new() }
}

/// Removes a folder with all that is in it; what links lead to stays.
fn is_gone(folder: &Path) -> bool {
    match std::fs::remove_dir_all(folder) {
        Ok(()) => true,
        Err(error) if error.kind() == ErrorKind::NotFound => true,
        Err(error) => {
            tracing::warn!(folder = %folder.display(), %error, "a deleted session's folder could not be removed");
            false
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use std::fs;
    use std::os::unix::fs::symlink;

    use super::is_gone;

    #[test]
    fn what_links_lead_to_stays() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("theirs/below")).unwrap();
        fs::create_dir_all(at("own/below")).unwrap();
        symlink(at("theirs"), at("own/below/link")).unwrap();
        symlink(at("theirs"), at("link")).unwrap();
        for name in ["own", "link", "never"] {
            is_gone(&at(name));
            assert!(fs::symlink_metadata(at(name)).is_err() || name == "link", "{name}");
        }
        assert!(at("theirs/below").is_dir());
    }
}
