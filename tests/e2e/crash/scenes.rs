//! The scenes of the sweep.

use nano_protocol::followup::{Followup, FollowupState, Runs};
use nano_protocol::message::{NotRun, Role};
use nano_protocol::session::{Session, SessionState, Steered};
use nano_protocol::task::{Task, TaskState};
use nano_tests::model_server::{Call, Turn};
use serde_json::{Value, json};

use super::run::Run;
use super::scene::Scene;
use super::story::Story;

/// Returns the role and the words of a request's last message.
fn last(request: &Value) -> (&str, &str) {
    let message = request["messages"].as_array().and_then(|messages| messages.last());
    let text = |member: &str| message.and_then(|message| message[member].as_str()).unwrap_or_default();
    (text("role"), text("content"))
}

/// Tells whether a request holds a call already.
fn has_called(request: &Value) -> bool {
    request["messages"].to_string().contains("\"tool_calls\"")
}

fn calls(n: usize, all: &[(&str, Value)]) -> Turn {
    let call = |(at, (name, arguments)): (usize, &(&str, Value))| Call {
        id: format!("c{n}_{at}"),
        name: (*name).into(),
        arguments: arguments.clone(),
    };
    Turn { calls: all.iter().enumerate().map(call).collect(), ..Turn::default() }
}

/// A command that leaves the id of its call, and then does something else.
fn mark(n: usize, at: usize, then: &str) -> (&'static str, Value) {
    ("exec", json!({"command": format!("echo c{n}_{at} >> marks; echo printed{then}")}))
}

fn done(_: &Value, _: usize) -> Turn {
    Turn::text("done")
}

fn succeeded(_: &mut Run, story: &Story) {
    for task in &story.tasks {
        assert_eq!(task.state, TaskState::Succeeded, "{task:?}");
    }
}

pub const PLAIN: Scene = Scene {
    check: succeeded,
    ..Scene::new("plain", done, |run| {
        run.open();
        run.submit("p");
    })
};

pub const READS: Scene = Scene {
    files: &[("a", "aa\n", 0o644), ("b", "bb\n", 0o644), ("c", "cc\n", 0o644), ("d", "dd\n", 0o644)],
    check: |run, story| {
        succeeded(run, story);
        for result in story.results() {
            let read =
                result.ok == Some(true) && ["aa", "bb", "cc", "dd"].iter().any(|text| result.content.contains(text));
            assert!(read || result.not_run == Some(NotRun::Restart), "a reading is done again: {result:?}");
        }
    },
    ..Scene::new(
        "reads",
        |request, n| {
            let read = |path: &str| ("read_file", json!({ "path": path }));
            if has_called(request) { Turn::text("done") } else { calls(n, &["a", "b", "c", "d"].map(read)) }
        },
        |run| {
            run.open();
            run.submit("p");
        },
    )
};

const OLD: &str = "#!/bin/sh\necho old\n";
const NEW: &str = "#!/bin/sh\necho new\n";

/// Returns the content and the mode of a file.
fn file(run: &Run, name: &str) -> Option<(String, u32)> {
    use std::os::unix::fs::PermissionsExt;
    let path = run.daemon.workspace().join(name);
    let mode = path.metadata().ok()?.permissions().mode() & 0o7777;
    Some((std::fs::read_to_string(path).expect("text"), mode))
}

fn old_or_new(run: &Run) {
    for name in ["edited", "written"] {
        let (content, mode) = file(run, name).expect("a file that was there");
        assert!(content == OLD || content == NEW, "{name} is torn: {content:?}");
        assert_eq!(mode, 0o755, "the mode of {name}");
    }
    assert!(file(run, "fresh").is_none_or(|(content, _)| content == NEW), "a torn file: {:?}", file(run, "fresh"));
}

pub const WRITES: Scene = Scene {
    files: &[("edited", OLD, 0o755), ("written", OLD, 0o755)],
    dead: old_or_new,
    check: |run, story| {
        succeeded(run, story);
        old_or_new(run);
        for (result, name) in story.results().zip(["written", "edited", "fresh"]) {
            let is_new = file(run, name).is_some_and(|(content, _)| content == NEW);
            assert_eq!(is_new, result.ok == Some(true), "{name}: {result:?}");
            let known = result.ok == Some(true) || result.not_run == Some(NotRun::Restart);
            assert!(known, "what became of {name} can be seen: {result:?}");
        }
    },
    ..Scene::new(
        "writes",
        |request, n| {
            let written = ("write_file", json!({"path": "written", "content": NEW}));
            let edited = ("edit_file", json!({"path": "edited", "old_text": "old", "new_text": "new"}));
            let fresh = ("write_file", json!({"path": "fresh", "content": NEW}));
            if has_called(request) { Turn::text("done") } else { calls(n, &[written, edited, fresh]) }
        },
        |run| {
            run.open();
            run.submit("p");
        },
    )
};

pub const COMMANDS: Scene = Scene {
    check: succeeded,
    ..Scene::new(
        "commands",
        |request, n| {
            let both = [mark(n, 0, ""), mark(n, 1, "; sleep 0.05")];
            if has_called(request) { Turn::text("done") } else { calls(n, &both) }
        },
        |run| {
            run.open();
            run.submit("p");
        },
    )
};

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
            run.until("a running command, or its end with the daemon", |run| {
                let runs = run.daemon.workspace().join("marks").exists();
                (runs || run.server.requests().iter().any(has_called)).then_some(())
            });
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
            run.until("a running command, or its end with the daemon", |run| {
                let runs = run.daemon.workspace().join("marks").exists();
                (runs || run.server.requests().iter().any(has_called)).then_some(())
            });
            let cancelled: Task = run.ask("task.cancel", &json!({ "task": task.id }));
            assert_eq!(cancelled.state, TaskState::Cancelled, "{cancelled:?}");
        },
    )
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
        let own = &story.transcripts[&nano_protocol::id::SessionId(run.session.clone())];
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
            run.until("a running command, or its end with the daemon", |run| {
                let runs = run.daemon.workspace().join("marks").exists();
                (runs || run.server.requests().iter().any(has_called)).then_some(())
            });
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
