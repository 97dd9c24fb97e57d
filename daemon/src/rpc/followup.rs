//! `followup.*`.

use nano_protocol::error::{ErrorKind, RpcError};
use nano_protocol::followup::{
    Followup, FollowupListParams, FollowupParams, Followups, NextParams, NextTimes, Overlap, ScheduleParams,
};
use nano_protocol::id::FollowupId;
use nano_protocol::method::{FollowupCancel, FollowupGet, FollowupList, FollowupNext, FollowupSchedule};
use nano_protocol::time::Timestamp;

use super::dispatch::Serve;
use super::session::invalid;
use super::{Caller, Server};
use crate::schedule::booking::shown;
use crate::schedule::calendar;
use crate::session::idempotency::Known;
use crate::session::{admission, reading};

/// How many slots are computed at once.
const MOST: usize = 1000;

impl Server {
    fn zone(&self) -> &str {
        &self.deps().config.daemon.time_zone
    }

    fn followup(&self, caller: &Caller, id: &str) -> Result<FollowupId, RpcError> {
        let id = FollowupId(id.to_owned());
        let session = self.scheduler.session_of(&id);
        let gone = || {
            RpcError::new(ErrorKind::NotFound, format!("there is no follow-up {id}"))
                .hint("nanoctl followup list shows what there is")
        };
        session.filter(|session| self.registry.sees(caller.uid, session)).map(|_| id.clone()).ok_or_else(gone)
    }

    fn shown(&self, id: &FollowupId) -> Result<Followup, RpcError> {
        let gone = || RpcError::new(ErrorKind::NotFound, format!("there is no follow-up {id}"));
        self.scheduler.get(id).as_ref().map(shown).ok_or_else(gone)
    }
}

impl Serve for FollowupSchedule {
    async fn serve(server: &Server, caller: &Caller, params: ScheduleParams) -> Result<Followup, RpcError> {
        admission::content_fits(&params.content)?;
        if params.jitter_ms.is_some() || params.overlap == Some(Overlap::Replace) {
            return Err(invalid("jitter_ms and overlap = replace are not available yet"));
        }
        let (key, store) = (params.idempotency_key.clone(), &server.deps().store);
        let known = server.keys.look_up(store, caller.uid, "followup.schedule", key.as_deref(), &params).await?;
        let (keyed, _guard) = match known {
            Known::Fresh(keyed, guard) => (keyed, guard),
            Known::Before(id) => return server.shown(&server.followup(caller, id.as_str().unwrap_or_default())?),
        };
        let session = server.registry.find(caller.uid, &params.session)?;
        server.scheduler.add(caller.uid, session, params, keyed).await
    }
}

impl Serve for FollowupGet {
    async fn serve(server: &Server, caller: &Caller, params: FollowupParams) -> Result<Followup, RpcError> {
        server.shown(&server.followup(caller, &params.followup)?)
    }
}

impl Serve for FollowupList {
    async fn serve(server: &Server, caller: &Caller, params: FollowupListParams) -> Result<Followups, RpcError> {
        let session = params.session.map(|session| server.registry.find(caller.uid, &session)).transpose()?;
        let limit = reading::page(params.limit)?;
        let all = server.scheduler.all();
        let wanted = all
            .iter()
            .filter(|record| server.registry.sees(caller.uid, &record.followup.session))
            .filter(|record| session.as_ref().is_none_or(|session| record.followup.session == *session))
            .filter(|record| params.state.is_none_or(|state| record.followup.state == state))
            .filter(|record| params.after.as_ref().is_none_or(|after| record.followup.id.0 < *after));
        let (followups, more) = reading::cut(wanted.map(shown), limit);
        let next = followups.last().filter(|_| more).map(|last| last.id.0.clone());
        Ok(Followups { followups, next })
    }
}

impl Serve for FollowupCancel {
    async fn serve(server: &Server, caller: &Caller, params: FollowupParams) -> Result<Followup, RpcError> {
        let id = server.followup(caller, &params.followup)?;
        server.scheduler.cancel(&id).await
    }
}

impl Serve for FollowupNext {
    async fn serve(server: &Server, _: &Caller, params: NextParams) -> Result<NextTimes, RpcError> {
        let zone = calendar::resolve_zone(&params.trigger, None, server.zone()).map_err(invalid)?;
        let now = server.deps().clock.now();
        let from = params.from.map(|from| calendar::parse_instant(&from, &zone)).transpose();
        let from: Timestamp = from.map_err(|why| invalid(format!("from: {why}")))?.unwrap_or(now);
        let schedule = calendar::parse(&params.trigger, None, server.zone(), from).map_err(invalid)?;
        let count = params.count.unwrap_or(3);
        if !(1..=MOST).contains(&count) {
            return Err(RpcError::new(ErrorKind::Limit, format!("count is 1 to {MOST}")));
        }
        Ok(NextTimes { next: calendar::upcoming(&schedule, from, count) })
    }
}
