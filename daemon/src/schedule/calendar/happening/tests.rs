//! What happens, as tables: what is asked for, and whether it fits.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

use serde_json::json;

use super::*;

#[test]
fn what_is_asked_for() {
    let on = |value: Data| serde_json::from_value::<On>(value).unwrap();
    for (value, expected) in [
        (json!({"task": "tsk_1"}), Ok("task")),
        (json!({"event": "task.finished"}), Ok("event")),
        (json!({"event": "skill.changed", "match": {"name": "web"}}), Ok("event")),
        (json!({"file": "inbox/*.md"}), Ok("file")),
        (json!({"file": "./a"}), Ok("file")),
        (json!({}), Err("give one of task, event, file")),
        (json!({"task": "t", "file": "f"}), Err("exclude each other")),
        (json!({"task": "t", "match": {}}), Err("match belongs to event")),
        (json!({"event": "task.finish"}), Err("did you mean task.finished")),
        (json!({"event": "Task.Finished"}), Err("there is no event \"Task.Finished\"")),
        (json!({"event": "text.delta"}), Err("text.delta is not durable")),
        (json!({"event": "gap"}), Err("gap is not durable")),
        (json!({"event": "q"}), Err("give one of session.created")),
        (json!({"event": ""}), Err("there is no event")),
        (json!({"file": ""}), Err("is empty")),
        (json!({"file": "/etc/*"}), Err("is absolute")),
        (json!({"file": "../x"}), Err("leads out")),
        (json!({"file": "a/../../x"}), Err("leads out")),
        (json!({"file": "a//x"}), Err("empty part")),
        (json!({"file": "a/./x"}), Err("empty part")),
        (json!({"file": "in/"}), Err("names a folder")),
        (json!({"file": "a\u{0}"}), Err("NUL")),
        (json!({"file": "a[b"}), Err("is no glob")),
        (json!({"file": "{a,b"}), Err("is no glob")),
    ] {
        let found = parse(&on(value.clone()));
        match (expected, found) {
            (Ok(kind), Ok(schedule)) => assert_eq!(json!(schedule)["kind"], kind, "{value}"),
            (Err(words), Err(why)) => assert!(why.contains(words), "{value}: {why}"),
            (_, found) => panic!("{value}: {found:?}"),
        }
    }
}

#[test]
fn a_session_that_is_named_stands_beside_the_data() {
    let on = |matches: Data| On {
        event: Some("task.finished".into()),
        matches: matches.as_object().cloned(),
        ..On::default()
    };
    for (matches, session, left) in [
        (json!({"session": "web", "task.state": "failed"}), Some("web"), json!({"task.state": "failed"})),
        (json!({"session": {"name": "web"}}), None, json!({"session": {"name": "web"}})),
        (json!({}), None, json!({})),
    ] {
        let Ok(Schedule::Event { matches: kept, session: named, .. }) = parse(&on(matches.clone())) else {
            panic!("{matches}");
        };
        assert_eq!((named.as_ref().map(|named| named.0.as_str()), json!(kept)), (session, left), "{matches}");
    }
}

#[test]
fn data_that_fits() {
    let data = json!({"task": {"state": "failed", "turns": 3, "reason": null, "metadata": {"a.b": [1, 2]}}, "n": 1.0});
    for (wanted, expected) in [
        (json!({}), true),
        (json!({"task.state": "failed"}), true),
        (json!({"task.state": "done"}), false),
        (json!({"task": {"state": "failed"}}), true),
        (json!({"task": {"state": "failed", "turns": 4}}), false),
        (json!({"task": {"metadata": {"a.b": [1, 2]}}}), true),
        (json!({"task.metadata.a.b": [1, 2]}), true),
        (json!({"task.metadata.a.b": [1]}), false),
        (json!({"task.reason": null}), true),
        (json!({"task.nothing": null}), true),
        (json!({"task.state": null}), false),
        (json!({"nothing": 1}), false),
        (json!({"nothing.at.all": 1}), false),
        (json!({"n": 1}), true),
        (json!({"n": "1"}), false),
        (json!({"task": "failed"}), false),
        (json!({"n": {}}), false),
        (json!({"task": {}}), true),
        (json!({"task.turns": 3, "n": 2}), false),
    ] {
        assert_eq!(fits(wanted.as_object().unwrap(), &data), expected, "{wanted}");
    }
}

#[test]
fn globs() {
    for (glob, path, expected) in [
        ("inbox/*.md", "inbox/a.md", true),
        ("inbox/*.md", "inbox/a/b.md", false),
        ("inbox/**", "inbox/a/b.md", true),
        ("*", "a", true),
        ("*", "a/b", false),
        ("*", ".hidden", true),
        ("**/*.{csv,tsv}", "x/y/a.tsv", true),
        ("**/*.{csv,tsv}", "a.csv", true),
        ("a\\*b", "a*b", true),
        ("a\\*b", "axb", false),
        ("[ab]?", "b1", true),
    ] {
        assert_eq!(matcher(glob).unwrap().is_match(path), expected, "{glob} {path}");
    }
}

#[test]
fn where_files_that_fit_lie() {
    for (glob, folder, depth) in [
        ("a.md", "", 1),
        ("*.md", "", 1),
        ("in/a.md", "in", 1),
        ("in/*.md", "in", 1),
        ("in/x/y?/*.md", "in/x", 2),
        ("in/**/a", "in", usize::MAX),
        ("**", "", usize::MAX),
        ("in/{a,b/c}", "in", usize::MAX),
    ] {
        assert_eq!(base(glob), (folder, depth), "{glob}");
    }
}
