//! The lifecycle of skills up to their releases: payloads, and candidates with their evaluations.

use serde_json::{Value, json};

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
    pub payloads: Vec<(String, Value)>,
    pub candidates: Vec<(String, Value)>,
    pub releases: Vec<(String, Value)>,
}

impl Core {
    pub fn skills(&self, request: &Request, parts: &[&str], owner: &str) -> Answer {
        let now = clock::stamp(self.clock.now());
        let mut state = self.lock();
        match (request.method.as_str(), parts) {
            ("POST", ["payloads"]) => Ok(state.shelf.add_payload(&shape::body(request, PAYLOAD)?, owner)),
            ("GET", ["payloads", reference]) => state.shelf.payload(owner, reference),
            ("POST", ["candidates"]) => {
                let body = shape::body(request, CANDIDATE)?;
                let kinds = state.kinds(owner, &body.texts("source_execution_ids"))?;
                Ok(state.shelf.add_candidate(&body, owner, kinds, &now))
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
    fn add_payload(&mut self, body: &Body, owner: &str) -> Reply {
        let (reference, kind) =
            (format!("blob:blob-{}", clock::digits()), body.text_or_none("kind").unwrap_or("generic"));
        let value = json!({"payload_ref": reference, "kind": kind, "payload": body.value("payload")});
        self.payloads.push((owner.to_owned(), value));
        Reply::json(201, &json!({"payload_ref": reference, "kind": kind}))
    }

    fn payload(&self, owner: &str, reference: &str) -> Answer {
        if !reference.starts_with("blob:") {
            return Err(bad("payload_ref must begin with blob:"));
        }
        let found = own(&self.payloads, owner).find(|payload| payload["payload_ref"] == reference);
        found.map(|payload| Reply::json(200, payload)).ok_or_else(|| not_found("Payload", reference))
    }

    fn add_candidate(&mut self, body: &Body, owner: &str, skill_type: &str, now: &str) -> Reply {
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
        reply
    }

    pub fn candidate(&mut self, owner: &str, id: &str) -> Result<&mut Value, Reply> {
        find(&mut self.candidates, owner, "Candidate", id)
    }

    fn list_candidates(&self, request: &Request, owner: &str) -> Answer {
        let (status, key) = (wire::parameter(request, "status"), wire::parameter(request, "skill_key"));
        if let Some(status) = status.as_deref().filter(|status| !STATUSES.contains(status)) {
            return Err(bad(&format!("Invalid status: {status}")));
        }
        page(request, own(&self.candidates, owner), |one| {
            is(one, "status", status.as_deref()) && is(one, "skill_key", key.as_deref())
        })
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
}

/// Returns what `owner` has and has not deleted.
pub fn own<'a>(all: &'a [(String, Value)], owner: &'a str) -> impl DoubleEndedIterator<Item = &'a Value> {
    all.iter().filter(move |(of, one)| of == owner && one["is_deleted"] != true).map(|(_, one)| one)
}

pub fn find<'a>(all: &'a mut [(String, Value)], owner: &str, what: &str, id: &str) -> Result<&'a mut Value, Reply> {
    let found = all.iter_mut().find(|(of, one)| of == owner && one["id"] == id && one["is_deleted"] != true);
    found.map(|(_, one)| one).ok_or_else(|| not_found(what, id))
}

pub fn put(object: &mut Value, change: Value) {
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

pub fn is(one: &Value, name: &str, wanted: Option<&str>) -> bool {
    wanted.is_none_or(|wanted| one[name] == wanted)
}

pub fn page<'a>(
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
