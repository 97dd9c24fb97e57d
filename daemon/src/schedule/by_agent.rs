//! Follow-ups that an agent makes by its own tool: the same path, tighter bounds.

use std::sync::Arc;

use nano_protocol::error::RpcError;
use nano_protocol::followup::{Followup, ScheduleParams, Trigger};
use nano_protocol::id::{FollowupId, SessionRef};

use super::booking::{self, Maker};
use super::scheduler::Scheduler;
use crate::session::admission::Keyed;
use crate::session::deps::unavailable;
use crate::session::{admission, reading};
use crate::store::Key;
use crate::store::record::KeyRecord;
use crate::tools::schedule_followup::{By, Later, Scheduling};

impl Later for Scheduler {
    fn schedule<'a>(&'a self, by: By<'a>, content: String, trigger: Trigger) -> Scheduling<'a> {
        Box::pin(async move {
            let made = self.add_for(by, content, trigger).await;
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

    async fn add_for(&self, by: By<'_>, content: String, trigger: Trigger) -> Result<Followup, RpcError> {
        admission::content_fits(&content)?;
        let owner = reading::record(self.deps(), by.session)?.session.owner;
        // A call has an id of its own in its session, and is never made by two at once.
        let key = Key::idempotency(owner, "schedule_followup", &format!("{}/{}", by.session, by.call));
        let made = self.deps().store.get::<KeyRecord>(&key).map_err(|error| unavailable(&error))?;
        if let Some(id) = made.as_ref().and_then(|made| made.answer.as_str()) {
            return self.shown(&FollowupId(id.to_owned()));
        }
        let maker = Maker { owner, agent: Some(booking::depth_of(self.deps(), by.task)) };
        let params =
            ScheduleParams { session: SessionRef::from(by.session), content, trigger, ..ScheduleParams::default() };
        self.add(maker, by.session, params, Some(Keyed { key, params: String::new() })).await
    }
}
