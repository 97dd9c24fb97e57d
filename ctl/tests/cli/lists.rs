//! What each verb asks for and prints where stdout is piped.

use serde_json::{Value, json};

use crate::fake::{Fake, Say};
use crate::shell::{command, nanoctl};
use crate::wire::{followup, session, task};

/// A daemon that answers `result` to everything.
fn answering(result: &Value) -> Fake {
    let result = result.clone();
    Fake::start(move |_, _| vec![Say::Result(result.clone())])
}

/// Runs a line against a daemon that answers `result`; returns stdout and stderr.
fn check(line: &str, method: &str, params: &Value, result: &Value) -> (String, String) {
    let fake = answering(result);
    let args: Vec<_> = line.split(' ').collect();
    let ran = nanoctl(&fake, &args);
    assert_eq!(ran.code, 0, "{line}: {}", ran.err);
    let mut asked = fake.asked(method)[0].clone();
    asked.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    assert_eq!(&asked, params, "{line}");
    let json: Vec<_> = args.iter().copied().chain(["--json"]).collect();
    let raw = nanoctl(&answering(result), &json);
    assert_eq!((raw.out, raw.err), (format!("{result}\n"), String::new()), "{line}");
    (ran.out, ran.err)
}

#[test]
fn tables() {
    let list = json!({"tasks": [task("tsk_2", "running", &json!({})), task("tsk_1", "failed", &json!({"reason": "loop"}))], "next": "n"});
    let (out, err) = check(
        "tasks -s web --state failed --limit 2",
        "task.list",
        &json!({"session": "web", "state": "failed", "limit": 2}),
        &list,
    );
    insta::assert_snapshot!(out, @r"
    tsk_2  running      ses_1  2027-01-31T08:00:00.000Z  fix\nit
    tsk_1  failed:loop  ses_1  2027-01-31T08:00:00.000Z  fix\nit
    ");
    assert_eq!(err, "there are more: --after n\n");
    let list = json!({"sessions": [session("ses_2", Some("web")), session("ses_1", None)]});
    insta::assert_snapshot!(check("sessions", "session.list", &json!({}), &list).0, @r"
    ses_2  idle  web  default  2027-01-31T08:00:00.000Z  /w
    ses_1  idle  -    default  2027-01-31T08:00:00.000Z  /w
    ");
    let list = json!({"followups": [followup("fup_1")]});
    insta::assert_snapshot!(check("followup list -s web", "followup.list", &json!({"session": "web"}), &list).0, @"fup_1  active  2027-01-31T08:00:00.000Z  {every_ms:90000}  ses_1  again");
    let none = check("tasks", "task.list", &json!({}), &json!({"tasks": []}));
    assert_eq!(none, (String::new(), String::new()));
}

#[test]
fn catalogs() {
    let tool = json!({"name": "exec", "description": "Runs.\nMore.", "input_schema": {}, "source": "booter:local", "requires": ["shell"]});
    let list = json!({"booters": [{"kind": "local", "available": true, "tools": [tool], "prompts": []}, {"kind": "boxlite", "available": false, "note": "not built", "tools": [], "prompts": []}]});
    insta::assert_snapshot!(check("booters", "booter.list", &json!({}), &list).0, @r"
    local    available    1 tools  -
    boxlite  unavailable  0 tools  not built
    ");
    let list = json!({"models": [{"name": "m", "api": "openai", "model": "x", "base_url": "http://h/v1", "default": true, "source": "config"}]});
    insta::assert_snapshot!(check("models", "model.list", &json!({}), &list).0, @"m (default)  openai  x  http://h/v1  config  -");
    let tools = json!({"session": "ses_1", "booter": "local", "booted": true, "exact": true, "capabilities": ["shell"], "revision": 2, "tools": [tool], "withheld": [{"name": "python", "why": "no python3"}]});
    let (out, err) = check("tools web --why", "session.tools", &json!({"session": "web"}), &tools);
    insta::assert_snapshot!(out, @r"
    exec    booter:local  shell  Runs.
    python  withheld      -      no python3
    ");
    assert_eq!(err, "exact list of booter local (booted, can: shell), revision 2, 1 withheld\n");
    assert_eq!(
        check("tools web", "session.tools", &json!({"session": "web"}), &tools).0,
        "exec  booter:local  shell  Runs.\n"
    );
}

#[test]
fn prompts_in_parts_or_exactly() {
    let prompts = json!({"session": "s", "booted": false, "exact": false, "prompts": [{"name": "persona", "source": "agent", "text": "Be kind."}], "assembled": "Be kind.\n\nTools: none"});
    let (out, _) = check("prompts s", "session.prompts", &json!({"session": "s"}), &prompts);
    assert_eq!(out, "== persona (agent)\nBe kind.\n");
    let (out, _) = check("prompts s --assembled", "session.prompts", &json!({"session": "s"}), &prompts);
    assert_eq!(out, "Be kind.\n\nTools: none\n");
}

#[test]
fn ids_and_states_alone() {
    let steered = json!({"message": "msg_1", "accepted_as": "redirect", "task": "tsk_1", "position": 0});
    let say = json!({"session": "s", "content": "stop", "delivery": "redirect"});
    assert_eq!(check("steer s stop --redirect", "session.steer", &say, &steered).0, "msg_1 redirect\n");
    let say = json!({"session": "s", "content": "stop", "delivery": "note"});
    assert_eq!(check("steer s stop", "session.steer", &say, &steered).0, "msg_1 redirect\n");
    let gone = task("tsk_1", "cancelled", &json!({}));
    assert_eq!(check("cancel tsk_1", "task.cancel", &json!({"task": "tsk_1"}), &gone).0, "tsk_1 cancelled\n");
    let made = check(
        "session create --name web --workspace /w",
        "session.create",
        &json!({"name": "web", "workspace": "/w"}),
        &session("ses_9", Some("web")),
    );
    assert_eq!(made.0, "ses_9\n");
    assert_eq!(
        check("session close web", "session.close", &json!({"session": "web"}), &session("ses_9", None)).0,
        "ses_9 closed\n"
    );
    assert_eq!(check(r#"rpc x.y {"a":1}"#, "x.y", &json!({"a": 1}), &json!([1, 2])).0, "[1,2]\n");
}

#[test]
fn followups_say_when_in_both_zones() {
    let fake = answering(&followup("fup_1"));
    let args = ["followup", "add", "s", "again", "--every", "90s", "--tz", "UTC", "--jitter", "1s", "--missed", "all"];
    let output = command(&fake, &args).env("TZ", "Asia/Tokyo").output().unwrap();
    assert_eq!(output.stdout, b"fup_1\n");
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(err.starts_with("next 2027-01-31T08:00:00.000Z  2027-01-31 "), "{err}");
    assert_eq!(err.lines().count(), 2);
    let asked = &fake.asked("followup.schedule")[0];
    assert_eq!(asked["trigger"], json!({"every_ms": 90000}));
    assert_eq!((&asked["jitter_ms"], &asked["missed"], &asked["tz"]), (&json!(1000), &json!("all"), &json!("UTC")));
    let next = json!({"next": ["2027-01-31T08:00:00.000Z"]});
    let params = json!({"trigger": {"cron": "@daily", "tz": "UTC"}, "from": "2027-01-01T00:00:00Z", "count": 1});
    let (out, _) = check(
        "followup next --cron @daily --tz UTC --from 2027-01-01T00:00:00Z --count 1",
        "followup.next",
        &params,
        &next,
    );
    assert!(out.starts_with("2027-01-31T08:00:00.000Z  2027-01-31 "), "{out}");
}

#[test]
fn a_transcript_is_read_to_its_end() {
    let message = |seq: u64, more: Value| {
        let mut message = json!({"id": "msg_1", "seq": seq, "task": "tsk_1", "role": "user", "content": "hi", "at": "2027-01-31T08:00:00.000Z"});
        message.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        message
    };
    let fake = Fake::start(move |_, params| {
        let page = if params["after_seq"].is_null() {
            let call = json!({"id": "c", "name": "exec", "arguments": {"command": "ls"}});
            json!({"messages": [message(1, json!({})), message(2, json!({"role": "assistant", "content": "", "tool_calls": [call]}))], "next_after_seq": 2})
        } else {
            let tool = json!({"role": "tool", "tool_name": "exec", "ok": false, "content": "exit 1"});
            let skipped = json!({"role": "tool", "tool_name": "exec", "ok": false, "not_run": "cancel", "content": ""});
            json!({"messages": [message(3, tool), message(4, skipped)]})
        };
        vec![Say::Result(page)]
    });
    insta::assert_snapshot!(nanoctl(&fake, &["session", "messages", "s"]).out, @r"
    [1] user  2027-01-31T08:00:00.000Z
    hi
    [2] assistant  2027-01-31T08:00:00.000Z
    -> exec ls
    [3] tool exec (failed)  2027-01-31T08:00:00.000Z
    exit 1
    [4] tool exec (cancel)  2027-01-31T08:00:00.000Z
    ");
}

#[test]
fn particulars() {
    let status = json!({"version": "0.1.0", "pid": 7, "started_at": "2027-01-31T08:00:00.000Z", "uptime_ms": 61000, "sessions": {"idle": 2}, "tasks": {}, "followups": {"active": 0}, "store": {"path": "/s", "bytes": 2048}, "rss_bytes": 4096});
    insta::assert_snapshot!(check("status", "daemon.status", &json!({}), &status).0, @r"
    nanod      0.1.0 (pid 7)
    started    2027-01-31T08:00:00.000Z, 61 s ago
    sessions   2 idle
    tasks      none
    followups  0 active, next -
    store      /s (2 KiB)
    memory     4 KiB
    ");
    let failed =
        task("tsk_1", "failed", &json!({"reason": "error", "error": {"kind": "model", "message": "overloaded"}}));
    insta::assert_snapshot!(check("task tsk_1", "task.get", &json!({"task": "tsk_1"}), &failed).0, @r"
    task      tsk_1
    session   ses_1
    origin    user
    state     failed
    reason    error
    text      fix\nit
    created   2027-01-31T08:00:00.000Z
    started   -
    finished  -
    turns     1
    tokens    3 in, 4 out
    error     model: overloaded
    ");
}

#[test]
fn shutdown_waits_until_the_daemon_is_gone() {
    let fake = Fake::start(|_, _| vec![Say::Result(json!({})), Say::Close]);
    let ran = nanoctl(&fake, &["shutdown", "--grace", "2s"]);
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "", ""));
    assert_eq!(fake.asked("daemon.shutdown")[0]["grace_ms"], 2000);
    let fake = Fake::start(|_, _| vec![Say::Result(json!({}))]);
    assert_eq!(nanoctl(&fake, &["shutdown", "--timeout", "200ms"]).code, 7);
}
