//! The old Shipyard.

use std::time::Duration;

use serde_json::{Value, json};

use super::caller::{Caller, Heard};
use crate::processes;
use crate::sandboxes::{AtLimit, Ships};

fn caller(ships: &Ships, session: &str) -> Caller {
    Caller::new(&ships.url(), &ships.key()).with("X-SESSION-ID", session)
}

fn board(ships: &Ships, session: &str, most: i64) -> String {
    let body = json!({"ttl": 100, "max_session_num": most, "spec": {"cpus": 1.0, "memory": "512m"}});
    caller(ships, session).post("/ship", &body).expect(201)["id"].as_str().expect("an id").to_owned()
}

fn exec(ships: &Ships, session: &str, id: &str, kind: &str, payload: &Value) -> Heard {
    caller(ships, session).post(&format!("/ship/{id}/exec"), &json!({"type": kind, "payload": payload}))
}

#[test]
fn only_the_key_opens() {
    let ships = Ships::start();
    let caller = caller(&ships, "s");
    assert_eq!(caller.without("Authorization").get("/health").expect(200)["status"], "ok");
    assert_eq!(caller.without("Authorization").get("/stat").expect(200)["service"], "bay");
    assert_eq!(caller.without("Authorization").get("/ships").expect(401)["detail"], "Not authenticated");
    let wrong = caller.with("Authorization", "Bearer wrong").get("/ships");
    assert!(wrong.head.contains("www-authenticate: Bearer"), "{}", wrong.head);
    assert_eq!(wrong.expect(401)["detail"], "Invalid access token");
}

#[test]
fn a_ship_is_found_again_by_its_session() {
    let ships = Ships::start();
    let first = board(&ships, "one", 2);
    assert_eq!(board(&ships, "one", 2), first);
    assert_eq!(board(&ships, "two", 1), first, "a free place is taken");
    let third = board(&ships, "three", 1);
    assert_ne!(third, first);
    let ship = caller(&ships, "one").get(&format!("/ship/{first}")).expect(200);
    assert_eq!((&ship["status"], &ship["current_session_num"]), (&json!(1), &json!(2)));
    std::fs::write(ships.folder(&first, "one").join("f"), "kept").expect("a file");
    ships.expire(&first);
    assert_eq!(ships.ships(), [third]);
    assert_eq!(
        exec(&ships, "one", &first, "shell/exec", &json!({"command": "true"})).expect(400)["detail"],
        "Ship not found or not running"
    );
    assert_eq!(caller(&ships, "one").get(&format!("/ship/{first}")).expect(200)["status"], 0);
    assert_eq!(board(&ships, "one", 2), first, "restarted");
    let read = exec(&ships, "one", &first, "shell/exec", &json!({"command": "cat f"})).expect(200);
    assert_eq!(read["data"]["stdout"], "kept");
    caller(&ships, "one").ask("DELETE", &format!("/ship/{first}"), b"").expect(204);
    caller(&ships, "one").ask("DELETE", &format!("/ship/{first}"), b"").expect(404);
    assert_eq!(caller(&ships, "one").get(&format!("/ship/{first}")).expect(404)["detail"], "Ship not found");
}

#[test]
fn bad_requests_are_refused() {
    let ships = Ships::start();
    let id = board(&ships, "one", 1);
    let ask = |path: &str, body: &Value| caller(&ships, "one").post(path, body);
    for body in [json!({"ttl": 0}), json!({}), json!({"ttl": 1, "max_session_num": 0})] {
        ask("/ship", &body).expect(422);
    }
    for body in [json!({"ttl": 1, "x": 1}), json!({"ttl": 1, "spec": {"disk": "1g"}})] {
        assert_eq!(ask("/ship", &body).expect(422)["detail"][0]["type"], "extra_forbidden");
    }
    let unnamed = caller(&ships, "one").without("X-SESSION-ID");
    unnamed.post("/ship", &json!({"ttl": 1})).expect(422);
    unnamed.post(&format!("/ship/{id}/exec"), &json!({"type": "shell/exec"})).expect(422);
    let said = |session: &str, kind: &str, payload: &Value| {
        exec(&ships, session, &id, kind, payload).expect(400)["detail"].as_str().expect("a text").to_owned()
    };
    assert_eq!(said("other", "shell/exec", &json!({"command": "true"})), "Session does not have access to this ship");
    assert!(said("one", "no/such", &json!({})).starts_with("Ship returned 404: {"));
    assert!(said("one", "shell/exec", &json!({})).starts_with("Ship returned 422: {"));
    assert!(said("one", "fs/read_file", &json!({"path": "/etc/passwd"})).starts_with("Ship returned 403: {"));
    ask(&format!("/ship/{id}/extend-ttl"), &json!({"ttl": 0})).expect(422);
    ask("/ship/none/extend-ttl", &json!({"ttl": 5})).expect(404);
    assert_eq!(caller(&ships, "one").get("/ship/logs/none").expect(200)["logs"], "");
}

