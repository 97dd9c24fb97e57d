//! EIO and ENOSPC at the n-th write and sync of the store, for every n until a small scenario runs clean: what was
//! acknowledged is there after a plain restart, a failed write lets the daemon go on, a failed sync ends it.
//!
//! strace makes the calls fail, each thread's n-th; where it is missing or may not trace, this says so and is skipped.
//! They meet a store that a kill left behind, and a new one, whose journal is first filled with zeros: of those many
//! writes only some are struck, unless `NANO_FAULT_STEP` says 1.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use nano_protocol::task::{Task, TaskState};
use nano_tests::client::Client;
use nano_tests::daemon::Daemon;
use nano_tests::model_server::ModelServer;
use nano_tests::{skip, transcript, wait};
use serde_json::{Value, json};

use crate::store_fixture::{obedient, setup};

/// What is asked, in order, each with a key of its own.
const STEPS: [&str; 5] = ["session.create", "task.submit", "followup.schedule", "session.steer", "task.submit"];

/// No beginning of an id: where there is no such session, no other may be meant.
const SESSION: &str = "work";

/// The answers that the daemon gave; none where it refused or was gone.
type Answers = [Option<Value>; 5];

fn params(daemon: &Daemon, step: usize) -> Value {
    let key = format!("key {step}");
    match step {
        0 => json!({"name": SESSION, "workspace": daemon.workspace(), "idempotency_key": key}),
        1 => json!({"session": SESSION, "content": "run echo once >> marks", "idempotency_key": key}),
        2 => json!({"session": SESSION, "content": "f", "trigger": {"after_ms": 3_600_000}, "idempotency_key": key}),
        3 => json!({"session": SESSION, "content": "say more", "idempotency_key": key}),
        _ => json!({"session": SESSION, "content": "say the last", "idempotency_key": key}),
    }
}

/// Asks for everything once, waiting for what was accepted, and stops where the daemon is gone.
fn scenario(daemon: &Daemon) -> Answers {
    let mut answers = Answers::default();
    let Ok(mut client) = Client::connect(&daemon.socket()) else { return answers };
    for (step, method) in STEPS.iter().enumerate() {
        let Some(answer) = client.try_call(method, &params(daemon, step)) else { return answers };
        let Ok(answer) =
            answer.inspect_err(|error| assert!([-32006, -32007, -32001].contains(&error.code), "{error:?}"))
        else {
            continue;
        };
        let task = if step == 3 { answer["task"].clone() } else { answer["id"].clone() };
        answers[step] = Some(answer);
        if [1, 3, 4].contains(&step)
            && client.try_call("task.wait", &json!({"task": task, "timeout_ms": 20_000})).is_none()
        {
            return answers;
        }
    }
    answers
}

/// Checks that each question is answered in the end, if only after some refusals; else returns the last of them.
fn goes_on(daemon: &Daemon) -> Result<(), String> {
    let mut client = Client::connect(&daemon.socket()).map_err(|why| format!("no connection: {why}"))?;
    STEPS.iter().enumerate().try_for_each(|(step, method)| {
        let end = Instant::now() + wait::DEADLINE;
        loop {
            match client.try_call(method, &params(daemon, step)) {
                Some(Ok(_)) => return Ok(()),
                Some(Err(error)) if Instant::now() < end => drop(error),
                last => return Err(format!("{method}: {last:?}")),
            }
            std::thread::park_timeout(Duration::from_millis(20));
        }
    })
}

/// Asks again, as one would who had no answer, and checks that what was answered is there, once.
fn check(daemon: &Daemon, answers: &Answers) {
    let mut client = daemon.client();
    for (step, before) in answers.iter().enumerate() {
        let member = if step == 3 { "message" } else { "id" };
        let after: Value = client.get(STEPS[step], &params(daemon, step));
        if let Some(before) = before {
            assert_eq!(after[member], before[member], "{} was answered, and is not there", STEPS[step]);
        }
    }
    for task in client.tasks(SESSION) {
        if client.settled(&task.id).state == TaskState::Interrupted {
            client.get::<Task>("task.resume", &json!({"task": task.id}));
        }
        assert_eq!(client.settled(&task.id).state, TaskState::Succeeded);
    }
    let messages = transcript::read(&mut client, SESSION);
    transcript::check_pairs(&messages, false);
    let said = messages
        .iter()
        .filter(|message| ["run echo once >> marks", "say more", "say the last"].contains(&&*message.content));
    assert_eq!(said.count(), 3, "{}", transcript::render(&messages));
    let marks = fs::read_to_string(daemon.workspace().join("marks")).unwrap_or_default();
    let ran = messages.iter().any(|message| message.ok == Some(true));
    assert!(marks == "once\n" || (marks.is_empty() && !ran), "{marks:?}");
}

/// One call that is made to fail.
struct Fault {
    call: &'static str,
    error: &'static str,
    /// Whether the store is new.
    fresh: bool,
}

