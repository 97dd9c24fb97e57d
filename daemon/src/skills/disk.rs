//! What edits do on disk: beneath a workspace where the skill is one's, in one step, and durable.

use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags};
use ulid::Ulid;

use super::edit::EditError;
use super::shelf::Root;
use crate::sandbox::workspace::{PathError, Workspace};

/// Tells whether a folder is not to be written, as opposed to a disk that is full or failing.
pub fn is_closed(why: &PathError) -> bool {
    use std::io::ErrorKind;
    let PathError::Io { source, .. } = why else { return true };
    matches!(
        source.kind(),
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem | ErrorKind::NotADirectory | ErrorKind::NotFound
    )
}

/// Opens what files of a root are read and written beneath.
pub fn ground(root: &Root) -> Result<Workspace, PathError> {
    let (path, restrict) = match &root.workspace {
        Some(workspace) => (workspace.as_path(), true),
        None => (Path::new("/"), false),
    };
    Workspace::open(path, restrict).map_err(|source| PathError::Io { path: path.display().to_string(), source })
}

/// Writes the file of a new skill; returns where it is.
pub fn write_new(root: &Root, name: &str, text: &[u8]) -> Result<PathBuf, EditError> {
    let path = root.path.join(name).join("SKILL.md");
    let ground = ground(root)?;
    let place = ground.place(&path.to_string_lossy(), true)?;
    if place.exists() {
        return Err(EditError::Conflict(format!("{} is there already", path.display())));
    }
    place.replace(text).inspect_err(|_| drop_empty(&ground, &path))?;
    Ok(path)
}

/// Removes the folder of a file that could not be written, if nothing is in it.
fn drop_empty(ground: &Workspace, path: &Path) {
    let Some((folder, above)) = path.parent().and_then(|folder| Some((folder.file_name()?, folder.parent()?))) else {
        return;
    };
    if let Ok(above) = ground.folder_at("", above) {
        // What is in use stays.
        rustix::fs::unlinkat(&above, folder, AtFlags::REMOVEDIR).ok();
    }
}

/// Takes `what` out of its folder in one step, then removes it; a link goes, not what it leads to.
pub fn remove(ground: &Workspace, what: &Path) -> Result<(), PathError> {
    let given = what.display().to_string();
    let failed = |why: std::io::Error| PathError::Io { path: given.clone(), source: why };
    let (parent, name) = (what.parent().unwrap_or(what), what.file_name().unwrap_or_default());
    let folder = ground.folder_at(&given, parent)?;
    let gone = PathBuf::from(format!(".nano-{}.tmp", Ulid::generate()));
    rustix::fs::renameat(&folder, name, &folder, &gone).map_err(|why| failed(why.into()))?;
    rustix::fs::fsync(&folder).map_err(|why| failed(why.into()))?;
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::PATH | OFlags::CLOEXEC;
    match rustix::fs::openat(&folder, &gone, flags, Mode::empty()) {
        Ok(opened) => {
            drop(opened);
            let path = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd())).join(&gone);
            // The skill is gone all the same: what of it could not be removed is nobody's any more.
            if let Err(why) = std::fs::remove_dir_all(path) {
                tracing::warn!(%why, left = %parent.join(&gone).display(), "a deleted skill's folder could not be emptied");
            }
            Ok(())
        }
        Err(_) => rustix::fs::unlinkat(&folder, &gone, AtFlags::empty()).map_err(|why| failed(why.into())),
    }
}
