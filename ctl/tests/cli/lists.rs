//! What each verb asks for and prints where stdout is piped.

use serde_json::{Value, json};

use crate::fake::{Fake, Say};
use crate::shell::nanoctl;
use crate::wire::{followup, session, task};

/// A daemon that answers `result` to everything.
pub fn answering(result: &Value) -> Fake {
    let result = result.clone();
    Fake::start(move |_, _| vec![Say::Result(result.clone())])
}

/// Runs a line against a daemon that answers `result`; returns stdout and stderr.
pub fn check(line: &str, method: &str, params: &Value, result: &Value) -> (String, String) {
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
    tsk_2  running      fix …  ses_1  2027-01-31T08:00:00.000Z
    tsk_1  failed:loop  fix …  ses_1  2027-01-31T08:00:00.000Z
    ");
    assert_eq!(err, "there are more: --after n\n");
    let list = json!({"sessions": [session("ses_2", Some("web")), session("ses_1", None)]});
    insta::assert_snapshot!(check("sessions", "session.list", &json!({}), &list).0, @r"
    ses_2  idle  web  default  /w  2027-01-31T08:00:00.000Z
    ses_1  idle  -    default  /w  2027-01-31T08:00:00.000Z
    ");
}

#[test]
fn an_empty_list_says_so_unless_quiet() {
    for (line, method, member, said) in [
        ("tasks", "task.list", "tasks", "there is no such task: nanoctl run or submit makes one\n"),
        ("sessions", "session.list", "sessions", "there is no such session: nanoctl run or session create makes one\n"),
        ("followup list", "followup.list", "followups", "there is no such follow-up: nanoctl followup add makes one\n"),
        (
            "models",
            "model.list",
            "models",
            "there is no model: set OPENAI_API_KEY for nanod, start Ollama or a llama.cpp server, or put [models.NAME] into nanod.toml\n",
        ),
    ] {
        let none = json!({ member: [] });
        assert_eq!(check(line, method, &json!({}), &none), (String::new(), said.to_owned()));
        let quiet: Vec<_> = line.split(' ').chain(["-q"]).collect();
        let ran = nanoctl(&answering(&none), &quiet);
        assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "", ""), "{line}");
    }
}

#[test]
fn a_text_of_any_length_is_one_cell() {
    let long = "long ".repeat(200_000);
    let more = json!({ "content": long });
    let mut due = followup("fup_1");
    due["content"] = json!(long);
    let mut open = session("ses_1", None);
    open["workspace"] = json!(format!("/{long}"));
    let model = json!({"name": long, "api": "openai", "default": false, "source": "config", "note": long});
    for (line, list) in [
        ("tasks", json!({"tasks": [task("tsk_1", "running", &more), task("tsk_2", "running", &json!({}))]})),
        ("sessions", json!({"sessions": [open, session("ses_2", None)]})),
        ("followup list", json!({"followups": [due, followup("fup_2")]})),
        ("models", json!({"models": [model.clone(), model]})),
    ] {
        let ran = nanoctl(&answering(&list), &line.split(' ').collect::<Vec<_>>());
        assert_eq!((ran.code, ran.err.as_str(), ran.out.lines().count()), (0, "", 2), "{line}");
        assert!(ran.out.lines().all(|line| line.chars().count() < 1000), "{line}");
    }
    let ran = nanoctl(&answering(&task("tsk_1", "running", &more)), &["task", "tsk_1"]);
    assert!(ran.code == 0 && ran.out.contains(long.trim_end()), "{}", ran.err);
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
    let part = |name: &str, source: &str, text: &str| json!({"name": name, "source": source, "text": text});
    let parts = [
        part("persona", "agent", "Be kind."),
        part("box\nfiles", "booter:local", "Tools:\n\n- x\n"),
        part("tools", "core", "Tools:\nnone"),
    ];
    let all = "Be kind.\n\nTools:\n\n- x\n\n\nTools:\nnone";
    let prompts = json!({"session": "s", "booted": false, "exact": false, "prompts": parts, "assembled": all});
    let params = json!({"session": "s"});
    let (out, err) = check("prompts s", "session.prompts", &params, &prompts);
    let shown =
        "== persona (agent)\nBe kind.\n== box\nfiles (booter:local)\nTools:\n\n- x\n== tools (core)\nTools:\nnone\n";
    assert_eq!((out.as_str(), err.as_str()), (shown, ""));
    let (out, err) = check("prompts s --assembled", "session.prompts", &params, &prompts);
    assert_eq!(out, format!("{all}\n"));
    insta::assert_snapshot!(err, @r"
    lines 1-1: persona (agent)
    lines 3-5: box\nfiles (booter:local)
    lines 8-9: tools (core)
    ");
    let ran = nanoctl(&answering(&prompts), &["prompts", "s", "--assembled", "-q"]);
    assert_eq!((ran.out, ran.err), (format!("{all}\n"), String::new()));
}

#[test]
fn ids_and_states_alone() {
    let steered = json!({"message": "msg_1", "accepted_as": "redirect", "task": "tsk_1", "position": 0});
    let say = json!({"session": "s", "content": "stop", "delivery": "redirect"});
    assert_eq!(check("steer s stop --redirect", "session.steer", &say, &steered).0, "msg_1 redirect\n");
    let say = json!({"session": "s", "content": "stop", "delivery": "note"});
    assert_eq!(check("steer s stop", "session.steer", &say, &steered).0, "msg_1 redirect\n");
    let steered = json!({"message": "msg_1", "accepted_as": "task", "task": "tsk_1", "position": 0});
    let idle = "the session was idle: this is now task tsk_1\n".to_owned();
    assert_eq!(check("steer s stop", "session.steer", &say, &steered), ("msg_1 task\n".to_owned(), idle));
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
    let status = json!({"version": "0.1.0", "pid": 7, "started_at": "2027-01-31T08:00:00.000Z", "uptime_ms": 61000, "sessions": {"idle": 2}, "tasks": {}, "followups": {"active": 0}, "store": {"path": "/s", "bytes": 2048}, "rss_bytes": 4096, "approvals": []});
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
    let mut daemon = std::process::Command::new("sleep").arg("0.3").spawn().unwrap();
    let status = json!({"version": "0.1.0", "pid": daemon.id(), "started_at": "2027-01-31T08:00:00.000Z", "uptime_ms": 1, "sessions": {}, "tasks": {}, "followups": {"active": 0}, "store": {"path": "/s", "bytes": 1}, "rss_bytes": 1});
    let fake = Fake::start(move |method, _| match method {
        "daemon.status" => vec![Say::Result(status.clone())],
        _ => vec![Say::Result(json!({})), Say::Close],
    });
    let ran = nanoctl(&fake, &["shutdown", "--grace", "2s"]);
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "", ""));
    assert!(daemon.try_wait().unwrap().is_some(), "its connections end before it");
    assert_eq!(fake.asked("daemon.shutdown")[0]["grace_ms"], 2000);
    let fake = Fake::start(|_, _| vec![Say::Result(json!({}))]);
    assert_eq!(nanoctl(&fake, &["shutdown", "--timeout", "200ms"]).code, 7);
}
