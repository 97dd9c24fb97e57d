//! A browser that says what the test has scripted, else what it was told.

use std::time::Instant;

use serde_json::{Value, json};

use super::exec::elapsed;
use super::history::{Record, tidy};
use super::releases::Active;
use super::{Answer, Core, Reply, bad, not_found};
use crate::http::Request;
use crate::sandboxes::clock;
use crate::sandboxes::shape::{self, Body, Field, Kind, Need};

const EXEC: &[Field] = &[
    ("cmd", Kind::Text, Need::Must),
    ("timeout", Kind::Whole(1, 300), Need::May),
    ("description", Kind::Text, Need::Null),
    ("tags", Kind::Text, Need::Null),
    ("learn", Kind::Flag, Need::May),
    ("include_trace", Kind::Flag, Need::May),
];
const BATCH: &[Field] = &[
    ("commands", Kind::Texts(1), Need::Must),
    ("timeout", Kind::Whole(1, 600), Need::May),
    ("stop_on_error", Kind::Flag, Need::May),
    ("description", Kind::Text, Need::Null),
    ("tags", Kind::Text, Need::Null),
    ("learn", Kind::Flag, Need::May),
    ("include_trace", Kind::Flag, Need::May),
];
const SKILL: &[Field] = &[
    ("timeout", Kind::Whole(1, 600), Need::May),
    ("stop_on_error", Kind::Flag, Need::May),
    ("include_trace", Kind::Flag, Need::May),
    ("description", Kind::Text, Need::Null),
    ("tags", Kind::Text, Need::Null),
];

/// What answers the commands of a browser.
pub type Script = Box<dyn FnMut(&str) -> Browsed + Send>;

/// What a browser says to a command.
#[derive(Debug, Clone, Default)]
pub struct Browsed {
    /// Its output.
    pub stdout: String,
    /// Its complaint.
    pub stderr: String,
    /// Its exit code.
    pub exit_code: i32,
}

impl Browsed {
    /// Makes a success that says this.
    pub fn said(text: &str) -> Self {
        Self { stdout: text.to_owned(), ..Self::default() }
    }

    /// Makes a failure.
    pub fn failed(exit_code: i32, text: &str) -> Self {
        Self { stderr: text.to_owned(), exit_code, ..Self::default() }
    }
}

impl Core {
    pub fn browser(&self, request: &Request, parts: &[&str], owner: &str, id: &str) -> Answer {
        match (request.method.as_str(), parts) {
            ("POST", ["exec"]) => self.browse(request, owner, id),
            ("POST", ["exec_batch"]) => self.browse_batch(request, owner, id),
            ("POST", ["skills", key, "run"]) => self.browse_skill(request, key, owner, id),
            ("GET", ["traces", trace]) => {
                let state = self.lock();
                let found = state.traces.get(*trace).ok_or_else(|| not_found("Trace", trace))?;
                Ok(Reply::json(200, &json!({"trace_ref": trace, "trace": found})))
            }
            _ => Err(Reply::detail(404, "Not Found")),
        }
    }

    fn browse(&self, request: &Request, owner: &str, id: &str) -> Answer {
        let body = shape::body(request, EXEC)?;
        self.enter(owner, id, "browser")?;
        let (code, start) = (body.text("cmd"), Instant::now());
        let said = self.lock().browse(code);
        let success = said.exit_code == 0;
        let error = Some(said.stderr).filter(|text| !text.is_empty());
        let (what, took) = ("browser", elapsed(start));
        let record = Record { what, code, success, took, output: &said.stdout, error: error.as_deref() };
        let execution = self.record(owner, id, &record, &body);
        let step = json!({"cmd": code, "stdout": said.stdout, "stderr": error, "exit_code": said.exit_code});
        let trace = self.trace(&body, "browser_exec_trace", &json!([step]));
        Ok(Reply::json(
            200,
            &json!({
                "success": success, "output": said.stdout, "error": error, "exit_code": said.exit_code,
                "execution_id": execution, "execution_time_ms": took, "trace_ref": trace,
            }),
        ))
    }

    fn browse_batch(&self, request: &Request, owner: &str, id: &str) -> Answer {
        let body = shape::body(request, BATCH)?;
        self.enter(owner, id, "browser")?;
        Ok(Reply::json(200, &self.steps(owner, id, &body.texts("commands"), &body)))
    }

    fn browse_skill(&self, request: &Request, key: &str, owner: &str, id: &str) -> Answer {
        let body = shape::body(request, SKILL)?;
        self.enter(owner, id, "browser")?;
        let Active { release, stage, payload } = self.lock().shelf.active(owner, key)?;
        let list = payload["commands"].as_array().map(Vec::as_slice).unwrap_or_default();
        let commands: Vec<String> = list.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        if commands.is_empty() {
            return Err(bad("The payload of the release has no commands"));
        }
        let mut reply = self.steps(owner, id, &commands, &body);
        let own = format!("{},skill:{key},release:{release},stage:{stage}", body.text("tags"));
        if let Some(entry) = self.lock().history.iter_mut().find(|entry| entry.value["id"] == reply["execution_id"]) {
            entry.value["tags"] = tidy(Some(&own));
        }
        (reply["skill_key"], reply["release_id"]) = (json!(key), json!(release));
        Ok(Reply::json(200, &reply))
    }

    /// Runs commands one after the other and describes how far they came.
    fn steps(&self, owner: &str, id: &str, commands: &[String], body: &Body) -> Value {
        let (start, stops) = (Instant::now(), body.flag("stop_on_error", true));
        let mut results = Vec::new();
        for (index, command) in commands.iter().enumerate() {
            let said = self.lock().browse(command);
            results.push(json!({
                "cmd": command, "stdout": said.stdout, "stderr": said.stderr,
                "exit_code": said.exit_code, "step_index": index, "duration_ms": 0,
            }));
            if stops && said.exit_code != 0 {
                break;
            }
        }
        let success = results.iter().all(|step| step["exit_code"] == 0);
        let (took, code) = (elapsed(start), commands.join("\n"));
        let output = json!(results).to_string();
        let record = Record { what: "browser_batch", code: &code, success, took, output: &output, error: None };
        let execution = self.record(owner, id, &record, body);
        let trace = self.trace(body, "browser_batch_trace", &json!(results));
        json!({
            "completed_steps": results.len(), "total_steps": commands.len(), "results": results, "success": success,
            "duration_ms": took, "execution_id": execution, "execution_time_ms": took, "trace_ref": trace,
        })
    }

    fn trace(&self, body: &Body, kind: &str, steps: &Value) -> Option<String> {
        let name = format!("blob:blob-{}", clock::digits());
        let keeps = body.flag("include_trace", false);
        keeps.then(|| self.lock().traces.insert(name.clone(), json!({"kind": kind, "steps": steps})));
        keeps.then_some(name)
    }
}
