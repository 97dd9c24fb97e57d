//! Files of a Bay's sandbox, and the history of what ran.

use serde_json::{Value, json};

use super::bay::{caller, create};
use crate::sandboxes::Bay;

#[test]
fn files_come_and_go() {
    let bay = Bay::start();
    let (caller, id) = (caller(&bay), create(&bay, &json!({})));
    let at = |rest: &str| format!("/v1/sandboxes/{id}/filesystem/{rest}");
    let put = |path: &str| {
        let body = json!({"path": path, "content": "text"}).to_string();
        caller.ask("PUT", &at("files"), body.as_bytes())
    };
    put("a/../b/c.txt").expect(200);
    put(".hidden").expect(200);
    assert_eq!(caller.get(&at("files?path=b%2Fc.txt")).expect(200)["content"], "text");
    let entries = &caller.get(&at("directories")).expect(200)["entries"];
    assert_eq!(entries.as_array().map(Vec::len), Some(1));
    assert_eq!((&entries[0]["path"], &entries[0]["is_dir"]), (&json!("/workspace/b"), &json!(true)));
    let inner = caller.get(&at("directories?path=b")).expect(200)["entries"][0].clone();
    assert_eq!((&inner["path"], &inner["size"]), (&json!("/workspace/b/c.txt"), &json!(4)));
    let bytes = b"\x00\r\n--b\xff";
    let sent = caller.upload(&at("upload"), &[("file", bytes), ("path", b"d/e.bin")]).expect(200);
    assert_eq!((&sent["status"], &sent["size"]), (&json!("ok"), &json!(bytes.len())));
    let got = caller.get(&at("download?path=d/e.bin"));
    assert!(got.status == 200 && got.body == bytes && got.head.contains("filename=\"e.bin\""), "{got:?}");
    caller.ask("DELETE", &at("files?path=b"), b"").expect(200);
    assert!(!bay.folder(&id).join("b").exists());
}

#[test]
fn bad_paths_are_refused() {
    let bay = Bay::start();
    let (caller, id) = (caller(&bay), create(&bay, &json!({})));
    let at = |rest: &str| format!("/v1/sandboxes/{id}/filesystem/{rest}");
    let cases = [
        ("/etc/passwd", "absolute_path"),
        ("..%2Fx", "path_traversal"),
        ("a/../../x", "path_traversal"),
        ("", "empty_path"),
        ("a%00b", "null_byte"),
    ];
    for (path, reason) in cases {
        let details = caller.get(&at(&format!("files?path={path}"))).expect_error(400, "invalid_path");
        assert_eq!(details["reason"], reason, "{path}");
    }
    caller.get(&at("files?path=none")).expect_error(502, "ship_error");
    caller.get(&at("directories?path=none")).expect_error(502, "ship_error");
    caller.ask("DELETE", &at("files?path=none"), b"").expect_error(502, "ship_error");
    caller.get(&at("download?path=none")).expect_error(404, "file_not_found");
    caller.get(&at("files")).expect(422);
    caller.upload(&at("upload"), &[("file", b"x")]).expect(422);
}

#[test]
fn history_is_kept_and_annotated() {
    let bay = Bay::start();
    let (caller, id) = (caller(&bay), create(&bay, &json!({})));
    let at = |rest: &str| format!("/v1/sandboxes/{id}/{rest}");
    let run = |command: &str, tags: &str| {
        let body = json!({"command": command, "tags": tags});
        caller.post(&at("shell/exec"), &body).expect(200)["execution_id"].as_str().expect("an id").to_owned()
    };
    let first = run("true", " web, Api ,web");
    let second = run("false", "");
    caller.post(&at("python/exec"), &json!({"code": "1"})).expect(200);
    let ids = |query: &str| -> Vec<String> {
        let found = caller.get(&at(&format!("history{query}"))).expect(200)["entries"].clone();
        found.as_array().into_iter().flatten().filter_map(|one| one["id"].as_str()).map(str::to_owned).collect()
    };
    assert_eq!(ids("?exec_type=shell"), [second.clone(), first.clone()]);
    assert_eq!(ids("?exec_type=shell&success_only=true"), std::slice::from_ref(&first));
    assert_eq!(ids("?tags=none,AP"), std::slice::from_ref(&first));
    assert_eq!(ids("?limit=1&offset=2"), std::slice::from_ref(&first));
    caller.get(&at("history?exec_type=x")).expect(422);
    let patch = json!({"notes": "good", "tags": null}).to_string();
    let patched = caller.ask("PATCH", &at(&format!("history/{first}")), patch.as_bytes()).expect(200);
    assert_eq!((&patched["notes"], &patched["tags"]), (&json!("good"), &json!("Api,web")));
    assert_eq!(ids("?has_notes=true"), [first]);
    assert_eq!(ids("?has_description=true"), Vec::<String>::new());
    assert_eq!(caller.get(&at("history/last?exec_type=shell")).expect(200)["id"], *second);
    caller.get(&at("history/exec-none")).expect_error(404, "not_found");
    assert_eq!(caller.get(&at("history?limit=1")).expect(200)["total"], Value::from(3));
}
