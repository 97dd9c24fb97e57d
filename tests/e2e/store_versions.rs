//! Stores of every schema that was ever released: this version goes on with them, twice, and keeps what it began with.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use nano_protocol::event::EventType;
use nano_protocol::followup::{Followup, FollowupState};
use nano_protocol::task::{Task, TaskState, Tasks};
use nano_tests::client::Client;
use nano_tests::daemon::Daemon;
use nano_tests::model_server::ModelServer;
use nano_tests::{skip, transcript, wait};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::store_fixture::{WORKSPACE, folder, obedient, setup};
use crate::store_kit::{Seen, all, come_to_rest, files, look, look_at_events, missing, text};

/// What a fixture holds.
#[derive(Deserialize)]
struct Held {
    seen: Seen,
    asked: Vec<Asked>,
}

/// What was asked with a key, and a member of the answer.
#[derive(Deserialize)]
struct Asked {
    method: String,
    params: Value,
    member: String,
    answer: Value,
}

/// Puts the state of a fixture below a daemon that is not started.
pub fn unpack(server: &ModelServer, schema: &str) -> Daemon {
    let daemon = Daemon::prepare(server, setup());
    fs::create_dir(daemon.state()).expect("the state folder");
    let archive = folder().join(format!("{schema}.tar.gz"));
    let status = Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(daemon.state()).status();
    assert!(status.expect("tar").success());
    daemon
}

fn held(schema: &str) -> Held {
    let text = fs::read_to_string(folder().join(format!("{schema}.json"))).expect("what the fixture holds");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{schema}: {error}"))
}

fn session(client: &mut Client, name: &str) -> String {
    text(&client.get::<Value>("session.get", &json!({"session": name}))["id"]).to_owned()
}

/// Resumes what waits for somebody, waits for everything, and checks what became of it.
fn go_on(client: &mut Client) {
    let asking = session(client, "asking");
    let waits: Tasks = client.get("task.list", &json!({"session": asking, "state": "interrupted"}));
    assert_eq!(waits.tasks.len(), 1, "the interrupted task waits: {waits:?}");
    client.get::<Task>("task.resume", &json!({"task": waits.tasks[0].id}));
    for name in ["after", "due"] {
        wait::until(name, || (followup(client, name).state == FollowupState::Done).then_some(()));
    }
    come_to_rest(client);
    for name in ["asking", "running", "parent", "planned"] {
        let tasks = client.tasks(name);
        assert!(tasks.iter().all(|task| task.state == TaskState::Succeeded), "{name}: {tasks:#?}");
        transcript::check_pairs(&transcript::read(client, name), false);
    }
}

fn followup(client: &mut Client, name: &str) -> Followup {
    let all = all(client, "followup.list", "followups", &json!({}));
    let found = all.into_iter().find(|one| one["name"] == name).expect("the follow-up");
    serde_json::from_value(found).expect("a follow-up")
}

/// Checks that keys are still known, where their owner is the one who asks.
fn check_keys(client: &mut Client, asked: &[Asked]) {
    if !rustix::process::getuid().is_root() {
        return skip::say("the keys of the fixture belong to root, who does not run this test");
    }
    for one in asked {
        let answer: Value = client.get(&one.method, &one.params);
        assert_eq!(answer[&one.member], one.answer, "{} {}", one.method, one.params);
    }
}

/// Checks that new work is done as ever, and that no number is used again.
fn check_new_work(daemon: &Daemon, seen: &Seen) {
    let mut client = daemon.client();
    let fresh = daemon.session(&mut client);
    let task = client.run(&fresh, "run echo new > new");
    let newest = |name: &String| name.strip_prefix("event ").and_then(|number| number.parse::<u64>().ok());
    assert!(Some(task.seq) > seen.keys().filter_map(newest).max(), "{task:?}");
    assert_eq!(fs::read_to_string(daemon.workspace().join("new")).expect("what it wrote"), "new\n");
}

fn everything(daemon: &Daemon) -> Seen {
    let mut seen = look(&mut daemon.client());
    look_at_events(daemon, &mut seen);
    seen
}

fn check(schema: &str) {
    let server = obedient(false);
    let mut daemon = unpack(&server, schema);
    let held = held(schema);
    // Its sessions work there; the marks of what they do are no part of the store.
    fs::create_dir_all(WORKSPACE).expect("the workspace");
    let before = files(&daemon.state());
    daemon.restart();
    assert_eq!(missing(&held.seen, &everything(&daemon)), [""; 0], "{schema}, at once");
    let mut client = daemon.client();
    go_on(&mut client);
    check_keys(&mut client, &held.asked);
    let then = everything(&daemon);
    assert_eq!(missing(&held.seen, &then), [""; 0], "{schema}, later");
    daemon.kill9();
    daemon.restart();
    assert_eq!(missing(&then, &everything(&daemon)), [""; 0], "{schema}, at the second start");
    let gaps: Vec<_> = daemon.history().into_iter().filter(|event| event.kind == EventType::Gap).collect();
    assert!(gaps.is_empty(), "{schema}: nothing is lost, and clients are told of {gaps:?}");
    check_keys(&mut daemon.client(), &held.asked);
    check_new_work(&daemon, &then);
    check_kept(&before, &daemon.state());
    fs::remove_dir_all(WORKSPACE).expect("the workspace");
}

/// Checks that every old file is still somewhere, byte for byte.
fn check_kept(before: &BTreeMap<String, Vec<u8>>, state: &Path) {
    let now = files(state);
    let kept = |old: &&Vec<u8>| now.values().any(|new| new == *old);
    let gone: Vec<_> = before.iter().filter(|(_, old)| !kept(old)).map(|(name, _)| name).collect();
    assert!(gone.is_empty(), "{gone:?} were not kept aside; there is {:?}", now.keys());
}

#[test]
fn schema_1() {
    check("schema-1");
}

#[test]
fn every_fixture_has_its_test() {
    let named = |file: std::io::Result<fs::DirEntry>| file.expect("a file").file_name().into_string().expect("UTF-8");
    let mut fixtures: Vec<String> = fs::read_dir(folder()).expect("fixtures").map(named).collect();
    fixtures.sort();
    let source = include_str!("store_versions.rs");
    for schema in fixtures.iter().filter_map(|name| name.strip_suffix(".json")) {
        assert!(source.contains(&format!("check(\"{schema}\")")), "{schema} is not tested");
    }
}
