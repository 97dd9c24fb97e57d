//! What a dead daemon left running where its helpers died with it: ended at the next start, and nothing else is.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use nano_protocol::daemon::Doctor;
use nano_protocol::message::{Outcome, Role};
use nano_protocol::task::TaskState;
use nano_tests::client::Client;
use nano_tests::daemon::{Daemon, Setup};
use nano_tests::model_server::{ModelServer, Turn};
use nano_tests::processes::is_alive;
use nano_tests::{processes, programs, skip, transcript, wait};
use rustix::process::Signal;
use serde_json::json;

mod strangers;

const MARK: &str = "NANO_COMMAND_OF";

fn pid(daemon: &Daemon) -> i32 {
    i32::try_from(daemon.pid()).expect("a process id")
}

fn environment(pid: i32) -> Vec<u8> {
    fs::read(format!("/proc/{pid}/environ")).unwrap_or_default()
}

fn is_helper(pid: i32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "nano-exec")
}

/// Kills the daemon with every helper, so that nobody ends what they started; returns what is left.
fn kill_all_at_once(daemon: &mut Daemon) -> Vec<i32> {
    let helpers: Vec<i32> = helpers_of(pid(daemon));
    assert!(!helpers.is_empty(), "a command runs");
    for pid in &helpers {
        processes::signal(*pid, Signal::STOP);
    }
    processes::signal(pid(daemon), Signal::KILL);
    assert_eq!(daemon.wait().code(), None, "it was killed");
    for pid in &helpers {
        processes::signal(*pid, Signal::KILL);
    }
    wait::until("the end of the helpers", || helpers.iter().all(|pid| !is_alive(*pid)).then_some(()));
    daemon.left().into_iter().map(|one| one.pid).collect()
}

/// Returns the helpers below a daemon, and no other daemon's.
fn helpers_of(daemon: i32) -> Vec<i32> {
    let of = |pid: i32| processes::children(pid).into_iter().filter(|pid| is_helper(*pid));
    let keepers: Vec<i32> = of(daemon).collect();
    let inner = keepers.iter().flat_map(|pid| of(*pid)).collect::<Vec<_>>();
    [keepers, inner].concat()
}

/// Waits until the command has left all these files in the workspace.
fn wait_for(daemon: &Daemon, files: &[&str]) {
    for file in files {
        let path = daemon.workspace().join(file);
        wait::until(file, || path.exists().then_some(()));
    }
}

fn number(path: &Path) -> i32 {
    wait::until("a process id in a file", || fs::read_to_string(path).ok()?.trim().parse().ok())
}

#[test]
fn what_is_left_is_ended_before_anything_goes_on() {
    for (how, command, files) in [
        ("a plain command", "touch up; while :; do sleep 0.02; echo on >> marks; done", &["up"][..]),
        ("one that ignores TERM", "trap '' TERM; touch up; while :; do sleep 0.02; echo on >> marks; done", &["up"]),
        (
            "a session of its own, whose parent is gone",
            "(setsid sh -c 'trap \"\" TERM HUP; touch up; while :; do sleep 0.02; echo on >> marks; done' &); sleep 1000",
            &["up"],
        ),
        (
            "below one with the mark, one without",
            "env -i PATH=\"$PATH\" sh -c 'touch up; while :; do sleep 0.02; echo on >> marks; done'; true",
            &["up"],
        ),
        ("stopped", "trap '' HUP; touch up; while :; do sleep 0.02; echo on >> marks; done", &["up"]),
    ] {
        let server = ModelServer::script(vec![Turn::exec("c1", command), Turn::text("done")]);
        let mut daemon = Daemon::start(&server);
        let mut client = daemon.client();
        let session = daemon.session(&mut client);
        let task = client.submit(&session, "p");
        wait_for(&daemon, files);
        let left = kill_all_at_once(&mut daemon);
        assert!(left.iter().any(|pid| is_alive(*pid)), "{how}: something is left");
        if how == "stopped" {
            for pid in &left {
                processes::signal(*pid, Signal::STOP);
            }
        }
        daemon.restart();
        // It answers: nothing of before may run now.
        assert_eq!(left.iter().filter(|pid| is_alive(**pid)).count(), 0, "{how}: {}", daemon.log());
        let marks = fs::read(daemon.workspace().join("marks")).unwrap_or_default();
        assert!(daemon.log().contains("processes that an earlier run left were ended"), "{how}: {}", daemon.log());
        let mut client = daemon.client();
        assert_eq!(client.settled(&task.id).state, TaskState::Succeeded, "{how}");
        let messages = transcript::read(&mut client, &session);
        let result = messages.iter().find(|message| message.role == Role::Tool).expect("a result");
        assert_eq!(result.outcome, Some(Outcome::Unknown), "{how}: {result:?}");
        assert_eq!(fs::read(daemon.workspace().join("marks")).unwrap_or_default(), marks, "{how}: it goes on");
    }
}

