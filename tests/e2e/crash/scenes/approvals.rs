//! Calls that a person is asked about.

use nano_protocol::approval::{Approval, ApprovalState, Approvals};
use nano_protocol::event::EventType;
use nano_tests::model_server::Turn;
use serde_json::{Value, json};

use super::super::run::Run;
use super::super::scene::Scene;
use super::super::story::Story;
use super::{calls, has_called, mark, succeeded};

const ASKING: &str = "approve = [\"exec: ask\"]";

fn model(request: &Value, n: usize) -> Turn {
    if has_called(request) { Turn::text("done") } else { calls(n, &[mark(n, 0, "")]) }
}

/// Answers the question as soon as the observer is told of it: asking for it again and again would make runs differ in
/// the number of their points.
fn answered(run: &mut Run, allow: bool) {
    run.open();
    run.submit("p");
    run.until("the question", |run| {
        let told = run.told.lock().expect("events");
        told.iter().any(|event| event.kind == EventType::ApprovalRequested).then_some(())
    });
    let waiting: Approvals = run.ask("approval.list", &json!({"state": "pending"}));
    for approval in waiting.approvals {
        run.ask::<Approval>("approval.answer", &json!({"approval": approval.id, "allow": allow}));
    }
    run.settle();
}

fn check(run: &mut Run, story: &Story, state: ApprovalState) {
    succeeded(run, story);
    let all: Approvals = run.ask("approval.list", &json!({}));
    let [approval] = all.approvals.as_slice() else { panic!("asked about one call once: {all:#?}") };
    assert_eq!(approval.state, state, "{approval:?}");
    for kind in [EventType::ApprovalRequested, EventType::ApprovalAnswered] {
        assert_eq!(story.history.iter().filter(|event| event.kind == kind).count(), 1, "{kind}");
    }
}

pub const APPROVED: Scene = Scene {
    agent: ASKING,
    check: |run, story| check(run, story, ApprovalState::Allowed),
    ..Scene::new("approved", model, |run| answered(run, true))
};

pub const DENIED: Scene = Scene {
    agent: ASKING,
    check: |run, story| {
        check(run, story, ApprovalState::Denied);
        assert!(story.marks.is_empty(), "a denied call ran: {:?}", story.marks);
    },
    ..Scene::new("denied", model, |run| answered(run, false))
};
