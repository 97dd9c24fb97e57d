//! The MCP servers of a session: which it may call, and their preparation before a model is asked.

use nano_protocol::event::EventType;

use super::actor::{Actor, News};
use super::deps::Deps;
use super::offered::offered_of;
use crate::config::McpConfig;
use crate::mcp::{self, Place};
use crate::skills::offer::Offer;
use crate::store::StoreError;
use crate::store::record::SessionRecord;

/// Returns the servers of which a session may call something.
pub fn wanted(deps: &Deps, record: &SessionRecord, skills: &Offer) -> Vec<McpConfig> {
    let configured = deps.configured();
    let servers = &configured.config.mcp;
    if servers.is_empty() {
        return Vec::new();
    }
    let standins: Vec<_> = servers.iter().map(|server| mcp::standin(&server.name, None)).collect();
    let set = offered_of(deps, record, skills, &standins);
    let is_wanted = |name: &str| set.tools.iter().any(|tool| mcp::server_of(tool.as_ref()) == Some(name));
    servers.iter().filter(|server| is_wanted(&server.name)).cloned().collect()
}

impl Actor {
    /// Has the session's servers prepared, if it has any: then the model is asked once they are.
    pub(super) fn prepares(&mut self) -> bool {
        let wanted = wanted(&self.deps, &self.record, &self.skills);
        if wanted.is_empty() && !self.deps.mcp.has(&self.record.session.id) {
            return false;
        }
        self.generation += 1;
        self.boot.asking = true;
        let (deps, news, generation) = (self.deps.clone(), self.news.clone(), self.generation);
        let (session, workspace) = (self.record.session.id.clone(), self.record.session.workspace.clone());
        let task = self.turn_task.clone();
        self.deps.shutdown.spawn("mcp", async move {
            let place = Place { session: session.clone(), workspace };
            let warnings = tokio::select! {
                () = deps.shutdown.cutting().cancelled() => Vec::new(),
                warnings = deps.mcp.prepare(&place, wanted) => warnings,
            };
            for data in warnings {
                // A store that fails here fails the actor's next commit, which ends it.
                drop(deps.record(Some(session.clone()), task.clone(), EventType::Warning, data).await);
            }
            // The actor may be gone; then the daemon is going down.
            drop(news.send(News::Prepared(generation)).await);
        });
        true
    }

    /// Asks the model, now that what can be known of the servers is.
    pub(super) async fn prepared(&mut self) -> Result<(), StoreError> {
        if std::mem::take(&mut self.boot.asking) { self.ask_now().await } else { Ok(()) }
    }
}
