//! Which sessions work for which.

use nano_protocol::id::SessionId;

use super::Registry;

impl Registry {
    /// Returns the sessions that this one has opened, oldest first.
    pub fn children_of(&self, id: &SessionId) -> Vec<SessionId> {
        let index = self.lock();
        let own = index.sessions.iter().filter(|(_, entry)| entry.parent.as_ref() == Some(id));
        own.map(|(id, _)| id.clone()).collect()
    }

    /// Returns all sessions below this one, each behind the one above it.
    pub fn below(&self, id: &SessionId) -> Vec<SessionId> {
        let mut all = self.children_of(id);
        let mut at = 0;
        while let Some(next) = all.get(at).cloned() {
            all.extend(self.children_of(&next));
            at += 1;
        }
        all
    }
}
