//! What becomes of a call that the daemon died in, by the class of its tool; and of a session that the daemon dies of.

mod parked;

use std::path::Path;

use nano_protocol::event::EventType;
use nano_protocol::followup::Followups;
use nano_protocol::message::{Message, Role};
use nano_protocol::task::{Task, TaskState};
use nano_tests::client::Client;
use nano_tests::daemon::{Daemon, Setup};
use nano_tests::model_server::{Call, ModelServer, Turn};
use nano_tests::{transcript, wait};
use serde_json::{Value, json};

use crate::delegate_kit;

const AGENT: &str = "tool_mode = \"all\"\nenable_followup = true\nskills = []\n";
const AT: &str = "NANO_CRASH_AT_NAME";

/// A model that makes these calls, `c1` and so on, and then says `done`.
fn calling(calls: &[(&str, Value)]) -> ModelServer {
    let call = |(at, (name, arguments)): (usize, &(&str, Value))| Call {
        id: format!("c{}", at + 1),
        name: (*name).to_owned(),
        arguments: arguments.clone(),
    };
    let calls = calls.iter().enumerate().map(call).collect();
    ModelServer::script(vec![Turn { calls, ..Turn::default() }, Turn::text("done")])
}

struct World {
    daemon: Daemon,
    server: ModelServer,
    session: String,
}

impl World {
    /// A session whose model makes these calls, in a daemon that dies at `point`.
    fn dying(point: &'static str, agent: &str, calls: &[(&str, Value)]) -> Self {
        let server = calling(calls);
        let setup = Setup { agent: format!("{AGENT}{agent}"), ..Setup::default() };
        let mut daemon = Daemon::prepare(&server, setup);
        daemon.set_env(vec![(AT, point.to_owned())]);
        daemon.restart();
        let session = daemon.session(&mut daemon.client());
        Self { daemon, server, session }
    }

    /// Has the daemon die in the task, and another one follow it once `then` is done.
    fn die(&mut self, then: impl FnOnce(&Path)) -> Client {
        self.daemon.client().submit(&self.session, "p");
        assert!(!self.daemon.wait().success());
        self.daemon.kill9();
        then(&self.daemon.workspace());
        self.daemon.set_env(Vec::new());
        self.daemon.restart();
        self.daemon.client()
    }

    fn results(&self, client: &mut Client) -> Vec<Message> {
        let mut messages = transcript::read(client, &self.session);
        transcript::check_pairs(&messages, false);
        messages.retain(|message| message.role == Role::Tool);
        messages
    }

    /// Waits for the end and returns the results of the calls, in short and as they are.
    fn end(&self, client: &mut Client) -> (String, Vec<Message>) {
        let task = client.tasks(&self.session).remove(0).id;
        assert_eq!(client.settled(&task).state, TaskState::Succeeded);
        assert_eq!(self.server.requests().len(), 2, "the model is asked once more, when all is known");
        let results = self.results(client);
        (transcript::render(&results), results)
    }
}

fn exec(command: &str) -> (&'static str, Value) {
    ("exec", json!({ "command": command }))
}

fn read(path: &str) -> (&'static str, Value) {
    ("read_file", json!({ "path": path }))
}

#[test]
fn what_reads_runs_again_and_what_follows_it_does_not_begin() {
    for point in ["tool.call.before", "tool.call.after"] {
        let mut world = World::dying(point, "", &[read("f"), read("f"), exec("touch c3")]);
        std::fs::write(world.daemon.workspace().join("f"), "text\n").expect("a file");
        let mut client = world.die(|_| ());
        let (short, results) = world.end(&mut client);
        assert_eq!(short, "T(c1) T(c2) T!(c3:not_run=restart)", "{point}");
        assert!(results.iter().take(2).all(|result| result.content.contains("text")), "{results:?}");
        assert!(!world.daemon.workspace().join("c3").exists());
        let starts = world.daemon.history().into_iter().filter(|event| event.kind == EventType::ToolStarted);
        let starts: Vec<Value> = starts.map(|event| json!([event.data["call"], event.data["start"]])).collect();
        assert_eq!(starts, [json!(["c1", null]), json!(["c2", null]), json!(["c1", 2]), json!(["c2", 2])], "{point}");
    }
}

