//! Sandboxes of a Bay, and what runs in them.

use std::time::Duration;

use serde_json::{Value, json};

use super::caller::Caller;
use crate::sandboxes::{Bay, Boot, Browsed, Capabilities, Profile};
use crate::{processes, wait};

pub fn caller(bay: &Bay) -> Caller {
    Caller::new(&bay.url(), &bay.key())
}

pub fn create(bay: &Bay, body: &Value) -> String {
    caller(bay).post("/v1/sandboxes", body).expect(201)["id"].as_str().expect("an id").to_owned()
}

fn at(id: &str, rest: &str) -> String {
    format!("/v1/sandboxes/{id}{rest}")
}

#[test]
fn only_a_key_opens() {
    let bay = Bay::start();
    let caller = caller(&bay);
    assert_eq!(caller.without("Authorization").get("/health").expect(200)["status"], "ok");
    caller.without("Authorization").get("/v1/profiles").expect(200);
    caller.without("Authorization").get("/v1/sandboxes").expect_error(401, "unauthorized");
    caller.with("Authorization", "Bearer sk-bay-wrong").get("/v1/sandboxes").expect_error(401, "unauthorized");
    bay.allow_anonymous();
    caller.without("Authorization").get("/v1/sandboxes").expect(200);
    caller.with("Authorization", "Bearer sk-bay-wrong").get("/v1/sandboxes").expect_error(401, "unauthorized");
    let echoed = caller.with("X-Request-Id", "r-1").get("/v1/sandboxes");
    assert!(echoed.head.contains("x-request-id: r-1"), "{}", echoed.head);
    bay.change_key();
    caller.get("/v1/sandboxes").expect_error(401, "unauthorized");
}

#[test]
fn a_sandbox_lives() {
    let bay = Bay::start();
    let caller = caller(&bay);
    let made = caller.post("/v1/sandboxes", &json!({"ttl": 100})).expect(201);
    assert_eq!((&made["status"], &made["profile"]), (&json!("idle"), &json!("python-default")));
    assert_eq!(made["capabilities"], json!(["filesystem", "shell", "python"]));
    let time = made["expires_at"].as_str().expect("a time");
    assert!(time.len() == 26 && !time.ends_with('Z'), "{time}");
    let id = made["id"].as_str().expect("an id");
    let got = caller.get(&at(id, "")).expect(200);
    assert_eq!((&got["status"], &got["containers"][0]["name"]), (&json!("ready"), &json!("ship")));
    assert_eq!(caller.post(&at(id, "/extend_ttl"), &json!({"extend_by": 5})).expect(200)["status"], "idle");
    assert!(bay.seconds_left(id).is_some_and(|left| left > 100));
    caller.post(&at(id, "/extend_ttl"), &json!({"extend_by": 0})).expect_error(400, "validation_error");
    caller.post(&at(id, "/extend_ttl"), &json!({"extend_by": "x"})).expect(422);
    assert_eq!(caller.ask("POST", &at(id, "/keepalive"), b"").expect(200)["status"], "ok");
    assert_eq!(caller.ask("POST", &at(id, "/stop"), b"").expect(200)["status"], "stopped");
    assert_eq!(caller.get(&at(id, "")).expect(200)["status"], "idle");
    caller.ask("DELETE", &at(id, ""), b"").expect(204);
    caller.ask("DELETE", &at(id, ""), b"").expect(204);
    caller.get(&at(id, "")).expect_error(404, "not_found");
    caller.ask("DELETE", &at("sandbox-none", ""), b"").expect_error(404, "not_found");
    caller.post("/v1/sandboxes", &json!({"profile": "none"})).expect_error(400, "validation_error");
    assert!(bay.sandboxes().is_empty());
}

#[test]
fn time_runs_out_as_the_real_one_lets_it() {
    let bay = Bay::start();
    let caller = caller(&bay);
    let (mortal, endless) = (create(&bay, &json!({"ttl": 10})), create(&bay, &json!({"ttl": 0})));
    let extend = |id: &str| caller.post(&at(id, "/extend_ttl"), &json!({"extend_by": 5}));
    extend(&endless).expect_error(409, "sandbox_ttl_infinite");
    bay.advance(Duration::from_secs(11));
    assert_eq!(caller.get(&at(&mortal, "")).expect(200)["status"], "expired");
    caller.post(&at(&mortal, "/shell/exec"), &json!({"command": "true"})).expect(200);
    caller.ask("POST", &at(&mortal, "/keepalive"), b"").expect(200);
    extend(&mortal).expect_error(409, "sandbox_expired");
    bay.collect();
    caller.post(&at(&mortal, "/shell/exec"), &json!({"command": "true"})).expect_error(404, "not_found");
    assert_eq!(bay.sandboxes(), std::slice::from_ref(&endless));
    bay.advance(Duration::from_hours(1));
    bay.collect();
    assert_eq!(bay.status(&endless), Some("idle"));
    bay.expire(&endless);
    assert_eq!(bay.status(&endless), Some("expired"));
    bay.forget(&endless);
    caller.ask("DELETE", &at(&endless, ""), b"").expect_error(404, "not_found");
}