#[test]
fn a_shell_really_runs() {
    let ships = Ships::start();
    let id = board(&ships, "abcdefgh1", 2);
    let run = |payload: &Value| exec(&ships, "abcdefgh1", &id, "shell/exec", payload).expect(200)["data"].clone();
    let said = run(&json!({"command": "pwd; echo oops >&2; exit 3", "env": {"K": "V"}}));
    assert_eq!((&said["success"], &said["return_code"]), (&json!(false), &json!(3)));
    assert_eq!((&said["stdout"], &said["stderr"]), (&json!("/home/ship_abcdefgh/workspace"), &json!("oops")));
    assert_eq!(run(&json!({"command": "echo $K", "env": {"K": "V"}}))["stdout"], "");
    let slow = run(&json!({"command": "sleep 100", "timeout": 1}));
    assert_eq!((&slow["return_code"], &slow["error"]), (&json!(-1), &json!("Command timed out")));
    let outside = run(&json!({"command": "true", "cwd": "/etc"}));
    assert!(outside["error"].as_str().is_some_and(|error| error.starts_with("403: ")), "{outside}");
    let detached = run(&json!({"command": "sleep 1000", "background": true}));
    assert!(detached["pid"].is_number() && detached["return_code"].is_null(), "{detached}");
    let folder = ships.folder(&id, "abcdefgh1");
    assert!(processes::of(&folder).iter().any(|process| detached["pid"] == process.pid));
    drop(ships);
    assert!(processes::of(&folder).is_empty());
}

#[test]
fn sessions_that_begin_alike_share_a_user_but_no_kernel() {
    let ships = Ships::start();
    let ids = ["abcdefgh1", "abcdefgh2", "other"].map(|session| board(&ships, session, 3));
    let python = |session: &str, code: &str| {
        exec(&ships, session, &ids[0], "ipython/exec", &json!({ "code": code })).expect(200)["data"].clone()
    };
    let first = python("abcdefgh1", "x = 1\nopen('f', 'w').write('shared')\nx");
    assert_eq!((&first["output"]["text"], &first["kernel_id"]), (&json!("1\n"), &json!("abcdefgh1")));
    assert_eq!(python("abcdefgh2", "open('f').read(), 'x' in globals()")["output"]["text"], "('shared', False)\n");
    assert!(python("other", "open('f')")["error"].as_str().is_some_and(|text| text.contains("FileNotFoundError")));
    assert_eq!(python("abcdefgh1", "x + 1")["output"]["text"], "2\n");
    ships.kill_runtime(&ids[0]);
    assert!(python("abcdefgh1", "x")["error"].as_str().is_some_and(|text| text.contains("NameError")));
}

