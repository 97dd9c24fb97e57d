//! Starts a daemon: a personal one that outlives us, or finds the program for a private one.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use interprocess::os::unix::uds_local_socket::Stream;

use crate::detach::detach;
use crate::duration::Deadline;
use crate::failure::{Failure, Kind};
use crate::place::Place;

/// A store that was not closed in order may take a while to open.
const PATIENCE: Duration = Duration::from_secs(30);
/// Another nanoctl may have started the daemon first: ours then ends, the other one accepts soon.
const GRACE: Duration = Duration::from_secs(3);
const BAD_CONFIG: i32 = 78;

/// Starts a personal daemon and waits until it accepts.
pub fn personal(place: &Place, deadline: Deadline) -> Result<Stream, Failure> {
    let log = log_path()?;
    let mut child = spawn(&log).map_err(|error| {
        let why = format!("a personal daemon cannot be started ({error})");
        Failure::new(Kind::Unreachable, why, "put nanod beside nanoctl or on PATH, or name a socket in NANO_SOCKET")
    })?;
    let began = Instant::now();
    let mut ended: Option<(Instant, ExitStatus)> = None;
    loop {
        match place.connect(deadline) {
            Err(failure) if failure.kind == Kind::Unreachable => {}
            other => return other,
        }
        if ended.is_none() {
            ended = child.try_wait().ok().flatten().map(|status| (Instant::now(), status));
        }
        let hopeless = |(at, status): &(Instant, ExitStatus)| status.code() == Some(BAD_CONFIG) || at.elapsed() > GRACE;
        if ended.as_ref().is_some_and(hopeless) || began.elapsed() > PATIENCE {
            return Err(gave_up(&log));
        }
        deadline.pause(Duration::from_millis(20))?;
    }
}

/// Returns the daemon's program: beside ours, else whatever PATH has.
pub fn program() -> PathBuf {
    let beside = std::env::current_exe().ok().map(|me| me.with_file_name("nanod"));
    beside.filter(|path| path.is_file()).unwrap_or_else(|| "nanod".into())
}

/// Returns the last line of a log, for an error line.
pub fn last_line(log: &Path) -> String {
    let text = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing").to_owned()
}

fn spawn(log: &Path) -> io::Result<Child> {
    let mut command = Command::new(program());
    // The daemon keeps no folder of ours busy, so what the environment names must not depend on it.
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(open_log(log)?).current_dir("/");
    for name in ["NANO_STATE_DIR", "NANO_CONFIG"] {
        if let Some(path) = std::env::var_os(name).filter(|path| !path.is_empty()) {
            command.env(name, std::path::absolute(path)?);
        }
    }
    detach(&mut command)?;
    command.spawn()
}

fn open_log(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

fn log_path() -> Result<PathBuf, Failure> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let named = set("NANO_STATE_DIR").map(|path| std::path::absolute(&path).unwrap_or(path));
    let state = named.or_else(|| {
        if rustix::process::getuid().is_root() {
            return Some("/var/lib/nanod".into());
        }
        let xdg = set("XDG_STATE_HOME").filter(|path| path.is_absolute());
        Some(xdg.or_else(|| std::env::home_dir().map(|home| home.join(".local/state")))?.join("nanod"))
    });
    let missing = || Failure::new(Kind::Unreachable, "there is no state folder", "set HOME or NANO_STATE_DIR");
    Ok(state.ok_or_else(missing)?.join("nanod.log"))
}

fn gave_up(log: &Path) -> Failure {
    let why = format!("the personal daemon does not accept: {}", last_line(log));
    Failure::new(Kind::Unreachable, why, format!("see {}, or name a socket in NANO_SOCKET", log.display()))
}
