//! `followup.*`.

use nano_protocol::error::{ErrorKind, RpcError};
use nano_protocol::followup::{
    FireParams, Followup, FollowupListParams, FollowupParams, Followups, NextParams, NextTimes, Runs, RunsParams,
    ScheduleParams,
};
use nano_protocol::id::FollowupId;
use nano_protocol::method::{
    FollowupCancel, FollowupGet, FollowupList, FollowupNext, FollowupPause, FollowupResume, FollowupRuns,
    FollowupSchedule, FollowupTrigger,
};
use nano_protocol::task::Task;
use nano_protocol::time::Timestamp;

use super::dispatch::Serve;
use super::session::invalid;
use super::{Caller, Server};
use crate::schedule::acts::Wanted;
use crate::schedule::booking::{Maker, gone};
use crate::schedule::calendar;
use crate::session::idempotency::Known;
use crate::session::{admission, reading};

/// How many slots are computed at once.
const MOST: usize = 1000;

impl Server {
    fn zone(&self) -> String {
        self.deps().configured().config.daemon.time_zone.clone()
    }

    /// Returns the follow-up that the caller means, if it may see it.
    fn followup(&self, caller: &Caller, id: &str) -> Result<FollowupId, RpcError> {
        let id = FollowupId(id.to_owned());
        let session = self.scheduler.session_of(&id);
        let seen = session.filter(|session| self.registry.sees(caller.uid, session));
        seen.map(|_| id.clone()).ok_or_else(|| gone(&id))
    }
}

impl Serve for FollowupSchedule {
    async fn serve(server: &Server, caller: &Caller, params: ScheduleParams) -> Result<Followup, RpcError> {
        admission::content_fits(&params.content)?;
        let (key, store) = (params.idempotency_key.clone(), &server.deps().store);
        let known = server.keys.look_up(store, caller.uid, "followup.schedule", key.as_deref(), &params).await?;
        let (keyed, _guard) = match known {
            Known::Fresh(keyed, guard) => (keyed, guard),
            Known::Before(id) => {
                return server.scheduler.shown(&server.followup(caller, id.as_str().unwrap_or_default())?);
            }
        };
        let session = server.registry.find(caller.uid, &params.session)?;
        let maker = Maker { owner: caller.uid, agent: None };
        server.scheduler.add(maker, &session, params, keyed).await
    }
}

impl Serve for FollowupGet {
    async fn serve(server: &Server, caller: &Caller, params: FollowupParams) -> Result<Followup, RpcError> {
        server.scheduler.shown(&server.followup(caller, &params.followup)?)
    }
}

impl Serve for FollowupList {
    async fn serve(server: &Server, caller: &Caller, params: FollowupListParams) -> Result<Followups, RpcError> {
        let session = params.session.map(|session| server.registry.find(caller.uid, &session)).transpose()?;
        let wanted = Wanted { session, state: params.state, after: params.after.map(FollowupId) };
        server.scheduler.page(caller.uid, &wanted, params.limit)
    }
}

impl Serve for FollowupCancel {
    async fn serve(server: &Server, caller: &Caller, params: FollowupParams) -> Result<Followup, RpcError> {
        server.scheduler.cancel(&server.followup(caller, &params.followup)?).await
    }
}

impl Serve for FollowupPause {
    async fn serve(server: &Server, caller: &Caller, params: FollowupParams) -> Result<Followup, RpcError> {
        server.scheduler.pause(&server.followup(caller, &params.followup)?).await
    }
}

impl Serve for FollowupResume {
    async fn serve(server: &Server, caller: &Caller, params: FollowupParams) -> Result<Followup, RpcError> {
        server.scheduler.resume(&server.followup(caller, &params.followup)?).await
    }
}

impl Serve for FollowupRuns {
    async fn serve(server: &Server, caller: &Caller, params: RunsParams) -> Result<Runs, RpcError> {
        let id = server.followup(caller, &params.followup)?;
        server.scheduler.runs(&id, params.limit, params.after.as_deref())
    }
}

impl Serve for FollowupTrigger {
    async fn serve(server: &Server, caller: &Caller, params: FireParams) -> Result<Task, RpcError> {
        params.content.as_deref().map_or(Ok(()), admission::content_fits)?;
        let (key, store) = (params.idempotency_key.clone(), &server.deps().store);
        let known = server.keys.look_up(store, caller.uid, "followup.trigger", key.as_deref(), &params).await?;
        let (keyed, _guard) = match known {
            Known::Fresh(keyed, guard) => (keyed, guard),
            Known::Before(id) => {
                let task = reading::task(&server.registry, caller.uid, id.as_str().unwrap_or_default())?;
                return Ok(Task { replayed: true, ..task });
            }
        };
        let id = server.followup(caller, &params.followup)?;
        server.scheduler.trigger(&id, params.content, keyed).await
    }
}

impl Serve for FollowupNext {
    async fn serve(server: &Server, _: &Caller, params: NextParams) -> Result<NextTimes, RpcError> {
        let zone = calendar::resolve_zone(&params.trigger, None, &server.zone()).map_err(invalid)?;
        let now = server.deps().clock.now();
        let from = params.from.map(|from| calendar::parse_instant(&from, &zone)).transpose();
        let from: Timestamp = from.map_err(|why| invalid(format!("from: {why}")))?.unwrap_or(now);
        let schedule = calendar::parse(&params.trigger, None, &server.zone(), from).map_err(invalid)?;
        let count = params.count.unwrap_or(3);
        if !(1..=MOST).contains(&count) {
            return Err(RpcError::new(ErrorKind::Limit, format!("count is 1 to {MOST}")));
        }
        Ok(NextTimes { next: calendar::upcoming(&schedule, from, count) })
    }
}
