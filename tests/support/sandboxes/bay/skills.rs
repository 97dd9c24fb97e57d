//! The lifecycle of skills: payloads, candidates with their evaluations, and releases.

use serde_json::{Map, Value, json};

use super::{Answer, Core, Reply, bad, error, not_found};
use crate::http::Request;
use crate::sandboxes::shape::{self, Body, Field, Kind, Need};
use crate::sandboxes::{clock, wire};

const PAYLOAD: &[Field] = &[("payload", Kind::Structure, Need::Must), ("kind", Kind::Text, Need::May)];
const CANDIDATE: &[Field] = &[
    ("skill_key", Kind::Text, Need::Must),
    ("source_execution_ids", Kind::Texts(0), Need::Must),
    ("scenario_key", Kind::Text, Need::Null),
    ("payload_ref", Kind::Text, Need::Null),
    ("summary", Kind::Text, Need::Null),
    ("usage_notes", Kind::Text, Need::Null),
    ("preconditions", Kind::Object, Need::Null),
    ("postconditions", Kind::Object, Need::Null),
];
const EVALUATE: &[Field] = &[
    ("passed", Kind::Flag, Need::Must),
    ("score", Kind::Number, Need::Null),
    ("benchmark_id", Kind::Text, Need::Null),
    ("report", Kind::Text, Need::Null),
];
const PROMOTE: &[Field] = &[
    ("stage", Kind::Text, Need::May),
    ("upgrade_of_release_id", Kind::Text, Need::Null),
    ("upgrade_reason", Kind::Text, Need::Null),
    ("change_summary", Kind::Text, Need::Null),
];
const DELETE: &[Field] = &[("reason", Kind::Text, Need::Null)];
const STATUSES: [&str; 7] =
    ["draft", "evaluating", "promoted", "rejected", "rolled_back", "promoted_canary", "promoted_stable"];

/// All there is of skills, each thing with its owner.
#[derive(Debug, Default)]
pub struct Shelf {
    payloads: Vec<(String, Value)>,
    candidates: Vec<(String, Value)>,
    releases: Vec<(String, Value)>,
}

/// The active release of a skill.
pub struct Active {
    pub release: String,
    pub stage: String,
    pub payload: Value,
}

impl Core {
    pub fn skills(&self, request: &Request, parts: &[&str], owner: &str) -> Answer {
        let now = clock::stamp(self.clock.now());
        let mut state = self.lock();
        match (request.method.as_str(), parts) {
            ("POST", ["payloads"]) => state.shelf.add_payload(&shape::body(request, PAYLOAD)?, owner),
            ("GET", ["payloads", reference]) => state.shelf.payload(owner, reference),
            ("POST", ["candidates"]) => {
                let body = shape::body(request, CANDIDATE)?;
                let kinds = state.kinds(owner, &body.texts("source_execution_ids"))?;
                state.shelf.add_candidate(&body, owner, kinds, &now)
            }
            ("GET", ["candidates"]) => state.shelf.list_candidates(request, owner),
            ("GET", ["candidates", id]) => Ok(Reply::json(200, state.shelf.candidate(owner, id)?)),
            ("DELETE", ["candidates", id]) => {
                let body = shape::body(request, DELETE)?;
                state.shelf.delete_candidate(&body, owner, id, &now)
            }
            ("POST", ["candidates", id, "evaluate"]) => {
                let body = shape::body(request, EVALUATE)?;
                state.shelf.evaluate(&body, owner, id, &now)
            }
            ("POST", ["candidates", id, "promote"]) => {
                let body = shape::body(request, PROMOTE)?;
                state.shelf.promote(&body, owner, id, &now)
            }
            ("GET", ["releases"]) => state.shelf.list_releases(request, owner),
            ("DELETE", ["releases", id]) => {
                let body = shape::body(request, DELETE)?;
                let release = find(&mut state.shelf.releases, owner, "Release", id)?;
                release["is_active"] = json!(false);
                Ok(delete(release, &body, owner, &now))
            }
            ("POST", ["releases", id, "rollback"]) => state.shelf.roll_back(owner, id, &now),
            _ => Err(Reply::detail(404, "Not Found")),
        }
    }
}

impl super::state::State {
    /// Tells whether all of these executions are the browser's, if all of them are there.
    fn kinds(&self, owner: &str, ids: &[String]) -> Result<&'static str, Reply> {
        if ids.is_empty() {
            return Err(bad("source_execution_ids must not be empty"));
        }
        let mut skill_type = "browser";
        for id in ids {
            let own = self.history.iter().find(|entry| entry.owner == owner && entry.value["id"] == **id);
            let entry = own.ok_or_else(|| bad(&format!("Execution not found: {id}")))?;
            if !entry.value["exec_type"].as_str().is_some_and(|kind| kind.starts_with("browser")) {
                skill_type = "code";
            }
        }
        Ok(skill_type)
    }
}

