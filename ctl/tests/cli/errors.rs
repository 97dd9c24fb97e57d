//! Every failure is one line on stderr and its exit code.

use serde_json::json;

use crate::fake::{Fake, Say};
use crate::shell::{Ran, bare, command, nanoctl};
use crate::wire::task;

fn check(ran: &Ran, code: i32, line: &str) {
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (code, "", line));
}

#[test]
fn answers_of_the_daemon() {
    for (code, kind, exit) in [
        (-32001, "not_found", 4),
        (-32002, "conflict", 5),
        (-32003, "denied", 5),
        (-32004, "limit", 5),
        (-32005, "not_running", 5),
        (-32006, "unavailable", 5),
        (-32007, "shutting_down", 3),
        (-32008, "too_large", 5),
        (-32602, "invalid_params", 5),
        (-32601, "method_not_found", 5),
        (-32603, "internal", 5),
    ] {
        let fake = Fake::start(move |_, _| vec![Say::Error(code, kind, "two\nlines")]);
        let ran = nanoctl(&fake, &["task", "tsk_1"]);
        assert_eq!((ran.code, ran.out.as_str()), (exit, ""), "{kind}");
        assert!(ran.err.starts_with("nanoctl: task: two\\nlines; "), "{}", ran.err);
        assert_eq!(ran.err.lines().count(), 1);
        let ran = nanoctl(&fake, &["-v", "task", "tsk_1"]);
        assert!(ran.err.ends_with(&format!("  the daemon answered {code} ({kind})\n")), "{}", ran.err);
    }
}

#[test]
fn no_daemon_is_3_and_a_bad_place_is_2() {
    let ran = Ran::from(&bare(&["--socket", "/nowhere/s", "status"]).output().unwrap());
    let hint = "start nanod there, or name another socket with --socket or NANO_SOCKET";
    let line = format!("nanoctl: status: no daemon is reached at /nowhere/s (there is no socket); {hint}\n");
    check(&ran, 3, &line);
    let ran = Ran::from(&bare(&["run", "x", "--socket", "/nowhere/s"]).output().unwrap());
    assert_eq!(ran.code, 3);
    let ran = Ran::from(&bare(&["status", "--socket", &"x".repeat(108)]).output().unwrap());
    assert_eq!(ran.code, 2);
}

#[test]
fn usage_is_2() {
    for args in [
        &[][..],
        &["nonsense"],
        &["wait"],
        &["run"],
        &["run", "x", "-s", "a", "--new", "b"],
        &["rpc", "x", "{"],
        &["demo", "--json"],
        &["followup", "add", "s", "x"],
        &["followup", "next"],
    ] {
        let ran = Ran::from(&bare(args).output().unwrap());
        assert_eq!((ran.code, ran.err.lines().count()), (2, 1), "{args:?}: {}", ran.err);
        assert!(ran.err.starts_with("nanoctl: ") && ran.err.contains("; "), "{}", ran.err);
    }
}

#[test]
fn a_silent_daemon_is_7_in_time() {
    let fake = Fake::start(|_, _| vec![]);
    check(
        &nanoctl(&fake, &["status", "--timeout", "50ms"]),
        7,
        "nanoctl: status: the time ran out; give it more with --timeout\n",
    );
}

#[test]
fn a_daemon_that_goes_away_or_talks_nonsense() {
    let fake = Fake::start(|_, _| vec![Say::Close]);
    let ran = nanoctl(&fake, &["status"]);
    assert_eq!(ran.code, 3, "{}", ran.err);
    let fake = Fake::start(|_, _| vec![Say::Result(json!({"version": 1}))]);
    assert_eq!(nanoctl(&fake, &["status"]).code, 5);
}

#[test]
fn an_answer_that_cannot_be_written_is_1() {
    let fake = Fake::start(|_, _| vec![Say::Result(task("tsk_1", "succeeded", &json!({"result": "x"})))]);
    for args in
        [&["task", "tsk_1"][..], &["result", "tsk_1"], &["--json", "wait", "tsk_1"], &["submit", "x"], &["--help"]]
    {
        let full = std::fs::File::create("/dev/full").unwrap();
        let ran = Ran::from(&command(&fake, args).stdout(full).output().unwrap());
        assert_eq!((ran.code, ran.err.lines().count()), (1, 1), "{args:?}: {}", ran.err);
        assert!(ran.err.contains("the answer cannot be written"), "{}", ran.err);
    }
}

#[test]
fn a_closed_pipe_is_quiet() {
    let fake = Fake::start(|_, _| vec![Say::Result(task("tsk_1", "succeeded", &json!({"result": "x"})))]);
    for args in [&["task", "tsk_1"][..], &["result", "tsk_1"], &["--json", "wait", "tsk_1"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = command(&fake, args).stdout(writer).output().unwrap();
        let ran = Ran::from(&output);
        assert_eq!((ran.code, ran.err.as_str()), (-signal_hook::consts::SIGPIPE, ""), "{args:?}");
    }
}

#[test]
fn help_and_version_go_to_stdout() {
    for args in [&["--help"][..], &["--version"], &["session", "create", "--help"]] {
        let ran = Ran::from(&bare(args).output().unwrap());
        assert!(ran.code == 0 && ran.err.is_empty() && !ran.out.is_empty(), "{ran:?}");
    }
}
