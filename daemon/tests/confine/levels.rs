//! What is writable at a level, and whether there is a network.

use std::fs;
use std::net::TcpListener;

use nano_protocol::session::Level;
use nanod::sandbox::reach::Reach;
use serde_json::json;

use super::support::Fixture;
use super::{at, both, run, support};

#[tokio::test]
async fn what_is_writable() {
    use Level::{Host, ReadOnly, WorkspaceWrite};
    for (booter, mounts) in both() {
        let force = if mounts { super::force() } else { super::Force { mounts: false, ..super::force() } };
        drop(booter);
        for (level, elsewhere, expected) in [
            (ReadOnly, false, "temporary"),
            (WorkspaceWrite, false, "workspace temporary"),
            (WorkspaceWrite, true, "workspace temporary outside"),
            (Host, false, "workspace temporary outside state"),
        ] {
            let state = |fixture: &Fixture| fixture.outside("state").canonicalize().unwrap();
            let mut w = at(support::local().with_force(force), level).await;
            fs::create_dir(w.outside("state")).unwrap();
            let hidden = vec![state(&w)];
            let reach = Reach::clone(&w.context.workspace.reach().unwrap());
            let workspace = nanod::sandbox::workspace::Workspace::open(&reach.workspace, !elsewhere).unwrap();
            w.context.workspace = std::sync::Arc::new(workspace.with_reach(Reach { elsewhere, hidden, ..reach }));
            // Beside what is hidden nothing new can be made without mounts.
            let other = tempfile::tempdir().unwrap();
            let outside = other.path().join("x").display().to_string();
            let state = w.outside("state/x").display().to_string();
            let script = format!(
                "try() {{ (echo x > \"$2\") 2>/dev/null && printf '%s ' $1 && rm -f \"$2\"; }}; try workspace here; \
                 try temporary \"${{TMPDIR:-/tmp}}/nano-here\"; try outside {outside}; try state {state}; \
                 for folder in /etc /usr /bin /dev /proc /sys /run /var/lib /boot; do test {level} = host || try $folder $folder/nano-here; \
                 done; for device in null zero full random urandom; do head -c0 /dev/$device || echo $device; done; \
                 echo x > /dev/null"
            );
            let (ok, text) = run(&w, &script).await;
            assert!(ok && text.trim() == expected, "{level} {elsewhere} with mounts {mounts}: {text}");
        }
    }
}

#[tokio::test]
async fn the_network_is_off_where_nothing_may_be_written() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let commands = [
        format!("echo hi > /dev/tcp/127.0.0.1/{port}"),
        format!("python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}))'"),
    ];
    for (booter, mounts) in both() {
        let w = at(booter, Level::ReadOnly).await;
        for command in &commands {
            let (ok, text) = run(&w, command).await;
            assert!(!ok && text.contains("[the sandbox (level read-only) may have refused this: "), "{mounts}: {text}");
        }
        for family in ["AF_INET, socket.SOCK_DGRAM", "AF_INET6", "AF_NETLINK, socket.SOCK_RAW", "AF_UNIX", "AF_VSOCK"] {
            let (ok, text) = run(&w, &format!("python3 -c 'import socket; socket.socket(socket.{family})'")).await;
            assert!(!ok && text.contains("not permitted"), "{family}: {text}");
        }
        assert!(run(&w, "python3 -c 'import socket; socket.socketpair()'").await.0);
    }
    assert!(listener.accept().is_err(), "somebody came through");
    let w = at(support::local(), Level::WorkspaceWrite).await;
    for command in &commands {
        assert_eq!(run(&w, command).await.1, "(no output)");
        assert!(listener.accept().is_ok(), "{command}");
    }
}

#[tokio::test]
async fn a_refusal_is_told_as_one_and_a_failure_is_not() {
    for (booter, _) in both() {
        let w = at(booter, Level::WorkspaceWrite).await;
        let note = "[the sandbox (level workspace-write) may have refused this: they can write to ";
        let why = w.failed("exec", json!({"command": "touch ../x"})).await;
        assert!(why.contains(note) && why.contains(w.path("").to_string_lossy().trim_end_matches('/')), "{why}");
        let why = w.failed("python", json!({"code": "open('/etc/nano-x', 'w')"})).await;
        assert!(why.contains(note), "{why}");
        let why = w.failed("exec", json!({"command": "echo no; false"})).await;
        assert_eq!(why, "no\n[exit status 1]");
    }
    let w = at(support::local(), Level::Host).await;
    let why = w.failed("exec", json!({"command": "echo Permission denied; false"})).await;
    assert!(!why.contains("sandbox"), "{why}");
}

#[tokio::test]
async fn without_landlock_only_the_level_host_runs_commands() {
    let none = || support::local().with_force(super::Force::default());
    for level in [Level::ReadOnly, Level::WorkspaceWrite] {
        let why = at(none(), level).await.failed("exec", json!({"command": "true"})).await;
        assert!(why.contains("no Landlock") && why.contains("level = \"host\""), "{why}");
    }
    assert_eq!(at(none(), Level::Host).await.done("exec", json!({"command": "echo on"})).await, "on");
}

#[tokio::test]
async fn a_session_has_temporary_files_of_its_own() {
    for (booter, _) in both() {
        let w = at(booter, Level::WorkspaceWrite).await;
        let told = w.done("exec", json!({"command": "echo x > $TMPDIR/a; stat -c %a $TMPDIR; ls $TMPDIR"})).await;
        assert_eq!(told, "700\na");
        assert_eq!(fs::read_to_string(w.outside("spill/tmp/a")).unwrap(), "x\n");
    }
}

#[tokio::test]
async fn a_session_may_have_any_number_of_skills() {
    for (booter, mounts) in both() {
        let w = Fixture::within(booter, |reach| {
            let root = reach.workspace.parent().unwrap().join("a-name-that-is-long-".repeat(10));
            let skills: Vec<_> = (0..2000).map(|n| root.join(format!("skills/{n}"))).collect();
            for path in &skills {
                fs::create_dir_all(path).unwrap();
            }
            let protected = [reach.protected.clone(), vec![root.join("skills")], skills.clone()].concat();
            Reach { shown: skills, protected, hidden: vec![root], ..reach }
        })
        .await;
        let (ok, text) = run(&w, "ls /proc/self/fd; ls -d ../*/skills/1999 && cat /proc/self/fd/[3-9]").await;
        assert!(text.contains("skills/1999") && !text.contains("workspace"), "with mounts {mounts}: {ok} {text}");
    }
}
