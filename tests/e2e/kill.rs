//! `kill -9` at random moments under load: what was answered is there, and nothing happens twice.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use nano_protocol::followup::{Followup, FollowupState};
use nano_protocol::id::{FollowupId, TaskId};
use nano_protocol::message::{Message, Role};
use nano_protocol::task::{Task, TaskState};
use nano_tests::client::Client;
use nano_tests::daemon::{Daemon, Setup};
use nano_tests::model_server::{ModelServer, Turn};
use nano_tests::random::Random;
use nano_tests::{transcript, wait};
use rustix::process::Signal;
use serde_json::{Value, json};

const KILLS: usize = 50;
const SESSIONS: usize = 4;
/// Requests between two kills: enough to keep every session busy, few enough to work off in the end.
const REQUESTS: usize = 5;
const AGENTS: [&str; 2] = ["default", "asking"];

/// What the daemon has answered, and so must still have.
#[derive(Default)]
struct Accepted {
    tasks: Vec<TaskId>,
    followups: Vec<FollowupId>,
    /// The content of each of them and of each steering message, with its session.
    said: Vec<(String, String)>,
}

/// A model that makes two commands of every message it has not answered, each of which leaves a mark of its own.
fn marking() -> ModelServer {
    ModelServer::answering(|request, number| {
        let last = request["messages"].as_array().and_then(|messages| messages.last());
        if last.is_some_and(|message| message["role"] == "tool") {
            return Some(Turn::text("done"));
        }
        let mark = |part: char| format!("echo m{number}{part} >> marks");
        let mut turn = Turn::exec(format!("c{number}a"), mark('a'));
        turn.calls.extend(Turn::exec(format!("c{number}b"), mark('b')).calls);
        Some(turn)
    })
}

/// Says a few things to the daemon, notes what it answered, and waits until it is gone.
fn load(client: &mut Client, random: &mut Random, sessions: &[String], number: &mut u64, accepted: &mut Accepted) {
    for _ in 0..REQUESTS {
        *number += 1;
        let session = random.pick(sessions).clone();
        if say(client, random, session, &format!("w{number}w"), accepted).is_none() {
            return;
        }
    }
    while client.next_event().is_some() {}
}

/// Submits, steers or schedules; `None` when the daemon was gone before it answered.
fn say(
    client: &mut Client,
    random: &mut Random,
    session: String,
    content: &str,
    accepted: &mut Accepted,
) -> Option<()> {
    let mut params = json!({"session": session, "content": content, "idempotency_key": content});
    match random.below(3) {
        0 => {
            let answer = client.try_call("task.submit", &params)?.expect("a task");
            accepted.tasks.push(id(&answer));
        }
        1 => {
            client.try_call("session.steer", &params)?.expect("an answer to steering");
        }
        _ => {
            params["trigger"] = json!({"after_ms": random.below(300)});
            let answer = client.try_call("followup.schedule", &params)?.expect("a follow-up");
            accepted.followups.push(id(&answer));
        }
    }
    accepted.said.push((session, content.to_owned()));
    Some(())
}

fn id<T: serde::de::DeserializeOwned>(answer: &Value) -> T {
    serde_json::from_value(answer["id"].clone()).expect("an id")
}

/// Kills the process `pid` after `delay`, in a thread of its own.
fn kill_after(pid: u32, delay: Duration) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        let end = Instant::now() + delay;
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            std::thread::park_timeout(left);
        }
        nano_tests::processes::signal(i32::try_from(pid).expect("a process id"), Signal::KILL);
    })
}

/// Takes up every interrupted task, as a person would.
fn resume_all(client: &mut Client, sessions: &[String]) {
    for session in sessions {
        for task in client.tasks(session).into_iter().filter(|task| task.state == TaskState::Interrupted) {
            client.call("task.resume", &json!({"task": task.id})).ok();
        }
    }
}

