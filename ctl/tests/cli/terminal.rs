//! What a person sees: the program on a terminal of 60 columns that `script` makes.

use std::process::Command;

use serde_json::json;

use crate::fake::{Fake, Say};
use crate::run::{daemon, end};
use crate::shell::Ran;
use crate::wire::task;

/// Runs `nanoctl ARGS` on a terminal; returns what came onto the screen, with line feeds alone.
fn screen(fake: &Fake, args: &str, environment: &[(&str, &str)]) -> String {
    let mut script = Command::new("script");
    script.args(["-qec", &format!("stty cols 60; {} {args}", env!("CARGO_BIN_EXE_nanoctl")), "/dev/null"]);
    script.env_clear().env("NANO_SOCKET", fake.socket()).env("TERM", "xterm").env("PATH", "/usr/bin:/bin");
    script.envs(environment.iter().copied()).stdin(std::process::Stdio::null());
    let ran = Ran::from(&script.output().unwrap());
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{}", ran.out);
    ran.out.replace("\r\n", "\n")
}

/// Leaves out what was drawn over: all between a wipe and the next one.
fn settled(screen: &str) -> String {
    let mut parts = screen.split("\r\x1b[K");
    let first = parts.next().unwrap_or_default().to_owned();
    // A part without a line feed was wiped before anything stayed.
    parts.filter(|part| part.contains('\n')).fold(first, |all, part| all + part)
}

#[test]
fn texts_stream_once_between_marked_lines() {
    let fake = daemon(end("succeeded", "done", Some("Done.")));
    let screen = screen(&fake, "run x", &[]);
    insta::assert_snapshot!(settled(&screen).replace('\x1b', "ESC"), @r"
    I look.
    ESC[32m✓ESC[0m exec ls\n\x1b[2J
    ESC[31m✗ESC[0m python (redirect)
    [steering] be quick
    the model did not answer (overloaded): again in 20 ms
    Done.
    ");
    assert_eq!(fake.asked("events.subscribe")[0]["deltas"], true);
}

#[test]
fn colours_can_be_refused() {
    let fake = daemon(end("succeeded", "done", Some("Done.")));
    for (args, environment) in [
        ("run x", ("NO_COLOR", "1")),
        ("run x --no-color", ("A", "")),
        ("run x", ("TERM", "dumb")),
        ("run -q x", ("A", "")),
    ] {
        let screen = screen(&fake, args, &[environment]);
        assert!(!screen.contains("\x1b[3") && screen.contains("Done.\n"), "{screen:?}");
    }
}

#[test]
fn an_answer_does_not_drive_the_terminal() {
    let nasty = task("tsk_1", "succeeded", &json!({"result": "\u{1b}]52;c;eA==\u{7}\u{9b}2J\u{202e}\rx"}));
    let fake = Fake::start(move |_, _| vec![Say::Result(nasty.clone())]);
    assert_eq!(screen(&fake, "result tsk_1", &[]), "\\x1b]52;c;eA==\\x07\\x9b2J\\u{202e}\\rx\n");
}

#[test]
fn tables_have_a_header_and_fit() {
    let list = json!({"tasks": [task("tsk_1", "running", &json!({"content": "long ".repeat(100)}))]});
    let fake = Fake::start(move |_, _| vec![Say::Result(list.clone())]);
    let screen = screen(&fake, "tasks", &[]);
    let lines: Vec<_> = screen.lines().collect();
    assert_eq!((lines.len(), lines[0].split_whitespace().next()), (2, Some("TASK")), "{screen}");
    assert_eq!((lines[1].chars().count(), lines[1].chars().last()), (60, Some('…')), "{screen}");
}
