//! What commands and file tools cannot even read, and whom they cannot reach.

use std::fs;
use std::os::unix::net::UnixListener;

use nano_protocol::session::Level;
use nanod::booters::local::LocalBooter;
use nanod::sandbox::reach::Reach;
use serde_json::json;

use super::support::Fixture;
use super::{both, run, support};

/// A session whose daemon keeps its things beside it, and something in the workspace itself.
async fn fixture(booter: LocalBooter, level: Level) -> Fixture {
    let w = Fixture::within(booter, |reach| {
        let root = reach.workspace.parent().unwrap().to_owned();
        for path in
            ["state/store/db", "state/workspaces/other/notes", "state/spill/s/long", "config/nanod/nanod.toml", "key"]
        {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), "s3cret\n").unwrap();
        }
        fs::write(reach.workspace.join("key"), "s3cret\n").unwrap();
        fs::write(reach.workspace.join("mine"), "mine\n").unwrap();
        let hidden = ["state", "config/nanod", "key", "w/key"].map(|path| root.join(path)).to_vec();
        let shown = vec![root.join("state/spill/s")];
        Reach { level, hidden, shown, temporary: root.join("state/spill/s/tmp"), ..reach }
    })
    .await;
    std::os::unix::fs::symlink(w.outside("state/store/db"), w.path("link")).unwrap();
    w
}

#[tokio::test]
async fn what_is_the_daemons_own_is_not_read() {
    for (booter, mounts) in both() {
        let w = fixture(booter, Level::WorkspaceWrite).await;
        let root = w.outside("").display().to_string();
        for command in [
            "cat R/state/store/db",
            "cat R/config/nanod/nanod.toml",
            "cat R/state/workspaces/other/notes",
            "cat R/key",
            "cat key",
            "cat link",
            "cat ../state/store/db",
            "cd R/state && cat store/db",
            "cp -r R/state copied; cat copied/store/db",
            "mv key k; cat k",
            "ln key k; cat k",
            "grep -r s3cret R --exclude-dir=s",
            "cat /proc/self/cwd/../state/store/db",
            "cat /proc/self/root/R/key",
            "python3 -c 'print(open(\"R/key\").read())'",
            "tar cf - R/state/store | strings",
            "echo x > R/state/store/db",
            "rm -rf R/state/store; ls R/state/store/db; cat R/state/store/db",
        ] {
            let (_, text) = run(&w, &command.replace('R', &root)).await;
            assert!(!text.contains("s3cret"), "{command}, with mounts {mounts}: {text}");
        }
        assert_eq!(fs::read_to_string(w.outside("state/store/db")).unwrap(), "s3cret\n");
        assert_eq!(run(&w, "cat mine ../state/spill/s/long").await, (true, "mine\ns3cret".into()));
        assert!(run(&w, "ls / /usr > /dev/null && ls ..").await.0);
    }
}

#[tokio::test]
async fn file_tools_see_no_more_than_commands() {
    for level in Level::ALL.iter().copied() {
        for elsewhere in [false, true] {
            let mut w = fixture(support::local(), level).await;
            let reach = Reach::clone(&w.context.workspace.reach().unwrap());
            let workspace = nanod::sandbox::workspace::Workspace::open(&reach.workspace, !elsewhere).unwrap();
            w.context.workspace = std::sync::Arc::new(workspace.with_reach(Reach { elsewhere, ..reach }));
            for path in ["key", "link", "../key", "../state/store/db", "../config/nanod/nanod.toml"] {
                let why = w.failed("read_file", json!({"path": path})).await;
                let inside = path == "key";
                let expected =
                    if inside || elsewhere { " is protected: it belongs to nanod" } else { "outside the workspace" };
                assert!(why.contains(expected), "{level} {elsewhere} {path}: {why}");
            }
            assert!(!w.done("grep", json!({"pattern": "s3cret"})).await.contains("key:"));
            let long = w.outside("state/spill/s/long");
            assert_eq!(w.done("read_file", json!({"path": long})).await, "s3cret\n");
            assert_eq!(w.done("read_file", json!({"path": "mine"})).await, "mine\n");
        }
    }
}

/// Another process of the same user: the daemon, a D-Bus server, Docker.
#[tokio::test]
async fn sockets_of_others_are_closed() {
    for (booter, mounts) in both() {
        let w = fixture(booter, Level::WorkspaceWrite).await;
        let (outside, inside) = (w.outside("s.sock"), w.path("s.sock"));
        let (listener, own) = (UnixListener::bind(&outside).unwrap(), UnixListener::bind(&inside).unwrap());
        listener.set_nonblocking(true).unwrap();
        own.set_nonblocking(true).unwrap();
        let connect = |path: &std::path::Path| {
            format!("python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"{}\")'", path.display())
        };
        let (ok, text) = run(&w, &connect(&outside)).await;
        assert!(!ok && listener.accept().is_err(), "with mounts {mounts}: {text}");
        let (ok, text) = run(&w, &connect(&inside)).await;
        assert!(!ok && own.accept().is_err(), "with mounts {mounts}: {text}");
        // A socket that the session's commands have made they may use, where others can be closed.
        let made = w.path("made.sock");
        let serve =
            "import socket, time; one = socket.socket(socket.AF_UNIX); one.bind(\"P\"); one.listen(); time.sleep(60)";
        let serve = serve.replace('P', &made.to_string_lossy());
        run(
            &w,
            &format!("python3 -c '{serve}' & for n in $(seq 100); do test -S made.sock && break; sleep 0.05; done"),
        )
        .await;
        let (ok, text) = run(&w, &connect(&made)).await;
        assert_eq!(ok, mounts, "{text}");
        w.context.sandbox.as_ref().unwrap().shutdown().await;
        let w = fixture(support::local(), Level::Host).await;
        assert!(run(&w, &connect(&outside)).await.0 && listener.accept().is_ok());
    }
}

#[tokio::test]
async fn other_processes_are_out_of_reach() {
    let mut stranger = std::process::Command::new("sleep").arg("1000").env("KEY", "s3cret").spawn().unwrap();
    let pid = stranger.id();
    for (booter, _) in both() {
        let w = fixture(booter, Level::WorkspaceWrite).await;
        for command in [
            "kill -9 $PPID; pkill -9 nanod; echo on",
            "kill -9 THAT; pkill -9 -f 'sleep 1000'; echo on",
            "kill -9 -1; echo on",
            "cat /proc/THAT/environ /proc/$PPID/environ; echo on",
            "head -c1 /proc/THAT/mem /proc/$PPID/mem; ls -l /proc/THAT/fd /proc/THAT/cwd/; echo on",
            "ls /proc/THAT/root/; cat /proc/THAT/root/etc/hostname; echo on",
            "python3 -c 'import ctypes; print(ctypes.CDLL(None).ptrace(16, THAT, 0, 0))'; echo on",
        ] {
            let (_, text) = run(&w, &command.replace("THAT", &pid.to_string())).await;
            assert!(!text.contains("s3cret"), "{command}: {text}");
            // Who may end everybody ends nobody, and is not told so.
            let refused = ["denied", "not permitted", "-1\n"].iter().any(|word| text.contains(word));
            assert!(text.contains("on") && (refused || command.contains("kill -9 -1")), "{command}: {text}");
        }
        assert!(stranger.try_wait().unwrap().is_none(), "it was killed");
    }
    // What the session itself started is its own to end.
    let w = fixture(support::local(), Level::WorkspaceWrite).await;
    assert_eq!(run(&w, "sleep 1000 & kill $!; wait; echo over").await.1, "over");
    stranger.kill().unwrap();
    stranger.wait().unwrap();
}
