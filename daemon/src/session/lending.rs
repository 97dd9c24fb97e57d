//! What a call may use.

use std::sync::{Arc, Weak};

use nano_protocol::id::TaskId;
use tokio_util::sync::CancellationToken;

use super::actor::Actor;
use crate::sandbox::workspace::Workspace;
use crate::store::Key;
use crate::tools::ToolContext;
use crate::tools::intents::Intents;

impl Actor {
    /// Returns what the call at this place of the reply may use.
    pub(super) fn context(&self, at: usize, workspace: Arc<Workspace>, cancel: CancellationToken) -> ToolContext {
        let (agent, session, deps) = (self.agent(), &self.record.session.id, &self.deps);
        let record = self.open.get(at).map(|open| open.record.clone()).unwrap_or_default();
        let call = record.id.clone();
        ToolContext {
            session: session.clone(),
            task: self.turn_task.clone().unwrap_or_else(|| TaskId(String::new())),
            call,
            workspace,
            place: self.open.get(at).and_then(|open| open.gate.place()),
            skills: self.skills.clone(),
            sandbox: self.boot.sandbox.clone(),
            unbootable: self.boot.failed.clone(),
            private: deps.configured().private.clone(),
            exec_timeout: agent.exec_timeout,
            exec_timeout_max: agent.exec_timeout_max,
            spill: deps.spill(session),
            time_zone: deps.configured().config.daemon.time_zone.clone(),
            later: deps.later.get().and_then(Weak::upgrade),
            delegator: Some(Arc::new(self.registry.clone())),
            background: Some(Arc::new(self.registry.clone())),
            intents: Some(Arc::new(Intents::new(deps.store.clone(), Key::call(session, at), record, cancel.clone()))),
            cancel,
        }
    }
}