#[test]
fn what_may_not_run_by_itself_is_not_run_again() {
    let mut world = World::dying("tool.call.before", "resume = \"ask\"", &[read("f")]);
    let mut client = world.die(|_| ());
    let task = client.tasks(&world.session).remove(0);
    assert_eq!(client.settled(&task.id).state, TaskState::Interrupted);
    let results = world.results(&mut client);
    assert_eq!(transcript::render(&results), "T!(c1:outcome=unknown)");
    assert!(results[0].content.contains("make the call again"), "{results:?}");
    client.get::<Task>("task.resume", &json!({"task": task.id}));
    assert_eq!(world.end(&mut client).0, "T!(c1:outcome=unknown)");
}

#[test]
fn of_a_command_nobody_knows_and_it_does_not_run_again() {
    for (point, runs) in [("exec.spawn.before", 0), ("exec.spawn.after", 1), ("tool.call.after", 1)] {
        let mut world = World::dying(point, "", &[exec("echo x >> marks"), exec("echo y >> marks")]);
        let mut client = world.die(|_| ());
        let (short, _) = world.end(&mut client);
        assert_eq!(short, "T!(c1:outcome=unknown) T!(c2:not_run=restart)", "{point}");
        let marks = std::fs::read_to_string(world.daemon.workspace().join("marks")).unwrap_or_default();
        assert!(marks.len() <= 2 * runs && !marks.contains('y'), "{point}: {marks}");
    }
}

#[test]
fn what_a_command_printed_last_is_told() {
    let mut world = World::dying("none", "", &[exec("echo first words; touch up; sleep 60")]);
    let mut client = world.daemon.client();
    client.submit(&world.session, "p");
    wait::until("the command", || world.daemon.workspace().join("up").exists().then_some(()));
    let spill = world.daemon.state().join("spill").join(&world.session);
    let kept = || std::fs::read_dir(&spill).map_or(0, |all| all.flatten().filter(|one| one.path().is_file()).count());
    wait::until("its output", || (kept() == 1).then_some(()));
    world.daemon.kill9();
    world.daemon.restart();
    let mut client = world.daemon.client();
    let (_, results) = world.end(&mut client);
    let told = &results[0].content;
    assert!(told.contains("at most") && told.contains("after its beginning:\nfirst words"), "{told}");
    assert_eq!(kept(), 0, "what was told is not kept");
}

/// A call that changes the file `f`, and what the file holds before and after.
const OLD: &str = "one old line\n";
const NEW: &str = "one new line\n";

