//! Calls of each class: those that run again, those that a look at the file decides, those that nobody can know of.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use nano_protocol::message::NotRun;
use nano_tests::model_server::Turn;
use serde_json::json;

use super::super::run::Run;
use super::super::scene::Scene;
use super::{calls, has_called, mark, succeeded};

pub const READS: Scene = Scene {
    files: &[("a", "aa\n", 0o644), ("b", "bb\n", 0o644), ("c", "cc\n", 0o644), ("d", "dd\n", 0o644)],
    check: |run, story| {
        succeeded(run, story);
        for result in story.results() {
            let read = ["aa", "bb", "cc", "dd"].iter().any(|text| result.content.contains(text));
            assert!(read && result.ok == Some(true), "a reading is done again: {result:?}");
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
    let path = run.daemon.workspace().join(name);
    let mode = path.metadata().ok()?.permissions().mode() & 0o7777;
    Some((fs::read_to_string(path).expect("text"), mode))
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
