//! Closing reaches the sessions below first; and a computer stays as long as one of them works on it.

use std::time::Duration;

use futures_util::future::join_all;
use nano_protocol::id::SessionId;
use nano_protocol::session::SessionState;

use super::poke;
use crate::session::actor::{Actor, Command};
use crate::session::deps::Deps;
use crate::store::Key;
use crate::store::record::SessionRecord;

/// When a child is told again that could not be closed.
const AGAIN: Duration = Duration::from_secs(1);

impl Actor {
    /// Closes what is still open below a closed session, and looks again after that; false: nothing is.
    pub(in crate::session) fn closes_children(&self) -> bool {
        let (registry, id) = (self.registry.clone(), self.record.session.id.clone());
        let mut open = registry.children_of(&id);
        open.retain(|child| !is_closed(&self.deps, child));
        if open.is_empty() {
            return false;
        }
        let (shutdown, stopping) = (self.deps.shutdown.clone(), self.deps.shutdown.stopping().clone());
        shutdown.spawn("close-children", async move {
            let closed = join_all(open.iter().map(|child| registry.ask(child, Command::Close))).await;
            if closed.iter().any(Result::is_err) {
                tracing::warn!(session = %id, "a child is not closed yet");
                drop(tokio::time::timeout(AGAIN, stopping.cancelled()).await);
            }
            drop(registry.send(&id, Command::Children).await);
        });
        true
    }

    /// Tells whether work is being done below this session.
    pub(in crate::session) fn works_below(&self) -> bool {
        let own = &self.record.session.id;
        let works = |id: &SessionId| self.deps.store.ids_backwards(&Key::below(b'd', &id.0), None).next().is_some();
        works(own) || self.registry.below(own).iter().any(works)
    }

    /// Has the session look whose computer this one shares, if it gives that back when no more work is done on it.
    pub(super) fn tell_lender(&self) {
        let (mut shares, mut above) = (self.record.shares, self.record.session.parent.clone());
        while let Some(parent) = above.filter(|_| shares) {
            let Ok(Some(record)) = self.deps.store.get::<SessionRecord>(&Key::session(&parent)) else { return };
            if record.ephemeral && !record.shares {
                poke(&self.registry, &parent);
            }
            (shares, above) = (record.shares, record.session.parent);
        }
    }
}

/// Tells whether nothing of a session is left to close.
fn is_closed(deps: &Deps, id: &SessionId) -> bool {
    let record = deps.store.get::<SessionRecord>(&Key::session(id)).ok().flatten();
    record.is_none_or(|record| record.session.state == SessionState::Closed && !record.closing)
}
