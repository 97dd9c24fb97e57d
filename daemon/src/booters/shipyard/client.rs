//! The wire of an old Shipyard: its calls, and what its answers mean in words.

use std::time::Duration;

use serde_json::Value;

use crate::config::Secret;
use crate::http::HttpError;
use crate::http::call::{Call, Load, Method, Reply};
use crate::sandbox::SandboxError;
use crate::sandbox::workspace::shown;

/// The most that is read of a reply that is not a file.
const REPLY: usize = 16 << 20;
/// A server answers that only looks something up.
pub const SOON: Duration = Duration::from_secs(30);
/// A server may take so long to hand a command on, whatever its time limit.
const FORWARD: Duration = Duration::from_secs(30);
/// What the way to a server may take beside.
pub const SLACK: Duration = Duration::from_secs(15);
pub const KIND: &str = "shipyard";

/// A server, as one session sees it.
#[derive(Debug, Clone)]
pub struct Client {
    /// Its address, without a slash at the end.
    pub base: String,
    /// What it lets us in by.
    pub token: Secret,
    /// By what it knows the session.
    pub session: String,
}

impl Client {
    /// Makes a call of this server.
    pub fn call(&self, method: Method, path: &str, load: Load, within: Duration) -> Call {
        let mut call = Call::new(method, format!("{}{path}", self.base), within);
        call.bearer = Some(self.token.0.clone());
        call.headers.push(("X-SESSION-ID", self.session.clone()));
        call.load = load;
        call
    }

    /// Makes a call that carries JSON, or nothing, and reads its whole reply.
    pub async fn ask(&self, method: Method, path: &str, body: Value, within: Duration) -> Result<Reply, HttpError> {
        let load = if body.is_null() { Load::Nothing } else { Load::Json(body.to_string().into_bytes()) };
        self.call(method, path, load, within).whole(REPLY).await
    }

    /// Has the ship `id` do something, and returns what it says of it, out of its envelope; none where the server did
    /// not wait for it.
    pub async fn exec(
        &self,
        id: &str,
        act: &str,
        payload: Value,
        limit: Duration,
    ) -> Result<Option<Value>, SandboxError> {
        let body = serde_json::json!({"type": act, "payload": payload});
        let within = limit.max(FORWARD) + SLACK;
        let asked = self.ask(Method::POST, &format!("/ship/{id}/exec"), body, within).await;
        let reply = asked.map_err(|why| broken(&why))?;
        if reply.status != 200 {
            let gave_up = self.detail(&reply).is_some_and(|text| text == "Request timeout");
            return if gave_up { Ok(None) } else { Err(self.refusal(&reply).into()) };
        }
        let mut envelope: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
        match (envelope.get("success").and_then(Value::as_bool), envelope.get_mut("data").map(Value::take)) {
            (Some(true), Some(data)) if data.is_object() => Ok(Some(data)),
            (Some(false), _) => Err(SandboxError::Failed(format!(
                "the sandbox refused: {}",
                self.words(envelope.get("error").and_then(Value::as_str).unwrap_or("it does not say why"))
            ))),
            _ => Err(nonsense()),
        }
    }

    /// Says what an answer means that is not the one that was hoped for.
    pub fn refusal(&self, reply: &Reply) -> Refusal {
        let (status, detail) = (reply.status, self.detail(reply));
        let text = detail.as_deref().unwrap_or_default();
        if text.starts_with("Ship not found") || text.contains("does not have access to this ship") {
            return Refusal::Gone(format!("the server says: {text}"));
        }
        match (status, &detail) {
            (401, _) | (403, None) => Refusal::Failed(TOKEN.into()),
            (403, Some(text)) if text.contains("uthenticated") => Refusal::Failed(TOKEN.into()),
            (300..=399, _) => Refusal::Failed(REDIRECT.into()),
            (500..=599, Some(text)) => {
                Refusal::Failed(format!("the sandbox server failed ({status}: {text}); {UNKNOWN}"))
            }
            (500..=599, None) => Refusal::Failed(format!("the sandbox server failed (status {status}); {UNKNOWN}")),
            (_, Some(text)) => Refusal::Answer(format!("the sandbox server answers {status}: {text}")),
            (_, None) => Refusal::Stranger(format!("{STRANGER} (it answers with status {status})")),
        }
    }

    /// Returns the words of an error.
    fn detail(&self, reply: &Reply) -> Option<String> {
        let body: Value = serde_json::from_slice(&reply.body).ok()?;
        let text = match body.get("detail")? {
            Value::String(text) => text.clone(),
            Value::Array(problems) => problems.iter().map(problem).collect::<Vec<_>>().join("; "),
            _ => return None,
        };
        // What every web framework says of a path that it does not have.
        (text != "Not Found" && text != "Method Not Allowed").then(|| self.words(&text))
    }

    /// Returns words of the server as they may be shown: short, one line, and without our key.
    pub fn words(&self, text: &str) -> String {
        shown(&if self.token.0.is_empty() { text.to_owned() } else { text.replace(&self.token.0, "…") })
    }
}

/// Why a request was not done.
#[derive(Debug)]
pub enum Refusal {
    /// There is no such ship for this session.
    Gone(String),
    /// The server says no to what was asked.
    Answer(String),
    /// Something else said no.
    Stranger(String),
    /// It could not even be asked, or broke.
    Failed(String),
}

impl From<Refusal> for SandboxError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Gone(why) => Self::Lost { kind: KIND, why },
            Refusal::Answer(why) | Refusal::Stranger(why) | Refusal::Failed(why) => Self::Failed(why),
        }
    }
}

fn problem(problem: &Value) -> String {
    let place = problem.get("loc").and_then(Value::as_array).and_then(|place| place.last()).and_then(Value::as_str);
    let why = problem.get("msg").and_then(Value::as_str).unwrap_or_default();
    format!("{}: {why}", place.unwrap_or("body"))
}

/// Returns an id as the server gave it if it may stand in a path.
pub fn id(text: &str) -> Option<&str> {
    crate::booters::is_id(text).then_some(text)
}

/// Says what a request came to that got no whole reply.
pub fn broken(why: &HttpError) -> SandboxError {
    SandboxError::Failed(if why.sent {
        format!("the connection to the sandbox server broke ({why}); {UNKNOWN}")
    } else {
        format!(
            "the sandbox server cannot be reached ({why}); nothing was done, so it can be tried again: does it run, and is \
             booters.shipyard.endpoint right?"
        )
    })
}

/// Says that a reply is not one that there can be.
pub fn nonsense() -> SandboxError {
    SandboxError::Failed(format!("the sandbox server's reply makes no sense; {UNKNOWN}"))
}

const UNKNOWN: &str = "it is unknown whether this took effect";
const TOKEN: &str =
    "the sandbox server refused the token; set booters.shipyard.access_token to the server's ACCESS_TOKEN";
const REDIRECT: &str =
    "the sandbox server redirects to another address; put the address it really has in booters.shipyard.endpoint";
pub const STRANGER: &str = "what answers at booters.shipyard.endpoint is not an old Shipyard";
