//! What a ship does when it is asked, and how Bay passes it on.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Answer, Core, files, session};
use crate::http::Request;
use crate::sandboxes::run::Runtime;
use crate::sandboxes::shape::{self, Body, Field, Kind, Need};
use crate::sandboxes::wire::Reply;

const EXEC: &[Field] = &[("type", Kind::Text, Need::Must), ("payload", Kind::Object, Need::Null)];
const ANY: Kind = Kind::Whole(i64::MIN, i64::MAX);
const SHELL: &[Field] = &[
    ("command", Kind::Text, Need::Must),
    ("cwd", Kind::Text, Need::Null),
    ("env", Kind::Object, Need::Null),
    ("timeout", ANY, Need::Null),
    ("shell", Kind::Flag, Need::May),
    ("background", Kind::Flag, Need::May),
];
const PYTHON: &[Field] =
    &[("code", Kind::Text, Need::Must), ("timeout", ANY, Need::May), ("silent", Kind::Flag, Need::May)];

/// What a ship says: its answer, or a status with a detail.
pub type Said = Result<Value, (u16, Value)>;

impl Core {
    pub fn exec(&self, request: &Request, id: &str) -> Answer {
        let session = session(request)?;
        let body = shape::only(request, EXEC)?;
        let user = self.user(id, &session)?;
        let forward = self.lock().forward;
        let (kind, payload) = (body.text("type").to_owned(), body.value("payload"));
        let payload = if payload.is_null() { json!({}) } else { payload };
        let (sender, receiver) = channel();
        let of = session.clone();
        // The ship goes on with it when nobody waits any more.
        std::thread::spawn(move || sender.send(perform(&user, &of, &kind, payload)));
        let said = receiver.recv_timeout(forward).map_err(|_| Reply::detail(400, "Request timeout"))?;
        let data = said.map_err(|(status, detail)| {
            Reply::detail(400, format!("Ship returned {status}: {}", json!({ "detail": detail })))
        })?;
        self.touch(id, &session);
        Ok(Reply::json(200, &json!({"success": true, "data": data, "error": null})))
    }

    /// Returns the user that a session has in a running ship that it has joined.
    pub fn user(&self, id: &str, session: &str) -> Result<Arc<Runtime>, Reply> {
        let mut state = self.settled();
        let running = state.find(id).filter(|ship| ship.running);
        let ship = running.ok_or_else(|| Reply::detail(400, "Ship not found or not running"))?;
        if !ship.has(session) {
            return Err(Reply::detail(400, "Session does not have access to this ship"));
        }
        Ok(ship.user(session))
    }

    /// Gives a session that was served its time again.
    pub fn touch(&self, id: &str, session: &str) {
        let now = self.clock.now();
        if let Some(ship) = self.lock().find(id) {
            ship.touch(session, now);
        }
    }
}

fn perform(user: &Runtime, session: &str, kind: &str, payload: Value) -> Said {
    match kind {
        "shell/exec" => Ok(shell(user, &fields(payload, SHELL)?)),
        "ipython/exec" => Ok(python(user, session, &fields(payload, PYTHON)?)),
        _ => match kind.strip_prefix("fs/") {
            Some(act) => files::perform(user, act, payload),
            None => Err((404, json!("Not Found"))),
        },
    }
}

/// Checks a payload as the ship does.
pub fn fields(payload: Value, fields: &[Field]) -> Result<Body, (u16, Value)> {
    shape::check(payload, fields).map_err(|(kind, field, input)| {
        (422, json!([{"type": kind, "loc": ["body", field], "msg": "Input should be valid", "input": input}]))
    })
}

fn span(body: &Body) -> Duration {
    Duration::from_secs(body.whole("timeout").and_then(|seconds| u64::try_from(seconds).ok()).unwrap_or(30))
}

fn shell(user: &Runtime, body: &Body) -> Value {
    let folder = match cwd(user, body.text_or_none("cwd")) {
        Ok(folder) => folder,
        Err((status, detail)) => {
            let error = format!("{status}: {}", detail.as_str().unwrap_or_default());
            return outcome(false, Some(-1), ["", ""], None, Some(&error));
        }
    };
    // The environment of the payload gets lost on the way to the user's own shell.
    if body.flag("background", false) {
        return match user.background(body.text("command"), &folder) {
            Ok(pid) => outcome(true, None, ["", ""], Some(pid), None),
            Err(error) => outcome(false, Some(-1), ["", ""], None, Some(&error.to_string())),
        };
    }
    let unlimited = body.value("timeout").is_null() && body.has("timeout");
    let ended = user.shell(body.text("command"), &folder, (!unlimited).then(|| span(body)));
    let error = ended.timed_out.then_some("Command timed out");
    let said = [ended.stdout.trim(), ended.stderr.trim()];
    outcome(ended.code == 0, Some(ended.code), said, None, error)
}

fn outcome(success: bool, code: Option<i32>, said: [&str; 2], pid: Option<u32>, error: Option<&str>) -> Value {
    json!({
        "success": success, "return_code": code, "stdout": said[0], "stderr": said[1], "pid": pid, "error": error,
    })
}

fn cwd(user: &Runtime, asked: Option<&str>) -> Result<PathBuf, (u16, Value)> {
    let folder = files::place(user, asked.unwrap_or("."))?;
    if folder.is_dir() { Ok(folder) } else { Err((404, json!("Working directory not found"))) }
}

fn python(user: &Runtime, session: &str, body: &Body) -> Value {
    let cell = user.python(session, body.text("code"), span(body));
    let Some(cell) = cell else {
        let output = json!({"text": "", "images": []});
        let error = "Code execution timed out";
        return json!({
            "success": false, "execution_count": null, "output": output, "error": error, "kernel_id": session,
        });
    };
    json!({
        "success": cell.error.is_none(), "execution_count": cell.number,
        "output": {"text": cell.text, "images": cell.images}, "error": cell.error, "kernel_id": session,
    })
}

/// Makes Bay's answer to what failed in a ship's files: its status is guessed from the words.
pub fn guessed(detail: &Value) -> Reply {
    let text = detail.as_str().unwrap_or_default();
    let words = text.to_lowercase();
    let status = match () {
        () if words.contains("not found") => 404,
        () if words.contains("access") => 403,
        () => 400,
    };
    Reply::detail(status, text)
}
