//! What Bay keeps: profiles, and of skills payloads, candidates, releases.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// Bay's words for what went wrong.
pub fn envelope(code: &str, message: &str, details: &Value) -> Value {
    json!({"error": {"code": code, "message": message, "request_id": "req-7", "details": details}})
}

#[derive(Default)]
pub struct Records {
    payloads: BTreeMap<String, Value>,
    candidates: BTreeMap<String, Value>,
    releases: Vec<Value>,
}

impl Records {
    pub fn answer(&mut self, method: &str, parts: &[&str], query: &str, body: &Value) -> (u16, Value) {
        match (method, parts) {
            ("POST", ["payloads"]) => {
                let id = format!("blob:blob-{:012x}", self.payloads.len());
                self.payloads.insert(id.clone(), body["payload"].clone());
                (201, json!({"payload_ref": id, "kind": body["kind"]}))
            }
            ("GET", ["payloads", id]) => found(self.payloads.get(*id).map(|payload| json!({"payload": payload}))),
            ("POST", ["candidates"]) => {
                let id = format!("sc-{}", self.candidates.len());
                let mut candidate = body.clone();
                candidate["id"] = id.clone().into();
                self.candidates.insert(id, candidate.clone());
                (201, candidate)
            }
            ("GET", ["candidates", id]) => found(self.candidates.get(*id).cloned()),
            ("POST", ["candidates", id, "evaluate"]) => {
                let Some(candidate) = self.candidates.get_mut(*id) else { return found(None) };
                candidate["latest_pass"] = body["passed"].clone();
                (200, json!({"candidate_id": id, "passed": body["passed"]}))
            }
            ("POST", ["candidates", id, "promote"]) => match self.candidates.get(*id).cloned() {
                Some(candidate) if candidate["latest_pass"] == true => {
                    (200, self.release(&candidate, &body["stage"], &Value::Null))
                }
                Some(_) => (409, envelope("conflict", "Latest evaluation did not pass", &json!({"candidate_id": id}))),
                None => found(None),
            },
            ("GET", ["releases"]) => self.list(query),
            ("POST", ["releases", id, "rollback"]) => self.rollback(id),
            _ => (200, json!({"asked": parts})),
        }
    }

    fn release(&mut self, candidate: &Value, stage: &Value, rollback_of: &Value) -> Value {
        let key = &candidate["skill_key"];
        let version = 1 + self.releases.iter().filter(|one| one["skill_key"] == *key).count();
        self.releases.iter_mut().filter(|one| one["skill_key"] == *key).for_each(|one| one["is_active"] = false.into());
        let release = json!({"id": format!("sr-{}", self.releases.len()), "skill_key": key, "version": version,
            "candidate_id": candidate["id"], "stage": stage, "is_active": true, "rollback_of": rollback_of});
        self.releases.push(release.clone());
        release
    }

    fn rollback(&mut self, id: &str) -> (u16, Value) {
        let Some(bad) = self.releases.iter().find(|one| one["id"] == id).cloned() else { return found(None) };
        let is_before =
            |one: &&Value| one["skill_key"] == bad["skill_key"] && one["version"].as_u64() < bad["version"].as_u64();
        let Some(before) = self.releases.iter().rev().find(is_before).cloned() else {
            let why = "Rollback is unavailable: no previous release exists";
            return (409, envelope("conflict", why, &json!({"release_id": id})));
        };
        let candidate = self.candidates[before["candidate_id"].as_str().unwrap()].clone();
        (200, self.release(&candidate, &before["stage"], &id.into()))
    }

    fn list(&self, query: &str) -> (u16, Value) {
        let of = |name: &str| of(query, name);
        let (limit, offset) = (of("limit").unwrap_or("100"), of("offset").unwrap_or("0"));
        let wanted = |one: &&Value| {
            of("skill_key").is_none_or(|key| one["skill_key"] == key)
                && of("stage").is_none_or(|stage| one["stage"] == stage)
                && (of("active_only") != Some("true") || one["is_active"] == true)
        };
        let all: Vec<&Value> = self.releases.iter().rev().filter(wanted).collect();
        let page: Vec<_> = all.iter().skip(offset.parse().unwrap()).take(limit.parse().unwrap()).collect();
        (200, json!({"items": page, "total": all.len()}))
    }
}

/// What sandboxes there may be.
pub fn profiles() -> Value {
    json!({"items": [
        {"id": "python-default", "capabilities": ["filesystem", "shell", "python"]},
        {"id": "browser-python", "capabilities": ["browser", "filesystem", "python", "shell"]},
        {"id": "python-data", "capabilities": ["python", "shell", "filesystem"]},
    ]})
}

fn of<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    query.split('&').find_map(|pair| pair.strip_prefix(&format!("{name}=")))
}

/// A page of a history.
pub fn page(history: &[Value], query: &str) -> Value {
    let count = |name: &str, usual: usize| of(query, name).map_or(usual, |text| text.parse().unwrap());
    let is_wanted = |one: &&Value| of(query, "success_only") != Some("true") || one["success"] == true;
    let all: Vec<&Value> = history.iter().filter(is_wanted).collect();
    let some: Vec<_> = all.iter().skip(count("offset", 0)).take(count("limit", 100)).collect();
    json!({"entries": some, "total": all.len()})
}

fn found(what: Option<Value>) -> (u16, Value) {
    what.map_or_else(|| (404, envelope("not_found", "Not found", &json!({}))), |what| (200, what))
}
