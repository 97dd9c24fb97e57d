//! Shipyard Neo's Bay: who may ask, what is asked, and what a key makes idempotent.

mod browser;
mod controls;
mod exec;
mod files;
mod history;
mod lifecycle;
mod releases;
mod skills;
mod state;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::{Map, Value, json};
use tempfile::TempDir;

use super::clock::{self, Clock};
use super::server::{Api, Server};
use super::wire::{self, Reply};
use crate::http::Request;
use state::{State, Stored};

pub use browser::Browsed;
pub use state::{Boot, Capabilities, Profile};

type Answer = Result<Reply, Reply>;

const HOUR: i64 = 3600;

/// Shipyard Neo's server: sandboxes with profiles and the lifecycle of skills.
pub struct Bay {
    server: Server,
    core: Arc<Core>,
    _root: TempDir,
}

struct Core {
    clock: Arc<Clock>,
    root: PathBuf,
    state: Mutex<State>,
}

/// Makes Bay's error.
fn error(status: u16, code: &str, message: &str, details: &Value) -> Reply {
    let mut error = Map::new();
    error.insert("code".to_owned(), code.into());
    error.insert("message".to_owned(), message.into());
    if !details.is_null() {
        error.insert("details".to_owned(), details.clone());
    }
    Reply::json(status, &json!({ "error": error }))
}

fn not_found(what: &str, id: &str) -> Reply {
    error(404, "not_found", &format!("{what} not found: {id}"), &Value::Null)
}

fn bad(message: &str) -> Reply {
    error(400, "validation_error", message, &Value::Null)
}

impl Api for Core {
    fn answer(&self, request: &Request) -> Reply {
        let reply = self.admit(request).unwrap_or_else(|refusal| refusal);
        let id = request.header("x-request-id").map_or_else(clock::uuid, str::to_owned);
        reply.with("x-request-id", &id)
    }
}

impl Core {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("a live fake")
    }

    fn admit(&self, request: &Request) -> Answer {
        let parts = wire::parts(&request.path);
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        match (request.method.as_str(), parts.as_slice()) {
            ("GET", ["health"]) => Ok(Reply::json(200, &json!({"status": "ok", "version": "0.4.0"}))),
            ("GET", ["v1", "profiles"]) => Ok(self.lock().list_profiles(wire::flag(request, "detail"))),
            (_, ["v1", rest @ ..]) => {
                let owner = self.owner(request)?;
                self.remembered(request, rest, &owner)
            }
            _ => Err(Reply::detail(404, "Not Found")),
        }
    }

    fn owner(&self, request: &Request) -> Result<String, Reply> {
        let refuse = |why: &str| error(401, "unauthorized", why, &Value::Null);
        let state = self.lock();
        let Some(value) = request.header("authorization") else {
            let named = request.header("x-owner").unwrap_or("default").to_owned();
            return if state.anonymous { Ok(named) } else { Err(refuse("Authentication required")) };
        };
        let key = value.strip_prefix("Bearer ").unwrap_or_default();
        state.keys.get(key).cloned().ok_or_else(|| refuse("Invalid API key"))
    }

    /// Answers a request again as before where it carries the key of one that was done.
    fn remembered(&self, request: &Request, parts: &[&str], owner: &str) -> Answer {
        let takes_key = matches!(parts, ["sandboxes"] | ["sandboxes", _, "extend_ttl"]) && request.method == "POST";
        let Some(key) = request.header("idempotency-key").filter(|_| takes_key) else {
            return self.route(request, parts, owner);
        };
        let refuse =
            |hint: &str| error(409, "conflict", "Idempotency key cannot be used", &json!({"key": key, "hint": hint}));
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if !(1..=128).contains(&key.len()) || !key.chars().all(is_plain) {
            return Err(refuse("1 to 128 characters of A-Z a-z 0-9 _ -"));
        }
        // Held until all is done, so that two with one key come one after the other.
        let stored = self.lock().place_of(owner, key);
        let mut place = stored.lock().expect("a live fake");
        let now = self.clock.now();
        if let Some(done) = place.as_ref().filter(|done| clock::after(done.at, HOUR) > now) {
            let same = done.path == request.path && done.body == request.body;
            return if same { Ok(done.reply.clone()) } else { Err(refuse("Used for a different request")) };
        }
        let reply = self.route(request, parts, owner)?;
        let (path, body) = (request.path.clone(), request.body.clone());
        *place = Some(Stored { at: now, path, body, reply: reply.clone() });
        Ok(reply)
    }

    fn route(&self, request: &Request, parts: &[&str], owner: &str) -> Answer {
        match (request.method.as_str(), parts) {
            ("POST", ["sandboxes"]) => self.create(request, owner),
            ("GET", ["sandboxes"]) => self.list(request, owner),
            ("GET", ["sandboxes", id]) => self.get(owner, id),
            ("DELETE", ["sandboxes", id]) => self.delete(owner, id),
            ("POST", ["sandboxes", id, "extend_ttl"]) => self.extend(request, owner, id),
            ("POST", ["sandboxes", id, "keepalive"]) => self.keep_alive(owner, id),
            ("POST", ["sandboxes", id, "stop"]) => self.stop(owner, id),
            ("POST", ["sandboxes", id, "python", "exec"]) => self.python(request, owner, id),
            ("POST", ["sandboxes", id, "shell", "exec"]) => self.shell(request, owner, id),
            (_, ["sandboxes", id, "browser", rest @ ..]) => self.browser(request, rest, owner, id),
            (_, ["sandboxes", id, "filesystem", what]) => self.files(request, what, owner, id),
            (_, ["sandboxes", id, "history", rest @ ..]) => self.history(request, rest, owner, id),
            (_, ["skills", rest @ ..]) => self.skills(request, rest, owner),
            ("POST", ["admin", "gc", "run"]) => Ok(self.collect()),
            _ => Err(Reply::detail(404, "Not Found")),
        }
    }
}
