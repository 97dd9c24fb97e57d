//! MCP: servers whose tools a session may have.
//!
//! A session has servers of its own, from the first task that may call them: [`Mcp::prepare`] starts and lists them
//! before each model request, [`Mcp::tools`] says what is known of them, and they end with the session or when nothing
//! was asked of them for a while.
#![doc = include_str!("README.md")]

mod clean;
mod link;
mod names;
mod peer;
mod pins;
mod server;
mod standin;
mod tool;
mod web;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nano_protocol::id::SessionId;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::config::McpConfig;
use crate::store::Store;
use crate::tools::Tool;
use server::Server;
pub use standin::{server_of, standin};

/// The error code of a method that is not known.
const METHOD_NOT_FOUND: i64 = -32601;
/// How long servers live of which nothing is asked.
const IDLE: Duration = Duration::from_mins(15);
/// How often that is looked at.
const LOOK: Duration = Duration::from_mins(1);

/// Why a request was not answered as one would wish.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Fault {
    /// The server says no.
    Refused(i64, String),
    /// The server is gone while it was asked.
    Gone,
    /// The server was gone before it was asked.
    Away,
    /// It was silent for so long.
    Late(Duration),
    /// Nobody wants the answer any more.
    Cancelled,
    /// It knows this session no more.
    Forgotten,
    /// It cannot be asked.
    Broken(String),
}

/// How long an answer may take.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// Without a sign of progress.
    silent: Duration,
    /// In all.
    most: Duration,
    /// Whether progress is asked for, and the server told when nobody waits any more.
    progress: bool,
}

/// Returns what an answer says.
fn answer(message: &mut Value) -> Result<Value, Fault> {
    if let Some(error) = message.get("error") {
        let code = error.get("code").and_then(Value::as_i64).unwrap_or_default();
        let text = error.get("message").and_then(Value::as_str).unwrap_or("no reason is given");
        return Err(Fault::Refused(code, clean::text(text)));
    }
    let result = message.get_mut("result").map(Value::take);
    result.ok_or_else(|| Fault::Broken("it answered without a result".into()))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a session's servers are started with.
pub struct Place {
    /// The session.
    pub session: SessionId,
    /// Its folder, for arguments that name it.
    pub workspace: String,
}

type Servers = BTreeMap<String, Arc<Server>>;

/// The servers of all sessions.
pub struct Mcp {
    helper: PathBuf,
    env: Vec<(String, String)>,
    store: Store,
    sessions: Mutex<HashMap<SessionId, Servers>>,
}

impl Mcp {
    /// Makes the keeper of servers: `helper` is the executable of `nanod`, `env` what every program of theirs gets.
    pub fn new(helper: PathBuf, env: Vec<(String, String)>, store: Store) -> Self {
        Self { helper, env, store, sessions: Mutex::default() }
    }

    /// Has the servers `wanted` of a session run and their tools known, as far as that works in time; others end.
    /// Returns what a person should be told: tools that are not what they were.
    pub async fn prepare(&self, place: &Place, wanted: Vec<McpConfig>) -> Vec<Value> {
        let (mut ended, mut servers) = (Vec::new(), Vec::new());
        {
            let mut sessions = lock(&self.sessions);
            let there = sessions.entry(place.session.clone()).or_default();
            let old = std::mem::take(there);
            for config in wanted {
                let known = old.get(&config.name).filter(|server| server.config == config).cloned();
                let server = known.unwrap_or_else(|| Arc::new(Server::new(config)));
                there.insert(server.config.name.clone(), Arc::clone(&server));
                servers.push(server);
            }
            ended.extend(old.into_values().filter(|one| !servers.iter().any(|server| Arc::ptr_eq(server, one))));
        }
        drop(ended);
        let prepared = servers.iter().map(|server| server.prepare(self, place));
        futures_util::future::join_all(prepared).await.into_iter().flatten().collect()
    }

    /// Tells whether a session has servers.
    pub fn has(&self, session: &SessionId) -> bool {
        lock(&self.sessions).get(session).is_some_and(|servers| !servers.is_empty())
    }

    /// Returns what a session may be offered of the servers `configured`, with a stand-in for all that is missing.
    pub fn tools(&self, session: &SessionId, configured: &[McpConfig]) -> Vec<Arc<dyn Tool>> {
        let sessions = lock(&self.sessions);
        let servers = sessions.get(session);
        let known = |config: &McpConfig| servers.and_then(|servers| servers.get(&config.name)).map(|one| one.shown());
        let unknown =
            |config: &McpConfig| vec![standin(&config.name, Some("is started with the session's first task"))];
        configured.iter().flat_map(|config| known(config).unwrap_or_else(|| unknown(config))).collect()
    }

    /// Ends the servers of a session: they are asked to, and made to.
    pub async fn end(&self, session: &SessionId) {
        let servers = lock(&self.sessions).remove(session).unwrap_or_default();
        futures_util::future::join_all(servers.values().map(|server| server.end())).await;
    }

    /// Ends the servers of all sessions.
    pub async fn end_all(&self) {
        let all: Vec<SessionId> = lock(&self.sessions).keys().cloned().collect();
        futures_util::future::join_all(all.iter().map(|session| self.end(session))).await;
    }

    /// Ends, until `stopping`, servers of which nothing is asked for long.
    pub async fn keep_few(&self, stopping: &CancellationToken) {
        loop {
            tokio::select! {
                () = stopping.cancelled() => return,
                () = tokio::time::sleep(LOOK) => {}
            }
            let is_idle = |servers: &mut Servers| servers.values().all(|server| server.is_idle(IDLE));
            // Taken in one step: what begins to ask now starts its own.
            let idle: Vec<Servers> =
                lock(&self.sessions).extract_if(|_, servers| is_idle(servers)).map(|(_, all)| all).collect();
            let all = idle.iter().flat_map(BTreeMap::values);
            futures_util::future::join_all(all.map(|server| server.end())).await;
        }
    }
}