impl Shelf {
    fn add_payload(&mut self, body: &Body, owner: &str) -> Answer {
        let (reference, kind) =
            (format!("blob:blob-{}", clock::digits()), body.text_or_none("kind").unwrap_or("generic"));
        let value = json!({"payload_ref": reference, "kind": kind, "payload": body.value("payload")});
        self.payloads.push((owner.to_owned(), value));
        Ok(Reply::json(201, &json!({"payload_ref": reference, "kind": kind})))
    }

    fn payload(&self, owner: &str, reference: &str) -> Answer {
        if !reference.starts_with("blob:") {
            return Err(bad("payload_ref must begin with blob:"));
        }
        let found = own(&self.payloads, owner).find(|payload| payload["payload_ref"] == reference);
        found.map(|payload| Reply::json(200, payload)).ok_or_else(|| not_found("Payload", reference))
    }

    fn add_candidate(&mut self, body: &Body, owner: &str, skill_type: &str, now: &str) -> Answer {
        let value = json!({
            "id": format!("sc-{}", clock::digits()), "skill_key": body.text("skill_key"),
            "scenario_key": body.value("scenario_key"), "payload_ref": body.value("payload_ref"),
            "skill_type": skill_type, "auto_release_eligible": false, "auto_release_reason": null,
            "summary": body.value("summary"), "usage_notes": body.value("usage_notes"),
            "preconditions": body.value("preconditions"), "postconditions": body.value("postconditions"),
            "source_execution_ids": body.value("source_execution_ids"), "status": "draft", "latest_score": null,
            "latest_pass": null, "last_evaluated_at": null, "promotion_release_id": null, "created_by": owner,
            "created_at": now, "updated_at": now, "is_deleted": false, "deleted_at": null, "deleted_by": null,
            "delete_reason": null,
        });
        let reply = Reply::json(201, &value);
        self.candidates.push((owner.to_owned(), value));
        Ok(reply)
    }

    fn candidate(&mut self, owner: &str, id: &str) -> Result<&mut Value, Reply> {
        find(&mut self.candidates, owner, "Candidate", id)
    }

    fn list_candidates(&self, request: &Request, owner: &str) -> Answer {
        let (status, key) = (wire::parameter(request, "status"), wire::parameter(request, "skill_key"));
        if let Some(status) = status.as_deref().filter(|status| !STATUSES.contains(status)) {
            return Err(bad(&format!("Invalid status: {status}")));
        }
        page(request, own(&self.candidates, owner), |one| is(one, "status", &status) && is(one, "skill_key", &key))
    }

    fn delete_candidate(&mut self, body: &Body, owner: &str, id: &str, now: &str) -> Answer {
        let in_use = own(&self.releases, owner).any(|one| one["candidate_id"] == id && one["is_active"] == true);
        let candidate = self.candidate(owner, id)?;
        if in_use {
            let details = json!({ "candidate_id": id });
            return Err(error(409, "conflict", "An active release uses the candidate", &details));
        }
        Ok(delete(candidate, body, owner, now))
    }

    fn evaluate(&mut self, body: &Body, owner: &str, id: &str, now: &str) -> Answer {
        let candidate = self.candidate(owner, id)?;
        let passed = body.flag("passed", false);
        let change = json!({
            "status": if passed { "evaluating" } else { "rejected" }, "latest_pass": passed,
            "latest_score": body.value("score"), "last_evaluated_at": now, "updated_at": now,
        });
        put(candidate, change);
        Ok(Reply::json(
            200,
            &json!({
                "id": format!("se-{}", clock::digits()), "candidate_id": id, "benchmark_id": body.value("benchmark_id"),
                "score": body.value("score"), "passed": passed, "report": body.value("report"),
                "evaluated_by": owner, "created_at": now,
            }),
        ))
    }

    fn promote(&mut self, body: &Body, owner: &str, id: &str, now: &str) -> Answer {
        let stage = body.text_or_none("stage").unwrap_or("canary").to_owned();
        if !matches!(stage.as_str(), "canary" | "stable") {
            return Err(bad(&format!("Invalid stage: {stage}")));
        }
        let candidate = self.candidate(owner, id)?;
        if candidate["latest_pass"] != true {
            let details = json!({ "candidate_id": id });
            return Err(error(409, "conflict", "Candidate has not passed its latest evaluation", &details));
        }
        let key = candidate["skill_key"].clone();
        let named = ["upgrade_of_release_id", "upgrade_reason", "change_summary"].map(|name| (name, body.value(name)));
        let own = json!({"skill_key": key, "candidate_id": id, "stage": stage});
        let release = self.release(owner, own, named.map(|(name, value)| (name.to_owned(), value)), now);
        let change = json!({"status": "promoted", "promotion_release_id": release["id"], "updated_at": now});
        put(self.candidate(owner, id)?, change);
        Ok(Reply::json(200, &release))
    }

