//! The life of one session's actor, and what becomes of a session whose actor falls by a panic.

use nano_protocol::event::EventType;
use nano_protocol::id::SessionId;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::JoinError;

use super::{INBOX, Registry};
use crate::session::actor::Command;
use crate::session::children;
use crate::session::restore::restore;
use crate::session::running::Running;

/// So often in a row a session is taken up again by itself; a task that goes on is bounded by its own count besides.
const FALLS: u32 = 3;

impl Registry {
    /// Lives as long as the session's actor.
    pub(super) async fn live(self, id: SessionId, commands: mpsc::Receiver<Command>, running: Running) {
        let (news, heard) = mpsc::channel(INBOX);
        let (registry, session, calls) = (self.clone(), id.clone(), running.clone());
        // On a task of its own: a panic ends this session's actor and no other.
        let ended = tokio::spawn(async move {
            match restore(&registry.deps, &registry, &session, (news, running)).await? {
                Some(actor) => actor.run(commands, heard).await,
                None => Ok(()),
            }
        });
        match ended.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => drop(self.deps.store_failed(&error)),
            Err(panic) => {
                calls.ended().await;
                self.fallen(&id, &panic).await;
            }
        }
    }

    /// Has a session go on whose actor panicked. What it was asked and had not answered is refused with `unavailable`; what
    /// nobody waits for is looked for again by its next actor and by its parent.
    async fn fallen(&self, id: &SessionId, panic: &JoinError) {
        let (falls, parent) = {
            let mut index = self.lock();
            let Some(entry) = index.sessions.get_mut(id) else { return };
            entry.falls += 1;
            (entry.falls, entry.parent.clone())
        };
        let goes_on = falls <= FALLS;
        let then = if goes_on { "taken up again" } else { "taken up at its next command" };
        let message = format!("the session's actor panicked, {falls} in a row; it is {then}");
        tracing::error!(session = %id, %panic, message);
        drop(self.deps.record(Some(id.clone()), None, EventType::Warning, json!({ "message": message })).await);
        if goes_on {
            drop(self.send(id, Command::Wake(None)).await);
        }
        if let Some(parent) = parent {
            children::poke(self, &parent);
        }
    }
}
