//! The gate before every capability, and shell and Python behind it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::history::Record;
use super::state::Boot;
use super::{Answer, Core, Reply, error};
use crate::http::Request;
use crate::sandboxes::files;
use crate::sandboxes::run::Runtime;
use crate::sandboxes::shape::{self, Field, Kind, Need};

const SHELL: &[Field] = &[
    ("command", Kind::Text, Need::Must),
    ("timeout", Kind::Whole(1, 300), Need::May),
    ("cwd", Kind::Text, Need::Null),
    ("include_code", Kind::Flag, Need::May),
    ("description", Kind::Text, Need::Null),
    ("tags", Kind::Text, Need::Null),
];
const PYTHON: &[Field] = &[
    ("code", Kind::Text, Need::Must),
    ("timeout", Kind::Whole(1, 300), Need::May),
    ("include_code", Kind::Flag, Need::May),
    ("description", Kind::Text, Need::Null),
    ("tags", Kind::Text, Need::Null),
];

/// Returns the seconds that a call may take.
pub fn timeout(body: &shape::Body, usual: u64) -> Duration {
    Duration::from_secs(body.whole("timeout").and_then(|seconds| u64::try_from(seconds).ok()).unwrap_or(usual))
}

/// Returns the milliseconds since `start`.
pub fn elapsed(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX)
}

impl Core {
    /// Lets a call in that the sandbox can serve, starting its compute where none runs.
    pub fn enter(&self, owner: &str, id: &str, capability: &str) -> Result<Arc<Runtime>, Reply> {
        let now = self.clock.now();
        let mut state = self.lock();
        let sandbox = state.find(owner, id)?;
        let available = sandbox.capabilities();
        if !available.iter().any(|name| name == capability) {
            let details = json!({"capability": capability, "available": available});
            let message = format!("Profile does not support capability: {capability}");
            return Err(error(400, "capability_not_supported", &message, &details));
        }
        if sandbox.look() {
            let details = json!({"sandbox_id": id, "retry_after_ms": 1000});
            return Err(error(503, "session_not_ready", "Session is starting", &details));
        }
        if sandbox.plan.boot == Boot::Failed {
            return Err(error(502, "ship_error", "Runtime failed to start", &Value::Null));
        }
        sandbox.touch(now);
        Ok(Arc::clone(&sandbox.runtime))
    }

    pub fn shell(&self, request: &Request, owner: &str, id: &str) -> Answer {
        let body = shape::body(request, SHELL)?;
        let runtime = self.enter(owner, id, "shell")?;
        let (command, start) = (body.text("command"), Instant::now());
        let ended = match cwd(&runtime, body.text_or_none("cwd")) {
            Some(folder) => runtime.shell(command, &folder, Some(timeout(&body, 30))),
            None => crate::sandboxes::run::Ended {
                code: -1,
                stderr: "Working directory is outside of the workspace or missing".to_owned(),
                ..Default::default()
            },
        };
        let success = ended.code == 0;
        let said = if ended.timed_out { "Command timed out".to_owned() } else { ended.stderr };
        let error = Some(said).filter(|text| !text.is_empty());
        let (output, time) = (ended.stdout, elapsed(start));
        let (what, took) = ("shell", time);
        let record = Record { what, code: command, success, took, output: &output, error: error.as_deref() };
        let execution = self.record(owner, id, &record, &body);
        let command = body.flag("include_code", false).then_some(command);
        Ok(Reply::json(
            200,
            &json!({
                "success": success, "output": output, "error": error, "exit_code": ended.code,
                "execution_id": execution, "execution_time_ms": time, "command": command,
            }),
        ))
    }

    pub fn python(&self, request: &Request, owner: &str, id: &str) -> Answer {
        let body = shape::body(request, PYTHON)?;
        let runtime = self.enter(owner, id, "python")?;
        let (code, start) = (body.text("code"), Instant::now());
        let cell = runtime.python("", code, timeout(&body, 30));
        let in_time = cell.is_some();
        let cell = cell.unwrap_or_default();
        let error = if in_time { cell.error } else { Some("Execution timed out".to_owned()) };
        let (success, took) = (error.is_none(), elapsed(start));
        let record = Record { what: "python", code, success, took, output: &cell.text, error: error.as_deref() };
        let execution = self.record(owner, id, &record, &body);
        let output = json!({"text": cell.text, "images": if in_time { cell.images } else { json!([]) }});
        let data = json!({"execution_count": in_time.then_some(cell.number), "output": output});
        let code = body.flag("include_code", false).then_some(code);
        Ok(Reply::json(
            200,
            &json!({
                "success": success, "output": cell.text, "error": error, "data": data,
                "execution_id": execution, "execution_time_ms": took, "code": code,
            }),
        ))
    }
}

/// Returns the folder that a command is to run in, if it is one of the workspace.
fn cwd(runtime: &Runtime, asked: Option<&str>) -> Option<std::path::PathBuf> {
    let asked = asked.unwrap_or_default();
    let inner = match asked.strip_prefix(runtime.shown()) {
        Some(inner) => inner.trim_start_matches('/'),
        None if asked.starts_with('/') => return None,
        None => asked,
    };
    Some(runtime.workspace().join(files::normalise(inner)?)).filter(|folder| folder.is_dir())
}
