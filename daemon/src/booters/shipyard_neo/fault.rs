//! What went wrong with a call of Bay, in words that a model or a person can act on. Pure.

use std::time::Duration;

use nano_protocol::Object;
use serde_json::Value;

use crate::http::HttpError;
use crate::http::call::Reply;
use crate::sandbox::output::readable;

/// How much of a server's words is passed on, in characters.
const WORDS: usize = 500;
/// How long to wait where the server says wait but not how long.
const SOON: Duration = Duration::from_secs(1);
const WAITS: std::ops::RangeInclusive<f64> = 1.0..=30_000.0;

/// A call that did not do what it was to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{words}")]
pub struct Fault {
    /// The HTTP status; 0 where there was no reply.
    pub status: u16,
    /// Bay's word for it; empty where it has none.
    pub code: String,
    /// What happened and what to try.
    pub words: String,
    /// After how long the same call may be made again, because nothing was done.
    pub wait: Option<Duration>,
    /// Whether the same call may succeed.
    pub transient: bool,
    /// Whether the call may have had its effect all the same.
    pub may_have_run: bool,
}

impl Fault {
    /// Says something that is known without a call, or follows from a good reply.
    pub fn plain(words: impl Into<String>) -> Self {
        let (code, words) = (String::new(), words.into());
        Self { status: 0, code, words, wait: None, transient: false, may_have_run: false }
    }

    /// Tells whether Bay says that there is no such thing.
    pub fn is_not_found(&self) -> bool {
        self.status == 404 && self.code == "not_found"
    }

    /// Reads a reply that is no success; `endpoint` is the server as it may be shown.
    pub fn of_reply(reply: &Reply, endpoint: &str) -> Self {
        let body: Option<Value> = serde_json::from_slice(&reply.body).ok();
        let envelope = body.as_ref().and_then(|body| body.get("error")?.as_object());
        let code = envelope.and_then(|envelope| envelope.get("code")?.as_str());
        if let (Some(envelope), Some(code)) = (envelope, code) {
            return Self::enveloped(reply.status, code, envelope);
        }
        let fields = body.as_ref().and_then(|body| body.get("detail")?.as_array());
        let words = match (reply.status, fields) {
            (422, Some(fields)) => format!("the server refuses the arguments: {}", refused(fields)),
            _ => without_envelope(reply, endpoint),
        };
        let transient = reply.status == 429 || reply.status >= 500;
        let fault = Self::plain(words);
        Self { status: reply.status, transient, may_have_run: reply.status >= 500, ..fault }
    }

    fn enveloped(status: u16, code: &str, envelope: &Object) -> Self {
        let text = |key: &str| envelope.get(key).and_then(Value::as_str).map(one_line).unwrap_or_default();
        let (message, request) = (text("message"), text("request_id"));
        let none = Object::new();
        let details = envelope.get("details").and_then(Value::as_object).unwrap_or(&none);
        let is_missing = code == "ship_error" && message == "Ship request failed: 404";
        let advice = match code {
            "ship_error" if is_missing => "there is no such file or folder in the sandbox; look with exec".into(),
            code => advice(code, details),
        };
        let request = if request.is_empty() { request } else { format!(" (request {request})") };
        let words = format!("{}: {message}{request}; {advice}", one_line(code));
        let asked = details.get("retry_after_ms").and_then(Value::as_f64).filter(|wait| WAITS.contains(wait));
        let wait = (code == "session_not_ready").then(|| asked.map_or(SOON, |ms| Duration::from_secs_f64(ms / 1e3)));
        let failed = matches!(code, "internal_error" | "ship_error" | "timeout") && !is_missing;
        let code = code.to_owned();
        Self { status, code, words, wait, transient: failed || status == 429, may_have_run: failed }
    }

    /// Reads what kept a reply from coming.
    pub fn of_http(error: &HttpError, endpoint: &str) -> Self {
        let hint = if error.sent { "" } else { "; does the server run, and is booters.shipyard_neo.endpoint right?" };
        let words = format!("no reply from {endpoint}: {}{hint}", error.message);
        Self { transient: error.transient, may_have_run: error.sent, ..Self::plain(words) }
    }

    /// Says of a call that only reads what can be done about a reply that did not come.
    pub fn of_read(mut self) -> Self {
        if self.transient && self.may_have_run && self.status == 0 {
            self.words.push_str("; nothing was changed, so it can be tried again");
        }
        self
    }

    /// Says of a call that changes something what is not known about it.
    pub fn of_change(mut self) -> Self {
        if self.may_have_run {
            self.words.push_str("; whether it took effect is not known: look before it is done again");
        }
        self
    }
}

