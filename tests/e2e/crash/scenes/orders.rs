//! What is said to a task that runs.

use nano_protocol::message::Role;
use nano_protocol::session::Steered;
use nano_protocol::task::{Task, TaskState};
use nano_tests::model_server::Turn;
use serde_json::json;

use super::super::run::Run;
use super::super::scene::Scene;
use super::super::story::Story;
use super::{calls, command_runs, has_called, last, mark, succeeded};

fn steer(run: &mut Run, content: &str, delivery: &str) {
    let session = run.session.clone();
    let params = json!({"session": session, "content": content, "delivery": delivery, "idempotency_key": content});
    run.ask::<Steered>("session.steer", &params);
}

fn steered_in_order(run: &mut Run, story: &Story, expected: &[&str]) {
    succeeded(run, story);
    assert_eq!(story.said(&run.session, Role::Steering), expected);
}

pub const NOTES: Scene = Scene {
    check: |run, story| steered_in_order(run, story, &["s1", "s2", "s3"]),
    ..Scene::new(
        "notes",
        |request, n| {
            let both = [mark(n, 0, ""), mark(n, 1, "")];
            if has_called(request) { Turn::text("done") } else { calls(n, &both).gated("steered") }
        },
        |run| {
            run.open();
            run.submit("p");
            run.until("the first request", |run| (!run.server.requests().is_empty()).then_some(()));
            steer(run, "s1", "note");
            steer(run, "s2", "redirect");
            steer(run, "s3", "note");
            run.server.open("steered");
        },
    )
};

pub const INTERRUPT: Scene = Scene {
    check: |run, story| steered_in_order(run, story, &["s1"]),
    spare: 1,
    ..Scene::new(
        "interrupt",
        |request, n| match last(request) {
            ("user", text) if !text.contains("s1") && !has_called(request) => {
                calls(n, &[mark(n, 0, "; sleep 60"), mark(n, 1, "")])
            }
            _ if request["messages"].to_string().contains("s1") => Turn::text("done"),
            _ => Turn::text("too early").gated("steered"),
        },
        |run| {
            run.open();
            run.submit("p");
            command_runs(run);
            steer(run, "s1", "interrupt");
            run.server.open("steered");
        },
    )
};

pub const CANCEL: Scene = Scene {
    check: |_, story| {
        let [task] = story.tasks.as_slice() else { panic!("{:#?}", story.tasks) };
        assert_eq!(task.state, TaskState::Cancelled, "{task:?}");
    },
    spare: 1,
    ..Scene::new(
        "cancel",
        |request, n| {
            let both = [mark(n, 0, "; sleep 60"), mark(n, 1, "")];
            if has_called(request) { Turn::text("too late").gated("never") } else { calls(n, &both) }
        },
        |run| {
            run.open();
            let task = run.submit("p");
            command_runs(run);
            let cancelled: Task = run.ask("task.cancel", &json!({ "task": task.id }));
            assert_eq!(cancelled.state, TaskState::Cancelled, "{cancelled:?}");
        },
    )
};
