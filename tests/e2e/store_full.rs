//! A full disk: new work is refused, what is there can be read and cancelled, and with space back all goes on.
//!
//! The state lies on a small tmpfs in a mount namespace of its own; where none can be had, this says so and is skipped.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nano_protocol::task::{Task, TaskState};
use nano_tests::client::Client;
use nano_tests::daemon::{Daemon, Setup};
use nano_tests::model_server::{ModelServer, Turn};
use nano_tests::{processes, skip, transcript, wait};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::store_kit::{all, look, missing, text};

/// Mounts the disk, says so, and holds the namespace; the path comes by standard input, so that it stands nowhere else.
const HOLD: &str = r#"read -r path && mount -t tmpfs -o "size=$1" tmpfs "$path" && echo ready && read -r _"#;

/// A small disk that holds a daemon's state.
pub struct Disk {
    pub holder: Child,
    state: PathBuf,
}

impl Disk {
    /// Puts the state of a daemon that was not started yet on a disk of `size`; `None` where that is not allowed.
    pub fn below(daemon: &mut Daemon, size: &str) -> Option<Self> {
        let disk = Self::mount(daemon, size);
        if disk.is_none() {
            skip::say("a full disk: none can be mounted here; it takes root or user namespaces, util-linux and mount");
        }
        disk
    }

    fn mount(daemon: &mut Daemon, size: &str) -> Option<Self> {
        fs::create_dir_all(daemon.state()).expect("the state folder");
        let root = rustix::process::geteuid().is_root();
        let (own, enter): (&[&str], &[&str]) =
            if root { (&["-m"], &["-m"]) } else { (&["-rm"], &["-U", "-m", "--preserve-credentials"]) };
        let mut command = Command::new("unshare");
        command.args(own).args(["sh", "-c", HOLD, "sh", size]).current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut holder = command.spawn().ok()?;
        let path = daemon.state();
        writeln!(holder.stdin.as_mut()?, "{}", path.display()).ok()?;
        let mut answer = String::new();
        BufReader::new(holder.stdout.take()?).read_line(&mut answer).ok()?;
        if answer != "ready\n" {
            drop(holder.wait());
            return None;
        }
        let pid = holder.id().to_string();
        daemon.run_under([&["nsenter", "-t", &pid], enter, &["--"]].concat());
        let state = PathBuf::from(format!("/proc/{pid}/root{}", path.display()));
        Some(Self { holder, state })
    }

    /// Takes all the room there is.
    pub fn fill(&self) {
        let mut file = fs::File::create(self.state.join("fill")).expect("a file");
        let mut size = 1 << 20;
        while size > 0 {
            if file.write_all(&vec![b'x'; size]).is_err() {
                size /= 2;
            }
        }
    }

    /// Gives the room back.
    pub fn free(&self) {
        fs::remove_file(self.state.join("fill")).expect("the file");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        drop(self.holder.stdin.take());
        drop(self.holder.wait());
    }
}

/// A model that answers at once, but for what is to hold or hang.
fn model() -> ModelServer {
    ModelServer::answering(|request, _| {
        let last = request["messages"].as_array().and_then(|all| all.last()).cloned().unwrap_or_default();
        Some(match text(&last["content"]) {
            "hang" => Turn { hang: true, ..Turn::default() },
            "hold" => Turn::text("held").gated("hold"),
            _ => Turn::text("done"),
        })
    })
}

/// A daemon on a small disk with three sessions: one at rest, one whose task hangs, one whose task waits for a gate.
fn begin(server: &ModelServer) -> Option<(Disk, Daemon, [Task; 3])> {
    let mut daemon = Daemon::prepare(server, Setup::default());
    let disk = Disk::below(&mut daemon, "12M")?;
    daemon.restart();
    let mut client = daemon.client();
    let tasks = ["say", "hang", "hold"].map(|content| {
        let session = daemon.session_with(&mut client, json!({"name": content}));
        client.submit(&session, content)
    });
    client.settled(&tasks[0].id);
    server.wait_requests(3);
    Some((disk, daemon, tasks))
}

fn submit(client: &mut Client, content: &str) -> Result<Value, i32> {
    client.call("task.submit", &json!({"session": "say", "content": content})).map_err(|error| error.code)
}

/// Submits until that is refused for want of room, and returns what was taken.
fn submit_until_refused(client: &mut Client) -> Vec<Value> {
    let mut taken = Vec::new();
    loop {
        match submit(client, &"x".repeat(20_000)) {
            Ok(task) => taken.push(task["id"].clone()),
            Err(code) => {
                assert_eq!(code, -32006, "after {}", taken.len());
                return taken;
            }
        }
        // The queue has a limit of its own.
        client.get::<Value>("task.wait", &json!({"task": taken.last(), "timeout_ms": 1000}));
        assert!(taken.len() < 1000, "the disk is never full");
    }
}