/// Says what a code means for who made the call.
fn advice(code: &str, details: &Object) -> String {
    let text = |key: &str| details.get(key).and_then(Value::as_str).map(one_line).unwrap_or_default();
    match code {
        "unauthorized" => KEY.into(),
        "forbidden" => "the key is known but may not do this; use one that may".into(),
        "not_found" => "there is none of that name: look at the id".into(),
        "quota_exceeded" => "a limit of the server is reached: try again later, or end what is not needed".into(),
        "validation_error" => "correct the arguments".into(),
        "invalid_path" => {
            format!("give a path relative to the sandbox's folder, such as report.txt ({})", text("reason"))
        }
        "capability_not_supported" => {
            let available = details.get("available").and_then(Value::as_array).into_iter().flatten();
            let words: Vec<_> = available.filter_map(Value::as_str).map(one_line).collect();
            format!("this sandbox has only {}: do it with those", words.join(", "))
        }
        "file_not_found" => "there is no such file in the sandbox; look with exec".into(),
        "conflict" if details.contains_key("candidate_id") => {
            "a candidate is promoted only once its latest evaluation has passed: see list_skill_candidates".into()
        }
        "conflict" => "the present state does not allow it: see list_skill_candidates and list_skill_releases".into(),
        "sandbox_expired" => "its time is over; a new sandbox begins without its files".into(),
        "sandbox_ttl_infinite" => "it never expires, so there is nothing to extend".into(),
        "session_not_ready" => "the sandbox is still starting: try again in a while".into(),
        "ship_error" => "the runtime in the sandbox failed or refused: try something simpler, or again later".into(),
        "timeout" => "the runtime did not answer in time: give it a longer timeout or less to do".into(),
        "internal_error" => "the server failed; its log says why".into(),
        _ => "the server says no more".into(),
    }
}

const KEY: &str = "the server refuses the key: set booters.shipyard_neo.access_token (or access_token_env, \
                   access_token_file), or BAY_TOKEN, to a key of this server";

/// Names the fields of a validation error.
fn refused(fields: &[Value]) -> String {
    let field = |one: &Value| {
        let place = one.get("loc").and_then(Value::as_array).into_iter().flatten();
        let steps: Vec<_> = place.map(|step| step.as_str().map_or_else(|| step.to_string(), str::to_owned)).collect();
        let name = steps.iter().skip(usize::from(steps.len() > 1)).map(String::as_str).collect::<Vec<_>>().join(".");
        format!("`{}`: {}", one_line(&name), one_line(one.get("msg").and_then(Value::as_str).unwrap_or("is wrong")))
    };
    fields.iter().take(10).map(field).collect::<Vec<_>>().join("; ")
}

fn without_envelope(reply: &Reply, endpoint: &str) -> String {
    let status = reply.status;
    match status {
        300..=399 => format!(
            "the server at {endpoint} redirects to another address (HTTP {status}), which is never followed because the \
             key must not travel; set booters.shipyard_neo.endpoint to the address that answers itself"
        ),
        401 | 403 => format!("HTTP {status}; {KEY}"),
        404 | 405 => wrong_server(endpoint),
        413 => "HTTP 413; it is larger than the server takes".into(),
        _ if looks_like_html(&reply.body) => {
            format!("HTTP {status} with a web page instead of a reply; {}", wrong_server(endpoint))
        }
        _ if reply.body.trim_ascii().is_empty() => {
            format!("HTTP {status} and not a word of why; the server's log may say more")
        }
        _ => format!("HTTP {status} without Bay's words for it: {}", one_line(&String::from_utf8_lossy(&reply.body))),
    }
}

/// Says that whatever answers is not Bay.
pub fn wrong_server(endpoint: &str) -> String {
    format!(
        "what answers at {endpoint} does not know this call of Bay v1: it is another server or an older one; if it is an \
         old Shipyard, use the booter shipyard, else correct booters.shipyard_neo.endpoint"
    )
}

/// Tells whether a body is a web page.
pub fn looks_like_html(body: &[u8]) -> bool {
    body.trim_ascii_start().first() == Some(&b'<')
}

impl From<Fault> for String {
    fn from(fault: Fault) -> Self {
        fault.words
    }
}

/// Makes one bounded line of a server's words.
pub fn one_line(text: &str) -> String {
    let end = text.floor_char_boundary(8 * WORDS);
    let line = readable(&text.as_bytes()[..end]).split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(WORDS) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}
