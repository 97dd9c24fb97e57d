//! What was run, kept for those who ask and annotate.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::state::{Entry, State};
use super::{Answer, Core, Reply, not_found};
use crate::http::Request;
use crate::sandboxes::shape::{self, Body, Field, Kind, Need};
use crate::sandboxes::{clock, wire};

const PATCH: &[Field] =
    &[("description", Kind::Text, Need::Null), ("tags", Kind::Text, Need::Null), ("notes", Kind::Text, Need::Null)];

/// What a call did.
pub struct Record<'a> {
    pub what: &'a str,
    pub code: &'a str,
    pub success: bool,
    pub took: u64,
    pub output: &'a str,
    pub error: Option<&'a str>,
}

impl Core {
    /// Keeps a call and returns its id.
    pub fn record(&self, owner: &str, id: &str, record: &Record<'_>, body: &Body) -> String {
        let execution = format!("exec-{}", clock::digits());
        let learns = body.flag("learn", false);
        let mut state = self.lock();
        let session = state.sandboxes.get(id).and_then(|sandbox| sandbox.session.clone());
        let value = json!({
            "id": execution, "session_id": session, "exec_type": record.what, "code": record.code,
            "success": record.success, "execution_time_ms": record.took, "output": record.output,
            "error": record.error, "payload_ref": null, "description": body.value("description"),
            "tags": tidy(body.text_or_none("tags")), "notes": null, "learn_enabled": learns,
            "learn_status": learns.then_some("pending"), "learn_error": null, "learn_processed_at": null,
            "created_at": clock::stamp(self.clock.now()),
        });
        state.history.push(Entry { owner: owner.to_owned(), sandbox: id.to_owned(), value });
        execution
    }

    pub fn history(&self, request: &Request, parts: &[&str], owner: &str, id: &str) -> Answer {
        let mut state = self.lock();
        state.find(owner, id)?;
        match (request.method.as_str(), parts) {
            ("GET", []) => search(&state, request, id),
            ("GET", ["last"]) => {
                let kind = kind(request)?;
                let last = state.of(id).find(|entry| kind.as_ref().is_none_or(|kind| entry["exec_type"] == **kind));
                last.map(|entry| Reply::json(200, entry)).ok_or_else(|| not_found("Execution", "last"))
            }
            ("GET", [execution]) => Ok(Reply::json(200, state.execution(id, execution)?)),
            ("PATCH", [execution]) => {
                let body = shape::body(request, PATCH)?;
                let entry = state.execution(id, execution)?;
                for (name, ..) in PATCH {
                    let Some(text) = body.text_or_none(name) else { continue };
                    entry[name] = if *name == "tags" { tidy(Some(text)) } else { text.into() };
                }
                Ok(Reply::json(200, entry))
            }
            _ => Err(Reply::detail(404, "Not Found")),
        }
    }
}

impl State {
    /// Returns the history of a sandbox, newest first.
    fn of<'a>(&'a self, sandbox: &'a str) -> impl Iterator<Item = &'a Value> {
        self.history.iter().rev().filter(move |entry| entry.sandbox == sandbox).map(|entry| &entry.value)
    }

    fn execution(&mut self, sandbox: &str, execution: &str) -> Result<&mut Value, Reply> {
        let own = self.history.iter_mut().filter(|entry| entry.sandbox == sandbox).map(|entry| &mut entry.value);
        own.into_iter().find(|entry| entry["id"] == execution).ok_or_else(|| not_found("Execution", execution))
    }
}

fn search(state: &State, request: &Request, id: &str) -> Answer {
    let kind = kind(request)?;
    let limit = wire::number(request, "limit", 100, (1, 500))?;
    let offset = wire::number(request, "offset", 0, (0, usize::MAX))?;
    let tags = wire::parameter(request, "tags").unwrap_or_default().to_lowercase();
    let tags: Vec<&str> = tags.split(',').map(str::trim).filter(|tag| !tag.is_empty()).collect();
    let (only_good, noted, described) =
        (wire::flag(request, "success_only"), wire::flag(request, "has_notes"), wire::flag(request, "has_description"));
    let has = |entry: &Value, name: &str| entry[name].as_str().is_some_and(|text| !text.is_empty());
    let tagged = |entry: &Value| {
        let own = entry["tags"].as_str().unwrap_or_default().to_lowercase();
        tags.is_empty() || tags.iter().any(|tag| own.contains(tag))
    };
    let fits = |entry: &&Value| {
        kind.as_ref().is_none_or(|kind| entry["exec_type"] == **kind)
            && (!only_good || entry["success"] == true)
            && (!noted || has(entry, "notes"))
            && (!described || has(entry, "description"))
            && tagged(entry)
    };
    let all: Vec<_> = state.of(id).filter(fits).collect();
    let page: Vec<_> = all.iter().skip(offset).take(limit).collect();
    Ok(Reply::json(200, &json!({"entries": page, "total": all.len()})))
}

fn kind(request: &Request) -> Result<Option<String>, Reply> {
    let kind = wire::parameter(request, "exec_type");
    match kind.as_deref() {
        None | Some("python" | "shell" | "browser" | "browser_batch") => Ok(kind),
        Some(other) => {
            let place = ["query", "exec_type"];
            Err(wire::invalid("string_pattern_mismatch", &place, "String should match pattern", &json!(other)))
        }
    }
}

/// Returns tags as they are stored: split, trimmed, sorted, each once.
pub fn tidy(tags: Option<&str>) -> Value {
    let tags = tags.unwrap_or_default().split(',').map(str::trim).filter(|tag| !tag.is_empty());
    let joined = tags.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(",");
    if joined.is_empty() { Value::Null } else { joined.into() }
}
