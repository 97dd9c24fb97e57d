//! Ships, their sessions and the users behind them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::sandboxes::clock::{self, Instant};
use crate::sandboxes::run::Runtime;

/// What becomes of the one who wants a ship when no more may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtLimit {
    /// It waits, so long at most.
    Wait(Duration),
    /// It is refused.
    Reject,
}

pub struct State {
    pub key: String,
    pub ships: Vec<Ship>,
    pub most: usize,
    pub at_limit: AtLimit,
    /// How long a ship's answer is waited for.
    pub forward: Duration,
}

impl Default for State {
    fn default() -> Self {
        Self {
            key: String::new(),
            ships: Vec::new(),
            most: 10,
            at_limit: AtLimit::Wait(Duration::from_mins(5)),
            forward: Duration::from_secs(30),
        }
    }
}

pub struct Ship {
    pub id: String,
    pub running: bool,
    pub created: Instant,
    pub updated: Instant,
    /// When it stops unless somebody uses it.
    pub stops: Instant,
    /// The seconds that were left when that was last reckoned.
    pub ttl: i64,
    most: i64,
    root: PathBuf,
    sessions: BTreeMap<String, Session>,
    users: BTreeMap<String, Arc<Runtime>>,
}

struct Session {
    ttl: i64,
    expires: Instant,
}

impl State {
    pub fn find(&mut self, id: &str) -> Option<&mut Ship> {
        self.ships.iter_mut().find(|ship| ship.id == id)
    }

    pub fn is_full(&self) -> bool {
        self.ships.iter().filter(|ship| ship.running).count() >= self.most
    }

    /// Returns where the session's ship is: the one that runs, the one that has stopped, or one with a free place.
    pub fn place(&self, session: &str) -> Option<usize> {
        let own = |ship: &&Ship| ship.sessions.contains_key(session);
        let at = |wanted: &Ship| self.ships.iter().position(|ship| ship.id == wanted.id);
        let running = self.ships.iter().filter(own).find(|ship| ship.running);
        let stopped = || self.ships.iter().filter(own).find(|ship| !ship.running);
        let free = || self.ships.iter().find(|ship| ship.running && ship.count() < ship.most);
        running.or_else(stopped).or_else(free).and_then(at)
    }
}

impl Ship {
    pub fn new(root: &Path, now: Instant, most: i64) -> Self {
        let id = clock::uuid();
        let (root, sessions, users) = (root.join(&id), BTreeMap::new(), BTreeMap::new());
        Self { id, running: true, created: now, updated: now, stops: now, ttl: 0, most, root, sessions, users }
    }

    fn count(&self) -> i64 {
        i64::try_from(self.sessions.len()).unwrap_or(i64::MAX)
    }

    /// Lets a session in, or in again, and starts the ship where it had stopped.
    pub fn join(&mut self, session: &str, ttl: i64, now: Instant) {
        self.running = true;
        self.sessions.insert(session.to_owned(), Session { ttl, expires: clock::after(now, ttl) });
        self.reckon(now);
    }

    pub fn has(&self, session: &str) -> bool {
        self.sessions.contains_key(session)
    }

    /// Gives a session its whole time again.
    pub fn touch(&mut self, session: &str, now: Instant) {
        if let Some(session) = self.sessions.get_mut(session) {
            session.expires = clock::after(now, session.ttl);
        }
        self.reckon(now);
    }

    fn reckon(&mut self, now: Instant) {
        self.stops = self.latest().unwrap_or(now);
        (self.ttl, self.updated) = (clock::seconds(now, self.stops), now);
    }

    fn latest(&self) -> Option<Instant> {
        self.sessions.values().map(|session| session.expires).max()
    }

    /// Stops it and returns the users whose processes have to end.
    pub fn halt(&mut self) -> Vec<Arc<Runtime>> {
        self.running = false;
        self.users()
    }

    pub fn users(&self) -> Vec<Arc<Runtime>> {
        self.users.values().cloned().collect()
    }

    /// Returns the user that a session is; sessions whose ids begin with the same eight characters are one.
    pub fn user(&mut self, session: &str) -> Arc<Runtime> {
        let name: String = session.chars().take(8).collect();
        let folder: String = name.chars().map(|c| if c.is_alphanumeric() || c == '-' { c } else { '_' }).collect();
        let make = || Arc::new(Runtime::new(self.root.join(folder), &format!("/home/ship_{name}/workspace")));
        Arc::clone(self.users.entry(name.clone()).or_insert_with(make))
    }

    /// Describes it; only some replies tell when its sessions end.
    pub fn describe(&self, now: Instant, with_expiry: bool) -> Value {
        let expires = self.latest().filter(|_| with_expiry);
        json!({
            "id": self.id, "status": i32::from(self.running), "created_at": clock::stamp(self.created),
            "updated_at": clock::stamp(self.updated.min(now)),
            "container_id": self.running.then(|| self.id.replace('-', "")),
            "ip_address": self.running.then_some("127.0.0.1"), "ttl": self.ttl, "max_session_num": self.most,
            "current_session_num": self.count(), "expires_at": clock::stamp_or_null(expires),
        })
    }
}