fn changes() -> [(&'static str, Value); 2] {
    [
        ("write_file", json!({"path": "f", "content": NEW})),
        ("edit_file", json!({"path": "f", "old_text": "old", "new_text": "new"})),
    ]
}

/// Has the daemon die at `point` of a change of `f`, which then is what `meanwhile` says, and compares the result.
fn check_change(point: &'static str, call: (&str, Value), meanwhile: Option<&str>, short: &str, file: &str) {
    let name = call.0.to_owned();
    let mut world = World::dying(point, "", &[call]);
    let path = world.daemon.workspace().join("f");
    std::fs::write(&path, OLD).expect("a file");
    let mut client = world.die(|_| meanwhile.into_iter().for_each(|text| std::fs::write(&path, text).expect("a file")));
    let (told, results) = world.end(&mut client);
    assert_eq!(told, short, "{name} at {point}: {results:?}");
    assert_eq!(std::fs::read_to_string(&path).expect("the file"), file, "{name} at {point}");
    let left = std::fs::read_dir(world.daemon.workspace()).expect("the workspace").count();
    assert_eq!(left, 1, "{name} at {point} leaves nothing behind");
    if short == "T(c1)" {
        let says =
            if name == "write_file" { "wrote 13 bytes to f" } else { "replaced once in f (line 1; exact match)" };
        assert_eq!(results[0].content, says);
    }
}

#[test]
fn a_change_of_a_file_is_seen_in_the_file() {
    for call in changes() {
        for point in ["tool.call.before", "file.write.before", "file.write.after", "file.rename.before"] {
            check_change(point, call.clone(), None, "T!(c1:not_run=restart)", OLD);
        }
        for point in ["file.rename.after", "tool.call.after"] {
            check_change(point, call.clone(), None, "T(c1)", NEW);
        }
        for point in ["file.write.after", "tool.call.after"] {
            check_change(point, call.clone(), Some("other"), "T!(c1:outcome=unknown)", "other");
        }
    }
}

#[test]
fn a_call_that_delegates_finds_its_child_again() {
    for point in ["tool.call.before", "child.create.before", "child.create.after", "none"] {
        let server = delegate_kit::obedient();
        let mut daemon = Daemon::prepare(&server, Setup { agent: AGENT.into(), ..Setup::default() });
        daemon.set_env(vec![(AT, point.to_owned())]);
        daemon.restart();
        let mut client = daemon.client();
        let session = daemon.session(&mut client);
        client.submit(&session, &delegate_kit::order("-", &[json!({"content": "work held"})]));
        if point == "none" {
            server.wait_requests(2);
        } else {
            assert!(!daemon.wait().success());
        }
        daemon.kill9();
        daemon.set_env(Vec::new());
        daemon.restart();
        let mut client = daemon.client();
        let child = delegate_kit::wait_children(&mut client, &session, 1).remove(0);
        server.open("held");
        assert_eq!(delegate_kit::settled(&mut client, &session, 1).state, TaskState::Succeeded);
        assert_eq!(delegate_kit::rendered(&mut client, &session), "U A[c1] T(c1) A(noted)", "{point}");
        assert_eq!(delegate_kit::results(&mut client, &session)[0].content, "42");
        assert_eq!(delegate_kit::children(&mut client, &session).len(), 1, "{point}");
        assert_eq!(delegate_kit::told_of(&mut client, &session, &child), 0, "the call has told of it");
    }
}

#[test]
fn a_call_that_schedules_makes_one_follow_up() {
    for point in ["tool.call.before", "tool.call.after"] {
        let arguments = json!({"content": "later", "trigger": {"after_ms": 3_600_000}});
        let mut world = World::dying(point, "", &[("schedule_followup", arguments)]);
        let mut client = world.die(|_| ());
        let (short, results) = world.end(&mut client);
        assert_eq!(short, "T(c1)", "{point}");
        let made: Followups = client.get("followup.list", &json!({}));
        assert_eq!(made.followups.len(), 1, "{point}");
        assert!(results[0].content.contains(made.followups[0].id.as_str()), "{results:?}");
    }
}

#[test]
fn a_request_under_way_is_made_again_as_it_was() {
    for point in ["model.ask.before", "model.ask.after", "none"] {
        let server = ModelServer::script(vec![Turn {
            repeat: true,
            ..Turn::text("done").gated(if point == "none" { "held" } else { "-" })
        }]);
        server.open("-");
        let mut daemon = Daemon::prepare(&server, Setup { agent: AGENT.into(), ..Setup::default() });
        daemon.set_env(vec![(AT, point.to_owned())]);
        daemon.restart();
        let mut client = daemon.client();
        let session = daemon.session(&mut client);
        let task = client.submit(&session, "p").id;
        if point == "none" {
            server.wait_requests(1);
            client.get::<Value>("session.steer", &json!({"session": session, "content": "s"}));
        } else {
            assert!(!daemon.wait().success());
        }
        daemon.kill9();
        daemon.set_env(Vec::new());
        daemon.restart();
        server.open("held");
        let mut client = daemon.client();
        assert_eq!(client.settled(&task).state, TaskState::Succeeded);
        let transcript = transcript::render(&transcript::read(&mut client, &session));
        assert_eq!(transcript, if point == "none" { "U(p) S(s) A(done)" } else { "U(p) A(done)" });
        let requests = server.requests();
        if point == "model.ask.after" {
            assert_eq!((requests.len(), &requests[0]), (2, &requests[1]), "byte for byte");
        }
    }
}
