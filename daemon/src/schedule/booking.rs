//! Making a follow-up of what was asked for, and showing it.

use nano_protocol::error::{ErrorKind, RpcError};
use nano_protocol::followup::{Followup, FollowupState, Missed, Overlap, ScheduleParams};
use nano_protocol::id::{FollowupId, SessionId, SessionRef, TaskId};
use nano_protocol::session::{Session, SessionState};
use nano_protocol::time::Timestamp;
use serde_json::json;

use super::book::Book;
use super::calendar::{self, BootDue, Schedule};
use super::slots::{self, MOST_DEPTH};
use crate::clock::Moment;
use crate::session::deps::Deps;
use crate::session::reading;
use crate::session::registry::Registry;
use crate::store::record::FollowupRecord;

/// So many follow-ups of one session may be active or paused.
const MOST_OF_SESSION: usize = 10_000;
/// So many of them may be made by its agent.
const MOST_BY_AGENT: usize = 10;
/// The longest jitter of what comes once.
const JITTER_ONCE_MS: u64 = 24 * 60 * 60 * 1000;
/// By so much the wall clock may differ from the other one before a delay is shown anew.
const DRIFT_MS: u64 = 1000;

fn invalid(why: impl Into<String>) -> RpcError {
    RpcError::new(ErrorKind::InvalidParams, why)
}

/// Who makes a follow-up.
#[derive(Debug, Clone)]
pub struct Maker {
    /// The uid it will belong to.
    pub owner: u32,
    /// An agent, and how many follow-ups stand in the chain behind its task; none: a client.
    pub agent: Option<u32>,
}

/// Makes the record of a new follow-up of `session`.
pub fn book(
    registry: &Registry,
    maker: &Maker,
    session: &Session,
    params: ScheduleParams,
) -> Result<FollowupRecord, RpcError> {
    is_open(session)?;
    let deps = registry.deps();
    let (moment, configured) = (deps.clock.moment(), deps.configured());
    let default_zone = &configured.config.daemon.time_zone;
    let now = moment.wall;
    let (trigger, beside) = (params.trigger, params.tz.as_deref());
    let mut schedule = calendar::parse(&trigger, beside, default_zone, now).map_err(invalid)?;
    resolve(registry, maker.owner, &mut schedule)?;
    tie(&mut schedule, &moment);
    let zone = calendar::resolve_zone(&trigger, beside, default_zone).map_err(invalid)?;
    let until = params.until.map(|until| calendar::parse_instant(&until, &zone)).transpose();
    let until = until.map_err(|why| invalid(format!("until: {why}")))?;
    let jitter_ms = params.jitter_ms.map(|ms| jitter(&schedule, ms)).transpose().map_err(invalid)?;
    let id = FollowupId::from_ulid(&deps.clock.ulid());
    let later = jitter_ms.map_or(0, |most| calendar::jitter_ms(&id.0, most));
    let next_due = calendar::next_after(&schedule, now);
    let first = next_due.map(|next| next.plus_ms(later)).or((!schedule.is_timed()).then_some(now));
    if first.is_none_or(|first| until.is_some_and(|until| first > until)) || params.max_runs == Some(0) {
        return Err(invalid("it would never fire: until and max_runs leave no slot"));
    }
    let followup = Followup {
        id,
        session: session.id.clone(),
        name: params.name,
        content: params.content,
        trigger,
        tz: matches!(schedule, Schedule::At { .. } | Schedule::Cron { .. }).then_some(zone),
        state: FollowupState::Active,
        reason: None,
        next: Vec::new(),
        last: None,
        runs: 0,
        missed: 0,
        missed_policy: params.missed.unwrap_or(Missed::Latest),
        overlap: params.overlap.unwrap_or(Overlap::Skip),
        grace_ms: params.grace_ms.unwrap_or_else(|| calendar::default_grace_ms(&schedule)),
        max_runs: params.max_runs,
        until,
        jitter_ms,
        metadata: params.metadata.unwrap_or_default(),
        created_at: now,
    };
    let seen_seq = *deps.events.head().borrow();
    Ok(FollowupRecord { next_due, seen_seq, ..fresh(followup, maker, &schedule) })
}

fn fresh(followup: Followup, maker: &Maker, schedule: &Schedule) -> FollowupRecord {
    FollowupRecord {
        followup,
        owner: maker.owner,
        schedule: json!(schedule),
        last_due: None,
        next_due: None,
        depth: maker.agent.unwrap_or(0) + 1,
        by_agent: maker.agent.is_some(),
        out_of_turn: 0,
        failures: 0,
        judged_seq: 0,
        seen_seq: 0,
        replaces: None,
        recorded_until: None,
        hour_began: Timestamp::default(),
        in_hour: 0,
    }
}

