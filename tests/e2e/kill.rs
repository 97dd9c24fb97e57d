//! `kill -9` at random moments under load: what was answered is there, and nothing happens twice.
//!
//! Forty kills unless `NANO_KILLS` says otherwise; two hundred, the full form, take some five minutes:
//! `NANO_KILLS=200 cargo test -p nano-tests --test e2e again_and_again_under_load`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Child;
use std::time::{Duration, Instant};

use nano_protocol::followup::{Followup, FollowupState};
use nano_protocol::message::{Message, Role};
use nano_protocol::task::{Task, TaskState};
use nano_tests::client::Client;
use nano_tests::daemon::{Daemon, Setup};
use nano_tests::model_server::{ModelServer, Turn};
use nano_tests::random::Random;
use nano_tests::{transcript, wait};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::kill_load::{Accepted, Speaker, was_told, watch};
use crate::store_kit::all as all_pages;

const SESSIONS: usize = 4;
/// Requests of each client between two kills: enough to keep every session busy, few enough to work off in the end.
const REQUESTS: usize = 2;
const AGENTS: [&str; 2] = ["default", "asking"];

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
        let params = json!({"session": session, "state": "interrupted"});
        for task in all_pages(client, "task.list", "tasks", &params) {
            client.call("task.resume", &json!({"task": task["id"]})).ok();
        }
    }
}

