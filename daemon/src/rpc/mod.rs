//! JSON-RPC 2.0 on the local socket: who may connect, what a line is, which method serves it, who hears of events.

mod agent;
mod approval;
mod catalog;
mod connection;
mod daemon;
mod discover;
mod dispatch;
mod doctor;
mod door;
mod events;
mod followup;
mod frame;
pub mod listener;
mod outgoing;
mod process;
mod session;
mod skill;
mod task;

use std::sync::Arc;

use nano_protocol::time::Timestamp;

use crate::config::places::Places;
use crate::schedule::scheduler::Scheduler;
use crate::session::configured::Ask;
use crate::session::deps::Deps;
use crate::session::idempotency::KeyLocks;
use crate::session::registry::Registry;
use connection::Connection;

/// What every request is served from.
pub struct Server {
    /// The sessions.
    pub registry: Registry,
    /// The follow-ups.
    pub scheduler: Scheduler,
    /// When the daemon started.
    pub started_at: Timestamp,
    keys: KeyLocks,
    reload: Ask,
    start: Started,
}

/// How the daemon was started.
pub struct Started {
    /// Where things are.
    pub places: Places,
    /// Whether a service manager wants to hear how far it is.
    pub notifies: bool,
}

impl Server {
    /// Makes the server of these sessions and follow-ups.
    pub fn new(registry: Registry, scheduler: Scheduler, start: Started, reload: Ask) -> Self {
        let started_at = registry.deps().started_at;
        Self { registry, scheduler, started_at, keys: KeyLocks::default(), reload, start }
    }

    fn deps(&self) -> &Arc<Deps> {
        self.registry.deps()
    }
}

/// Who asks.
pub(crate) struct Caller {
    uid: u32,
    connection: Arc<Connection>,
}
