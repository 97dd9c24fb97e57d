//! Tasks, sessions and daemons as they come and go.

use nano_protocol::followup::{Followup, FollowupState, Runs};
use nano_protocol::id::SessionId;
use nano_protocol::message::Role;
use nano_protocol::session::{Session, SessionState};
use nano_tests::model_server::Turn;
use serde_json::{Value, json};

use super::super::scene::Scene;
use super::{calls, command_runs, done, has_called, mark, succeeded};

pub const PLAIN: Scene = Scene {
    check: succeeded,
    ..Scene::new("plain", done, |run| {
        run.open();
        run.submit("p");
    })
};

pub const QUEUED: Scene = Scene {
    check: |run, story| {
        succeeded(run, story);
        assert_eq!(story.said(&run.session, Role::User), ["p1", "p2", "p3"]);
    },
    ..Scene::new("queued", done, |run| {
        run.open();
        for content in ["p1", "p2", "p3"] {
            run.submit(content);
        }
    })
};

pub const FOLLOWUP: Scene = Scene {
    check: |run, story| {
        succeeded(run, story);
        let followup: Followup = serde_json::from_value(run.asked_for("followup.schedule")).expect("a follow-up");
        let now: Followup = run.ask("followup.get", &json!({ "followup": followup.id }));
        assert_eq!((now.state, now.runs, now.missed), (FollowupState::Done, 1, 0), "{now:?}");
        let runs: Runs = run.ask("followup.runs", &json!({ "followup": followup.id }));
        assert_eq!(runs.runs.len(), 1, "{runs:?}");
        assert_eq!(story.said(&run.session, Role::Followup), ["f"]);
    },
    ..Scene::new("followup", done, |run| {
        run.open();
        let session = run.session.clone();
        let trigger = json!({"after_ms": 20});
        let params = json!({"session": session, "content": "f", "trigger": trigger, "idempotency_key": "f"});
        run.ask::<Followup>("followup.schedule", &params);
        run.until("the follow-up's request", |run| (!run.server.requests().is_empty()).then_some(()));
    })
};

pub const DELEGATE: Scene = Scene {
    agent: "tool_mode = \"all\"",
    lanes: 2,
    check: |run, story| {
        succeeded(run, story);
        let children = story.sessions.iter().filter(|session| session.parent.is_some()).count();
        assert!(children <= 1, "one call makes one child: {:#?}", story.sessions);
        let own = &story.transcripts[&SessionId(run.session.clone())];
        let told =
            own.iter().filter(|message| message.role != Role::Assistant && message.content.contains("child is done"));
        assert_eq!(told.count(), children, "the parent is told once: {own:#?}");
    },
    ..Scene::new(
        "delegate",
        |request, n| {
            let child = request["messages"].to_string().contains("child's work");
            let parent = request["messages"].to_string().contains("parent's work");
            match (parent, child, has_called(request)) {
                (true, _, false) => calls(n, &[("delegate", json!({"content": "child's work"}))]),
                (false, true, false) => calls(n, &[mark(n, 0, "")]),
                (false, true, true) => Turn::text("child is done"),
                _ => Turn::text("done"),
            }
        },
        |run| {
            run.open();
            run.submit("parent's work");
            run.until("the word of the child's end", |run| {
                let told = |request: &Value| {
                    let text = request["messages"].to_string();
                    text.contains("parent's work") && text.contains("child is done")
                };
                run.server.requests().iter().any(told).then_some(())
            });
        },
    )
};

pub const CLOSED: Scene = Scene {
    check: |run, story| {
        succeeded(run, story);
        let [session] = story.sessions.as_slice() else { panic!("{:#?}", story.sessions) };
        assert_eq!(session.state, SessionState::Closed, "{session:?}");
        let more = run.try_ask("task.submit", &json!({"session": session.id, "content": "more"}));
        assert!(more.is_err(), "a closed session takes nothing more: {more:?}");
    },
    ..Scene::new("closed", done, |run| {
        run.open();
        run.submit("p");
        run.settle();
        let closed: Session = run.ask("session.close", &json!({ "session": run.session }));
        assert_eq!(closed.state, SessionState::Closed, "{closed:?}");
    })
};

pub const SHUTDOWN: Scene = Scene {
    check: succeeded,
    ends: true,
    ..Scene::new(
        "shutdown",
        |request, n| {
            let both = [mark(n, 0, "; sleep 60"), mark(n, 1, "")];
            if has_called(request) { Turn::text("done") } else { calls(n, &both) }
        },
        |run| {
            run.open();
            run.submit("p");
            command_runs(run);
            run.ask::<Value>("daemon.shutdown", &json!({"grace_ms": 10}));
            run.settle();
        },
    )
};

/// The records of one task fill a segment of the journal.
const LONG: usize = 40_000;

pub const ROLLED: Scene = Scene {
    check: |run, story| {
        succeeded(run, story);
        let folder = run.daemon.state().join("store/checkpoint").read_dir();
        assert!(folder.is_ok_and(|mut all| all.next().is_some()), "no checkpoint was made");
    },
    ends: true,
    ..Scene::new("rolled", done, |run| {
        run.open();
        run.submit(&"x".repeat(LONG));
        run.settle();
        // An orderly end makes a checkpoint of what the journal has sealed.
        while run.deaths == run.kills {
            let before = run.deaths;
            run.ask::<Value>("daemon.shutdown", &json!({"grace_ms": 10}));
            run.until("the end", |run| (run.deaths > before).then_some(()));
        }
    })
};
