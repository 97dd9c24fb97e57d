//! Follow-ups that an agent makes by its own tool: the same path, tighter bounds.

use std::sync::Arc;

use nano_protocol::error::RpcError;
use nano_protocol::followup::{Followup, ScheduleParams, Trigger};
use nano_protocol::id::{SessionId, SessionRef, TaskId};

use super::booking::{self, Maker};
use super::scheduler::Scheduler;
use crate::session::{admission, reading};
use crate::tools::schedule_followup::{Later, Scheduling};

impl Later for Scheduler {
    fn schedule<'a>(
        &'a self,
        session: &'a SessionId,
        task: &'a TaskId,
        content: String,
        trigger: Trigger,
    ) -> Scheduling<'a> {
        Box::pin(async move {
            let made = self.add_for(session, task, content, trigger).await;
            made.map_err(|error| match error.data.hint {
                Some(hint) => format!("{}; {hint}", error.message),
                None => error.message,
            })
        })
    }
}

impl Scheduler {
    /// Lets agents schedule as long as the result is held: what they stand on must not hold itself.
    #[must_use]
    pub fn offer_to_agents(&self) -> Arc<dyn Later> {
        let later: Arc<dyn Later> = Arc::new(self.clone());
        // Set once, at the start.
        self.deps().later.set(Arc::downgrade(&later)).ok();
        later
    }

    async fn add_for(
        &self,
        session: &SessionId,
        task: &TaskId,
        content: String,
        trigger: Trigger,
    ) -> Result<Followup, RpcError> {
        admission::content_fits(&content)?;
        let owner = reading::record(self.deps(), session)?.session.owner;
        let maker = Maker { owner, agent: Some(booking::depth_of(self.deps(), task)) };
        let params =
            ScheduleParams { session: SessionRef::from(session), content, trigger, ..ScheduleParams::default() };
        self.add(maker, session, params, None).await
    }
}