impl Fault {
    /// Runs the scenario with the fault at each thread's n-th call, and returns the calls that failed.
    fn strike(&self, server: &ModelServer, n: usize) -> Vec<String> {
        let mut daemon = Daemon::prepare(server, setup());
        if !self.fresh {
            daemon.restart();
            let other = daemon.session(&mut daemon.client());
            daemon.client().run(&other, "say hello");
            daemon.kill9();
        }
        let log = daemon.root().join("strace.log");
        daemon.run_under(self.strace(&log, n));
        let started = daemon.try_start();
        let answers = if started.is_ok() { scenario(&daemon) } else { Answers::default() };
        match started {
            Ok(()) => self.check_end(&mut daemon, &log),
            Err(status) => assert!(!status.success(), "it ended as if nothing had happened\n{}", daemon.log()),
        }
        let struck = struck(&log);
        let answered = answers.iter().flatten().count();
        eprintln!("{} {} {n}: answered {answered}, {started:?}, {struck:?}", self.call, self.error);
        daemon.kill9();
        daemon.run_under([""; 0]);
        daemon.restart();
        check(&daemon, &answers);
        struck
    }

    /// Checks how the daemon took it: a journal that could not be synced ends it, one write that failed does not. sled
    /// has threads of its own, each of which is struck: where more than one was, it may end too.
    fn check_end(&self, daemon: &mut Daemon, log: &Path) {
        let refused = goes_on(daemon);
        let struck = struck(log);
        let (journal, memory): (Vec<_>, Vec<_>) = struck.iter().partition(|call| call.contains("/store/journal/"));
        if self.call.ends_with("sync") && !journal.is_empty() {
            assert!(!daemon.wait().success(), "it ended as if nothing had happened");
        } else if memory.len() < 2 {
            let ended = daemon.ended();
            let went_on = refused.is_ok() && ended.is_none();
            assert!(went_on, "it did not go on: {struck:?}, {refused:?}, ended: {ended:?}\n{}", daemon.log());
        } else if let Some(status) = daemon.ended() {
            assert!(!status.success(), "it ended as if nothing had happened");
        }
    }

    fn strace(&self, log: &Path, n: usize) -> Vec<std::ffi::OsString> {
        let inject = format!("inject={}:error={}:when={n}", self.call, self.error);
        let args = ["strace", "-D", "-f", "-y", "-qq", "-e", "signal=none", "-e", &inject, "-o"];
        args.iter().map(Into::into).chain([log.into()]).collect()
    }
}

/// Returns the calls that were made to fail; where two lines tell of one, both.
fn struck(log: &Path) -> Vec<String> {
    let log = fs::read_to_string(log).unwrap_or_default();
    let mut unfinished: BTreeMap<&str, &str> = BTreeMap::new();
    let mut struck = Vec::new();
    for line in log.lines() {
        let (thread, call) = line.split_once(' ').unwrap_or_default();
        if call.ends_with("<unfinished ...>") {
            unfinished.insert(thread, call);
        } else if call.contains("(INJECTED)") {
            let begun = unfinished.get(thread).filter(|_| call.contains("resumed>")).unwrap_or(&"");
            struck.push(format!("{begun}{call}"));
        }
    }
    struck
}

/// Tells whether calls can be made to fail here, and says so where not. To know a daemon's files from its descriptors takes
/// root, for a daemon lets nobody look into it.
pub fn may_trace() -> bool {
    let args = ["-D", "-f", "-qq", "-o", "/dev/null", "-e", "inject=fdatasync:error=EIO", "true"];
    let traced = Command::new("strace").args(args).output().is_ok_and(|output| output.status.success());
    let may = traced && rustix::process::geteuid().is_root();
    if !may {
        skip::say("calls of the store that fail: this takes root and strace, which may not trace everywhere");
    }
    may
}

/// Makes a call fail at every place, or every so many in a new store, until there is none left.
fn sweep(call: &'static str, error: &'static str, fresh: bool, step: usize) {
    if !may_trace() {
        return;
    }
    let step = std::env::var("NANO_FAULT_STEP").ok().and_then(|step| step.parse().ok()).unwrap_or(step);
    let server = obedient(false);
    let fault = Fault { call, error, fresh };
    let strikes = (1..).step_by(step).map(|n| fault.strike(&server, n)).take_while(|struck| !struck.is_empty());
    let of_journal = strikes.flatten().filter(|call| call.contains(".jnl>") || call.contains("journal>")).count();
    assert!(fresh || call == "fsync" || of_journal > 5, "{call} of the journal failed {of_journal} times");
}

#[test]
fn a_write_fails() {
    sweep("pwrite64", "EIO", false, 1);
}

#[test]
fn a_write_finds_no_room() {
    sweep("pwrite64", "ENOSPC", false, 1);
}

#[test]
fn a_sync_of_data_fails() {
    sweep("fdatasync", "EIO", false, 1);
}

#[test]
fn a_sync_of_data_finds_no_room() {
    sweep("fdatasync", "ENOSPC", false, 1);
}

#[test]
fn a_sync_fails() {
    sweep("fsync", "EIO", false, 1);
    sweep("fsync", "ENOSPC", false, 1);
}

#[test]
fn in_a_new_store() {
    for error in ["EIO", "ENOSPC"] {
        sweep("pwrite64", error, true, 13);
        sweep("fdatasync", error, true, 7);
        sweep("fsync", error, true, 1);
    }
}
