//! The levels of a daemon that is nobody: tests are often run by root, and daemons seldom are.

use std::fs;
use std::os::unix::fs::chown;
use std::process::Command;

use nano_protocol::message::Role;
use nano_tests::client::Client;
use nano_tests::daemon::{Daemon, Setup};
use nano_tests::model_server::{Call, ModelServer, Turn};
use nano_tests::{programs, skip, transcript};
use serde_json::json;

/// A user whom no machine has.
const UID: u32 = 54_321;

/// A model that writes a file where it is told `write PATH`, and runs everything else.
fn model() -> ModelServer {
    ModelServer::answering(|request, n| {
        let last = request["messages"].as_array().and_then(|all| all.last()).expect("a message");
        let text = last["content"].as_str().unwrap_or_default();
        Some(match (last["role"].as_str(), text.strip_prefix("write ")) {
            (Some("tool"), _) => Turn::text(text),
            (_, Some(path)) => {
                let arguments = json!({"path": path, "content": "x"});
                let call = Call { id: format!("c{n}"), name: "write_file".into(), arguments };
                Turn { calls: vec![call], ..Turn::default() }
            }
            _ => Turn::exec(format!("c{n}"), text),
        })
    })
}

/// Starts a daemon of that user; none where that cannot be.
fn daemon(server: &ModelServer) -> Option<Daemon> {
    let (user, group) = (format!("--reuid={UID}"), format!("--regid={UID}"));
    let become_nobody = ["setpriv", &user, &group, "--clear-groups", "--"];
    let mut tried = Command::new("setpriv");
    tried.args(&become_nobody[1..]).arg(programs::program("nanod")).arg("--version");
    let starts = tried.output().is_ok_and(|out| out.status.success());
    if !rustix::process::geteuid().is_root() || !starts {
        skip::say("an unprivileged daemon: this takes root, setpriv, and programs that everybody may run");
        return None;
    }
    let path = Some("/usr/local/bin:/usr/bin:/bin".into());
    let mut daemon = Daemon::prepare(server, Setup { path, ..Setup::default() });
    fs::create_dir_all(daemon.workspace().join(".git/hooks")).expect("a folder");
    fs::write(daemon.workspace().join(".git/config"), "[core]\n").expect("a file");
    for path in ["", "nanod.toml", "work", "work/.git", "work/.git/hooks", "work/.git/config"] {
        chown(daemon.root().join(path), Some(UID), Some(UID)).expect("another owner");
    }
    daemon.run_under(become_nobody);
    daemon.restart();
    Some(daemon)
}

fn run(client: &mut Client, session: &str, order: &str) -> String {
    client.run(session, order);
    let told = transcript::read(client, session).into_iter().rfind(|message| message.role == Role::Tool);
    told.expect("a result").content
}

#[test]
fn the_levels_of_an_unprivileged_daemon() {
    let server = model();
    let Some(daemon) = daemon(&server) else { return };
    let mut client = daemon.client();
    let root = daemon.root().display().to_string();
    let note = daemon.ctl(["booters"]).run().expect_code(0);
    assert!(note.contains("confined by the operating system below the level host"), "{note}");
    let has_mounts = !note.contains("no mount namespace");
    let refused = |level: &str| format!("[the sandbox (level {level}) may have refused this: ");
    for (level, order, told) in [
        ("workspace-write", "id -u", "54321"),
        ("workspace-write", "echo x > a && cat a && rm a", "x"),
        ("workspace-write", "echo x > $TMPDIR/a && cat $TMPDIR/a", "x"),
        ("workspace-write", "echo x > ../b", ""),
        ("workspace-write", "echo x > /var/tmp/nano-unprivileged", ""),
        ("workspace-write", "cat ../nanod.toml ../state/*/* && false", ""),
        ("workspace-write", "kill -9 $PPID; sleep 0.1; echo alive", "alive"),
        ("workspace-write", "write .git/hooks/pre-commit", "is protected: "),
        ("workspace-write", "write .steering.jsonl", "is protected: "),
        ("workspace-write", "write ../b", "outside the workspace"),
        ("workspace-write", "python3 -c 'import socket; socket.create_server((\"127.0.0.1\", 0)); print(42)'", "42"),
        ("read-only", "cat .git/config", "[core]"),
        ("read-only", "echo x > a", ""),
        ("read-only", "echo x > ../b", ""),
        ("read-only", "echo x > $TMPDIR/a && cat $TMPDIR/a", "x"),
        ("read-only", "write a", "is protected: this session's level is read-only"),
        ("read-only", "python3 -c 'import socket; socket.socket()'", ""),
        ("host", "echo x > ../c && cat ../c", "x"),
    ] {
        let session = daemon.session_with(&mut client, json!({"level": level}));
        let result = run(&mut client, &session, order);
        let expected = if told.is_empty() { refused(level) } else { told.to_owned() };
        assert!(result.contains(&expected) && !result.contains("test-key"), "{level}: {order}: {result}");
        assert!(!told.is_empty() || result.contains("exit status"), "{level}: {order}: {result}");
    }
    let session = daemon.session(&mut client);
    for order in
        ["echo x > .git/hooks/pre-commit", "git config core.fsmonitor x || echo x >> .git/config", "mv .git git"]
    {
        let result = run(&mut client, &session, order);
        assert!(!has_mounts || result.contains(&refused("workspace-write")), "{order}: {result}");
    }
    assert!(!daemon.root().join("b").exists() && daemon.root().join("c").exists());
    let left = fs::read_dir(daemon.workspace()).expect("the workspace").flatten().map(|entry| entry.file_name());
    assert!(!has_mounts || left.into_iter().all(|name| name == ".git"), "{root}");
    let result = run(&mut client, &session, "ulimit -c; cat /proc/self/oom_score_adj; ulimit -f; ulimit -n");
    let lines: Vec<_> = result.lines().collect();
    assert_eq!(lines[..2], ["0", "1000"], "{result}");
    assert!(lines[2..4].iter().all(|line| line.parse::<u64>().is_ok_and(|most| most > 0)), "{result}");
}
