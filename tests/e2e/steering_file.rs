//! Steering by the workspace's file: taken once, by a running task, and only when it may be trusted.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use nano_protocol::event::{Event, EventType};
use nano_protocol::task::TaskState;
use nano_tests::client::Client;
use nano_tests::daemon::Daemon;
use nano_tests::model_server::{ModelServer, Turn};
use nano_tests::transcript;
use serde_json::json;

struct Bench {
    server: ModelServer,
    daemon: Daemon,
    client: Client,
    watcher: Client,
    session: String,
    file: PathBuf,
}

/// Starts a task that waits at the gate `m1`.
fn running() -> Bench {
    let server =
        ModelServer::answering(|_, n| Some(if n == 1 { Turn::text("one").gated("m1") } else { Turn::text("two") }));
    let daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let mut watcher = daemon.client();
    watcher.subscribe(&json!({"session": session, "since_seq": 0}));
    client.submit(&session, "p");
    server.wait_requests(1);
    let file = daemon.workspace().join(".steering.jsonl");
    Bench { server, daemon, client, watcher, session, file }
}

impl Bench {
    fn append(&self, text: &str) {
        let mut file = OpenOptions::new().append(true).create(true).open(&self.file).expect("the steering file");
        file.write_all(text.as_bytes()).expect("a line");
    }

    fn await_events(&mut self, kind: EventType, count: usize) -> Vec<Event> {
        let mut left = count;
        self.watcher.events_until(kind.as_str(), |event| {
            left -= usize::from(event.kind == kind);
            left == 0
        })
    }

    fn finish(&mut self) -> String {
        self.server.open("m1");
        self.rendered()
    }

    fn rendered(&mut self) -> String {
        for task in self.client.tasks(&self.session) {
            assert_eq!(self.client.settled(&task.id).state, TaskState::Succeeded);
        }
        transcript::render(&transcript::read(&mut self.client, &self.session))
    }
}

#[test]
fn lines_are_taken_once_and_in_order() {
    let mut bench = running();
    bench.append("{\"content\":\"s1\"}\n{\"content\":\"s2\",\"role\":\"user\"}\n");
    bench.await_events(EventType::SteeringQueued, 2);
    bench.append("{\"content\":\"s3\",\"metadata\":{\"a\":1}}\n");
    bench.await_events(EventType::SteeringQueued, 1);
    let rendered = bench.finish();
    let expected = "U(p) A(one) S(s1) S(s2) S(s3) A(two)"; // The second line is marked as a user's words.
    assert_eq!(rendered, expected);
}

#[test]
fn a_line_without_its_end_waits_for_it() {
    let mut bench = running();
    bench.append("{\"content\":\"s1\"}\n{\"content\":");
    bench.await_events(EventType::SteeringQueued, 1);
    bench.append("\"s2\"}\n");
    bench.await_events(EventType::SteeringQueued, 1);
    assert_eq!(bench.finish(), "U(p) A(one) S(s1) S(s2) A(two)");
}

#[test]
fn a_writer_that_holds_the_file_open_loses_nothing() {
    let mut bench = running();
    let mut file = OpenOptions::new().append(true).create(true).open(&bench.file).expect("the steering file");
    for n in 1..=20 {
        writeln!(file, "{{\"content\":\"s{n}\"}}").expect("a line");
        bench.await_events(EventType::SteeringQueued, 1);
    }
    let all: Vec<String> = (1..=20).map(|n| format!("S(s{n})")).collect();
    assert_eq!(bench.finish(), format!("U(p) A(one) {} A(two)", all.join(" ")));
}

#[test]
fn a_bad_line_is_set_aside_with_its_reason() {
    let mut bench = running();
    let bad = ["not json", "{\"role\":\"user\"}", "{\"content\":\"x\",\"role\":\"system\"}", "{\"content\":7}"];
    bench.append(&format!("{}\n{{\"content\":\"s\"}}\n", bad.join("\n")));
    let seen = bench.await_events(EventType::SteeringQueued, 1);
    assert_eq!(seen.iter().filter(|event| event.kind == EventType::SteeringRejected).count(), bad.len(), "{seen:#?}");
    let aside = fs::read_to_string(bench.daemon.workspace().join(".steering.rejected.jsonl")).expect("the bad lines");
    assert_eq!(aside.lines().count(), bad.len(), "{aside}");
    assert_eq!(bench.finish(), "U(p) A(one) S(s) A(two)");
}

#[test]
fn a_delivery_of_a_line_counts() {
    let mut bench = running();
    bench.append("{\"content\":\"s\",\"delivery\":\"interrupt\"}\n");
    let rendered = bench.rendered();
    assert!(transcript::fits("U(p) A~? S(s) A(two)", &rendered), "{rendered}");
}

#[test]
fn a_kill_neither_loses_nor_doubles_a_line() {
    let mut bench = running();
    bench.append("{\"content\":\"s1\"}\n{\"content\":\"s2\"}\n");
    bench.await_events(EventType::SteeringQueued, 1);
    bench.daemon.kill9();
    bench.append("{\"content\":\"s3\"}\n");
    bench.daemon.restart();
    bench.client = bench.daemon.client();
    let rendered = bench.rendered();
    for line in ["S(s1)", "S(s2)"] {
        assert_eq!(rendered.matches(line).count(), 1, "{line} in {rendered}");
    }
    assert!(rendered.matches("S(s3)").count() <= 1, "{rendered}");
}

#[test]
fn an_old_file_a_link_and_one_that_others_may_write_are_not_taken() {
    type Plant = fn(&std::path::Path);
    let plants: [(&str, Plant); 2] = [
        ("a link", |file| {
            fs::write(file.with_file_name("elsewhere"), "{\"content\":\"bad\"}\n").expect("a file");
            symlink("elsewhere", file).expect("a link");
        }),
        ("writable by others", |file| {
            let near = file.with_file_name("near");
            fs::write(&near, "{\"content\":\"bad\"}\n").expect("a file");
            fs::set_permissions(&near, fs::Permissions::from_mode(0o666)).expect("a mode");
            fs::rename(&near, file).expect("a move");
        }),
    ];
    for (what, plant) in plants {
        let mut bench = running();
        plant(&bench.file);
        assert_eq!(bench.finish(), "U(p) A(one)", "{what}");
    }
    let server = ModelServer::script(vec![Turn::text("one")]);
    let daemon = Daemon::start(&server);
    let file = daemon.workspace().join(".steering.jsonl");
    fs::write(&file, "{\"content\":\"old\"}\n").expect("a file");
    let hour_ago = SystemTime::now() - Duration::from_hours(1);
    OpenOptions::new().write(true).open(&file).and_then(|file| file.set_modified(hour_ago)).expect("an old file");
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    client.run(&session, "p");
    assert_eq!(transcript::render(&transcript::read(&mut client, &session)), "U(p) A(one)", "older than the task");
}

#[test]
fn an_idle_session_takes_nothing() {
    let server = ModelServer::script(vec![Turn::text("one")]);
    let daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    client.run(&session, "p");
    fs::write(daemon.workspace().join(".steering.jsonl"), "{\"content\":\"s\"}\n").expect("a file");
    assert_eq!(client.tasks(&session).len(), 1);
    assert_eq!(server.requests().len(), 1);
}
