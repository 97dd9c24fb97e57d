//! What a Bay holds in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use serde_json::{Map, Value, json};

use super::browser::{Browsed, Script};
use super::skills::Shelf;
use super::{Reply, not_found};
use crate::sandboxes::clock::{self, Instant};
use crate::sandboxes::run::Runtime;

/// A kind of sandbox.
#[derive(Debug, Clone)]
pub struct Profile {
    /// Its id.
    pub id: String,
    /// What its sandboxes can do.
    pub capabilities: Vec<String>,
    /// Seconds without a call after which compute goes.
    pub idle_timeout: i64,
}

impl Profile {
    /// Makes one whose compute goes after half an hour.
    pub fn new(id: &str, capabilities: &[&str]) -> Self {
        let capabilities = capabilities.iter().map(|&name| name.to_owned()).collect();
        Self { id: id.to_owned(), capabilities, idle_timeout: 1800 }
    }
}

/// What replies say of a sandbox's capabilities.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Capabilities {
    /// Those of its profile.
    #[default]
    OfProfile,
    /// Nothing: the field is not there.
    Missing,
    /// Null.
    Null,
    /// These, which then are what it really can do.
    Given(Vec<String>),
}

/// How sandboxes come up after they were created.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Boot {
    /// At once, behind a reply that says `idle`.
    #[default]
    Warm,
    /// They are running when the reply says so.
    Pooled,
    /// Only at the first call; until then they are `idle`.
    Cold,
    /// They stay `starting` or `idle` for so many looks; a call counts as one and gets 503.
    Stalled {
        /// The status meanwhile.
        status: &'static str,
        /// How many looks.
        looks: usize,
    },
    /// Never: they are `failed`.
    Failed,
}

#[derive(Default)]
pub struct State {
    /// Keys and whom they stand for.
    pub keys: BTreeMap<String, String>,
    pub anonymous: bool,
    pub profiles: Vec<Profile>,
    pub sandboxes: BTreeMap<String, Sandbox>,
    pub deleted: BTreeSet<(String, String)>,
    pub history: Vec<Entry>,
    pub traces: BTreeMap<String, Value>,
    pub shelf: Shelf,
    pub plan: Plan,
    pub script: Option<Script>,
    pub stored: BTreeMap<(String, String), Place>,
}

pub type Place = Arc<Mutex<Option<Stored>>>;

/// What the test has ordered for the sandboxes to come.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    pub boot: Boot,
    pub capabilities: Capabilities,
    pub profile: Option<String>,
}

pub struct Sandbox {
    pub id: String,
    pub owner: String,
    pub profile: Profile,
    pub plan: Plan,
    pub cargo: String,
    pub created: Instant,
    pub expires: Option<Instant>,
    pub idle_expires: Option<Instant>,
    /// The id of its session while compute runs.
    pub session: Option<String>,
    pub runtime: Arc<Runtime>,
}

pub struct Entry {
    pub owner: String,
    pub sandbox: String,
    pub value: Value,
}

/// A reply that is kept for its idempotency key.
pub struct Stored {
    pub at: Instant,
    pub path: String,
    pub body: Vec<u8>,
    pub reply: Reply,
}

impl State {
    /// Returns a sandbox of `owner` that is there.
    pub fn find(&mut self, owner: &str, id: &str) -> Result<&mut Sandbox, Reply> {
        let found = self.sandboxes.get_mut(id).filter(|sandbox| sandbox.owner == owner);
        found.ok_or_else(|| not_found("Sandbox", id))
    }

    /// Returns the place of the reply to an idempotency key.
    pub fn place_of(&mut self, owner: &str, key: &str) -> Place {
        Arc::clone(self.stored.entry((owner.to_owned(), key.to_owned())).or_default())
    }

    /// Returns what the browser says to a command: what the test has scripted, else an echo.
    pub fn browse(&mut self, command: &str) -> Browsed {
        let Some(script) = self.script.as_mut() else { return Browsed::said(command) };
        script(command)
    }

    /// Answers which profiles there are.
    pub fn list_profiles(&self, detail: bool) -> Reply {
        let describe = |profile: &Profile| {
            let containers = detail.then(|| containers(profile, &Value::Null));
            json!({
                "id": profile.id, "image": "ship:latest", "resources": {"cpus": 1.0, "memory": "1g"},
                "capabilities": profile.capabilities, "idle_timeout": profile.idle_timeout,
                "description": detail.then_some("A profile"), "containers": containers,
            })
        };
        Reply::json(200, &json!({"items": self.profiles.iter().map(describe).collect::<Vec<_>>()}))
    }
}

impl Sandbox {
    /// Returns what it really can do.
    pub fn capabilities(&self) -> &[String] {
        match &self.plan.capabilities {
            Capabilities::Given(list) => list,
            _ => &self.profile.capabilities,
        }
    }

    /// Returns the status that one sees who looks.
    pub fn status(&self, now: Instant) -> &'static str {
        match self.plan.boot {
            _ if self.is_expired(now) => "expired",
            Boot::Failed => "failed",
            Boot::Stalled { status, looks } if looks > 0 => status,
            _ if self.session.is_some() => "ready",
            _ => "idle",
        }
    }

    /// Takes a look away from those that a stalled one still needs; false when none was left.
    pub fn look(&mut self) -> bool {
        let Boot::Stalled { looks, .. } = &mut self.plan.boot else { return false };
        let stalled = *looks > 0;
        *looks = looks.saturating_sub(1);
        stalled
    }

    pub fn is_expired(&self, now: Instant) -> bool {
        self.expires.is_some_and(|end| end <= now)
    }

    /// Starts compute where none runs, and counts the time to idleness anew.
    pub fn touch(&mut self, now: Instant) {
        self.session.get_or_insert_with(|| format!("sess-{}", clock::digits()));
        self.idle_expires = Some(clock::after(now, self.profile.idle_timeout));
    }

    /// Describes it with a status that may be none of its own.
    pub fn describe(&self, status: &str, with_containers: bool) -> Value {
        let mut map = Map::new();
        let mut put = |name: &str, value: Value| drop(map.insert(name.to_owned(), value));
        put("id", json!(self.id));
        put("status", json!(status));
        put("profile", json!(self.profile.id));
        put("cargo_id", json!(self.cargo));
        match &self.plan.capabilities {
            Capabilities::Missing => {}
            Capabilities::Null => put("capabilities", Value::Null),
            _ => put("capabilities", json!(self.capabilities())),
        }
        put("created_at", json!(clock::stamp(self.created)));
        put("expires_at", clock::stamp_or_null(self.expires));
        put("idle_expires_at", clock::stamp_or_null(self.idle_expires));
        let running = with_containers && self.session.is_some();
        put("containers", if running { containers(&self.profile, &json!(true)) } else { Value::Null });
        Value::Object(map)
    }
}

fn containers(profile: &Profile, healthy: &Value) -> Value {
    let one = |name: &str, capabilities: Value| {
        json!({
            "name": name, "runtime_type": name, "status": "running", "version": "0.1.0",
            "capabilities": capabilities, "healthy": healthy, "resources": {"cpus": 1.0, "memory": "1g"},
        })
    };
    if !profile.capabilities.iter().any(|name| name == "browser") {
        return json!([one("ship", json!([]))]);
    }
    let rest: Vec<_> = profile.capabilities.iter().filter(|name| *name != "browser").collect();
    json!([one("ship", json!(rest)), one("gull", json!(["browser"]))])
}
