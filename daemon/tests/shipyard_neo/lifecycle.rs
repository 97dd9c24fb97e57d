//! The tools that make skills, and those of the browser.

use std::sync::Arc;

use nanod::booters::shipyard_neo::NeoBooter;
use nanod::skills::library::{Library, Places};
use serde_json::{Value, json};

use super::server::{Act, Server, say};
use super::{Session, config};

#[tokio::test]
async fn each_tool_asks_for_what_it_says() {
    let server = Server::start(|asked| match asked.parts() {
        (_, path, _) if path.starts_with("/v1/skills") || path.contains("/history") || path.contains("/browser") => {
            say(200, &json!({"success": true, "b": 1, "a": [2]}))
        }
        _ => Act::Serve,
    });
    let session = Session::new(&server).await;
    for (tool, arguments, line, body) in [
        ("get_execution_history", json!({}), "GET S/history", Value::Null),
        (
            "get_execution_history",
            json!({"exec_type": "shell", "success_only": true, "limit": 5, "tags": "a,b"}),
            "GET S/history?exec_type=shell&success_only=true&limit=5&tags=a%2Cb",
            Value::Null,
        ),
        (
            "annotate_execution",
            json!({"execution_id": "exec-1", "notes": "n"}),
            "PATCH S/history/exec-1",
            json!({"notes": "n"}),
        ),
        (
            "get_skill_payload",
            json!({"payload_ref": "blob:blob-1"}),
            "GET /v1/skills/payloads/blob:blob-1",
            Value::Null,
        ),
        (
            "create_skill_candidate",
            json!({"skill_key": "k", "source_execution_ids": ["exec-1"], "payload_ref": "p"}),
            "POST /v1/skills/candidates",
            json!({"payload_ref": "p", "skill_key": "k", "source_execution_ids": ["exec-1"]}),
        ),
        (
            "list_skill_candidates",
            json!({"status": "draft", "offset": 1}),
            "GET /v1/skills/candidates?status=draft&offset=1",
            Value::Null,
        ),
        (
            "evaluate_skill_candidate",
            json!({"candidate_id": "sc-1", "passed": true, "score": 0.5}),
            "POST /v1/skills/candidates/sc-1/evaluate",
            json!({"passed": true, "score": 0.5}),
        ),
        ("list_skill_releases", json!({"active_only": true}), "GET /v1/skills/releases?active_only=true", Value::Null),
        (
            "rollback_skill_release",
            json!({"release_id": "sr-1"}),
            "POST /v1/skills/releases/sr-1/rollback",
            Value::Null,
        ),
        (
            "browser_exec",
            json!({"cmd": "open x", "tags": "t"}),
            "POST S/browser/exec",
            json!({"cmd": "open x", "timeout": 30, "learn": false, "include_trace": false, "tags": "t"}),
        ),
        (
            "browser_batch_exec",
            json!({"commands": ["a", "b"], "timeout": 600, "stop_on_error": false}),
            "POST S/browser/exec_batch",
            json!({"commands": ["a", "b"], "timeout": 600, "stop_on_error": false, "learn": false, "include_trace": false}),
        ),
        (
            "run_browser_skill",
            json!({"skill_key": "a b"}),
            "POST S/browser/skills/a%20b/run",
            json!({"timeout": 60, "stop_on_error": true, "include_trace": false}),
        ),
    ] {
        let (done, text) = session.call(tool, arguments.clone()).await;
        assert!(done && text.starts_with(r#"{"success":true,"b":1,"a":[2]"#), "{tool}: {text}");
        assert_eq!(
            text.contains("stays so until sync_skill_release"),
            tool == "rollback_skill_release",
            "{tool}: {text}"
        );
        // The keeper asks too.
        let is_tools = |line: &str| line.contains("/skills/") || line.contains("/history") || line.contains("/browser");
        let asked = server.asked("").into_iter().rfind(|asked| is_tools(&asked.line)).unwrap();
        let (method, path) = line.split_once(' ').unwrap();
        let path = path
            .strip_prefix('S')
            .map_or_else(|| path.to_owned(), |rest| format!("/v1/sandboxes/sandbox-000000000001{rest}"));
        assert_eq!(asked.line.trim_end(), format!("{method} {path} HTTP/1.1"));
        assert_eq!(asked.json(), body, "{tool}");
    }
}

#[tokio::test]
async fn arguments_that_cannot_be_are_refused_before_any_call() {
    let server = Server::working();
    let session = Session::new(&server).await;
    for (tool, arguments, expected) in [
        ("get_skill_payload", json!({"payload_ref": ".."}), "is no id"),
        ("annotate_execution", json!({"execution_id": ""}), "is no id"),
        ("create_skill_payload", json!({"payload": {}}), "`payload` is empty"),
        ("create_skill_payload", json!({}), "`payload` is missing"),
        ("promote_skill_candidate", json!({"candidate_id": "sc-0", "stage": "beta"}), "canary or stable"),
        ("sync_skill_release", json!({}), "give `release_id` or `skill_key`"),
        ("browser_exec", json!({"cmd": "x", "timeout": 301}), "1 to 300 seconds"),
        ("browser_batch_exec", json!({"commands": []}), "`commands` is empty"),
    ] {
        let text = session.failed(tool, arguments).await;
        assert!(text.contains(expected), "{tool}: {text}");
    }
    assert!(server.asked("/skills/").is_empty() && server.asked("/browser/").is_empty());
}

#[tokio::test]
async fn bug_17_a_payload_may_come_as_a_text() {
    let session = Session::new(&Server::working()).await;
    for payload in [json!({"a": 1}), json!([{"a": 1}]), json!(r#"{"a": 1}"#), json!(r#"[{"a": 1}]"#)] {
        let made = session.done("create_skill_payload", json!({"payload": payload})).await;
        let read = session.done("get_skill_payload", json!({"payload_ref": made["payload_ref"]})).await;
        assert_eq!(read["payload"].to_string().trim_matches(['[', ']']), r#"{"a":1}"#);
    }
}

#[tokio::test]
async fn bug_18_a_browser_that_is_not_there_is_named() {
    let reply = json!({"success": false, "output": "", "error": "agent-browser: not found", "exit_code": 127});
    let session = Session::new(&Server::but("browser/exec", say(200, &reply))).await;
    let text = session.failed("browser_exec", json!({"cmd": "open x"})).await;
    assert!(text.contains("not installed"), "{text}");
}

#[tokio::test]
async fn long_replies_are_cut() {
    let entries: Vec<Value> = (0..100).map(|n| json!({"id": format!("exec-ä{n}"), "code": "ä".repeat(500)})).collect();
    let session = Session::new(&Server::but("/history", say(200, &json!({"entries": entries})))).await;
    let (done, text) = session.call("get_execution_history", json!({})).await;
    assert!(done && text.len() < 52_000 && text.ends_with("as with limit and offset]"), "{}", text.len());
}

/// A session whose library the skills are installed through.
pub async fn session(server: &Server) -> (Session, Arc<Library>) {
    let library = Arc::new(Library::new(Places::default()).0);
    let mut session = Session::new(server).await;
    session.booter = NeoBooter::new(config(&server.url), library.clone());
    (session, library)
}

/// Makes a candidate that may be promoted; returns its id.
pub async fn candidate(session: &Session, key: &str, payload: Value) -> Value {
    let payload = session.done("create_skill_payload", json!({"payload": payload})).await["payload_ref"].clone();
    let candidate = json!({"skill_key": key, "source_execution_ids": ["exec-1"], "payload_ref": payload});
    let id = session.done("create_skill_candidate", candidate).await["id"].clone();
    session.done("evaluate_skill_candidate", json!({"candidate_id": id, "passed": true})).await;
    id
}

pub fn text(what: &str) -> Value {
    json!({"skill_markdown": format!("---\nname: x\ndescription: About {what}.\nalways_load: true\n---\n# {what}\n")})
}

#[tokio::test]
async fn a_stable_release_is_installed_and_replaced_by_the_next() {
    let server = Server::working();
    let (session, library) = session(&server).await;
    let workspace = session.fixture.context.workspace.path().to_owned();
    let mut names = Vec::new();
    for (key, what) in [("Web/Login", "one"), ("Web/Login", "two"), ("web-login", "three")] {
        let id = candidate(&session, key, text(what)).await;
        let told = session.done("promote_skill_candidate", json!({"candidate_id": id, "stage": "stable"})).await;
        assert_eq!((&told["sync"]["ok"], &told["rollback"]), (&json!(true), &Value::Null), "{told}");
        let name = told["sync"]["local_skill_name"].as_str().unwrap().to_owned();
        let shelves = library.look_now(Some(&workspace));
        let skill = shelves.iter().flat_map(|shelf| &shelf.skills).find(|skill| skill.document.name == name).unwrap();
        let document = &skill.document;
        assert_eq!(
            (document.description.as_str(), document.body.trim()),
            (&*format!("About {what}."), &*format!("# {what}"))
        );
        assert!(document.valid && document.problems.is_empty() && !document.always_load, "{document:?}");
        assert_eq!(document.metadata["metadata"]["neo_skill_key"], key);
        assert_eq!(document.metadata["metadata"]["neo_release_id"], told["release"]["id"]);
        names.push(name);
    }
    assert_eq!(names[..2], ["neo-web-login", "neo-web-login"]);
    assert!(names[2].starts_with("neo-web-login-") && names[2].len() == "neo-web-login-".len() + 8, "{names:?}");
}

#[tokio::test]
async fn a_canary_or_unsynced_release_is_not_installed() {
    let server = Server::working();
    let (session, _) = session(&server).await;
    for more in [json!({}), json!({"stage": "canary"}), json!({"stage": "stable", "sync_to_local": false})] {
        let mut arguments = more.clone();
        arguments["candidate_id"] = candidate(&session, "k", text("k")).await;
        let told = session.done("promote_skill_candidate", arguments).await;
        assert_eq!((&told["sync"], &told["rollback"]), (&Value::Null, &Value::Null), "{more}");
    }
    assert!(!session.fixture.path(".agents").exists());
}

#[tokio::test]
async fn a_candidate_without_a_passed_evaluation_is_not_promoted() {
    let (session, _) = session(&Server::working()).await;
    let id = candidate(&session, "k", text("x")).await;
    session.done("evaluate_skill_candidate", json!({"candidate_id": id, "passed": false})).await;
    let told = session.failed("promote_skill_candidate", json!({"candidate_id": id, "stage": "stable"})).await;
    assert!(
        told.starts_with("conflict: Latest evaluation did not pass") && told.contains("evaluation has passed"),
        "{told}"
    );
}

#[tokio::test]
async fn a_release_is_synced_by_its_id_or_its_key() {
    let server = Server::working();
    let (session, _) = session(&server).await;
    let mut releases = Vec::new();
    for n in 0..120 {
        let id = candidate(&session, &format!("key-{n}"), text("x")).await;
        let stage = if n == 1 { "canary" } else { "stable" };
        let arguments = json!({"candidate_id": id, "stage": stage, "sync_to_local": false});
        releases.push(session.done("promote_skill_candidate", arguments).await["release"]["id"].clone());
    }
    let told = session.done("sync_skill_release", json!({"release_id": releases[0]})).await;
    assert_eq!((&told["skill_key"], &told["local_skill_name"]), (&json!("key-0"), &json!("neo-key-0")));
    assert_eq!(session.done("sync_skill_release", json!({"skill_key": "key-3"})).await["skill_key"], "key-3");
    for (arguments, expected) in [
        (json!({"release_id": releases[1]}), "is not stable"),
        (json!({"skill_key": "key-1"}), "has no active release"),
        (json!({"skill_key": "key"}), "has no active release"),
        (json!({"release_id": "sr-none"}), "no such release"),
    ] {
        let text = session.failed("sync_skill_release", arguments).await;
        assert!(text.contains(expected), "{text}");
    }
    for arguments in [json!({"release_id": releases[1]}), json!({"skill_key": "key-1"})] {
        let mut arguments = arguments;
        arguments["require_stable"] = false.into();
        assert_eq!(session.done("sync_skill_release", arguments).await["local_skill_name"], "neo-key-1");
    }
}