    /// Makes the next release of a skill, which alone is active.
    fn release<const N: usize>(&mut self, owner: &str, own: Value, more: [(String, Value); N], now: &str) -> Value {
        let rivals = self.releases.iter_mut().filter(|(of, one)| of == owner && one["skill_key"] == own["skill_key"]);
        let mut version = 0;
        for (_, rival) in rivals {
            version = version.max(rival["version"].as_i64().unwrap_or_default());
            rival["is_active"] = json!(false);
        }
        let mut release = json!({
            "id": format!("sr-{}", clock::digits()), "skill_key": null, "candidate_id": null, "version": version + 1,
            "stage": null, "is_active": true, "release_mode": "manual", "promoted_by": owner, "promoted_at": now,
            "rollback_of": null, "auto_promoted_from": null, "health_window_end_at": null,
            "upgrade_of_release_id": null, "upgrade_reason": null, "change_summary": null, "is_deleted": false,
            "deleted_at": null, "deleted_by": null, "delete_reason": null,
        });
        put(&mut release, own);
        put(&mut release, Value::Object(Map::from_iter(more)));
        self.releases.push((owner.to_owned(), release.clone()));
        release
    }

    fn list_releases(&self, request: &Request, owner: &str) -> Answer {
        let (key, stage) = (wire::parameter(request, "skill_key"), wire::parameter(request, "stage"));
        let active_only = wire::flag(request, "active_only");
        page(request, own(&self.releases, owner), |one| {
            is(one, "skill_key", &key) && is(one, "stage", &stage) && (!active_only || one["is_active"] == true)
        })
    }

    fn roll_back(&mut self, owner: &str, id: &str, now: &str) -> Answer {
        let bad = find(&mut self.releases, owner, "Release", id)?.clone();
        let version = |one: &Value| one["version"].as_i64().unwrap_or_default();
        let earlier = own(&self.releases, owner)
            .filter(|one| one["skill_key"] == bad["skill_key"] && version(one) < version(&bad))
            .max_by_key(|one| version(one));
        let Some(earlier) = earlier else {
            let text = "Rollback is unavailable: no previous release exists";
            return Err(error(409, "conflict", text, &json!({ "release_id": id })));
        };
        let own = json!({
            "skill_key": bad["skill_key"], "candidate_id": earlier["candidate_id"], "stage": earlier["stage"],
        });
        let release = self.release(owner, own, [("rollback_of".to_owned(), json!(id))], now);
        if let Ok(candidate) = self.candidate(owner, bad["candidate_id"].as_str().unwrap_or_default()) {
            put(candidate, json!({"status": "rolled_back", "updated_at": now}));
        }
        Ok(Reply::json(200, &release))
    }

    /// Returns the active release of a skill and what it holds.
    pub fn active(&mut self, owner: &str, key: &str) -> Result<Active, Reply> {
        let found = own(&self.releases, owner).find(|one| one["skill_key"] == key && one["is_active"] == true);
        let release = found.ok_or_else(|| not_found("Active release", key))?.clone();
        let text = |name: &str| release[name].as_str().unwrap_or_default().to_owned();
        let reference = self.candidate(owner, &text("candidate_id"))?["payload_ref"].clone();
        let payload = own(&self.payloads, owner).find(|payload| payload["payload_ref"] == reference);
        let payload = payload.map(|payload| payload["payload"].clone()).unwrap_or_default();
        Ok(Active { release: text("id"), stage: text("stage"), payload })
    }
}

/// Returns what `owner` has and has not deleted.
fn own<'a>(all: &'a [(String, Value)], owner: &'a str) -> impl DoubleEndedIterator<Item = &'a Value> {
    all.iter().filter(move |(of, one)| of == owner && one["is_deleted"] != true).map(|(_, one)| one)
}

fn find<'a>(all: &'a mut [(String, Value)], owner: &str, what: &str, id: &str) -> Result<&'a mut Value, Reply> {
    let found = all.iter_mut().find(|(of, one)| of == owner && one["id"] == id && one["is_deleted"] != true);
    found.map(|(_, one)| one).ok_or_else(|| not_found(what, id))
}

fn put(object: &mut Value, change: Value) {
    if let (Some(map), Value::Object(change)) = (object.as_object_mut(), change) {
        map.extend(change);
    }
}

fn delete(one: &mut Value, body: &Body, owner: &str, now: &str) -> Reply {
    let change = json!({"deleted_at": now, "deleted_by": owner, "delete_reason": body.value("reason")});
    put(one, change.clone());
    put(one, json!({"is_deleted": true}));
    let mut reply = json!({ "id": one["id"] });
    put(&mut reply, change);
    Reply::json(200, &reply)
}

fn is(one: &Value, name: &str, wanted: &Option<String>) -> bool {
    wanted.as_ref().is_none_or(|wanted| one[name] == **wanted)
}

fn page<'a>(
    request: &Request,
    all: impl DoubleEndedIterator<Item = &'a Value>,
    fits: impl Fn(&Value) -> bool,
) -> Answer {
    let limit = wire::number(request, "limit", 100, (1, 500))?;
    let offset = wire::number(request, "offset", 0, (0, usize::MAX))?;
    let all: Vec<_> = all.rev().filter(|one| fits(one)).collect();
    let items: Vec<_> = all.iter().skip(offset).take(limit).collect();
    Ok(Reply::json(200, &json!({"items": items, "total": all.len()})))
}
