//! `followup.*`.

use nano_protocol::error::{ErrorKind, RpcError};
use nano_protocol::followup::{
    Followup, FollowupListParams, FollowupParams, FollowupState, Followups, Missed, NextParams, NextTimes, Overlap,
    ScheduleParams,
};
use nano_protocol::id::FollowupId;
use nano_protocol::method::{FollowupCancel, FollowupGet, FollowupList, FollowupNext, FollowupSchedule};
use nano_protocol::session::SessionState;
use nano_protocol::time::Timestamp;
use serde_json::json;

use super::dispatch::Serve;
use super::idempotency::Known;
use super::session::invalid;
use super::{Caller, Server};
use crate::schedule::calendar::{self, Schedule};
use crate::schedule::scheduler::shown;
use crate::session::admission;
use crate::store::record::FollowupRecord;

impl Server {
    fn zone(&self) -> &str {
        &self.deps().config.daemon.time_zone
    }

    fn followup(&self, caller: &Caller, id: &str) -> Result<FollowupRecord, RpcError> {
        let record = self.scheduler.get(&FollowupId(id.to_owned()));
        let visible = record.filter(|record| self.registry.sees(caller.uid, &record.followup.session));
        visible.ok_or_else(|| {
            RpcError::new(ErrorKind::NotFound, format!("there is no follow-up {id}"))
                .hint("nanoctl followup list shows what there is")
        })
    }

    fn new_followup(&self, caller: &Caller, params: ScheduleParams) -> Result<FollowupRecord, RpcError> {
        let session = self.record(&self.registry.find(caller.uid, &params.session)?)?.session;
        if session.state == SessionState::Closed {
            return Err(RpcError::new(ErrorKind::Conflict, format!("session {} is closed", session.id)));
        }
        let now = self.deps().clock.now();
        let (trigger, beside) = (params.trigger, params.tz.as_deref());
        let schedule = calendar::parse(&trigger, beside, self.zone(), now).map_err(invalid)?;
        let zone = calendar::resolve_zone(&trigger, beside, self.zone()).map_err(invalid)?;
        let until = params.until.map(|until| calendar::parse_instant(&until, &zone)).transpose();
        let until = until.map_err(|why| invalid(format!("until: {why}")))?;
        let next_due = calendar::next_after(&schedule, now);
        if next_due.is_none_or(|next| until.is_some_and(|until| next > until)) || params.max_runs == Some(0) {
            return Err(invalid("it would never fire: until and max_runs leave no slot"));
        }
        let followup = Followup {
            id: FollowupId::from_ulid(&self.deps().clock.ulid()),
            session: session.id,
            name: params.name,
            content: params.content,
            trigger,
            tz: matches!(schedule, Schedule::At { .. } | Schedule::Cron { .. }).then_some(zone),
            state: FollowupState::Active,
            next: Vec::new(),
            last: None,
            runs: 0,
            missed: 0,
            missed_policy: params.missed.unwrap_or(Missed::Latest),
            overlap: params.overlap.unwrap_or(Overlap::Skip),
            grace_ms: params.grace_ms.unwrap_or_else(|| calendar::default_grace_ms(&schedule)),
            max_runs: params.max_runs,
            until,
            jitter_ms: params.jitter_ms,
            metadata: params.metadata.unwrap_or_default(),
            created_at: now,
        };
        Ok(FollowupRecord { followup, owner: caller.uid, schedule: json!(schedule), last_due: None, next_due })
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
            Known::Before(id) => return Ok(shown(&server.followup(caller, id.as_str().unwrap_or_default())?)),
        };
        let record = server.new_followup(caller, params)?;
        let answer = shown(&record);
        let with = keyed.map(|keyed| keyed.record(json!(record.followup.id), record.followup.created_at));
        server.scheduler.add(record, with.into_iter().collect()).await?;
        Ok(answer)
    }
}

impl Serve for FollowupGet {
    async fn serve(server: &Server, caller: &Caller, params: FollowupParams) -> Result<Followup, RpcError> {
        Ok(shown(&server.followup(caller, &params.followup)?))
    }
}

impl Serve for FollowupList {
    async fn serve(server: &Server, caller: &Caller, params: FollowupListParams) -> Result<Followups, RpcError> {
        let session = params.session.map(|session| server.registry.find(caller.uid, &session)).transpose()?;
        let limit = params.limit.unwrap_or(200).clamp(1, 1000);
        let mut followups: Vec<Followup> = server
            .scheduler
            .all()
            .iter()
            .filter(|record| server.registry.sees(caller.uid, &record.followup.session))
            .filter(|record| session.as_ref().is_none_or(|session| record.followup.session == *session))
            .filter(|record| params.state.is_none_or(|state| record.followup.state == state))
            .filter(|record| params.after.as_ref().is_none_or(|after| record.followup.id.0 < *after))
            .take(limit + 1)
            .map(shown)
            .collect();
        let more = followups.len() > limit;
        followups.truncate(limit);
        let next = followups.last().filter(|_| more).map(|last| last.id.0.clone());
        Ok(Followups { followups, next })
    }
}

impl Serve for FollowupCancel {
    async fn serve(server: &Server, caller: &Caller, params: FollowupParams) -> Result<Followup, RpcError> {
        let id = server.followup(caller, &params.followup)?.followup.id;
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
        Ok(NextTimes { next: calendar::upcoming(&schedule, from, params.count.unwrap_or(3).clamp(1, 1000)) })
    }
}
