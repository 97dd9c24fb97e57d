//! `run` and `attach`: following events to an end.

use std::process::Child;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::fake::{Fake, Say};
use crate::shell::{Ran, command, nanoctl};
use crate::wire::{added, event, session, task};

/// The events of a task that calls two tools, answers and ends as `last`.
pub fn story(last: &Value) -> Vec<Value> {
    vec![
        event(7, "task.queued", &json!({"task": task("tsk_1", "queued", &json!({}))})),
        added(8, "user", "fix it"),
        event(0, "text.delta", &json!({"text": "I "})),
        event(0, "text.delta", &json!({"text": "look."})),
        added(9, "assistant", "I look."),
        event(10, "tool.started", &json!({"call": "c1", "name": "exec", "arguments": {"command": "ls\n\u{1b}[2J"}})),
        event(11, "tool.finished", &json!({"call": "c1", "name": "exec", "ok": true})),
        event(12, "tool.finished", &json!({"call": "c2", "name": "python", "ok": false, "not_run": "redirect"})),
        added(13, "steering", "be quick"),
        event(0, "from.the.future", &json!({})),
        event(14, "model.retry", &json!({"attempt": 1, "delay_ms": 20, "error": "overloaded"})),
        added(15, "assistant", "Done."),
        event(16, "task.finished", &json!({"task": last})),
    ]
}

/// A daemon whose one task tells its story and ends as `last`.
pub fn daemon(last: Value) -> Fake {
    Fake::start(move |method, params| match method {
        "task.submit" => vec![Say::Result(task("tsk_1", "queued", &json!({})))],
        "events.subscribe" => {
            let since = params["since_seq"].as_u64().unwrap();
            let mut says = vec![Say::Result(json!({"subscription": 1, "head_seq": 16}))];
            let later = |event: &Value| event["seq"].as_u64().is_none_or(|seq| seq > since);
            says.extend(story(&last).into_iter().filter(later).map(Say::Event));
            says
        }
        "task.get" => vec![Say::Result(last.clone())],
        _ => panic!("{method}"),
    })
}

/// Returns the task as it ended.
pub fn end(state: &str, reason: &str, result: Option<&str>) -> Value {
    task("tsk_1", state, &json!({"reason": reason, "result": result}))
}