#[test]
fn files_come_and_go() {
    let ships = Ships::start();
    let id = board(&ships, "one", 1);
    let act = |act: &str, payload: &Value| exec(&ships, "one", &id, &format!("fs/{act}"), payload);
    act("write_file", &json!({"path": "d/f", "content": "a\nb\nc\n"})).expect(200);
    act("write_file", &json!({"path": "d/f", "content": "b\n", "mode": "a"})).expect(200);
    let read = act("read_file", &json!({"path": "d/f", "offset": 2, "limit": 2})).expect(200)["data"].clone();
    assert_eq!((&read["content"], &read["path"]), (&json!("b\nc\n"), &json!("/home/ship_one/workspace/d/f")));
    let edit = |old: &str, all: bool| {
        act("edit_file", &json!({"path": "d/f", "old_string": old, "new_string": "B", "replace_all": all}))
    };
    edit("b", false).expect(400);
    edit("z", false).expect(400);
    assert_eq!(edit("b", true).expect(200)["data"]["replacements"], 2);
    let list = act("list_dir", &json!({})).expect(200)["data"].clone();
    assert_eq!((&list["files"][0]["name"], &list["current_path"]), (&json!("d"), &json!("/home/ship_one/workspace")));
    act("delete_file", &json!({"path": "/home/ship_one/workspace/d"})).expect(200);
    act("read_file", &json!({"path": "d/f"})).expect(400);
    let (up, down) = (format!("/ship/{id}/upload"), format!("/ship/{id}/download?file_path="));
    let sent = caller(&ships, "one").upload(&up, &[("file", b"\x00\xff"), ("file_path", b"x/y")]).expect(200);
    assert_eq!((&sent["success"], &sent["file_path"]), (&json!(true), &json!("/home/ship_one/workspace/x/y")));
    assert_eq!(caller(&ships, "one").get(&format!("{down}x/y")).body, b"\x00\xff");
    caller(&ships, "one").get(&format!("{down}none")).expect(404);
    caller(&ships, "one").get(&format!("{down}../../x")).expect(403);
    caller(&ships, "two").get(&format!("{down}x/y")).expect(403);
    caller(&ships, "one").upload(&up, &[("file", b""), ("file_path", b"/etc/x")]).expect(403);
    let big = vec![0; (100 << 20) + 1];
    caller(&ships, "one").upload(&up, &[("file_path", b"big"), ("file", &big)]).expect(413);
}

#[test]
fn time_runs_out_unless_a_ship_is_used() {
    let ships = Ships::start();
    let id = board(&ships, "one", 1);
    let extend = |ttl: i64| caller(&ships, "one").post(&format!("/ship/{id}/extend-ttl"), &json!({ "ttl": ttl }));
    let run = || exec(&ships, "one", &id, "shell/exec", &json!({"command": "true"}));
    ships.advance(Duration::from_mins(1));
    run().expect(200);
    ships.advance(Duration::from_mins(1));
    assert_eq!(extend(1000).expect(200)["expires_at"], Value::Null);
    assert!(ships.seconds_left(&id).is_some_and(|left| left > 900));
    ships.advance(Duration::from_mins(15));
    run().expect(200);
    assert!(ships.seconds_left(&id).is_some_and(|left| left <= 100), "reckoned back");
    ships.advance(Duration::from_secs(101));
    run().expect(400);
    extend(5).expect(404);
    assert!(ships.ships().is_empty());
}

#[test]
fn a_ship_that_is_slow_is_given_up() {
    let ships = Ships::start();
    let id = board(&ships, "one", 1);
    ships.set_forward_timeout(Duration::from_millis(50));
    let slow = exec(&ships, "one", &id, "shell/exec", &json!({"command": "sleep 100", "timeout": 200}));
    assert_eq!(slow.expect(400)["detail"], "Request timeout");
}

#[test]
fn no_more_ships_than_may_be() {
    let ships = Ships::start();
    board(&ships, "one", 1);
    let more = || caller(&ships, "two").post("/ship", &json!({"ttl": 5}));
    ships.set_limit(1, AtLimit::Reject);
    more().expect(500);
    ships.set_limit(1, AtLimit::Wait(Duration::from_millis(20)));
    more().expect(408);
    ships.set_limit(1, AtLimit::Wait(Duration::from_mins(1)));
    let waiting = caller(&ships, "two").send("POST", "/ship", b"{\"ttl\":5}");
    ships.wait_requests("POST", "/ship", 4);
    ships.forget(&ships.ships()[0]);
    super::caller::hear(waiting).expect(201);
}
