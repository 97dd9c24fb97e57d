//! Where the daemon's socket is, and connecting to it.

use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use interprocess::ConnectWaitMode;
use interprocess::local_socket::{ConnectOptions, GenericFilePath, ToFsName as _};
use interprocess::os::unix::uds_local_socket::Stream;

use crate::duration::Deadline;
use crate::failure::{Failure, Kind};

/// The longest socket path that the kernel takes.
const MAX_PATH: usize = 107;
const SYSTEM: &str = "/run/nanod/nanod.sock";

/// Where a daemon may listen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// There and nowhere else: it was named.
    Named(PathBuf),
    /// At the person's own socket, if there can be one, else at the system's.
    Usual(Option<PathBuf>),
}

impl Place {
    /// Finds the place from `--socket` and the environment.
    pub fn find(flag: Option<&Path>) -> Result<Self, Failure> {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        if let Some(path) = flag.map(Path::to_owned).or_else(|| set("NANO_SOCKET")) {
            return named(path);
        }
        let uid = rustix::process::getuid().as_raw();
        let ours = |folder: &Path| std::fs::metadata(folder).is_ok_and(|meta| meta.is_dir() && meta.uid() == uid);
        Ok(Self::Usual(own(uid, set("XDG_RUNTIME_DIR"), ours)))
    }

    /// Connects to the first socket that answers.
    pub fn connect(&self, deadline: Deadline) -> Result<Stream, Failure> {
        let mut tried = Vec::new();
        for path in self.sockets() {
            match open(&path, deadline) {
                Ok(stream) => return Ok(stream),
                Err(error) => tried.push((path, error)),
            }
            deadline.clip(None)?;
        }
        Err(self.unreachable(&tried))
    }

    fn sockets(&self) -> Vec<PathBuf> {
        match self {
            Self::Named(path) => vec![path.clone()],
            Self::Usual(own) => {
                let mut paths: Vec<_> = own.iter().cloned().collect();
                if own.as_deref() != Some(Path::new(SYSTEM)) {
                    paths.push(SYSTEM.into());
                }
                paths
            }
        }
    }

    fn unreachable(&self, tried: &[(PathBuf, io::Error)]) -> Failure {
        let told: Vec<_> =
            tried.iter().map(|(path, error)| format!("{} ({})", path.display(), spoken(error))).collect();
        let shut_out = |(path, error): &(PathBuf, io::Error)| {
            path == Path::new(SYSTEM) && error.kind() == io::ErrorKind::PermissionDenied
        };
        let group = if tried.iter().any(shut_out) { "; or join the group nanod to use the machine's" } else { "" };
        let why = format!("no daemon is reached at {}", told.join(" or at "));
        Failure::new(Kind::Unreachable, why, format!("{}{group}", self.remedy()))
    }

    fn remedy(&self) -> &'static str {
        match self {
            Self::Named(_) => "start nanod there, or name another socket with --socket or NANO_SOCKET",
            Self::Usual(Some(own)) if own == Path::new(SYSTEM) => {
                "nanoctl run or submit starts one; or: systemctl start nanod"
            }
            Self::Usual(Some(_)) => "nanoctl run or submit starts one; or: systemctl --user start nanod",
            Self::Usual(None) => {
                "there is no runtime folder for a daemon of your own: set XDG_RUNTIME_DIR, or name a socket in NANO_SOCKET"
            }
        }
    }
}

fn named(path: PathBuf) -> Result<Place, Failure> {
    let bytes = path.as_os_str().as_bytes();
    let hint = "name a shorter path with --socket or NANO_SOCKET";
    if bytes.len() > MAX_PATH {
        return Err(Failure::usage(format!("the socket's path is longer than {MAX_PATH} bytes"), hint));
    }
    if bytes.is_empty() || bytes.starts_with(b"@") {
        return Err(Failure::usage(
            "the socket has no path in the file system",
            "name one with --socket or NANO_SOCKET",
        ));
    }
    Ok(Place::Named(path))
}