#[test]
fn a_key_makes_create_idempotent() {
    let bay = Bay::start();
    let caller = caller(&bay).with("Idempotency-Key", "once");
    let first = caller.post("/v1/sandboxes", &json!({"ttl": 100})).expect(201);
    assert_eq!(caller.post("/v1/sandboxes", &json!({"ttl": 100})).expect(201), first);
    caller.post("/v1/sandboxes", &json!({"ttl": 101})).expect_error(409, "conflict");
    caller.with("Idempotency-Key", "a b").post("/v1/sandboxes", &json!({})).expect_error(409, "conflict");
    let other = caller.with("Authorization", &format!("Bearer {}", bay.key_for("other")));
    let theirs = other.post("/v1/sandboxes", &json!({"ttl": 100})).expect(201);
    assert_ne!(theirs["id"], first["id"]);
    other.get(&at(first["id"].as_str().expect("an id"), "")).expect_error(404, "not_found");
    bay.advance(Duration::from_secs(3601));
    assert_ne!(caller.post("/v1/sandboxes", &json!({"ttl": 100})).expect(201)["id"], first["id"]);
    assert_eq!(bay.sandboxes().len(), 3);
}

#[test]
fn sandboxes_are_listed_by_pages() {
    let bay = Bay::start();
    let caller = caller(&bay);
    for _ in 0..3 {
        create(&bay, &json!({}));
    }
    let first = caller.get("/v1/sandboxes?limit=2&status=ready").expect(200);
    let cursor = first["next_cursor"].as_str().expect("a cursor");
    assert_eq!(first["items"][1]["id"], cursor);
    let second = caller.get(&format!("/v1/sandboxes?limit=2&cursor={cursor}")).expect(200);
    assert_eq!((second["items"].as_array().map(Vec::len), &second["next_cursor"]), (Some(1), &Value::Null));
    assert_eq!(caller.get("/v1/sandboxes?status=idle").expect(200)["items"], json!([]));
    caller.get("/v1/sandboxes?limit=201").expect(422);
}

#[test]
fn a_shell_really_runs() {
    let bay = Bay::start();
    let id = create(&bay, &json!({}));
    let run = |body: &Value| caller(&bay).post(&at(&id, "/shell/exec"), body).expect(200);
    let said = run(&json!({"command": "pwd; echo x > /workspace/f; echo oops >&2; exit 3", "include_code": true}));
    assert_eq!((&said["success"], &said["exit_code"]), (&json!(false), &json!(3)));
    assert_eq!((&said["output"], &said["error"]), (&json!("/workspace\n"), &json!("oops\n")));
    assert!(said["command"].is_string() && said["execution_id"].as_str().is_some_and(|id| id.starts_with("exec-")));
    assert_eq!(std::fs::read_to_string(bay.folder(&id).join("f")).expect("a file"), "x\n");
    let slow = run(&json!({"command": "sleep 100", "timeout": 1}));
    assert_eq!((&slow["exit_code"], &slow["error"]), (&json!(-1), &json!("Command timed out")));
    let bad = caller(&bay).post(&at(&id, "/shell/exec"), &json!({"command": "true", "timeout": 301}));
    assert_eq!(bad.expect(422)["detail"][0]["loc"], json!(["body", "timeout"]));
    assert_eq!(run(&json!({"command": "echo a > /tmp/t; cat /tmp/t; ls /tmp"}))["output"], "a\nt\n");
}

#[test]
fn python_keeps_its_variables_until_its_runtime_dies() {
    let bay = Bay::start();
    let id = create(&bay, &json!({}));
    let run = |code: &str| caller(&bay).post(&at(&id, "/python/exec"), &json!({ "code": code })).expect(200);
    assert_eq!(run("import os\nx = 20\nprint('set')")["output"], "set\n");
    let said = run("os.system('echo child')\nx + 1");
    assert_eq!((&said["output"], &said["success"]), (&json!("child\n21\n"), &json!(true)));
    assert_eq!(said["data"]["execution_count"], 2);
    assert_eq!(run("show_png('aGk=')")["data"]["output"]["images"], json!([{"image/png": "aGk="}]));
    let wrong = run("1 / 0");
    assert!(wrong["error"].as_str().is_some_and(|text| text.contains("ZeroDivisionError")), "{wrong}");
    bay.kill_runtime(&id);
    assert_eq!(run("'x' in globals()")["output"], "False\n");
    let slow = caller(&bay).post(&at(&id, "/python/exec"), &json!({"code": "while True: pass", "timeout": 1}));
    assert_eq!(slow.expect(200)["error"], "Execution timed out");
    assert_eq!(run("1")["output"], "1\n");
}

