//! A computer that is lent to delegates, and given back once nobody comes for it any more.

use std::time::Duration;

use nano_protocol::event::EventType;
use nano_protocol::session::SessionState;

use crate::session::actor::{Actor, Reply};
use crate::session::computer::{self, Attached};
use crate::session::offered::refresh_tools;
use crate::store::{Change, StoreError};

/// How long a session waits for work on its computer when a task, or itself, ends; after that it is done beside it.
const PATIENCE: Duration = Duration::from_secs(5);

impl Actor {
    /// Lends the computer to a delegate, who may have found the one with the key `gone` so.
    pub(in crate::session) fn lend(&mut self, gone: Option<&str>, reply: Reply<Attached>) {
        if gone == Some(&self.boot.key) {
            self.boot.sandbox = None;
        }
        if self.record.closing {
            // The close is on its way to the delegate: until then it waits.
            self.boot.lends.push(reply);
            return self.hold_lends();
        }
        let key = self.boot.key.clone();
        match (self.may_boot(), &self.boot.sandbox) {
            (Err(closed), _) => drop(reply.send(Err(closed))),
            (Ok(()), Some(sandbox)) => drop(reply.send(Ok(Attached { sandbox: sandbox.clone(), key, lost: None }))),
            (Ok(()), None) => {
                self.boot.lends.push(reply);
                self.start_boot();
            }
        }
    }

    /// Tells whether there is a computer, or a server of tools, that nobody will come for again.
    pub(in crate::session) fn is_over(&self) -> bool {
        let session = &self.record.session;
        let over = match session.state {
            SessionState::Closed => !self.record.closing,
            _ => self.record.ephemeral && !self.works_below(),
        };
        let has = || matches!(computer::current(&self.deps, &session.id), Ok(Some(_)));
        let has = || self.deps.mcp.has(&session.id) || has();
        over && (session.booted || self.boot.sandbox.is_some() || has())
    }

    /// Waits for work on the computer, but not for long: then it is done beside the session, which others wait for.
    pub(in crate::session) async fn patiently(
        &self,
        name: &'static str,
        work: impl Future<Output = ()> + Send + 'static,
    ) {
        let working = self.deps.shutdown.spawn(name, work);
        drop(tokio::time::timeout(PATIENCE, working).await);
    }

    /// Gives the computer back: on record first, then to its server.
    pub(in crate::session) async fn free_computer(&mut self) -> Result<(), StoreError> {
        if let Some(sandbox) = self.boot.sandbox.take().filter(|_| !self.record.shares) {
            self.patiently("shutdown", async move { sandbox.shutdown().await }).await;
        }
        if self.deps.mcp.has(&self.record.session.id) {
            let (deps, session) = (self.deps.clone(), self.record.session.id.clone());
            self.patiently("mcp-end", async move { deps.mcp.end(&session).await }).await;
        }
        let mut changes = computer::released(&self.deps, &self.record.session.id)?;
        if changes.is_empty() {
            return Ok(());
        }
        if self.record.session.state != SessionState::Closed {
            (self.record.session.booted, self.record.session.capabilities) = (false, None);
            // Its model still knows this one: it is told when there is another.
            self.boot.lost = None;
            let changed = refresh_tools(&self.deps, &mut self.record, &self.skills);
            changes.extend(changed.map(|data| self.draft(EventType::SessionToolsChanged, data)));
            changes.push(Change::session(&self.record));
        }
        self.commit(changes).await?;
        let given = computer::give_back(&self.deps, &self.record.session.id);
        if tokio::time::timeout(PATIENCE, given).await.is_err() {
            self.deps.computers.notify_one();
        }
        Ok(())
    }

    /// Seeks the computer no longer: the session or the daemon comes to its end. Calls that wait for it are stopped.
    pub(in crate::session) fn stop_boot(&mut self) {
        for at in self.boot.waiting.clone() {
            self.stop_call(at);
        }
        if let Some(stop) = &self.boot.stop {
            stop.cancel();
        }
    }
}
