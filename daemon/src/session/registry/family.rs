//! Which sessions work for which.

use nano_protocol::id::SessionId;
use tokio::sync::oneshot;

use super::{Entry, Index, Registry};
use crate::session::actor::Command;

impl Registry {
    /// Returns the sessions that this one has opened, oldest first.
    pub fn children_of(&self, id: &SessionId) -> Vec<SessionId> {
        let index = self.lock();
        let own = index.sessions.iter().filter(|(_, entry)| entry.parent.as_ref() == Some(id));
        own.map(|(id, _)| id.clone()).collect()
    }

    /// Closes what a daemon before left open below a session that it had closed.
    pub(super) async fn close_orphans(&self) {
        while let Some(id) = self.orphan() {
            let (reply, answer) = oneshot::channel();
            if self.send(&id, Command::Close(reply)).await.is_err() || answer.await.is_err() {
                return;
            }
        }
    }

    fn orphan(&self) -> Option<SessionId> {
        let index = self.lock();
        index.sessions.iter().find(|(_, entry)| is_orphan(entry, &index)).map(|(id, _)| id.clone())
    }
}

fn is_orphan(entry: &Entry, index: &Index) -> bool {
    let Some(parent) = entry.parent.as_ref().filter(|_| entry.agent.is_some()) else { return false };
    index.sessions.get(parent).is_none_or(|parent| parent.agent.is_none())
}