#[test]
fn while_it_runs() {
    let server = model();
    let Some((disk, mut daemon, [done, hangs, holds])) = begin(&server) else { return };
    let mut client = daemon.client();
    disk.fill();
    let taken = submit_until_refused(&mut client);
    assert_eq!(client.refused("session.create", &json!({"workspace": daemon.workspace()})), -32006);
    assert_eq!(client.refused("session.steer", &json!({"session": "hang", "content": "p"})), -32006);
    let trigger = json!({"session": "say", "content": "f", "trigger": {"after_ms": 60_000}});
    assert_eq!(client.refused("followup.schedule", &trigger), -32006);
    assert_eq!(client.settled(&done.id).state, TaskState::Succeeded, "reads go on");
    assert_eq!(transcript::render(&transcript::read(&mut client, "say"))[..12], *"U(say) A(don");
    client.get::<Value>("task.cancel", &json!({"task": hangs.id}));
    assert_eq!(client.settled(&hangs.id).state, TaskState::Cancelled, "a cancellation has its room");
    server.open("hold");
    let before = look(&mut client);
    let pid = daemon.pid();
    disk.free();
    wait::until("new work to be taken", || submit(&mut client, "again").ok());
    assert_eq!(client.settled(&holds.id).state, TaskState::Succeeded, "what was owed is recorded");
    for id in taken.iter().chain(all(&mut client, "task.list", "tasks", &json!({})).iter().map(|task| &task["id"])) {
        let task: Task = client.get("task.wait", &json!({ "task": id }));
        assert!(task.state == TaskState::Succeeded || task.id == hangs.id, "{task:?}");
    }
    assert_eq!((daemon.ended(), daemon.pid()), (None, pid), "without a restart");
    drop(client);
    daemon.kill9_beside(&[disk.holder.id()]);
    daemon.restart();
    assert_eq!(missing(&before, &look(&mut daemon.client())), [""; 0]);
    daemon.kill9_beside(&[disk.holder.id()]);
}

#[test]
fn at_the_start() {
    let server = model();
    let Some((disk, mut daemon, [_, hangs, _])) = begin(&server) else { return };
    let before = look(&mut daemon.client());
    daemon.kill9_beside(&[disk.holder.id()]);
    disk.fill();
    match daemon.try_start() {
        // It serves what it can.
        Ok(()) => {
            let mut client = daemon.client();
            assert_eq!(missing(&before, &look(&mut client)), [""; 0]);
            submit_until_refused(&mut client);
            client.get::<Value>("task.cancel", &json!({"task": hangs.id}));
            disk.free();
            wait::until("new work to be taken", || submit(&mut client, "again").ok());
        }
        Err(status) => {
            assert_eq!(status.code(), Some(1), "{}", daemon.log());
            assert!(daemon.log().contains("space"), "{}", daemon.log());
            disk.free();
        }
    }
    daemon.kill9_beside(&[disk.holder.id()]);
    daemon.restart();
    assert_eq!(missing(&before, &look(&mut daemon.client())), [""; 0]);
    daemon.kill9_beside(&[disk.holder.id()]);
}

#[test]
fn an_end_while_it_is_full() {
    let server = model();
    let Some((disk, mut daemon, [_, hangs, _])) = begin(&server) else { return };
    let mut client = daemon.client();
    disk.fill();
    submit_until_refused(&mut client);
    let before = look(&mut client);
    let pid = i32::try_from(daemon.pid()).expect("a process id");
    processes::signal(pid, Signal::TERM);
    // Five seconds of grace, five for the rest; one that waited for room would not end.
    let status = wait::within(Duration::from_secs(20), "the end on a full disk", || daemon.ended());
    assert_eq!(status.code(), Some(0), "{}", daemon.log());
    disk.free();
    daemon.restart();
    let mut client = daemon.client();
    assert_eq!(missing(&before, &look(&mut client)), [""; 0]);
    client.get::<Value>("task.cancel", &json!({"task": hangs.id}));
    daemon.kill9_beside(&[disk.holder.id()]);
}

#[test]
fn a_start_after_a_clean_stop() {
    let server = model();
    let Some((disk, mut daemon, tasks)) = begin(&server) else { return };
    server.open("hold");
    let mut client = daemon.client();
    client.get::<Value>("task.cancel", &json!({"task": tasks[1].id}));
    for task in &tasks {
        client.settled(&task.id);
    }
    let before = look(&mut client);
    assert_eq!(daemon.terminate().code(), Some(0), "{}", daemon.log());
    disk.fill();
    for _ in 0..3 {
        daemon.restart();
        let mut client = daemon.client();
        assert_eq!(missing(&before, &look(&mut client)), [""; 0]);
        submit_until_refused(&mut client);
        assert_eq!(daemon.terminate().code(), Some(0), "{}", daemon.log());
    }
    disk.free();
    daemon.restart();
    let mut client = daemon.client();
    assert_eq!(missing(&before, &look(&mut client)), [""; 0]);
    submit(&mut client, "again").expect("new work is taken");
    daemon.kill9_beside(&[disk.holder.id()]);
}