/// Refuses a session that takes nothing more.
pub fn is_open(session: &Session) -> Result<(), RpcError> {
    if session.state != SessionState::Closed {
        return Ok(());
    }
    Err(RpcError::new(ErrorKind::Conflict, format!("session {} is closed", session.id)).hint("use an open session"))
}

/// Ties a delay to the clock that nobody sets.
fn tie(schedule: &mut Schedule, moment: &Moment) {
    if let Schedule::After { due, boot } = schedule
        && !moment.boot.is_empty()
    {
        let ms = moment.boot_ms.saturating_add_signed(due.0 - moment.wall.0);
        *boot = Some(BootDue { boot: moment.boot.to_string(), ms });
    }
}

/// Finds the task and the session that a schedule names, among those that `owner` may see.
fn resolve(registry: &Registry, owner: u32, schedule: &mut Schedule) -> Result<(), RpcError> {
    match schedule {
        Schedule::Task { task } => *task = reading::task(registry, owner, &task.0)?.id,
        Schedule::Event { session: Some(session), .. } => {
            *session = registry.find(owner, &SessionRef(session.0.clone()))?;
        }
        _ => {}
    }
    Ok(())
}

/// Checks that slots do not overtake each other.
fn jitter(schedule: &Schedule, ms: u64) -> Result<u64, String> {
    if !schedule.is_timed() {
        return Err("jitter_ms: what waits for no time has none".into());
    }
    match calendar::period_ms(schedule) {
        Some(period) if ms >= period => Err(format!("jitter_ms: {ms} is not less than the shortest period, {period}")),
        None if ms > JITTER_ONCE_MS => Err(format!("jitter_ms: {ms} is more than a day, {JITTER_ONCE_MS}")),
        _ => Ok(ms),
    }
}

/// Refuses one too many of a session, and a chain that is too long.
pub fn has_room(book: &Book, session: &SessionId, maker: &Maker) -> Result<(), RpcError> {
    let live = book.live(session);
    let limit = |why: String, hint: &str| Err(RpcError::new(ErrorKind::Limit, why).hint(hint));
    match maker.agent {
        Some(depth) if depth >= MOST_DEPTH => limit(
            format!(
                "depth: this task stands at the end of a chain of {depth} follow-ups, each made by a task of the one before"
            ),
            "do it in this task, or let the user schedule it",
        ),
        Some(_) if live.by_agent >= MOST_BY_AGENT => limit(
            format!("active: {MOST_BY_AGENT} follow-ups that the agent made are active in this session already"),
            "wait for one to end, or let the user cancel one",
        ),
        None if live.all >= MOST_OF_SESSION => limit(
            format!("session {session} has {MOST_OF_SESSION} follow-ups already"),
            "cancel some, or use another session",
        ),
        _ => Ok(()),
    }
}

/// Returns a follow-up as it is shown: with the times it fires next.
pub fn shown(record: &FollowupRecord, moment: &Moment) -> Followup {
    let mut followup = record.followup.clone();
    if let (FollowupState::Active, Some(next), Ok(schedule)) =
        (followup.state, record.next_due, slots::schedule(record))
    {
        let jitter = slots::jitter(record);
        let within = |slot: &Timestamp| followup.until.is_none_or(|until| slot.plus_ms(jitter) <= until);
        let left = followup.max_runs.map(|most| most.saturating_add(record.out_of_turn).saturating_sub(followup.runs));
        let count = usize::try_from(left.unwrap_or(3).min(3)).unwrap_or(3);
        let after = calendar::upcoming(&schedule, next, count.saturating_sub(1));
        let later = jitter.saturating_add(drift(&schedule, moment));
        let slots = std::iter::once(next).chain(after).filter(within).take(count);
        followup.next = slots.map(|slot| slot.plus_ms(later)).collect();
    }
    followup
}

/// Returns by how much the wall clock was set since a delay began.
fn drift(schedule: &Schedule, moment: &Moment) -> i64 {
    let drift = moment.wall.0 - slots::now_for(schedule, moment).0;
    if drift.unsigned_abs() < DRIFT_MS { 0 } else { drift }
}

/// Says that there is no such follow-up.
pub fn gone(id: &FollowupId) -> RpcError {
    RpcError::new(ErrorKind::NotFound, format!("there is no follow-up {id}"))
        .hint("nanoctl followup list shows what there is")
}

/// Returns how many follow-ups stand behind a task.
pub fn depth_of(deps: &Deps, task: &TaskId) -> u32 {
    let record = deps.store.get::<crate::store::record::TaskRecord>(&crate::store::Key::task(task)).ok().flatten();
    record.and_then(|record| record.made_by).map_or(0, |made_by| made_by.depth)
}