/// Resumes and waits until no task of the sessions is left open.
fn settle(client: &mut Client, sessions: &[String]) {
    let open = |client: &mut Client, session: &String| {
        let of = |state: TaskState| json!({"session": session, "state": state});
        let states = [TaskState::Interrupted, TaskState::Running, TaskState::Queued];
        states.into_iter().find_map(|state| all_pages(client, "task.list", "tasks", &of(state)).pop())
    };
    for session in sessions {
        while let Some(task) = open(client, session) {
            resume_all(client, sessions);
            client.get::<Task>("task.wait", &json!({"task": task["id"], "timeout_ms": 1000}));
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
        assert_eq!(times(&transcripts[session], content), 1, "{content} in {session}");
    }
    for (session, content) in &accepted.unknown {
        assert!(times(&transcripts[session], content) <= 1, "{content} in {session}");
    }
    for id in &accepted.followups {
        let followup: Followup = client.get("followup.get", &json!({ "followup": id }));
        assert_eq!((followup.state, followup.runs), (FollowupState::Done, 1), "{followup:?}");
    }
    check_marks(&transcripts, marks);
}

/// Returns how often something was said.
fn times(messages: &[Message], content: &str) -> usize {
    messages.iter().filter(|message| message.role != Role::Assistant && message.content == content).count()
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

/// What was seen of the transcripts, by session and number.
type Transcripts = BTreeMap<String, BTreeMap<u64, Message>>;

/// One daemon that is killed again and again, and what is known of it.
struct Loop {
    daemon: Daemon,
    sessions: Vec<String>,
    random: Random,
    accepted: Accepted,
    seen: Transcripts,
    waits: Vec<Child>,
}

impl Loop {
    fn start(server: &ModelServer, random: Random) -> Self {
        let agent = "max_turns = 1000".to_owned();
        let extra = "[agents.asking]\nresume = \"ask\"\nmax_turns = 1000".to_owned();
        let daemon = Daemon::with(server, Setup { agent, extra, ..Setup::default() });
        let mut client = daemon.client();
        let of = |n: usize| json!({"agent": AGENTS[n % 2], "skills": []});
        let sessions = (0..SESSIONS).map(|n| daemon.session_with(&mut client, of(n))).collect();
        Self { daemon, sessions, random, accepted: Accepted::default(), seen: BTreeMap::new(), waits: Vec::new() }
    }

    /// Loads the daemon from four sides, kills it in the midst, and looks whether all is there that was seen.
    fn round(&mut self, round: usize) {
        let killer = kill_after(self.daemon.pid(), self.random.span(400));
        let (root, socket) = (self.daemon.root(), self.daemon.socket());
        let mut speakers: Vec<Speaker> = ["a", "b", "n"]
            .into_iter()
            .map(|name| {
                let random = Random::new(self.random.below(u64::MAX));
                Speaker { root, socket: &socket, sessions: &self.sessions, word: format!("w{name}{round}r"), random }
            })
            .collect();
        if let Some(task) = self.accepted.tasks.last().filter(|_| round % 5 == 1) {
            self.waits.push(speakers[2].wait_for(task));
        }
        let told = std::thread::scope(|scope| {
            let watching = scope.spawn(|| watch(&socket));
            let [a, b, n] = &mut speakers[..] else { unreachable!("three speakers") };
            let talks = [
                scope.spawn(|| a.speak(REQUESTS)),
                scope.spawn(|| b.speak(REQUESTS)),
                scope.spawn(|| n.command(REQUESTS)),
            ];
            for talk in talks {
                self.accepted.add(talk.join().expect("a client"));
            }
            watching.join().expect("a watcher")
        });
        killer.join().expect("the killing thread");
        let clients: Vec<u32> = self.waits.iter().map(Child::id).collect();
        self.daemon.kill9_beside(&clients);
        self.daemon.restart();
        self.look_again(&told, round.is_multiple_of(20));
        resume_all(&mut self.daemon.client(), &self.sessions);
    }

    /// Checks that what was seen is there still, with the same words; all of it, or since the last look.
    fn look_again(&mut self, told: &[(String, Message)], whole: bool) {
        let mut client = self.daemon.client();
        for session in &self.sessions {
            let seen = self.seen.entry(session.clone()).or_default();
            let after = seen.keys().next_back().copied().filter(|_| !whole).unwrap_or(0);
            seen.extend(told.iter().filter(|(of, _)| of == session).map(|(_, message)| (message.seq, message.clone())));
            let now = transcript::read_after(&mut client, session, after);
            let now: BTreeMap<u64, Message> = now.into_iter().map(|message| (message.seq, message)).collect();
            for (seq, message) in seen.range(after + 1..) {
                assert_eq!(now.get(seq), Some(message), "{session} {seq}");
            }
            seen.extend(now);
        }
    }

    /// Lets everything come to its end and checks all of it.
    fn end(mut self) {
        let mut client = self.daemon.client();
        for id in &self.accepted.followups {
            wait::until("the follow-up", || {
                let followup: Followup = client.get("followup.get", &json!({ "followup": id }));
                (followup.state == FollowupState::Done).then_some(())
            });
        }
        settle(&mut client, &self.sessions);
        self.look_again(&[], true);
        let marks = self.daemon.workspace().join("marks");
        check(&mut client, &self.sessions, &self.accepted, &marks);
        let waits = self.waits.len();
        let told = self.waits.drain(..).filter_map(|wait| was_told(wait).then_some(())).count();
        assert!(told > 0 || waits == 0, "of {waits} `nanoctl wait`, none was told of the end of its task");
        let status: Value = client.get("daemon.status", &json!({}));
        assert_eq!(status["pid"], self.daemon.pid());
        let results =
            self.seen.values().flat_map(BTreeMap::values).filter(|message| message.role == Role::Tool).count();
        let Accepted { tasks, followups, said, unknown } = &self.accepted;
        let (tasks, followups, said, unknown) = (tasks.len(), followups.len(), said.len(), unknown.len());
        eprintln!(
            "{tasks} tasks, {followups} follow-ups, {said} accepted in all, {unknown} unanswered, {results} results, {told} of {waits} waits"
        );
    }
}

fn number(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|number| number.parse().ok()).unwrap_or(usual)
}

#[test]
fn again_and_again_under_load() {
    let (seed, kills) = (number("NANO_KILL_SEED", 20_270_201), number("NANO_KILLS", 40));
    eprintln!("repeat with NANO_KILL_SEED={seed} NANO_KILLS={kills}"); // Shown when the test fails.
    let server = marking();
    let mut all = Loop::start(&server, Random::new(seed));
    for round in 0..usize::try_from(kills).expect("a number of kills") {
        all.round(round);
    }
    all.end();
}
