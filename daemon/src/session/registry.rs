//! The registry: every session by id and name, and the inbox of those whose actor lives.
//!
//! Its map is the only lock that sessions share. An actor is started by the first command for it and retires when it
//! has nothing to do, so ten thousand sleeping sessions cost an index entry each.

mod family;
mod living;
mod removal;
mod start;

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nano_protocol::error::{ErrorKind, RpcError};
use nano_protocol::event::EventType;
use nano_protocol::id::{SessionId, SessionRef};
use nano_protocol::session::{Session, SessionState};
use serde_json::json;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::actor::{Command, Reply};
use super::deps::{Deps, unavailable};
use super::running::Running;
use crate::store::record::SessionRecord;
use crate::store::{Change, Commit, Key, Receipt, StoreError};

/// How many commands may wait for an actor; more wait at the socket.
const INBOX: usize = 256;

struct Entry {
    owner: u32,
    /// Its profile, while it is open.
    agent: Option<String>,
    parent: Option<SessionId>,
    inbox: Option<mpsc::Sender<Command>>,
    /// The calls of its last actor.
    running: Running,
    /// How many of its actors panicked in a row.
    falls: u32,
}

#[derive(Default)]
struct Index {
    sessions: BTreeMap<SessionId, Entry>,
    /// Names of open sessions.
    names: HashMap<String, SessionId>,
}

/// The registry; clones share it.
#[derive(Clone)]
pub struct Registry {
    deps: Arc<Deps>,
    index: Arc<Mutex<Index>>,
    /// Fires when it is on record how often what the last daemon left was taken up.
    counted: CancellationToken,
    /// The uid whose sessions and everybody's it sees.
    admin: u32,
}

impl Registry {
    /// Reads the sessions of the store; [`Registry::begin`] then takes up their work.
    pub fn load(deps: Arc<Deps>) -> Result<Self, StoreError> {
        let admin = rustix::process::geteuid().as_raw();
        let registry = Self { deps, index: Arc::default(), counted: CancellationToken::new(), admin };
        let store = &registry.deps.store;
        for id in store.ids_backwards(&Key::all(b's'), None) {
            match store.get::<SessionRecord>(&Key::session(&SessionId(id?))) {
                Ok(record) => record.iter().for_each(|record| registry.note(&record.session)),
                Err(error @ StoreError::Damaged(_)) => tracing::error!(%error, "a session is left out"),
                Err(error) => return Err(error),
            }
        }
        Ok(registry)
    }

    /// Returns what sessions stand on.
    pub fn deps(&self) -> &Arc<Deps> {
        &self.deps
    }

    /// Tells whether `uid` may see everybody's sessions and end the daemon.
    pub fn is_admin(&self, uid: u32) -> bool {
        uid == 0 || uid == self.admin
    }

    /// Returns the session that `uid` means.
    pub fn find(&self, uid: u32, session: &SessionRef) -> Result<SessionId, RpcError> {
        let index = self.lock();
        let sees = |entry: &Entry| entry.owner == uid || self.is_admin(uid);
        if let Some(id) = index.names.get(&session.0).filter(|id| index.sessions.get(id).is_some_and(sees)) {
            return Ok(id.clone());
        }
        let from = SessionId(session.0.clone());
        let inside = index.sessions.range((Bound::Included(&from), Bound::Unbounded));
        let known: Vec<&SessionId> = inside
            .take_while(|(id, _)| !from.0.is_empty() && id.0.starts_with(&from.0))
            .filter(|(_, entry)| sees(entry))
            .map(|(id, _)| id)
            .take(6)
            .collect();
        match known.as_slice() {
            [one] => Ok((*one).clone()),
            [] => Err(RpcError::new(ErrorKind::NotFound, format!("there is no session {}", session.0))
                .hint("nanoctl sessions lists what there is; a closed one goes by its id alone")),
            [exact, ..] if **exact == from => Ok((*exact).clone()),
            many => {
                let names: Vec<&str> = many.iter().map(|id| id.as_str()).collect();
                let message = format!("{} may be any of {}", session.0, names.join(", "));
                Err(RpcError::new(ErrorKind::InvalidParams, message))
            }
        }
    }

    /// Tells whether `uid` may see this session.
    pub fn sees(&self, uid: u32, session: &SessionId) -> bool {
        self.is_admin(uid) || self.lock().sessions.get(session).is_some_and(|entry| entry.owner == uid)
    }

    /// Returns how many open sessions use this profile.
    pub fn users_of(&self, agent: &str) -> usize {
        self.lock().sessions.values().filter(|entry| entry.agent.as_deref() == Some(agent)).count()
    }