#[test]
fn the_answer_alone_is_on_a_piped_stdout() {
    let fake = daemon(end("succeeded", "done", Some("Done.")));
    let ran = nanoctl(&fake, &["run", "fix it"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "Done.\n"));
    insta::assert_snapshot!(ran.err, @r"
    ✓ exec ls\n\x1b[2J
    ✗ python (redirect)
    [steering] be quick
    the model did not answer (overloaded): again in 20 ms
    ");
    let asked = &fake.asked("events.subscribe")[0];
    assert_eq!((&asked["task"], &asked["since_seq"]), (&json!("tsk_1"), &json!(6)));
    let ran = nanoctl(&fake, &["run", "-q", "fix it"]);
    assert_eq!((ran.out.as_str(), ran.err.as_str()), ("Done.\n", ""));
}

#[test]
fn a_failed_call_says_how_it_failed() {
    let fake = Fake::start(|method, _| {
        if method == "events.subscribe" {
            let mut result = added(11, "tool", "cat: no such file\nmore\n[exit status 1]");
            result["data"]["message"].as_object_mut().unwrap().extend([
                ("tool_call_id".to_owned(), json!("c1")),
                ("tool_name".to_owned(), json!("exec")),
                ("ok".to_owned(), json!(false)),
            ]);
            let says = [
                event(9, "tool.started", &json!({"call": "c1", "name": "exec", "arguments": {"command": "cat x"}})),
                event(10, "tool.finished", &json!({"call": "c1", "name": "exec", "ok": false})),
                result,
                event(12, "task.finished", &json!({})),
            ];
            let answer = Say::Result(json!({"subscription": 1, "head_seq": 12}));
            return std::iter::once(answer).chain(says.into_iter().map(Say::Event)).collect();
        }
        let state = if method == "task.submit" { "queued" } else { "succeeded" };
        vec![Say::Result(end(state, "done", Some("Done.")))]
    });
    let ran = nanoctl(&fake, &["run", "x"]);
    assert_eq!(
        (ran.out.as_str(), ran.err.as_str()),
        ("Done.\n", "✗ exec cat x\n  exec: cat: no such file [exit status 1]\n")
    );
}

#[test]
fn it_exits_as_the_task_ended() {
    for (state, reason, result, code, out) in [
        ("succeeded", "done", Some("multi\nline\n"), 0, "multi\nline\n"),
        ("failed", "length", Some("half"), 1, "half\n"),
        ("failed", "error", None, 1, ""),
        ("interrupted", "restart", None, 1, ""),
        ("cancelled", "cancelled", Some("on the way"), 6, ""),
    ] {
        let ran = nanoctl(&daemon(end(state, reason, result)), &["run", "-q", "x"]);
        assert_eq!((ran.code, ran.out.as_str()), (code, out), "{state}");
        assert_eq!(ran.err.lines().count(), usize::from(code != 0), "{}", ran.err);
    }
}

#[test]
fn json_is_events_then_the_task() {
    let last = end("failed", "max_turns", None);
    let ran = nanoctl(&daemon(last.clone()), &["run", "x", "--json"]);
    let lines: Vec<Value> = ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut expected = story(&last);
    expected.push(last);
    assert_eq!((ran.code, lines), (1, expected));
}

#[test]
fn a_known_key_of_an_ended_task_answers_at_once() {
    let fake = Fake::start(|_, _| vec![Say::Result(end("succeeded", "done", Some("old answer")))]);
    let ran = nanoctl(&fake, &["run", "x", "--idempotency-key", "k"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "old answer\n"));
}

#[test]
fn an_old_end_of_a_resumed_task_is_not_its_end() {
    let looks = AtomicUsize::new(0);
    let fake = Fake::start(move |method, _| match method {
        "task.submit" => vec![Say::Result(task("tsk_1", "running", &json!({})))],
        "events.subscribe" => vec![
            Say::Result(json!({"subscription": 1, "head_seq": 9})),
            Say::Event(event(8, "task.finished", &json!({}))),
            Say::Event(event(9, "task.finished", &json!({}))),
        ],
        _ if looks.fetch_add(1, Ordering::SeqCst) == 0 => vec![Say::Result(task("tsk_1", "running", &json!({})))],
        _ => vec![Say::Result(end("succeeded", "done", Some("new")))],
    });
    assert_eq!(nanoctl(&fake, &["run", "x"]).out, "new\n");
}

#[test]
fn a_restart_neither_doubles_nor_loses() {
    let connections = AtomicUsize::new(0);
    let last = end("succeeded", "done", Some("Done."));
    let fake = Fake::start(move |method, params| match (method, connections.load(Ordering::SeqCst)) {
        ("task.submit", 0) => {
            connections.fetch_add(1, Ordering::SeqCst);
            vec![Say::Close]
        }
        ("task.submit", _) => vec![Say::Result(task("tsk_1", "queued", &json!({})))],
        ("events.subscribe", 1) => {
            connections.fetch_add(1, Ordering::SeqCst);
            let mut says = vec![Say::Result(json!({"subscription": 1, "head_seq": 16}))];
            says.extend(story(&last).into_iter().take(7).map(Say::Event));
            says.push(Say::Close);
            says
        }
        ("events.subscribe", _) => {
            let since = params["since_seq"].as_u64().unwrap();
            let mut says = vec![Say::Result(json!({"subscription": 1, "head_seq": 16}))];
            says.extend(story(&last).into_iter().filter(|it| it["seq"].as_u64() > Some(since)).map(Say::Event));
            says
        }
        _ => vec![Say::Result(last.clone())],
    });
    let ran = nanoctl(&fake, &["run", "x"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "Done.\n"));
    assert_eq!(ran.err.matches("exec").count(), 1, "{}", ran.err);
    let submits = fake.asked("task.submit");
    assert_eq!(submits.len(), 2);
    assert_eq!(submits[0], submits[1]);
    assert_eq!(fake.asked("events.subscribe")[1]["since_seq"], 11);
}

/// A daemon whose task never ends by itself; `cancel` says what a cancel brings.
fn endless(cancel: fn() -> Vec<Say>) -> Fake {
    Fake::start(move |method, _| match method {
        "task.submit" => vec![Say::Result(task("tsk_1", "running", &json!({})))],
        "events.subscribe" => vec![Say::Result(json!({"subscription": 1, "head_seq": 8}))],
        "task.cancel" => cancel(),
        _ => vec![Say::Result(end("cancelled", "cancelled", None))],
    })
}

fn interrupt(child: &Child) {
    kill_process(Pid::from_child(child), Signal::INT).unwrap();
}

#[test]
fn the_time_runs_out_and_the_task_goes_on() {
    let fake = endless(Vec::new);
    let ran = nanoctl(&fake, &["run", "x", "--timeout", "1s"]);
    assert_eq!((ran.code, ran.out.as_str()), (7, ""));
    assert_eq!(ran.err, "nanoctl: run: the time ran out, the task goes on; nanoctl wait tsk_1\n");
    assert_eq!(fake.asked("task.cancel").len(), 0);
}

#[test]
fn the_first_interrupt_cancels() {
    let fake = endless(|| {
        let finished = event(9, "task.finished", &json!({}));
        vec![Say::Result(task("tsk_1", "running", &json!({}))), Say::Event(finished)]
    });
    let child = command(&fake, &["run", "x"]).spawn().unwrap();
    fake.wait_for("events.subscribe");
    interrupt(&child);
    let ran = Ran::from(&child.wait_with_output().unwrap());
    assert_eq!(ran.code, 6);
    assert_eq!(
        ran.err,
        "cancelling; Ctrl-C again stops waiting\nnanoctl: run: tsk_1 cancelled; nanoctl task tsk_1 shows it\n"
    );
}

#[test]
fn the_second_interrupt_leaves_it_running() {
    let fake = endless(|| vec![Say::Result(task("tsk_1", "running", &json!({})))]);
    let child = command(&fake, &["run", "x"]).spawn().unwrap();
    fake.wait_for("events.subscribe");
    interrupt(&child);
    fake.wait_for("task.cancel");
    interrupt(&child);
    assert_eq!(Ran::from(&child.wait_with_output().unwrap()).code, 130);
}

#[test]
fn attach_shows_every_message_of_the_newest_open_session() {
    let fake = Fake::start(|method, _| {
        if method == "session.list" {
            let mut closed = session("ses_2", None);
            closed["state"] = json!("closed");
            return vec![Say::Result(json!({"sessions": [closed, session("ses_1", Some("web"))]}))];
        }
        let last = end("succeeded", "done", Some("Done."));
        let mut says = vec![Say::Result(json!({"subscription": 1, "head_seq": 16}))];
        says.extend(story(&last).into_iter().map(Say::Event));
        says.push(Say::Event(event(17, "session.closed", &json!({}))));
        says
    });
    let ran = nanoctl(&fake, &["attach", "--since", "6"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "I look.\nDone.\n"));
    assert!(ran.err.starts_with("attached to ses_1 (web)\n"), "{}", ran.err);
    assert!(ran.err.contains("[user] fix it") && ran.err.contains("tsk_1 succeeded (done)"), "{}", ran.err);
    assert_eq!(fake.asked("events.subscribe")[0]["session"], "ses_1");
}

#[test]
fn attach_and_status_tell_what_waits_for_an_answer() {
    let approval = json!({"id": "apr_1", "session": "ses_1", "task": "tsk_1", "call": "c1", "tool": "exec", "state": "pending", "what": "exec rm -r x", "why": "a rule asks", "arguments": {}, "arguments_sha256": "0", "created_at": "2027-01-31T08:00:00.000Z", "expires_at": "2027-01-31T08:10:00.000Z", "always": false});
    let status = json!({"version": "0.1.0", "pid": 7, "started_at": "2027-01-31T08:00:00.000Z", "uptime_ms": 61000, "sessions": {"running": 1}, "tasks": {}, "followups": {"active": 0}, "store": {"path": "/s", "bytes": 2048}, "rss_bytes": 4096});
    let fake = Fake::start(move |method, _| match method {
        "approval.list" => vec![Say::Result(json!({ "approvals": [approval] }))],
        "daemon.status" => vec![Say::Result(status.clone())],
        _ => {
            let closed = Say::Event(event(17, "session.closed", &json!({})));
            vec![Say::Result(json!({"subscription": 1, "head_seq": 16})), closed]
        }
    });
    let ran = nanoctl(&fake, &["attach", "ses_1"]);
    let told = "waits for you until 2027-01-31T08:10:00.000Z: exec rm -r x (a rule asks); nanoctl approve apr_1";
    assert!(ran.code == 0 && ran.err.contains(told), "{}", ran.err);
    let asked = json!({"session": "ses_1", "state": "pending", "limit": null, "after": null});
    assert_eq!(fake.asked("approval.list"), [asked]);
    // Who replays hears of it as it came.
    assert!(!nanoctl(&fake, &["attach", "ses_1", "--since", "1"]).err.contains("waits for you"));
    assert!(nanoctl(&fake, &["status"]).out.ends_with("approvals  1 wait for you: nanoctl approvals\n"));
}

#[test]
fn events_end_at_the_head_or_are_filtered() {
    let fake = daemon(end("succeeded", "done", Some("Done.")));
    let ran = nanoctl(&fake, &["events", "--json"]);
    assert_eq!((ran.code, ran.out.lines().count()), (0, story(&json!({})).len()));
    let ran = nanoctl(&fake, &["events", "--since", "9", "--type", "message.added", "--type", "task.finished"]);
    insta::assert_snapshot!(ran.out, @r"
        13  2027-01-31T08:00:00.000Z  message.added       tsk_1  steering: be quick
        15  2027-01-31T08:00:00.000Z  message.added       tsk_1  assistant: Done.
        16  2027-01-31T08:00:00.000Z  task.finished       tsk_1  ✓ succeeded (done)
    ");
}