/// Each link of it holds the lock, and lives for less than it takes to look at all processes.
const CHAIN: &str = "cat > chain.py <<'end'\nimport fcntl, os\nlock = open('lock', 'w')\nfcntl.flock(lock, 2)\n\
                     open('up', 'w')\nwhile True:\n    if os.fork():\n        os._exit(0)\nend\npython3 chain.py & sleep 1000";

#[test]
fn what_forks_and_ends_at_once_is_ended_too() {
    for how in ["time limit", "cancel", "death", "death of all"] {
        let server = ModelServer::script(vec![Turn::exec("c1", CHAIN), Turn::text("done")]);
        let limit = if how == "time limit" { "exec_timeout = \"2s\"" } else { "" };
        let mut daemon = Daemon::with(&server, Setup { agent: limit.into(), ..Setup::default() });
        let mut client = daemon.client();
        let session = daemon.session(&mut client);
        let task = client.submit(&session, "p");
        wait_for(&daemon, &["up"]);
        match how {
            "time limit" => drop(client.settled(&task.id)),
            "cancel" => drop(client.get::<serde_json::Value>("task.cancel", &json!({"task": task.id}))),
            "death" => daemon.kill9(),
            _ if !counts_processes(&mut client) => {
                skip::say("a chain whose helpers are dead: no control group counts processes here");
                continue;
            }
            _ => {
                kill_all_at_once(&mut daemon);
                daemon.restart();
            }
        }
        let lock = fs::File::open(daemon.workspace().join("lock")).expect("the lock");
        wait::until(how, || lock.try_lock().is_ok().then_some(()));
    }
}

fn counts_processes(client: &mut Client) -> bool {
    let doctor: Doctor = client.get("daemon.doctor", &json!({}));
    doctor.checks.iter().any(|check| check.name == "control groups" && check.detail.contains("processes"))
}

#[test]
fn after_an_orderly_end_there_is_nothing_to_end() {
    let server = ModelServer::script(vec![Turn::exec("c1", "sleep 1000 & echo on"), Turn::text("done")]);
    let mut daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    client.run(&session, "p");
    assert_eq!(daemon.terminate().code(), Some(0));
    assert_eq!(daemon.left(), []);
    daemon.restart();
    assert!(!daemon.log().contains("an earlier run"), "{}", daemon.log());
}

#[test]
fn what_a_command_prints_after_its_call_is_not_spooled() {
    let command = "(while [ ! -e go ]; do sleep 0.02; done; echo later; sleep 60) &";
    let server = ModelServer::script(vec![Turn::exec("c1", command), Turn::text("done").gated("end")]);
    let daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let task = client.submit(&session, "p");
    server.wait_requests(2);
    fs::write(daemon.workspace().join("go"), "").expect("a file");
    let spill = daemon.state().join("spill").join(&session);
    let files = || fs::read_dir(&spill).into_iter().flatten().flatten().map(|entry| entry.path()).collect::<Vec<_>>();
    // The spool is written first.
    wait::until("what it prints later", || {
        files().iter().any(|file| fs::read_to_string(file).is_ok_and(|text| text.contains("later"))).then_some(())
    });
    let is_spool = |file: &Path| file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("running-"));
    assert!(!files().iter().any(|file| is_spool(file)), "{:?}", files());
    server.open("end");
    assert_eq!(client.settled(&task.id).state, TaskState::Succeeded);
}
