//! The old Shipyard: ships that are found again by session id.

mod exec;
mod files;
mod state;

use std::fs;
use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::clock::{self, Clock};
use super::run::Runtime;
use super::server::{Api, Server};
use super::shape::{self, Body, Field, Kind, Need};
use super::wire::{self, Reply};
use crate::http::Request;
use state::{Ship, State};

pub use state::AtLimit;

type Answer = Result<Reply, Reply>;

const POSITIVE: Kind = Kind::Whole(1, i64::MAX);
const CREATE: &[Field] =
    &[("ttl", POSITIVE, Need::Must), ("max_session_num", POSITIVE, Need::May), ("spec", Kind::Object, Need::Null)];
const SPEC: &[Field] = &[("cpus", Kind::Number, Need::Null), ("memory", Kind::Text, Need::Null)];
const EXTEND: &[Field] = &[("ttl", POSITIVE, Need::Must)];

/// The old Shipyard's server.
pub struct Ships {
    server: Server,
    core: Arc<Core>,
    _root: TempDir,
}

struct Core {
    clock: Arc<Clock>,
    root: PathBuf,
    state: Mutex<State>,
    changed: Condvar,
}

impl Ships {
    /// Starts one with one key.
    pub fn start() -> Self {
        let root = tempfile::tempdir().expect("a temporary folder");
        let clock = Arc::new(Clock::default());
        let state = State { key: format!("secret-{}", clock::digits()), ..State::default() };
        let (time, folder) = (Arc::clone(&clock), root.path().to_owned());
        let core = Arc::new(Core { clock: time, root: folder, state: Mutex::new(state), changed: Condvar::new() });
        Self { server: Server::start(Arc::clone(&core) as _, clock), core, _root: root }
    }

    /// Returns the one key.
    pub fn key(&self) -> String {
        self.core.lock().key.clone()
    }

    /// Makes the key invalid and returns another.
    pub fn change_key(&self) -> String {
        let key = format!("secret-{}", clock::digits());
        self.core.lock().key.clone_from(&key);
        key
    }

    /// Returns the ids of the ships that run.
    pub fn ships(&self) -> Vec<String> {
        let mut state = self.core.settled();
        state.ships.iter_mut().filter(|ship| ship.running).map(|ship| ship.id.clone()).collect()
    }

    /// Returns the real folder behind the workspace that a session has in a ship.
    pub fn folder(&self, ship: &str, session: &str) -> PathBuf {
        self.core.with(ship, |ship| ship.user(session).workspace())
    }

    /// Returns the seconds that a ship has left; nothing where it has stopped or is none.
    pub fn seconds_left(&self, ship: &str) -> Option<i64> {
        let (mut state, now) = (self.core.settled(), self.core.clock.now());
        state.find(ship).filter(|ship| ship.running).map(|ship| clock::seconds(now, ship.stops))
    }

    /// Waits no longer than this for a ship's answer, instead of 30 s.
    pub fn set_forward_timeout(&self, timeout: Duration) {
        self.core.lock().forward = timeout;
    }

    /// Lets no more than `most` ships run, and does this with whoever wants one more.
    pub fn set_limit(&self, most: usize, then: AtLimit) {
        (self.core.lock().most, self.core.lock().at_limit) = (most, then);
    }

    /// Lets a ship's time be up: it stops, and its files stay.
    pub fn expire(&self, ship: &str) {
        let users = self.core.with(ship, Ship::halt);
        for user in &users {
            user.kill();
        }
        self.core.changed.notify_all();
    }

    /// Kills what runs in a ship, which itself still seems to run: its kernels lose their variables.
    pub fn kill_runtime(&self, ship: &str) {
        let users = self.core.with(ship, |ship| ship.users());
        for user in &users {
            user.kill();
        }
    }

    /// Removes a ship with its files: from now on it is not found.
    pub fn forget(&self, ship: &str) {
        self.core.remove(ship).expect("a ship of this Shipyard");
    }
}

impl Deref for Ships {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

impl DerefMut for Ships {
    fn deref_mut(&mut self) -> &mut Server {
        &mut self.server
    }
}

impl Drop for Ships {
    fn drop(&mut self) {
        self.server.stop();
        let ships = std::mem::take(&mut self.core.lock().ships);
        for user in ships.iter().flat_map(Ship::users) {
            user.end();
        }
        fs::remove_dir_all(&self.core.root).ok();
    }
}

/// Returns the header that names the session.
fn session(request: &Request) -> Result<String, Reply> {
    let place = ["header", "x-session-id"];
    let found = request.header("x-session-id").map(str::to_owned);
    found.ok_or_else(|| wire::invalid("missing", &place, "Field required", &Value::Null))
}

fn no_ship() -> Reply {
    Reply::detail(404, "Ship not found")
}

impl Api for Core {
    fn answer(&self, request: &Request) -> Reply {
        self.route(request).unwrap_or_else(|refusal| refusal)
    }
}

impl Core {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("a live fake")
    }

