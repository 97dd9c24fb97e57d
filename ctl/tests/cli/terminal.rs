//! What a person sees: the program on a terminal of 60 columns that `script` makes.

use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

use serde_json::json;

use crate::fake::{Fake, Say};
use crate::run::{daemon, end};
use crate::shell::Ran;
use crate::wire::{added, event, followup, skill, task};

/// Runs `nanoctl ARGS` on a terminal; returns what came onto the screen, with line feeds alone.
fn screen(fake: &Fake, args: &str, environment: &[(&str, &str)]) -> String {
    let ran = Ran::from(&terminal(fake, args, environment).output().unwrap());
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{}", ran.out);
    ran.out.replace("\r\n", "\n")
}

fn terminal(fake: &Fake, args: &str, environment: &[(&str, &str)]) -> Command {
    let mut script = Command::new("script");
    script.args(["-qec", &format!("stty cols 60; exec {} {args}", env!("CARGO_BIN_EXE_nanoctl")), "/dev/null"]);
    script.env_clear().env("NANO_SOCKET", fake.socket()).env("TERM", "xterm").env("PATH", "/usr/bin:/bin");
    script.envs(environment.iter().copied()).stdin(Stdio::null());
    script
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
    assert_eq!((lines.len(), lines[0]), (2, "ID     STATE    TEXT"), "{screen}");
    assert_eq!((lines[1].chars().count(), lines[1].chars().last()), (60, Some('…')), "{screen}");
}

#[test]
fn lines_below_a_row_are_whole() {
    let odd = json!({"description": "long ".repeat(100), "problems": [{"line": 2, "column": 7, "message": "word ".repeat(20)}]});
    let list = json!({"skills": [skill("hello", &odd), skill("bye", &json!({}))]});
    let fake = Fake::start(move |_, _| vec![Say::Result(list.clone())]);
    let screen = screen(&fake, "skills list -v", &[]);
    let lines: Vec<_> = screen.lines().collect();
    assert_eq!(lines[0], "NAME   SOURCE  STATE      ABOUT");
    assert_eq!((lines[1].chars().count(), lines[1].chars().last()), (60, Some('…')), "{screen}");
    assert_eq!(lines[2], format!("    /k/hello/SKILL.md:2:7: {}", "word ".repeat(20)));
    assert_eq!(lines[4..], ["    /k/bye/SKILL.md"]);
}

#[test]
fn a_follow_up_has_its_zone_and_past_below() {
    let mut it = followup("fup_1");
    let last = json!({"slot": "2027-01-31T08:00:00.000Z", "task": "tsk_1", "state": "fired"});
    (it["tz"], it["missed"], it["last"], it["reason"]) =
        (json!("Europe/Oslo"), json!(2), last, json!("it failed 5 times"));
    let list = json!({"followups": [it]});
    let fake = Fake::start(move |_, _| vec![Say::Result(list.clone())]);
    let screen = screen(&fake, "followup list", &[("TZ", "UTC0")]);
    let below = "    {every_ms:90000} Europe/Oslo, last fired 2027-01-31 09:00:00 CET, 2 missed, it failed 5 times";
    let row = "fup_1  active  2027-01-31T08:00:00.000Z  again";
    assert_eq!(screen.lines().collect::<Vec<_>>(), ["ID     STATE   NEXT                      TEXT", row, below]);
}

/// Edits the skill `hello` on a terminal; returns the text that was sent.
fn edited(environment: &[(&str, &str)]) -> String {
    let fake = Fake::start(|_, _| vec![Say::Result(skill("hello", &json!({})))]);
    assert_eq!(screen(&fake, "skills edit hello", environment), "/k/hello/SKILL.md\n");
    fake.asked("skill.update")[0]["text"].as_str().unwrap().to_owned()
}

#[test]
fn without_a_choice_it_is_vi() {
    let folder = tempfile::tempdir().unwrap();
    for (name, word) in [("nano", "Grin"), ("vi", "Smirk")] {
        let program = folder.path().join(name);
        std::fs::write(&program, format!("#!/bin/sh\nsed -i s/Smile/{word}/ \"$1\"\n")).unwrap();
        std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:/usr/bin:/bin", folder.path().display());
    let text = edited(&[("PATH", &path), ("EDITOR", " ")]);
    assert!(text.contains("Smirk"), "{text}");
}

#[test]
fn ctrl_c_in_the_editor_is_the_editors() {
    let text = edited(&[("EDITOR", "trap '' INT QUIT; kill -INT 0; kill -QUIT 0; sed -i s/Smile/Grin/")]);
    assert!(text.contains("Grin"), "{text}");
}

#[test]
fn a_reply_that_is_interrupted_is_there_once() {
    let fake = Fake::start(|method, _| match method {
        "task.submit" => vec![Say::Result(task("tsk_1", "running", &json!({})))],
        "events.subscribe" => vec![
            Say::Result(json!({"subscription": 1, "head_seq": 8})),
            Say::Event(event(8, "turn.started", &json!({"turn": 1}))),
            Say::Event(event(0, "text.delta", &json!({"text": "I am about"}))),
            Say::Event(event(0, "text.delta", &json!({"text": " to"}))),
        ],
        "task.cancel" => vec![
            Say::Result(task("tsk_1", "running", &json!({}))),
            Say::Event(added(9, "assistant", "I am about to")),
            Say::Event(event(10, "task.finished", &json!({"task": end("cancelled", "cancelled", None)}))),
        ],
        _ => vec![Say::Result(end("cancelled", "cancelled", Some("I am about to")))],
    });
    let mut script = terminal(&fake, "run x", &[]);
    let mut child = script.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut screen = String::new();
    let mut out = child.stdout.take().unwrap();
    while !screen.contains("I am about to") {
        let mut byte = [0];
        out.read_exact(&mut byte).unwrap();
        screen.push(char::from(byte[0]));
    }
    child.stdin.as_mut().unwrap().write_all(b"\x03").unwrap();
    out.read_to_string(&mut screen).unwrap();
    assert_eq!((child.wait().unwrap().code(), screen.matches("I am about to").count()), (Some(6), 1), "{screen}");
    assert!(screen.contains("cancelling; Ctrl-C again stops waiting"), "{screen}");
}
