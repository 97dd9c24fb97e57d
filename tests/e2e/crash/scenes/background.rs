//! A command that goes on behind its call: no end is lost, none is told twice.

use std::fs;

use nano_protocol::event::EventType;
use nano_protocol::message::{Message, Role};
use nano_protocol::process::{Process, ProcessState, Processes};
use nano_tests::model_server::Turn;
use serde_json::{Value, json};

use super::super::run::Run;
use super::super::scene::Scene;
use super::super::story::Story;
use super::{calls, has_called, succeeded};

fn begin(n: usize) -> (&'static str, Value) {
    let command = format!("echo c{n}_0 >> marks; while ! [ -e go ]; do sleep 0.01; done; echo over");
    ("exec", json!({"command": command, "background": true}))
}

fn processes(run: &mut Run) -> Vec<Process> {
    run.ask::<Processes>("process.list", &json!({})).processes
}

/// Lets the command end once its call has, and waits for that.
fn play(run: &mut Run) {
    run.open();
    run.submit("p");
    run.until("the result of the call", |run| run.server.requests().iter().any(has_called).then_some(()));
    fs::write(run.daemon.workspace().join("go"), "").expect("a file");
    run.until("the end of the command", |run| {
        processes(run).iter().all(|process| process.state != ProcessState::Running).then_some(())
    });
    run.server.open("over");
    run.settle();
    run.submit("q");
}

/// Every process has one end, which is told as one event and to the model once.
fn told_once(run: &mut Run, story: &Story) {
    succeeded(run, story);
    let all = processes(run);
    assert!(story.marks.len() <= all.len(), "one began without a record: {:?} of {all:?}", story.marks);
    for Process { id, state, .. } in all {
        let is_end = |kind: EventType, data: &Value| kind == EventType::ProcessExited && data["id"] == json!(id);
        let ends = story.history.iter().filter(|event| is_end(event.kind, &event.data)).count();
        assert!(state != ProcessState::Running && ends == 1, "{id} is {state} and ended {ends} times");
        let source = format!("process {id}");
        let shown =
            |text: &str| ["exit status", "lost", "killed"].iter().any(|end| text.contains(&format!("{id} [{end}")));
        let note = |message: &&Message| message.source.as_ref() == Some(&source);
        let notes: Vec<u64> = story.messages().filter(note).map(|message| message.seq).collect();
        let shows = |message: &&Message| message.role == Role::Tool && shown(&message.content);
        let shows: Vec<u64> = story.messages().filter(shows).map(|message| message.seq).collect();
        // Who was told may look, but who has looked is not told.
        let told = notes.len() == 1 || (notes.is_empty() && !shows.is_empty());
        let again = shows.iter().any(|show| notes.iter().any(|note| note > show));
        assert!(told && !again, "{id} is told by the notes {notes:?} and the results {shows:?}");
    }
}

pub const BACKGROUND: Scene = Scene {
    check: told_once,
    ..Scene::new(
        "background",
        |request, n| if has_called(request) { Turn::text("done") } else { calls(n, &[begin(n)]) },
        play,
    )
};

pub const POLLED: Scene = Scene {
    agent: "tool_mode = \"all\"",
    check: told_once,
    ..Scene::new(
        "polled",
        |request, n| match request["messages"].to_string() {
            text if text.contains("\\\"list\\\"") => Turn::text("done"),
            _ if has_called(request) => calls(n, &[("process", json!({"action": "list"}))]).gated("over"),
            _ => calls(n, &[begin(n)]),
        },
        play,
    )
};
