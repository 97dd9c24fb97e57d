//! `submit` starts a personal daemon that outlives it and holds nothing of its caller's.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::event::{PollFd, PollFlags};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::shell::Ran;
use crate::wire::task;

/// Root uses the system's places: a person without privileges is played by nobody.
const NOBODY: u32 = 65534;

/// A home with nanoctl, and beside it a nanod that is this test program.
struct Home(TempDir);

impl Home {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let root = folder.path();
        fs::copy(env!("CARGO_BIN_EXE_nanoctl"), root.join("nanoctl")).unwrap();
        fs::copy(std::env::current_exe().unwrap(), root.join("tests")).unwrap();
        let script = concat!(
            "#!/bin/sh\n",
            "read -r _ _ _ _ group sid _ < /proc/$$/stat\n",
            "[ $$ = $sid ] && echo own session >&2\n",
            "[ -e /proc/$$/fd/3 ] && echo inherited 3 >&2\n",
            "[ -e /proc/$$/fd/11 ] && echo inherited 11 >&2\n",
            "exec \"${0%/*}/tests\" --exact autostart::plays_nanod --ignored\n"
        );
        fs::write(root.join("nanod"), script).unwrap();
        fs::set_permissions(root.join("nanod"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(root, fs::Permissions::from_mode(0o755)).unwrap();
        fs::create_dir(root.join("run")).unwrap();
        if rustix::process::getuid().is_root() {
            chown(root, Some(NOBODY), Some(NOBODY)).unwrap();
            chown(root.join("run"), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        Self(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn run(&self, script: &str) -> Ran {
        let mut shell = Command::new("/bin/bash");
        shell.args(["-c", script]).current_dir(self.0.path()).env_clear().env("HOME", self.0.path());
        shell.env("XDG_RUNTIME_DIR", self.path("run")).stdin(std::process::Stdio::null());
        if rustix::process::getuid().is_root() {
            shell.uid(NOBODY).gid(NOBODY);
        }
        Ran::from(&shell.output().unwrap())
    }
}

#[test]
fn a_personal_daemon_is_started_and_let_go() {
    let home = Home::new();
    let ran = home.run("./nanoctl --no-autostart submit hi");
    assert_eq!((ran.code, home.path("run/nanod").exists()), (3, false), "{}", ran.err);
    let ran = home.run("./nanoctl tasks");
    let hint = "; nanoctl run or submit starts one; or: systemctl --user start nanod";
    assert!(ran.err.contains("run/nanod/nanod.sock (there is no socket) or at /run/nanod/nanod.sock ("), "{}", ran.err);
    assert!(ran.err.contains(hint), "{}", ran.err);
    assert_eq!((ran.code, home.path("run/nanod").exists()), (3, false), "{}", ran.err);
    // The shell's reader ends only when no process holds a copy of its pipe.
    let ran = home.run("exec 3>&1 11>&1; id=$(./nanoctl submit hi) && echo \"<$id>\"");
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "<tsk_1>\n", ""));
    let log = fs::read_to_string(home.path(".local/state/nanod/nanod.log")).unwrap();
    assert_eq!(log, "own session\n");
    let ran = home.run("./nanoctl shutdown");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
}

#[test]
fn a_daemon_that_cannot_start_is_named_with_its_last_words() {
    let home = Home::new();
    fs::write(home.path("nanod"), "#!/bin/sh\necho 'nanod.toml: no such key' >&2\nexit 78\n").unwrap();
    let ran = home.run("./nanoctl submit hi");
    assert_eq!((ran.code, ran.err.lines().count()), (3, 1));
    assert!(ran.err.contains("does not accept: nanod.toml: no such key; see "), "{}", ran.err);
}

#[test]
fn no_runtime_folder_names_the_way_out() {
    let home = Home::new();
    let ran = home.run("unset XDG_RUNTIME_DIR; ./nanoctl submit hi");
    assert_eq!(ran.code, 3);
    assert!(ran.err.contains("NANO_SOCKET"), "{}", ran.err);
}

#[test]
fn a_demo_that_is_interrupted_is_quiet_and_clears_up() {
    let home = Home::new();
    let started = home.path("started");
    // A daemon that starts and never accepts.
    fs::write(home.path("nanod"), "#!/bin/sh\necho up > \"${0%/*}/started\"\nexec sleep 60\n").unwrap();
    let made = Command::new("mkfifo").arg(&started).status().unwrap();
    assert!(made.success());
    fs::create_dir(home.path("tmp")).unwrap();
    let mut demo = Command::new(home.path("nanoctl"));
    demo.args(["demo", "-q"])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("TMPDIR", home.path("tmp"))
        .stdin(std::process::Stdio::null());
    let child = demo.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    assert_eq!(fs::read_to_string(started).unwrap(), "up\n");
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::INT).unwrap();
    let ran = Ran::from(&child.wait_with_output().unwrap());
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (130, "", ""));
    assert_eq!(fs::read_dir(home.path("tmp")).unwrap().count(), 0);
}

/// The daemon that the script above becomes: it ends when it is told to, or when nobody comes.
#[test]
#[ignore = "no test: the personal daemon of the tests above"]
fn plays_nanod() {
    let Some(runtime) =
        std::env::var_os("XDG_RUNTIME_DIR").filter(|_| std::env::current_exe().is_ok_and(|me| is_copy(&me)))
    else {
        return;
    };
    let folder = Path::new(&runtime).join("nanod");
    fs::create_dir(&folder).unwrap();
    let listener = UnixListener::bind(folder.join("nanod.sock")).unwrap();
    // A test that fails must not leave it, nor wait for it, for ever.
    let patience = rustix::event::Timespec { tv_sec: 20, tv_nsec: 0 };
    let coming = || rustix::event::poll(&mut [PollFd::new(&listener, PollFlags::IN)], Some(&patience)) == Ok(1);
    while coming() {
        let (stream, _) = listener.accept().unwrap();
        for line in BufReader::new(&stream).lines() {
            let request: Value = serde_json::from_str(&line.unwrap()).unwrap();
            let result = task("tsk_1", "queued", &json!({}));
            writeln!(&stream, "{}", json!({"jsonrpc": "2.0", "id": request["id"], "result": result})).unwrap();
            if request["method"] == "daemon.shutdown" {
                return;
            }
        }
    }
}

fn is_copy(program: &Path) -> bool {
    program.with_file_name("nanod").exists() && program.ends_with("tests")
}
