//! A disk that has room and takes nothing, as with a quota that is used up: reads are answered, what is asked for is
//! refused at once, nobody is taken up before that is counted, and an end is an end.
//!
//! strace makes every write of some files fail; where it is missing or may not trace, this says so and is skipped.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use nano_protocol::task::{Task, TaskState};
use nano_tests::client::Client;
use nano_tests::daemon::{Daemon, Setup};
use nano_tests::model_server::{ModelServer, Turn};
use nano_tests::{processes, wait};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::store_faults::may_trace;
use crate::store_kit::{Seen, look, missing};

/// Longer than the end may take, and shorter than one that waits for room.
const END: Duration = Duration::from_secs(9);

/// Starts the daemon; in every thread of it the writes to the files in a part of the store fail from the n-th on.
fn start_full(daemon: &mut Daemon, part: &str, error: &str, n: usize) {
    let args = ["strace", "-D", "-f", "-qq", "-e", "signal=none", "-o", "/dev/null", "-e"];
    let mut args: Vec<OsString> = args.map(Into::into).into();
    args.push(format!("inject=pwrite64:error={error}:when={n}+").into());
    for entry in std::fs::read_dir(daemon.state().join("store").join(part)).expect("a part of the store") {
        let path = entry.expect("a file").path();
        args.extend(path.is_file().then(|| ["-P".into(), path.into()]).into_iter().flatten());
    }
    daemon.run_under(args);
    daemon.restart();
    daemon.run_under([""; 0]);
}

/// A daemon with a session at rest, and one whose task hangs if it is to.
fn begin(server: &ModelServer, hangs: bool) -> (Daemon, Task, Seen) {
    let daemon = Daemon::with(server, Setup::default());
    let mut client = daemon.client();
    let session = daemon.session_with(&mut client, json!({"name": "rest"}));
    client.run(&session, "say");
    let task = client.submit(&session, if hangs { "hang" } else { "say" });
    if hangs {
        server.wait_requests(2);
    } else {
        client.settled(&task.id);
    }
    let seen = look(&mut client);
    (daemon, task, seen)
}

fn model() -> ModelServer {
    let mut hung = false;
    ModelServer::answering(move |request, _| {
        let hangs = !hung && request.to_string().contains("\"hang\"");
        hung |= hangs;
        Some(Turn { hang: hangs, ..Turn::text("done") })
    })
}

/// Asks it to end with 10 ms of grace, and checks that it does so in time and as if all were well.
fn ends_well(daemon: &mut Daemon) {
    daemon.client().get::<Value>("daemon.shutdown", &json!({"grace_ms": 10}));
    let status = wait::within(END, "the end on a full disk", || daemon.ended());
    assert_eq!(status.code(), Some(0), "{}", daemon.log());
}

fn refused(client: &mut Client, workspace: &Path) {
    assert_eq!(client.refused("session.create", &json!({"workspace": workspace})), -32006);
    assert_eq!(client.refused("task.submit", &json!({"session": "rest", "content": "more"})), -32006);
}

#[test]
fn nobody_is_taken_up_before_it_is_counted() {
    if !may_trace() {
        return;
    }
    let server = model();
    let (mut daemon, task, before) = begin(&server, true);
    daemon.kill9();
    start_full(&mut daemon, "journal", "EDQUOT", 2);
    let mut client = daemon.client();
    assert_eq!(missing(&before, &look(&mut client)), [""; 0]);
    refused(&mut client, &daemon.workspace());
    assert_eq!(client.refused("task.cancel", &json!({"task": task.id})), -32006);
    assert_eq!(server.requests().len(), 2, "nobody was taken up");
    ends_well(&mut daemon);
    daemon.restart();
    assert_eq!(daemon.client().settled(&task.id).state, TaskState::Succeeded);
}

#[test]
fn after_a_clean_stop_it_answers_and_ends_and_is_still_clean() {
    if !may_trace() {
        return;
    }
    let server = model();
    let (mut daemon, task, before) = begin(&server, false);
    assert_eq!(daemon.terminate().code(), Some(0));
    // More often than a session may die at one step.
    for _ in 0..4 {
        start_full(&mut daemon, "journal", "ENOSPC", 2);
        let mut client = daemon.client();
        assert_eq!(missing(&before, &look(&mut client)), [""; 0]);
        refused(&mut client, &daemon.workspace());
        processes::signal(i32::try_from(daemon.pid()).expect("a process id"), Signal::TERM);
        let status = wait::within(END, "the end on a full disk", || daemon.ended());
        assert_eq!(status.code(), Some(0), "{}", daemon.log());
    }
    daemon.restart();
    let mut client = daemon.client();
    assert_eq!(missing(&before, &look(&mut client)), [""; 0]);
    assert_eq!(client.run(task.session.as_str(), "again").state, TaskState::Succeeded);
}

#[test]
fn a_memory_that_finds_no_room_does_not_end_it() {
    if !may_trace() {
        return;
    }
    let server = model();
    let (mut daemon, _, before) = begin(&server, false);
    assert_eq!(daemon.terminate().code(), Some(0));
    start_full(&mut daemon, "memory", "EDQUOT", 3);
    let mut client = daemon.client();
    // Each makes sled write sooner or later.
    for n in 0..200 {
        let answer = client.call("session.create", &json!({"name": format!("s{n}"), "booter": "none"}));
        if answer.is_err_and(|error| error.code == -32006) {
            break;
        }
        assert!(n < 199, "the memory takes everything");
    }
    ends_well(&mut daemon);
    daemon.restart();
    assert_eq!(missing(&before, &look(&mut daemon.client())), [""; 0]);
}
