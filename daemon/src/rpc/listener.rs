//! The socket: bound under the state directory's lock, closed to others, never taken from a daemon that lives.

use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use interprocess::local_socket::tokio::Listener;
use interprocess::local_socket::traits::StreamCommon as _;
use interprocess::local_socket::traits::tokio::Listener as _;
use interprocess::local_socket::{GenericFilePath, ListenerOptions, ToFsName};
use rustix::fs::{FlockOperation, flock};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Server;
use super::connection::{self, Connections};
use super::door::Door;

/// Returns the id of a group of this machine's own list.
pub fn group_id(name: &str) -> Option<u32> {
    let groups = fs::read_to_string("/etc/group").unwrap_or_default();
    let mut lines = groups.lines().map(|line| line.split(':').collect::<Vec<_>>());
    lines.find_map(|line| (line.first() == Some(&name)).then(|| line.get(2)?.parse().ok()).flatten())
}

/// A bound socket; the file goes with it, if it is still the one that was bound.
pub struct Socket {
    listener: Listener,
    path: PathBuf,
    inode: u64,
}

impl Socket {
    /// Binds `path`: mode 0660 and the group where there is one, else 0600.
    pub async fn bind(path: &Path, group: Option<u32>) -> io::Result<Self> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if !folder.exists() {
            fs::DirBuilder::new().recursive(true).mode(if group.is_some() { 0o755 } else { 0o700 }).create(folder)?;
        }
        let _turn = turn(folder).await;
        remove_stale(path)?;
        let name = path.to_fs_name::<GenericFilePath>()?;
        let listener = ListenerOptions::new().name(name).reclaim_name(false).create_tokio()?;
        // After the bind: the umask would mask a mode given before, and until now it let nobody else connect.
        if let Some(group) = group {
            chown(path, None, Some(group))?;
        }
        fs::set_permissions(path, Permissions::from_mode(if group.is_some() { 0o660 } else { 0o600 }))?;
        Ok(Self { listener, path: path.to_owned(), inode: fs::symlink_metadata(path)?.ino() })
    }

    /// Serves connections until `closing`; then those that are open end as well. Who carries `mark` is not served.
    pub async fn serve(
        self,
        server: Arc<Server>,
        mark: Option<(String, String)>,
        stopping: CancellationToken,
        closing: CancellationToken,
    ) {
        let connections = Arc::new(Connections::default());
        let door = Arc::new(Door::new(mark.map(|(_, value)| value)));
        let open = TaskTracker::new();
        loop {
            let accepted = tokio::select! {
                biased;
                () = stopping.cancelled() => break,
                accepted = self.listener.accept() => accepted,
            };
            match accepted {
                Ok(stream) => match stream.peer_creds().map(|peer| peer.euid()) {
                    Ok(Some(uid)) => {
                        let (server, closing) = (server.clone(), closing.clone());
                        let (door, connections) = (door.clone(), connections.clone());
                        open.spawn(async move {
                            if let Some(stream) = door.let_in(stream).await {
                                connection::serve(stream, uid, server, connections, closing).await;
                            }
                        });
                    }
                    unknown => tracing::warn!(?unknown, "a peer without credentials was turned away"),
                },
                Err(error) => {
                    // Out of descriptors, mostly: wait for some to come free rather than spin.
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
        self.unlink();
        open.close();
        closing.cancelled().await;
        // A peer that does not read its last answers is not waited for.
        if tokio::time::timeout(Duration::from_secs(1), open.wait()).await.is_err() {
            tracing::debug!("some connections did not end in time");
        }
    }

    fn unlink(&self) {
        let ours = fs::symlink_metadata(&self.path).is_ok_and(|found| found.ino() == self.inode);
        if ours && let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(%error, socket = %self.path.display(), "the socket could not be removed");
        }
    }
}

/// Waits for its turn among daemons that bind in this folder: two that find one socket stale would take it from each
/// other. Who holds the lock for long is no daemon that starts, and is not waited for.
async fn turn(folder: &Path) -> Option<File> {
    let folder = File::open(folder).ok()?;
    let locked = tokio::task::spawn_blocking(move || flock(&folder, FlockOperation::LockExclusive).map(|()| folder));
    tokio::time::timeout(Duration::from_secs(5), locked).await.ok()?.ok()?.ok()
}

/// Removes a socket that nobody listens on; one that somebody does is left alone and named.
fn remove_stale(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::FileTypeExt;
    let Ok(found) = fs::symlink_metadata(path) else { return Ok(()) };
    if !found.file_type().is_socket() {
        let message = format!("{} is there and is not a socket", path.display());
        return Err(io::Error::new(ErrorKind::AlreadyExists, message));
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => fs::remove_file(path),
        Err(error) => Err(error),
        Ok(_) => Err(io::Error::new(ErrorKind::AddrInUse, format!("another daemon listens on {}", path.display()))),
    }
}