fn own(uid: u32, runtime: Option<PathBuf>, ours: impl Fn(&Path) -> bool) -> Option<PathBuf> {
    if uid == 0 {
        return Some(SYSTEM.into());
    }
    let usual = PathBuf::from(format!("/run/user/{uid}"));
    // A relative XDG_RUNTIME_DIR does not count, as its specification says.
    let folder = runtime.filter(|folder| folder.is_absolute()).or_else(|| ours(&usual).then_some(usual))?;
    Some(folder.join("nanod/nanod.sock"))
}

fn open(path: &Path, deadline: Deadline) -> io::Result<Stream> {
    let name = path.to_fs_name::<GenericFilePath>()?;
    let left = deadline.clip(None).map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?;
    let mode = left.map_or(ConnectWaitMode::Unbounded, ConnectWaitMode::Timeout);
    ConnectOptions::new().name(name).wait_mode(mode).connect_sync_as()
}

fn spoken(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no socket".into(),
        io::ErrorKind::ConnectionRefused => "nobody listens".into(),
        io::ErrorKind::PermissionDenied => "permission denied".into(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Path, PathBuf, Place, SYSTEM, io, named, own};

    #[test]
    fn own_sockets() {
        let check = |uid, runtime: Option<&str>, ours, expected: Option<&str>| {
            let found = own(uid, runtime.map(PathBuf::from), |_: &Path| ours);
            assert_eq!(found, expected.map(PathBuf::from), "{uid} {runtime:?} {ours}");
        };
        check(1000, Some("/x"), false, Some("/x/nanod/nanod.sock"));
        check(1000, Some("x"), true, Some("/run/user/1000/nanod/nanod.sock"));
        check(1000, None, true, Some("/run/user/1000/nanod/nanod.sock"));
        check(1000, None, false, None);
        check(0, Some("/x"), true, Some(SYSTEM));
    }

    #[test]
    fn named_sockets() {
        assert!(named("x".repeat(107).into()).is_ok());
        for bad in ["x".repeat(108), "@abstract".into(), String::new()] {
            assert_eq!(named(bad.clone().into()).map_err(|failure| failure.code()), Err(2), "{bad}");
        }
    }

    #[test]
    fn every_socket_is_named_with_its_reason_and_the_way_out() {
        let check = |place: Place, kinds: &[io::ErrorKind], why: &str, hint: &str| {
            let tried: Vec<_> = place.sockets().into_iter().zip(kinds.iter().map(|kind| (*kind).into())).collect();
            let failure = place.unreachable(&tried);
            assert_eq!((failure.why.as_str(), failure.hint.as_str()), (why, hint));
        };
        let own = || Place::Usual(Some("/x/s".into()));
        let (none, shut) = (io::ErrorKind::NotFound, io::ErrorKind::PermissionDenied);
        let both = |system: &str| {
            format!("no daemon is reached at /x/s (there is no socket) or at /run/nanod/nanod.sock ({system})")
        };
        let start = "nanoctl run or submit starts one; or: systemctl --user start nanod";
        check(own(), &[none, none], &both("there is no socket"), start);
        let group = "; or join the group nanod to use the machine's";
        check(own(), &[none, shut], &both("permission denied"), &format!("{start}{group}"));
        let root = "nanoctl run or submit starts one; or: systemctl start nanod";
        let why = "no daemon is reached at /run/nanod/nanod.sock (nobody listens)";
        check(Place::Usual(Some(SYSTEM.into())), &[io::ErrorKind::ConnectionRefused], why, root);
        let named = "start nanod there, or name another socket with --socket or NANO_SOCKET";
        let at = |path: &str| format!("no daemon is reached at {path} (permission denied)");
        check(Place::Named("/y".into()), &[shut], &at("/y"), named);
        check(Place::Named(SYSTEM.into()), &[shut], &at(SYSTEM), &format!("{named}{group}"));
    }

    #[test]
    fn root_looks_at_one_place_only() {
        assert_eq!(Place::Usual(Some(SYSTEM.into())).sockets().len(), 1);
        assert_eq!(Place::Usual(None).sockets(), [PathBuf::from(SYSTEM)]);
    }
}
