//! A person's own daemon, started by the first `submit`; and scripts that have next to nothing around them.
//!
//! Root has the system's places, so a test that runs as root takes the programs to a folder of nobody's and goes there.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nano_tests::daemon::Daemon;
use nano_tests::model_server::{ModelServer, Turn};
use nano_tests::{processes, programs, wait};
use tempfile::TempDir;

const NOBODY: u32 = 65_534;

/// An empty home with the programs, a runtime folder, and a config that names the model.
struct Home {
    root: TempDir,
    is_root: bool,
}

impl Home {
    fn new(server: &ModelServer) -> Self {
        let root = tempfile::Builder::new().prefix("nano-home-").tempdir().expect("a home");
        let home = Self { root, is_root: rustix::process::getuid().is_root() };
        for folder in ["", "bin", "run", "home", "home/.config", "home/.config/nanod"] {
            fs::create_dir_all(home.path(folder)).expect("a folder");
            fs::set_permissions(home.path(folder), fs::Permissions::from_mode(0o700)).expect("a mode");
        }
        for name in ["nanod", "nanoctl"] {
            fs::copy(programs::program(name), home.path("bin").join(name)).expect("a copy of the program");
        }
        let url = server.url();
        let config = format!("[models.m]\napi = \"openai\"\nbase_url = \"{url}\"\nmodel = \"m\"\napi_key = \"k\"\n");
        fs::write(home.path("home/.config/nanod/nanod.toml"), config).expect("a config file");
        if home.is_root {
            give_away(&home.path(""));
        }
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Runs a shell script as the person, and returns its status, its output and what it said.
    fn sh(&self, script: &str) -> (Option<i32>, String, String) {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).env_clear().current_dir(self.path("home")).stdin(Stdio::null());
        let system = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{system}", self.path("bin").display()));
        command.env("HOME", self.path("home")).env("XDG_RUNTIME_DIR", self.path("run"));
        if self.is_root {
            command.uid(NOBODY).gid(NOBODY);
        }
        let output = command.output().expect("a shell");
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).trim_end().to_owned();
        (output.status.code(), text(output.stdout), text(output.stderr))
    }
}

/// Gives a folder and all in it to nobody.
fn give_away(path: &Path) {
    chown(path, Some(NOBODY), Some(NOBODY)).expect("another owner");
    if path.is_dir() {
        for entry in fs::read_dir(path).expect("a folder").flatten() {
            give_away(&entry.path());
        }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        processes::of(self.root.path()).iter().for_each(processes::kill);
        if !std::thread::panicking() {
            wait::until("the end of the daemon", || processes::of(self.root.path()).is_empty().then_some(()));
        }
    }
}

#[test]
fn the_first_submit_starts_a_daemon_and_returns() {
    let server = ModelServer::answering(|_, _| Some(Turn::text("all done")));
    let home = Home::new(&server);
    let (code, answer, said) = home.sh("id=$(nanoctl submit hello) && nanoctl wait $id && nanoctl result $id");
    assert_eq!((code, answer.as_str()), (Some(0), "all done"), "{said}");
    let mode = |name: &str| fs::metadata(home.path(name)).expect(name).permissions().mode() & 0o777;
    assert_eq!((mode("run/nanod"), mode("run/nanod/nanod.sock")), (0o700, 0o600));
    assert!(home.path("home/.local/state/nanod").is_dir());
    let (code, first, _) = home.sh("nanoctl --json status | tr , '\\n' | grep '\"pid\"'");
    let (_, second, _) = home.sh("nanoctl run hello >/dev/null; nanoctl --json status | tr , '\\n' | grep '\"pid\"'");
    assert_eq!((code, &first), (Some(0), &second), "a second command finds the same daemon");
    let (code, _, said) = home.sh("nanoctl shutdown");
    assert_eq!(code, Some(0), "{said}");
    wait::until("the end of the daemon", || processes::of(home.root.path()).is_empty().then_some(()));
}

#[test]
fn many_at_once_start_one_daemon() {
    let server = ModelServer::answering(|_, _| Some(Turn::text("done")));
    let home = Home::new(&server);
    let (code, ids, said) = home.sh("for n in 1 2 3 4 5; do nanoctl submit $n & done; wait");
    assert_eq!((code, ids.lines().count()), (Some(0), 5), "{said}");
    let (code, _, said) = home.sh(&format!("nanoctl wait {}", ids.replace('\n', " ")));
    assert_eq!(code, Some(0), "{said}");
    let daemons = processes::of(home.root.path()).into_iter().filter(|one| one.command.contains("bin/nanod")).count();
    assert_eq!(daemons, 1);
}

#[test]
fn no_daemon_is_started_where_none_should_be() {
    let server = ModelServer::script(Vec::new());
    let home = Home::new(&server);
    for script in [
        "nanoctl --no-autostart submit hello",
        "nanoctl status",
        "nanoctl wait tsk_0",
        "nanoctl --socket $HOME/no.sock submit hello",
        "NANO_SOCKET=$HOME/no.sock nanoctl submit hello",
    ] {
        let (code, answer, said) = home.sh(script);
        assert_eq!((code, answer.as_str()), (Some(3), ""), "{script}: {said}");
    }
    let (code, _, said) = home.sh("unset XDG_RUNTIME_DIR; nanoctl submit hello");
    let has_runtime = PathBuf::from(format!("/run/user/{NOBODY}")).exists() || !home.is_root;
    assert!(has_runtime || (code == Some(3) && said.contains("NANO_SOCKET")), "{code:?}: {said}");
}

#[test]
fn a_crontab_line_submits_and_waits() {
    let server = ModelServer::answering(|_, _| Some(Turn::text("all done")));
    let daemon = Daemon::start(&server);
    let nanoctl = format!("{} --socket {}", programs::program("nanoctl").display(), daemon.socket().display());
    for script in [
        format!("id=$({nanoctl} submit 'hello cron' <&-) && {nanoctl} wait $id <&- && {nanoctl} result $id <&-"),
        format!("{nanoctl} run 'hello cron' <&- 2>&-"),
        format!("printf hello | {nanoctl} run"),
    ] {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", &script]).env_clear().current_dir("/").process_group(0);
        let output = command.stdin(Stdio::null()).output().expect("a shell");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            (output.status.code(), output.stdout.as_slice()),
            (Some(0), b"all done\n".as_slice()),
            "{script}: {said}"
        );
    }
}