    /// Reserves the name and records a new session with `with`.
    pub async fn create(&self, mut record: SessionRecord, with: Vec<Change>) -> Result<Receipt, RpcError> {
        let session = &record.session;
        if let Some(name) = &session.name {
            let mut index = self.lock();
            if index.names.contains_key(name) {
                let message = format!("the name {name} is taken by an open session");
                return Err(RpcError::new(ErrorKind::Conflict, message).hint("use another name, or close that session"));
            }
            index.names.insert(name.clone(), session.id.clone());
        }
        let skills = super::skills::offer(&self.deps, &record.session).await;
        drop(super::offered::refresh_tools(&self.deps, &mut record, &skills));
        let session = &record.session;
        let data = json!({"session": session});
        let created = crate::store::record::Draft {
            session: Some(session.id.clone()),
            task: None,
            kind: EventType::SessionCreated,
            data,
        };
        let changes = [vec![Change::session(&record), Change::Event(created)], with].concat();
        let commit = self.deps.store.commit(Commit::asked(changes)).await;
        if commit.is_err() {
            session.name.iter().for_each(|name| drop(self.lock().names.remove(name)));
        }
        let receipt = commit.map_err(|error| self.deps.store_failed(&error))?;
        self.note(session);
        Ok(receipt)
    }

    /// Hands a command to the session's actor, starting it where it sleeps.
    pub async fn send(&self, id: &SessionId, mut command: Command) -> Result<(), RpcError> {
        if matches!(command, Command::Submit(..) | Command::Steer(..) | Command::Resume(..) | Command::Answer(..)) {
            // Its actor may be waiting for room itself, and could not say so.
            self.deps.store.has_room().map_err(|error| unavailable(&error))?;
        }
        self.is_counted().await?;
        loop {
            let inbox = self.inbox(id, &command)?;
            match inbox.send(command).await {
                Ok(()) => return Ok(()),
                // It retired between the two lines: start it again.
                Err(back) => command = back.0,
            }
            self.is_open()?;
        }
    }

    /// Hands over a command that `make` builds around a reply, and waits for that.
    pub async fn ask<T>(&self, id: &SessionId, make: impl FnOnce(Reply<T>) -> Command) -> Result<T, RpcError> {
        let (reply, answer) = oneshot::channel();
        self.send(id, make(reply)).await?;
        answer.await.unwrap_or_else(|_| {
            if !self.lock().sessions.contains_key(id) {
                return Err(RpcError::new(ErrorKind::NotFound, format!("there is no session {id}")));
            }
            let message = "the session ended before it could answer; whether it took the request is unknown";
            let kind = if self.deps.shutdown.stopping().is_cancelled() {
                ErrorKind::ShuttingDown
            } else {
                ErrorKind::Unavailable
            };
            Err(RpcError::new(kind, message).hint("ask again with the same idempotency key"))
        })
    }

    /// Refuses new work once the daemon goes down.
    pub fn is_open(&self) -> Result<(), RpcError> {
        if !self.deps.shutdown.stopping().is_cancelled() {
            return Ok(());
        }
        Err(RpcError::new(ErrorKind::ShuttingDown, "the daemon is going down").hint("try again later"))
    }

    fn inbox(&self, id: &SessionId, command: &Command) -> Result<mpsc::Sender<Command>, RpcError> {
        let mut index = self.lock();
        let gone = || RpcError::new(ErrorKind::NotFound, format!("there is no session {id}"));
        let entry = index.sessions.get_mut(id).ok_or_else(gone)?;
        if let Some(inbox) = entry.inbox.as_ref().filter(|inbox| !inbox.is_closed()) {
            return Ok(inbox.clone());
        }
        self.is_open()?;
        self.may_take_up(id, command)?;
        let (inbox, commands) = mpsc::channel(INBOX);
        entry.inbox = Some(inbox.clone());
        let (registry, id, running) = (self.clone(), id.clone(), Running::default());
        let before = std::mem::replace(&mut entry.running, running.clone());
        self.deps.shutdown.spawn("session", async move {
            before.ended().await;
            registry.live(id, commands, running).await;
        });
        Ok(inbox)
    }

    /// Lets an actor go that has nothing to do, unless a command has just arrived.
    pub(super) fn retire(&self, id: &SessionId, inbox: &mpsc::Receiver<Command>) -> bool {
        let mut index = self.lock();
        let Some(entry) = index.sessions.get_mut(id) else { return true };
        // One sender is the index's own: nobody is about to send, and who comes next needs this lock first.
        let quiet = inbox.is_empty() && inbox.sender_strong_count() == 1;
        if quiet {
            (entry.inbox, entry.falls) = (None, 0);
        }
        quiet
    }

    /// Frees the name and the profile of a session that was closed.
    pub(super) fn note_closed(&self, session: &Session) {
        let mut index = self.lock();
        index.sessions.entry(session.id.clone()).and_modify(|entry| entry.agent = None);
        if let Some(name) = &session.name
            && index.names.get(name) == Some(&session.id)
        {
            index.names.remove(name);
        }
    }

    fn note(&self, session: &Session) {
        let mut index = self.lock();
        let open = session.state != SessionState::Closed;
        if let Some(name) = session.name.as_ref().filter(|_| open) {
            index.names.insert(name.clone(), session.id.clone());
        }
        let agent = open.then(|| session.agent.clone());
        let (owner, parent) = (session.owner, session.parent.clone());
        index.sessions.insert(
            session.id.clone(),
            Entry { owner, agent, parent, inbox: None, running: Running::default(), falls: 0 },
        );
    }

    fn lock(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
