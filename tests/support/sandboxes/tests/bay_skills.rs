//! The lifecycle of skills in a Bay.

use serde_json::{Value, json};

use super::bay::{caller, create};
use super::caller::Caller;
use crate::sandboxes::Bay;

struct Workshop {
    bay: Bay,
    caller: Caller,
    sandbox: String,
    execution: String,
}

impl Workshop {
    fn start() -> Self {
        let bay = Bay::start();
        let sandbox = create(&bay, &json!({"profile": "browser-python"}));
        let caller = caller(&bay);
        let run = caller.post(&format!("/v1/sandboxes/{sandbox}/browser/exec"), &json!({"cmd": "open x"})).expect(200);
        let execution = run["execution_id"].as_str().expect("an id").to_owned();
        Self { bay, caller, sandbox, execution }
    }

    fn payload(&self, payload: &Value) -> String {
        let body = json!({"payload": payload, "kind": "k"});
        self.caller.post("/v1/skills/payloads", &body).expect(201)["payload_ref"].as_str().expect("a ref").to_owned()
    }

    fn candidate(&self, payload: &str) -> String {
        let body = json!({"skill_key": "key", "source_execution_ids": [self.execution], "payload_ref": payload});
        let made = self.caller.post("/v1/skills/candidates", &body).expect(201);
        assert_eq!((&made["status"], &made["skill_type"]), (&json!("draft"), &json!("browser")));
        made["id"].as_str().expect("an id").to_owned()
    }

    fn passed(&self, payload: &str) -> String {
        let id = self.candidate(payload);
        self.post(&format!("candidates/{id}/evaluate"), &json!({"passed": true, "score": 0.9})).expect(200);
        id
    }

    fn post(&self, rest: &str, body: &Value) -> super::caller::Heard {
        self.caller.post(&format!("/v1/skills/{rest}"), body)
    }

    fn promote(&self, id: &str, stage: &str) -> Value {
        self.post(&format!("candidates/{id}/promote"), &json!({ "stage": stage })).expect(200)
    }
}

#[test]
fn payloads_are_structures() {
    let shop = Workshop::start();
    let reference = shop.payload(&json!([{"a": 1}]));
    assert!(reference.starts_with("blob:blob-"));
    let path = format!("/v1/skills/payloads/{reference}");
    assert_eq!(shop.caller.get(&path).expect(200)["payload"], json!([{"a": 1}]));
    assert_eq!(shop.caller.get(&path.replace(':', "%3A")).expect(200)["kind"], "k");
    shop.post("payloads", &json!({"payload": "{}"})).expect(422);
    shop.caller.get("/v1/skills/payloads/x").expect_error(400, "validation_error");
    shop.caller.get("/v1/skills/payloads/blob:none").expect_error(404, "not_found");
    let other = shop.caller.with("Authorization", &format!("Bearer {}", shop.bay.key_for("other")));
    other.get(&path).expect_error(404, "not_found");
}

#[test]
fn only_a_passed_candidate_is_promoted() {
    let shop = Workshop::start();
    let id = shop.candidate("blob:unchecked");
    let promote = |stage: &str| shop.post(&format!("candidates/{id}/promote"), &json!({ "stage": stage }));
    let evaluate = |passed: bool| shop.post(&format!("candidates/{id}/evaluate"), &json!({ "passed": passed }));
    assert_eq!(promote("stable").expect_error(409, "conflict")["candidate_id"], *id);
    evaluate(true).expect(200);
    evaluate(false).expect(200);
    promote("stable").expect_error(409, "conflict");
    assert_eq!(shop.caller.get(&format!("/v1/skills/candidates/{id}")).expect(200)["status"], "rejected");
    evaluate(true).expect(200);
    promote("gold").expect_error(400, "validation_error");
    let release = promote("stable").expect(200);
    assert_eq!((&release["version"], &release["is_active"]), (&json!(1), &json!(true)));
    let delete = || shop.caller.ask("DELETE", &format!("/v1/skills/candidates/{id}"), b"{\"reason\":\"old\"}");
    delete().expect_error(409, "conflict");
    let path = format!("/v1/skills/releases/{}", release["id"].as_str().expect("an id"));
    shop.caller.ask("DELETE", &path, b"").expect(200);
    assert_eq!(delete().expect(200)["delete_reason"], "old");
    let unknown = json!({"skill_key": "key", "source_execution_ids": ["exec-none"]});
    shop.post("candidates", &unknown).expect_error(400, "validation_error");
    shop.caller.get("/v1/skills/candidates?status=none").expect_error(400, "validation_error");
}

#[test]
fn a_release_is_rolled_back_to_the_one_before() {
    let shop = Workshop::start();
    let (one, two) = (shop.passed("blob:1"), shop.passed("blob:2"));
    let first = shop.promote(&one, "canary");
    let roll = |release: &Value| {
        let id = release["id"].as_str().expect("an id");
        shop.caller.ask("POST", &format!("/v1/skills/releases/{id}/rollback"), b"")
    };
    let refused = roll(&first).expect(409);
    assert_eq!(refused["error"]["message"], "Rollback is unavailable: no previous release exists");
    assert_eq!(refused["error"]["details"]["release_id"], first["id"]);
    let second = shop.promote(&two, "stable");
    let back = roll(&second).expect(200);
    assert_eq!((&back["version"], &back["candidate_id"], &back["stage"]), (&json!(3), &json!(one), &json!("canary")));
    assert_eq!((&back["rollback_of"], &back["is_active"]), (&second["id"], &json!(true)));
    let active = shop.caller.get("/v1/skills/releases?skill_key=key&active_only=true").expect(200);
    assert_eq!((&active["total"], &active["items"][0]["id"]), (&json!(1), &back["id"]));
    assert_eq!(shop.caller.get("/v1/skills/releases?stage=stable").expect(200)["total"], 1);
    let rolled = shop.caller.get("/v1/skills/candidates?status=rolled_back").expect(200);
    assert_eq!(rolled["items"][0]["id"], *two);
}

#[test]
fn a_browser_skill_replays_its_release() {
    let shop = Workshop::start();
    let run = || shop.caller.post(&format!("/v1/sandboxes/{}/browser/skills/key/run", shop.sandbox), &json!({}));
    run().expect_error(404, "not_found");
    let empty = shop.passed(&shop.payload(&json!({"commands": []})));
    shop.promote(&empty, "canary");
    run().expect_error(400, "validation_error");
    let good = shop.passed(&shop.payload(&json!({"commands": ["open x", "click"]})));
    let release = shop.promote(&good, "stable");
    let ran = run().expect(200);
    assert_eq!((&ran["release_id"], &ran["completed_steps"]), (&release["id"], &json!(2)));
    let last = shop.caller.get(&format!("/v1/sandboxes/{}/history/last", shop.sandbox)).expect(200);
    let release = release["id"].as_str().expect("an id");
    assert_eq!(last["tags"], format!("release:{release},skill:key,stage:stable"));
}
