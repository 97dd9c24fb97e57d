//! Which sessions work for which.

use nano_protocol::id::SessionId;
use nano_protocol::session::{Session, SessionState};
use tokio::sync::oneshot;

use super::Registry;
use crate::session::actor::Command;
use crate::session::reading;
use crate::store::Key;
use crate::store::record::SessionRecord;

impl Registry {
    /// Tells whether a session is open although the one above it is closed or gone.
    pub(in crate::session) fn is_orphan(&self, session: &Session) -> bool {
        let Some(parent) = session.parent.as_ref().filter(|_| session.state != SessionState::Closed) else {
            return false;
        };
        let above = self.deps.store.get::<SessionRecord>(&Key::session(parent));
        above.is_ok_and(|above| above.is_none_or(|above| above.session.state == SessionState::Closed))
    }

    /// Closes a session for which nobody waits.
    pub(in crate::session) async fn close_orphan(&self, id: &SessionId) {
        tracing::info!(session = %id, "what it worked for is closed: it is closed too");
        let (reply, _) = oneshot::channel();
        drop(self.send(id, Command::Close(reply)).await);
    }

    /// Returns the sessions that this one has opened, oldest first.
    pub fn children_of(&self, id: &SessionId) -> Vec<SessionId> {
        let index = self.lock();
        let own = index.sessions.iter().filter(|(_, entry)| entry.parent.as_ref() == Some(id));
        own.map(|(id, _)| id.clone()).collect()
    }

    /// Returns all sessions below this one, each behind the one above it.
    pub fn below(&self, id: &SessionId) -> Vec<SessionId> {
        self.walk(id, |_| true)
    }

    /// Returns the sessions below this one that use its computer.
    pub fn sharing(&self, id: &SessionId) -> Vec<SessionId> {
        self.walk(id, |child| reading::record(&self.deps, child).is_ok_and(|record| record.shares))
    }

    fn walk(&self, id: &SessionId, fits: impl Fn(&SessionId) -> bool) -> Vec<SessionId> {
        let children = |id: &SessionId| self.children_of(id).into_iter().filter(&fits);
        let mut all: Vec<SessionId> = children(id).collect();
        let mut at = 0;
        while let Some(next) = all.get(at).cloned() {
            all.extend(children(&next));
            at += 1;
        }
        all
    }
}
