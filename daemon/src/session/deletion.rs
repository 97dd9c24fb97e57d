//! What is left of a session that is deleted: its folders, which go after its records. That they are to go is on record
//! in the commit that removes those, so a daemon that dies in between leaves nothing behind for good.

use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nano_protocol::id::SessionId;

use super::deps::Deps;
use crate::crash;
use crate::store::record::SessionRecord;
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
    // Those that cannot be read now are looked for at the next start.
    let all = deps.store.ids_backwards(&Key::below(b'!', GONE), None).map_while(Result::ok);
    let all: Vec<SessionId> = all.map(SessionId).collect();
    for session in all {
        // One in which others work stays with its mark: it goes at a start after they did.
        let (kept, folders): (Vec<_>, Vec<_>) =
            folders(&deps, &session).into_iter().partition(|folder| is_shared(&deps, folder));
        crash::point("session.folders.before");
        let removed = tokio::task::spawn_blocking(move || folders.iter().all(|folder| is_gone(folder))).await;
        crash::point("session.folders.after");
        if removed.unwrap_or(false) && kept.is_empty() {
            // Where there is no room for that, the next start looks again.
            drop(deps.store.commit(Commit::asked(vec![Change::Delete(key(&session))])).await);
        }
    }
}

/// Returns the session's own folders; none of what is no id.
fn folders(deps: &Deps, session: &SessionId) -> Vec<PathBuf> {
    let is_id =
        session.0.starts_with("ses_") && session.0.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if is_id {
        vec![deps.spill(session), deps.temporary(session), deps.own_workspace(session.as_str())]
    } else {
        Vec::new()
    }
}

/// Tells whether the workspace of a session that is still there lies in this folder.
fn is_shared(deps: &Deps, folder: &Path) -> bool {
    let real = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let is_in = |record: SessionRecord| lies_in(&record.session.workspace, folder, &real);
    // Where that cannot be known, it is.
    deps.store.readable(&Key::all(b's')).map_or(true, |all| all.into_iter().any(is_in))
}

fn lies_in(workspace: &str, folder: &Path, real: &Path) -> bool {
    Path::new(workspace).starts_with(folder) || fs::canonicalize(workspace).is_ok_and(|path| path.starts_with(real))
}

/// Makes the folders below one, and itself, such that what is in them can be removed; links are not followed.
fn open_up(folder: &Path) -> io::Result<()> {
    fs::set_permissions(folder, Permissions::from_mode(0o700))?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            open_up(&entry.path())?;
        }
    }
    Ok(())
}

/// Removes a folder with all that is in it; what links lead to stays.
fn is_gone(folder: &Path) -> bool {
    let removed = fs::remove_dir_all(folder).or_else(|why| match why.kind() {
        // Some tools make what they keep unwritable.
        ErrorKind::PermissionDenied if fs::symlink_metadata(folder)?.is_dir() => {
            open_up(folder)?;
            fs::remove_dir_all(folder)
        }
        _ => Err(why),
    });
    match removed {
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

    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_folder_in_which_another_session_works_is_seen() {
        let state = tempfile::tempdir().unwrap();
        let own = state.path().join("ses_A");
        fs::create_dir_all(own.join("below")).unwrap();
        symlink(&own, state.path().join("link")).unwrap();
        for (workspace, expected) in [
            ("ses_A", true),
            ("ses_A/below", true),
            ("ses_A/gone", true),
            ("link/below", true),
            ("ses_AB", false),
            ("", false),
        ] {
            let path = state.path().join(workspace).to_string_lossy().into_owned();
            assert_eq!(lies_in(&path, &own, &fs::canonicalize(&own).unwrap()), expected, "{workspace}");
        }
    }

    #[test]
    fn folders_that_cannot_be_written_are_opened_up_and_what_links_lead_to_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let mode = |name: &str| fs::metadata(at(name)).unwrap().permissions().mode() & 0o777;
        let set = |name: &str, mode| fs::set_permissions(at(name), Permissions::from_mode(mode)).unwrap();
        fs::create_dir_all(at("own/module/package")).unwrap();
        fs::create_dir_all(at("theirs")).unwrap();
        fs::write(at("own/module/package/file"), "").unwrap();
        symlink(at("theirs"), at("own/module/link")).unwrap();
        for name in ["own/module/package", "own/module", "theirs"] {
            set(name, 0o555);
        }
        open_up(&at("own")).unwrap();
        assert_eq!((mode("own/module"), mode("own/module/package"), mode("theirs")), (0o700, 0o700, 0o555));
        set("own/module", 0o555);
        assert!(is_gone(&at("own")) && at("theirs").is_dir());
    }

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
