//! The tools that make skills of executions, but for those that install one here.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::bay::Ask;
use super::executions;
use super::fault::Fault;
use super::paths::step;
use super::tool::{BayTool, compact};
use crate::http::call::Method;
use crate::tools::{Tool, ToolOutcome};

const PAYLOADS: &str = "skills/payloads";
const CANDIDATES: &str = "skills/candidates";
const RELEASES: &str = "skills/releases";
/// What a rollback does not do.
const UNCHANGED: &str = "unchanged: where the release that was taken back is installed, it stays so until \
                         sync_skill_release installs the one that is in force now";

#[derive(Debug, Deserialize, JsonSchema)]
struct NewPayload {
    /// An object, or an array of objects: the content. `skill_markdown` in it holds the text of the `SKILL.md` that is
    /// installed later; `commands`, an array, what `run_browser_skill` replays.
    payload: Value,
    /// What sort of content it is.
    kind: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct PayloadRef {
    /// The payload, as `create_skill_payload` names it.
    payload_ref: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct NewCandidate {
    /// What the skill is called through all its releases.
    skill_key: String,
    /// The executions that show it, one at least.
    source_execution_ids: Vec<String>,
    /// The situation it is for.
    scenario_key: Option<String>,
    /// The payload, as `create_skill_payload` names it.
    payload_ref: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Candidates {
    /// Only in this state: draft, evaluating, promoted, rejected or `rolled_back`.
    status: Option<String>,
    /// Only of this skill.
    skill_key: Option<String>,
    /// How many at most; 100 unless given.
    limit: Option<i64>,
    /// How many to skip.
    offset: Option<i64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Evaluation {
    /// The candidate.
    candidate_id: String,
    /// Whether it holds.
    passed: bool,
    /// How well, as a number.
    score: Option<f64>,
    /// What it was measured with.
    benchmark_id: Option<String>,
    /// What was found.
    report: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Releases {
    /// Only of this skill.
    skill_key: Option<String>,
    /// Only those in force.
    active_only: Option<bool>,
    /// Only of this stage: canary or stable.
    stage: Option<String>,
    /// How many at most; 100 unless given.
    limit: Option<i64>,
    /// How many to skip.
    offset: Option<i64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct ReleaseId {
    /// The release to go back from.
    release_id: String,
}

/// Returns those up to promotion, in order.
pub fn before_promotion() -> Vec<Arc<dyn Tool>> {
    [executions::all(), payloads(), candidates()].concat()
}

fn payloads() -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(BayTool::new(
            "create_skill_payload",
            "Stores the content of a skill; returns its payload_ref. A stored payload never changes.",
            false,
            |_, NewPayload { payload, kind }| {
                let kind = kind.unwrap_or_else(|| "nano_skill_v1".into());
                Ok(Ask::post(PAYLOADS, &json!({"payload": content(payload)?, "kind": kind})))
            },
        )),
        Arc::new(BayTool::new("get_skill_payload", "Returns a stored payload.", true, |_, args: PayloadRef| {
            Ok(Ask::get(format!("{PAYLOADS}/{}", step(&args.payload_ref)?)))
        })),
    ]
}

fn candidates() -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(BayTool::new(
            "create_skill_candidate",
            "Puts a payload and the executions that show it together as a candidate for a skill.",
            false,
            |_, NewCandidate { skill_key, source_execution_ids, scenario_key, payload_ref }| {
                let more = [("scenario_key", scenario_key), ("payload_ref", payload_ref)];
                let mut body = given(more.map(|(name, text)| (name, text.map(Value::from))));
                body["skill_key"] = skill_key.into();
                body["source_execution_ids"] = source_execution_ids.into();
                Ok(Ask::post(CANDIDATES, &body))
            },
        )),
        Arc::new(BayTool::new("list_skill_candidates", "Lists candidates.", true, |_, args: Candidates| {
            Ok(Ask::get(CANDIDATES)
                .query("status", args.status)
                .query("skill_key", args.skill_key)
                .query("limit", said(args.limit))
                .query("offset", said(args.offset)))
        })),
        Arc::new(BayTool::new(
            "evaluate_skill_candidate",
            "Records whether a candidate holds; without a passed evaluation it cannot be promoted.",
            false,
            |_, Evaluation { candidate_id, passed, score, benchmark_id, report }| {
                let more = [
                    ("passed", Some(passed.into())),
                    ("score", score.map(Value::from)),
                    ("benchmark_id", benchmark_id.map(Value::from)),
                    ("report", report.map(Value::from)),
                ];
                Ok(Ask::post(format!("{CANDIDATES}/{}/evaluate", step(&candidate_id)?), &given(more)))
            },
        )),
    ]
}

/// Returns those between promotion and installing, in order.
pub fn of_releases() -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(BayTool::new("list_skill_releases", "Lists releases of skills.", true, |_, args: Releases| {
            Ok(Ask::get(RELEASES)
                .query("skill_key", args.skill_key)
                .query("active_only", said(args.active_only))
                .query("stage", args.stage)
                .query("limit", said(args.limit))
                .query("offset", said(args.offset)))
        })),
        Arc::new(
            BayTool::new(
                "rollback_skill_release",
                "Takes a release back: the one before it comes into force again, as a new release.",
                false,
                |_, ReleaseId { release_id }| Ok(rollback(&step(&release_id)?)),
            )
            .telling(|reply| {
                let mut told = reply.clone();
                told.as_object_mut().map(|told| told.insert("installed_here".into(), UNCHANGED.into()));
                ToolOutcome::Done(compact(&told))
            }),
        ),
    ]
}

/// Asks for the release before this one to be in force again.
pub fn rollback(release: &str) -> Ask {
    Ask::new(Method::POST, format!("{RELEASES}/{release}/rollback"))
}

/// Writes what is given as a query parameter.
pub fn said(value: Option<impl ToString>) -> Option<String> {
    value.map(|value| value.to_string())
}

/// Makes an object of what is given.
pub fn given<const N: usize>(fields: [(&str, Option<Value>); N]) -> Value {
    let fields = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(fields.collect::<Map<_, _>>())
}

/// Returns the content as Bay takes it. Some models send it as a text that holds the JSON, some lose it on the way.
fn content(payload: Value) -> Result<Value, Fault> {
    let bad = |why: &str| Err(Fault::plain(format!("bad arguments: `payload` {why}")));
    let payload = match payload {
        Value::String(text) => serde_json::from_str(&text).unwrap_or(Value::String(text)),
        other => other,
    };
    match &payload {
        Value::Object(fields) if fields.is_empty() => {
            bad("is empty; give the content, or a text that holds it as JSON")
        }
        Value::Array(items) if items.is_empty() => bad("is empty; give the content, or a text that holds it as JSON"),
        Value::Object(_) => Ok(payload),
        Value::Array(items) if items.iter().all(Value::is_object) => Ok(payload),
        _ => bad("must be an object or an array of objects"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::content;

    #[test]
    fn payloads_come_in_many_forms() {
        let check = |payload: Value, expected: Option<Value>| {
            assert_eq!(content(payload.clone()).ok(), expected, "{payload}");
        };
        check(json!({"a": 1}), Some(json!({"a": 1})));
        check(json!([{"a": 1}, {}]), Some(json!([{"a": 1}, {}])));
        check(json!(r#"{"a": 1}"#), Some(json!({"a": 1})));
        check(json!(r#" [{"a": 1}] "#), Some(json!([{"a": 1}])));
        for bad in [json!({}), json!([]), json!("{}"), json!("text"), json!(["a"]), json!(5), json!("[1]"), json!(true)]
        {
            check(bad, None);
        }
    }
}