/// Resumes and waits until no task of the sessions is left open.
fn settle(client: &mut Client, sessions: &[String]) {
    for session in sessions {
        loop {
            resume_all(client, sessions);
            let open = client.tasks(session).into_iter().find(|task| {
                let state = task.state;
                matches!(state, TaskState::Queued | TaskState::Running | TaskState::Interrupted)
            });
            let Some(task) = open else { break };
            client.get::<Task>("task.wait", &json!({"task": task.id, "timeout_ms": 1000}));
        }
    }
}

fn check(client: &mut Client, sessions: &[String], accepted: &Accepted, marks: &PathBuf) {
    for id in &accepted.tasks {
        let task: Task = client.get("task.get", &json!({ "task": id }));
        assert_eq!(task.state, TaskState::Succeeded, "{task:?}");
    }
    let mut transcripts: BTreeMap<&String, Vec<Message>> = BTreeMap::new();
    for session in sessions {
        let messages = transcript::read(client, session);
        transcript::check_pairs(&messages, false);
        transcripts.insert(session, messages);
    }
    for (session, content) in &accepted.said {
        let said = |message: &&Message| message.role != Role::Assistant && message.content == *content;
        assert_eq!(transcripts[session].iter().filter(said).count(), 1, "{content} in {session}");
    }
    for id in &accepted.followups {
        let followup: Followup = client.get("followup.get", &json!({ "followup": id }));
        assert_eq!((followup.state, followup.runs), (FollowupState::Done, 1), "{followup:?}");
    }
    check_marks(&transcripts, marks);
}

/// Checks that no command ran twice, and that each whose result says so did run.
fn check_marks(transcripts: &BTreeMap<&String, Vec<Message>>, marks: &PathBuf) {
    let marks = std::fs::read_to_string(marks).unwrap_or_default();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for mark in marks.lines() {
        *counts.entry(mark).or_default() += 1;
    }
    assert!(counts.values().all(|count| *count == 1), "a command ran twice: {counts:?}");
    for result in transcripts.values().flatten().filter(|message| message.role == Role::Tool) {
        let call = result.tool_call_id.as_deref().unwrap_or_default();
        let ran = counts.contains_key(call.replacen('c', "m", 1).as_str());
        assert!(ran || result.ok != Some(true), "{call} is said to have run but left no mark: {result:?}");
        assert!(!ran || result.not_run.is_none(), "{call} ran but is said not to have: {result:?}");
    }
}

#[test]
fn fifty_times_under_load() {
    let seed = std::env::var("NANO_KILL_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(20_270_201);
    eprintln!("repeat with NANO_KILL_SEED={seed}"); // Shown when the test fails.
    let mut random = Random::new(seed);
    let server = marking();
    let agent = "max_turns = 1000".to_owned();
    let extra = "[agents.asking]\nresume = \"ask\"\nmax_turns = 1000".to_owned();
    let mut daemon = Daemon::with(&server, Setup { agent, extra, ..Setup::default() });
    let mut client = daemon.client();
    let of = |n: usize| json!({"agent": AGENTS[n % 2], "skills": []});
    let sessions: Vec<String> = (0..SESSIONS).map(|n| daemon.session_with(&mut client, of(n))).collect();
    let mut accepted = Accepted::default();
    let mut number = 0;
    for _ in 0..KILLS {
        let killer = kill_after(daemon.pid(), random.span(400));
        load(&mut client, &mut random, &sessions, &mut number, &mut accepted);
        killer.join().expect("the killing thread");
        daemon.kill9();
        daemon.restart();
        client = daemon.client();
        resume_all(&mut client, &sessions);
    }
    for id in &accepted.followups {
        wait::until("the follow-up", || {
            let followup: Followup = client.get("followup.get", &json!({ "followup": id }));
            (followup.state == FollowupState::Done).then_some(())
        });
    }
    settle(&mut client, &sessions);
    let marks = daemon.workspace().join("marks");
    check(&mut client, &sessions, &accepted, &marks);
    let status: Value = client.get("daemon.status", &json!({}));
    assert_eq!(status["pid"], daemon.pid());
}