    /// Returns the state after every ship whose time is up has stopped.
    fn settled(&self) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        let now = self.clock.now();
        let over = state.ships.iter_mut().filter(|ship| ship.running && ship.stops <= now);
        let users: Vec<Arc<Runtime>> = over.flat_map(Ship::halt).collect();
        for user in &users {
            user.kill();
        }
        state
    }

    fn with<T>(&self, id: &str, act: impl FnOnce(&mut Ship) -> T) -> T {
        act(self.lock().find(id).expect("a ship of this Shipyard"))
    }

    fn route(&self, request: &Request) -> Answer {
        let parts = wire::parts(&request.path);
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        match (request.method.as_str(), parts.as_slice()) {
            ("GET", ["health"]) => return Ok(Reply::json(200, &json!({"status": "ok", "message": "Bay is running"}))),
            ("GET", [] | ["stat"]) => {
                let body = json!({"service": "bay", "version": "1.0.0", "status": "running", "author": "scripted"});
                return Ok(Reply::json(200, &body));
            }
            (_, ["ships"] | ["ship", ..]) => self.admit(request)?,
            // Nobody is asked for a key at a path that is none.
            _ => {}
        }
        match (request.method.as_str(), parts.as_slice()) {
            ("GET", ["ships"]) => Ok(self.list()),
            ("POST", ["ship"]) => self.create(request),
            ("GET", ["ship", "logs", id]) => {
                let logs = if self.lock().find(id).is_some() { "ship started\n" } else { "" };
                Ok(Reply::json(200, &json!({ "logs": logs })))
            }
            ("GET", ["ship", id]) => {
                let (mut state, now) = (self.settled(), self.clock.now());
                let ship = state.find(id).ok_or_else(no_ship)?;
                Ok(Reply::json(200, &ship.describe(now, true)))
            }
            ("DELETE", ["ship", id]) => self.remove(id).map(|()| Reply::nothing()).ok_or_else(no_ship),
            ("POST", ["ship", id, "exec"]) => self.exec(request, id),
            ("POST", ["ship", id, "extend-ttl"]) => self.extend(request, id),
            ("POST", ["ship", id, "upload"]) => self.upload(request, id),
            ("GET", ["ship", id, "download"]) => self.download(request, id),
            _ => Err(Reply::detail(404, "Not Found")),
        }
    }

    fn admit(&self, request: &Request) -> Result<(), Reply> {
        let refuse = |why: &str| Reply::detail(401, why).with("www-authenticate", "Bearer");
        let value = request.header("authorization").ok_or_else(|| refuse("Not authenticated"))?;
        let right = value.strip_prefix("Bearer ").is_some_and(|key| key == self.lock().key);
        if right { Ok(()) } else { Err(refuse("Invalid access token")) }
    }

    fn list(&self) -> Reply {
        let (state, now) = (self.settled(), self.clock.now());
        let running: Vec<_> = state.ships.iter().filter(|ship| ship.running).collect();
        Reply::json(200, &running.iter().map(|ship| ship.describe(now, true)).collect())
    }

    fn create(&self, request: &Request) -> Answer {
        let session = session(request)?;
        let body = shape::only(request, CREATE)?;
        let spec = body.value("spec");
        if !spec.is_null() {
            let inner = Request { body: spec.to_string().into_bytes(), ..Request::default() };
            shape::only(&inner, SPEC)?;
        }
        let mut state = self.settled();
        if state.place(&session).is_none() && state.is_full() {
            state = self.wait_for_room(state)?;
        }
        Ok(Reply::json(201, &self.board(&mut state, &session, &body)))
    }

    /// Gives the session its ship, a free place in one, or a new one.
    fn board(&self, state: &mut State, session: &str, body: &Body) -> Value {
        let now = self.clock.now();
        let at = state.place(session).unwrap_or_else(|| {
            let most = body.whole("max_session_num").unwrap_or(1);
            state.ships.push(Ship::new(&self.root, now, most));
            state.ships.len() - 1
        });
        let ship = &mut state.ships[at];
        ship.join(session, body.whole("ttl").unwrap_or_default(), now);
        ship.describe(now, false)
    }

    fn wait_for_room<'a>(&self, state: MutexGuard<'a, State>) -> Result<MutexGuard<'a, State>, Reply> {
        let AtLimit::Wait(most) = state.at_limit else {
            return Err(Reply::detail(500, "Maximum number of ships reached"));
        };
        let waited = self.changed.wait_timeout_while(state, most, |state| state.is_full());
        let (state, time) = waited.expect("a live fake");
        if time.timed_out() { Err(Reply::detail(408, "Timed out waiting for a ship slot")) } else { Ok(state) }
    }

    fn extend(&self, request: &Request, id: &str) -> Answer {
        let ttl = shape::only(request, EXTEND)?.whole("ttl").unwrap_or_default();
        let (mut state, now) = (self.settled(), self.clock.now());
        let ship = state.find(id).filter(|ship| ship.running).ok_or_else(no_ship)?;
        (ship.ttl, ship.stops, ship.updated) = (ttl, clock::after(now, ttl), now);
        Ok(Reply::json(200, &ship.describe(now, false)))
    }

    fn remove(&self, id: &str) -> Option<()> {
        let mut state = self.lock();
        let at = state.ships.iter().position(|ship| ship.id == id)?;
        let ship = state.ships.remove(at);
        drop(state);
        for user in ship.users() {
            user.end();
        }
        self.changed.notify_all();
        Some(())
    }
}
