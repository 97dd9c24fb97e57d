//! Making a follow-up of what was asked for, and showing it.

use nano_protocol::error::{ErrorKind, RpcError};
use nano_protocol::followup::{Followup, FollowupState, Missed, Overlap, ScheduleParams};
use nano_protocol::id::FollowupId;
use nano_protocol::session::{Session, SessionState};
use nano_protocol::time::Timestamp;
use serde_json::json;

use super::calendar::{self, Schedule};
use crate::session::deps::Deps;
use crate::store::record::FollowupRecord;

/// Makes the record of a new follow-up of `session`.
pub fn book(deps: &Deps, owner: u32, session: &Session, params: ScheduleParams) -> Result<FollowupRecord, RpcError> {
    if session.state == SessionState::Closed {
        return Err(RpcError::new(ErrorKind::Conflict, format!("session {} is closed", session.id)));
    }
    let invalid = |why: String| RpcError::new(ErrorKind::InvalidParams, why);
    let (now, default_zone) = (deps.clock.now(), &deps.config.daemon.time_zone);
    let (trigger, beside) = (params.trigger, params.tz.as_deref());
    let schedule = calendar::parse(&trigger, beside, default_zone, now).map_err(invalid)?;
    let zone = calendar::resolve_zone(&trigger, beside, default_zone).map_err(invalid)?;
    let until = params.until.map(|until| calendar::parse_instant(&until, &zone)).transpose();
    let until = until.map_err(|why| invalid(format!("until: {why}")))?;
    let next_due = calendar::next_after(&schedule, now);
    if next_due.is_none_or(|next| until.is_some_and(|until| next > until)) || params.max_runs == Some(0) {
        return Err(invalid("it would never fire: until and max_runs leave no slot".into()));
    }
    let followup = Followup {
        id: FollowupId::from_ulid(&deps.clock.ulid()),
        session: session.id.clone(),
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
    Ok(FollowupRecord { followup, owner, schedule: json!(schedule), last_due: None, next_due })
}

/// Returns a follow-up as it is shown: with its next slots.
pub fn shown(record: &FollowupRecord) -> Followup {
    let mut followup = record.followup.clone();
    let schedule = serde_json::from_value::<Schedule>(record.schedule.clone());
    if let (FollowupState::Active, Some(next), Ok(schedule)) = (followup.state, record.next_due, schedule) {
        let within = |slot: &Timestamp| followup.until.is_none_or(|until| *slot <= until);
        let after = calendar::upcoming(&schedule, next, 2);
        followup.next = std::iter::once(next).chain(after).filter(within).collect();
    }
    followup
}