#[test]
fn a_profile_limits_what_a_sandbox_can_do() {
    let bay = Bay::start();
    let caller = caller(&bay);
    let browse = |id: &str| caller.post(&at(id, "/browser/exec"), &json!({"cmd": "open x"}));
    let plain = create(&bay, &json!({}));
    assert_eq!(
        browse(&plain).expect_error(400, "capability_not_supported"),
        json!({"capability": "browser", "available": ["filesystem", "shell", "python"]})
    );
    bay.force_profile(Some("browser-python"));
    let forced = create(&bay, &json!({}));
    assert_eq!(browse(&forced).expect(200)["output"], "open x");
    bay.set_browser(|command| Browsed::failed(127, &format!("{command}: not found")));
    let failed = browse(&forced).expect(200);
    assert_eq!((&failed["success"], &failed["exit_code"]), (&json!(false), &json!(127)));
    let batch = json!({"commands": ["a", "b"], "include_trace": true});
    let batch = caller.post(&at(&forced, "/browser/exec_batch"), &batch).expect(200);
    assert_eq!((&batch["completed_steps"], &batch["total_steps"]), (&json!(1), &json!(2)));
    let trace = batch["trace_ref"].as_str().expect("a trace");
    caller.get(&at(&forced, &format!("/browser/traces/{trace}"))).expect(200);
    bay.set_profiles(vec![Profile::new("own", &["shell"])]);
    assert_eq!(caller.get("/v1/profiles").expect(200)["items"][0]["id"], "own");
}

#[test]
fn what_is_said_of_capabilities_can_be_ordered() {
    let bay = Bay::start();
    let made = |capabilities| {
        bay.set_capabilities(capabilities);
        let id = create(&bay, &json!({}));
        caller(&bay).get(&at(&id, "")).expect(200).get("capabilities").cloned()
    };
    assert_eq!(made(Capabilities::Missing), None);
    assert_eq!(made(Capabilities::Null), Some(Value::Null));
    assert_eq!(made(Capabilities::Given(vec![])), Some(json!([])));
    assert_eq!(made(Capabilities::Given(vec!["shell".to_owned()])), Some(json!(["shell"])));
}

#[test]
fn a_boot_can_be_ordered() {
    let bay = Bay::start();
    let caller = caller(&bay);
    let boot = |boot| {
        bay.set_boot(boot);
        create(&bay, &json!({}))
    };
    let status = |id: &str| caller.get(&at(id, "")).expect(200)["status"].clone();
    let run = |id: &str| caller.post(&at(id, "/shell/exec"), &json!({"command": "true"}));
    let slow = boot(Boot::Stalled { status: "starting", looks: 2 });
    assert_eq!([status(&slow), status(&slow), status(&slow)], ["starting", "starting", "ready"]);
    let called = boot(Boot::Stalled { status: "idle", looks: 1 });
    assert_eq!(run(&called).expect_error(503, "session_not_ready")["retry_after_ms"], 1000);
    run(&called).expect(200);
    let cold = boot(Boot::Cold);
    assert_eq!([status(&cold), status(&cold)], ["idle", "idle"]);
    run(&cold).expect(200);
    assert_eq!(status(&cold), "ready");
    assert_eq!(status(&boot(Boot::Failed)), "failed");
    bay.stall(&cold, "starting", 1);
    assert_eq!([status(&cold), status(&cold)], ["starting", "ready"]);
}

#[test]
fn everything_that_was_started_ends() {
    let bay = Bay::start();
    let ids = [0; 3].map(|_| create(&bay, &json!({})));
    for id in &ids {
        let detach = json!({"command": "setsid sleep 1000 >/dev/null 2>&1 & echo"});
        caller(&bay).post(&at(id, "/shell/exec"), &detach).expect(200);
        caller(&bay).post(&at(id, "/python/exec"), &json!({"code": "1"})).expect(200);
    }
    let folders = ids.each_ref().map(|id| bay.folder(id));
    let running = |at: usize| processes::of(&folders[at]).len();
    assert!(running(0) >= 2 && running(1) >= 2 && running(2) >= 2);
    caller(&bay).ask("POST", &at(&ids[0], "/stop"), b"").expect(200);
    caller(&bay).ask("DELETE", &at(&ids[1], ""), b"").expect(204);
    assert_eq!((running(0), running(1)), (0, 0));
    assert!(folders[0].is_dir() && !folders[1].is_dir() && running(2) >= 2);
    drop(bay);
    wait::until("all to end", || (running(2) == 0).then_some(()));
    assert!(!folders[0].exists());
}
