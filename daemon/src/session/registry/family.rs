//! Which sessions work for which.

use nano_protocol::id::SessionId;

use super::Registry;
use crate::session::reading;

impl Registry {
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
