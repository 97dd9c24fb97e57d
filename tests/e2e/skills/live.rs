//! Who is told of a change, while nobody asks: `skill.changed`.

use std::fs::{self, File};
use std::time::{Duration, SystemTime};

use nano_protocol::event::{Event, EventType};
use nano_tests::client::Client;
use nano_tests::model_server::{ModelServer, Turn};
use serde_json::{Value, json};

use super::{Ground, catalogue, done, load, own, put, result, session, system, text};

fn about(name: &str, words: &str) -> String {
    text(name, words, "BODY")
}

/// Waits for the next `skill.changed`.
fn next(watcher: &mut Client) -> Event {
    let all = watcher.events_until("skill.changed", |event| event.kind == EventType::SkillChanged);
    all.into_iter().next_back().expect("an event")
}

/// Returns what an event says became of which skill.
fn became(event: &Event) -> Vec<(String, String, bool)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let skills = event.data["skills"].as_array().cloned().unwrap_or_default();
    skills.iter().map(|one| (text(&one["name"]), text(&one["became"]), one["valid"] == true)).collect()
}

fn one(name: &str, became: &str) -> Vec<(String, String, bool)> {
    vec![(name.to_owned(), became.to_owned(), true)]
}

#[test]
fn a_workspaces_change_is_told_to_its_sessions() {
    let ground = Ground::new();
    let (work, other) = (ground.work("work"), ground.work("other"));
    let server = done();
    let daemon = ground.daemon(&server, "", "");
    let mut client = daemon.client();
    put(&own(&work), "x", &about("x", "One."));
    let first = session(&mut client, &work, json!({}));
    session(&mut client, &work, json!({"skills": ["y"]}));
    session(&mut client, &other, json!({}));
    let closed = session(&mut client, &work, json!({}));
    client.get::<Value>("session.close", &json!({ "session": closed }));
    let mut watcher = daemon.client();
    let start = watcher.subscribe(&json!({"types": ["skill.changed"]}));
    let mut seen = Vec::new();
    let folder = own(&work).join("x");
    put(&own(&work), "x", &about("x", "Two."));
    seen.push(next(&mut watcher));
    let path = folder.join("SKILL.md");
    let expected = json!({"skills": [{"name": "x", "became": "changed", "path": path, "valid": true}], "source": "workspace",
        "root": own(&work), "sessions": [first], "session_count": 1, "from": "next_request"});
    assert_eq!((json!(seen[0].session), json!(seen[0].data)), (json!(first), expected));
    File::options().append(true).open(&path).and_then(|file| file.set_modified(SystemTime::now())).expect("a touch");
    put(&own(&work), "z", &about("z", "New."));
    seen.push(next(&mut watcher));
    assert_eq!(became(&seen[1]), one("z", "added"), "a mere touch is no change");
    fs::remove_dir_all(folder).expect("the skill");
    seen.push(next(&mut watcher));
    assert_eq!(became(&seen[2]), one("x", "removed"));
    let mut again = daemon.client();
    again.subscribe(&json!({"types": ["skill.changed"], "since_seq": start}));
    let replayed: Vec<Event> = (0..3).map(|_| next(&mut again)).collect();
    assert_eq!(json!(replayed), json!(seen), "the same can be read again");
    assert!(server.requests().is_empty(), "nobody asked a model");
}

#[test]
fn a_change_in_the_daemons_own_folders_names_who_is_offered_it() {
    let ground = Ground::new();
    let works = ["one", "two"].map(|name| ground.work(name));
    let server = done();
    let mut daemon = ground.daemon(&server, "", "");
    let mut client = daemon.client();
    let all = session(&mut client, &works[0], json!({}));
    let named = session(&mut client, &works[1], json!({"skills": ["x"]}));
    session(&mut client, &works[0], json!({"skills": ["git-workflow"]}));
    session(&mut client, &works[0], json!({"skills": []}));
    let closed = session(&mut client, &works[1], json!({}));
    client.get::<Value>("session.close", &json!({ "session": closed }));
    let mut watcher = daemon.client();
    let start = watcher.subscribe(&json!({"types": ["skill.changed"]}));
    put(&ground.paths(), "x", &about("x", "One."));
    let event = next(&mut watcher);
    let mut sessions: Vec<String> = serde_json::from_value(event.data["sessions"].clone()).expect("sessions");
    sessions.sort();
    let mut expected = vec![all.clone(), named];
    expected.sort();
    assert_eq!((became(&event), &event.session, sessions), (one("x", "added"), &None, expected));
    assert_eq!(event.data["session_count"], 2);
    put(&ground.paths(), "y", &about("y", "One."));
    let event = next(&mut watcher);
    assert_eq!((became(&event), &event.data["sessions"]), (one("y", "added"), &json!([all])));
    daemon.kill9();
    daemon.restart();
    let mut again = daemon.client();
    again.subscribe(&json!({"types": ["skill.changed"], "since_seq": start}));
    assert_eq!(became(&next(&mut again)), one("x", "added"));
    assert_eq!(became(&next(&mut again)), one("y", "added"), "what was told outlives the daemon");
    // What is not looked at yet cannot change.
    again.get::<Value>("skill.list", &json!({}));
    put(&ground.paths(), "x", &about("x", "Two."));
    assert_eq!(became(&next(&mut again)), one("x", "changed"), "after a restart it is watched again");
}

/// Without a watch, what is written outside serves from the next start; what the daemon writes, at once.
#[test]
fn without_a_watch_a_daemon_keeps_what_it_read() {
    let ground = Ground::new();
    let work = ground.work("work");
    put(&ground.paths(), "x", &about("x", "One."));
    let server = ModelServer::script(vec![
        Turn::text("one"),
        load("c1", "x"),
        Turn::text("two"),
        load("c2", "x"),
        Turn::text("three"),
    ]);
    let mut daemon = ground.daemon(&server, "watch = false", "tools = []\nskills = [\"made\", \"x\"]");
    let mut client = daemon.client();
    let session = session(&mut client, &work, json!({}));
    client.run(&session, "p");
    let mut watcher = daemon.client();
    watcher.subscribe(&json!({"types": ["skill.changed"]}));
    put(&ground.paths(), "x", &text("x", "Two.", "SECOND"));
    let made = json!({"session": session, "name": "made", "description": "Made.", "content": "MADE"});
    client.get::<Value>("skill.create", &made);
    let event = next(&mut watcher);
    assert_eq!((became(&event), json!(event.session)), (one("made", "added"), json!(session)));
    client.run(&session, "q");
    daemon.kill9();
    daemon.restart();
    daemon.client().run(&session, "r");
    let history = daemon.history();
    let told: Vec<_> = history.iter().filter(|event| event.kind == EventType::SkillChanged).map(became).collect();
    assert_eq!(told, [one("made", "added")]);
    let requests = server.requests();
    let seen: Vec<String> = requests.iter().map(|request| catalogue(system(request)).join(" ")).collect();
    let (old, new) = ("made: Made. x: One.", "made: Made. x: Two.");
    assert_eq!(seen, ["x: One.", old, old, new, new]);
    let last = requests.last().expect("a request");
    assert!(result(last, "c1").contains("BODY") && result(last, "c2").contains("SECOND"), "{last}");
}

/// Folders that come one after the other, as a clone makes them, each with its document a moment later.
#[test]
fn what_comes_into_folders_that_are_not_there_yet_is_noticed() {
    let ground = Ground::new();
    let work = ground.work("work");
    fs::remove_dir(ground.paths()).expect("the folder");
    let server = done();
    let daemon = ground.daemon(&server, "", "");
    let mut client = daemon.client();
    session(&mut client, &work, json!({}));
    let mut watcher = daemon.client();
    watcher.subscribe(&json!({"types": ["skill.changed"]}));
    put(&own(&work), "a", &about("a", "In a workspace that had none."));
    assert_eq!(became(&next(&mut watcher)), one("a", "added"));
    put(&ground.paths(), "b", &about("b", "In a folder that was not there."));
    assert_eq!(became(&next(&mut watcher)), one("b", "added"));
    put(&ground.paths().join("deep/deeper"), "c", &about("c", "Further down."));
    assert_eq!(became(&next(&mut watcher)), one("c", "added"));
    fs::rename(ground.paths(), ground.0.path().join("gone")).expect("a move");
    let mut gone = became(&next(&mut watcher));
    gone.sort();
    assert_eq!(gone, [one("b", "removed"), one("c", "removed")].concat());
    fs::rename(ground.0.path().join("gone"), ground.paths()).expect("a move");
    let mut back = became(&next(&mut watcher));
    back.sort();
    assert_eq!(back, [one("b", "added"), one("c", "added")].concat());
}

/// Folders whose document comes at the moment when the daemon looks at them; only the pauses in which it comes differ.
#[test]
fn what_comes_while_the_daemon_looks_is_noticed() {
    let ground = Ground::new();
    for n in 0..1000 {
        fs::create_dir(ground.paths().join(format!("pile-{n:04}"))).expect("a folder");
    }
    let server = done();
    let daemon = ground.daemon(&server, "", "");
    daemon.client().get::<Value>("skill.list", &json!({}));
    let mut watcher = daemon.client();
    watcher.subscribe(&json!({"types": ["skill.changed"]}));
    for n in 0..8 {
        let name = format!("a{n}");
        fs::create_dir(ground.paths().join(&name)).expect("a folder");
        std::thread::sleep(Duration::from_millis(154 + 5 * n));
        put(&ground.paths(), &name, &about(&name, "Late."));
        assert_eq!(became(&next(&mut watcher)), one(&name, "added"));
    }
}
