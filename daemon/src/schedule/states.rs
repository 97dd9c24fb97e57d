//! What changes a follow-up beside its slots: pause, resume, tasks that fail, a clock that is set back. Pure.

use nano_protocol::event::EventType;
use nano_protocol::followup::FollowupState;
use nano_protocol::id::TaskId;
use nano_protocol::task::TaskState;
use nano_protocol::time::Timestamp;
use serde_json::json;

use super::calendar::{self, Schedule};
use super::slots;
use crate::clock::Moment;
use crate::store::Change;
use crate::store::record::{Draft, FollowupRecord};

/// So many tasks that fail in a row pause a follow-up.
pub const MOST_FAILURES: u32 = 5;
/// A wall clock that goes back by more than this was wrong before; by less, it is waited for.
const CORRECTED_MS: i64 = 3 * 60 * 60 * 1000;

/// Tells whether it has ended.
pub fn has_ended(record: &FollowupRecord) -> bool {
    !matches!(record.followup.state, FollowupState::Active | FollowupState::Paused)
}

/// Lets a paused follow-up go on, and notes the slots that passed meanwhile as missed.
pub fn resume(
    record: &mut FollowupRecord,
    moment: &Moment,
    head: u64,
    is_recorded: impl Fn(Timestamp) -> bool,
) -> Result<Vec<Change>, String> {
    let mut plan = slots::plan(record, moment)?;
    if let Some(until) = record.recorded_until {
        slots::only_new(&mut plan, |slot| slot <= until && is_recorded(slot));
    }
    (record.followup.state, record.followup.reason) = (FollowupState::Active, None);
    (record.failures, record.seen_seq) = (0, head);
    if record.next_due.is_none() {
        return Ok(Vec::new());
    }
    let mut changes = Vec::new();
    for slot in plan.missed.into_iter().chain(plan.fire) {
        changes.extend(slots::missed(record, slot));
    }
    record.followup.missed += plan.unlisted;
    record.next_due = plan.next;
    if record.next_due.is_none() {
        record.followup.state = FollowupState::Done;
    }
    Ok(changes)
}

/// Counts the end of a task that the follow-up made; too many failures in a row pause it, which a warning tells.
/// None: the end, told by event `seq`, is counted already or says nothing.
pub fn judge(record: &mut FollowupRecord, task: &TaskId, state: TaskState, seq: u64) -> Option<Vec<Change>> {
    if seq <= record.judged_seq {
        return None;
    }
    let before = record.failures;
    record.failures = match state {
        TaskState::Failed => before + 1,
        TaskState::Succeeded => 0,
        _ => before,
    };
    if record.failures == before {
        return None;
    }
    record.judged_seq = seq;
    if record.failures < MOST_FAILURES || record.followup.state != FollowupState::Active {
        return Some(Vec::new());
    }
    let reason = format!("{} of its tasks in a row failed; resume starts anew", record.failures);
    record.followup.state = FollowupState::Paused;
    let message = format!("follow-up {} is paused: {reason}", record.followup.id);
    record.followup.reason = Some(reason);
    let data = json!({"message": message, "followup": record.followup.id});
    let session = Some(record.followup.session.clone());
    Some(vec![Change::Event(Draft { session, task: Some(task.clone()), kind: EventType::Warning, data })])
}

/// Begins anew from now on after the wall clock was found to have been hours ahead; false: it was not.
/// What is on record stays so, and is not decided again.
pub fn rewind(record: &mut FollowupRecord, moment: &Moment) -> bool {
    let came_to = record.last_due.unwrap_or(record.followup.created_at);
    if came_to <= moment.wall.plus_ms(CORRECTED_MS) {
        return false;
    }
    let Ok(mut schedule) = slots::schedule(record) else { return false };
    let now = moment.wall.plus_ms(-slots::jitter(record));
    match &mut schedule {
        // An anchor that the wrong clock set moves by whole intervals; one that somebody named stays.
        Schedule::Every { every_ms, anchor } if *anchor > now && record.followup.trigger.anchor.is_none() => {
            let every_ms = i64::try_from(*every_ms).unwrap_or(i64::MAX);
            *anchor = anchor.plus_ms(-((anchor.0 - now.0 - 1) / every_ms).saturating_mul(every_ms));
        }
        Schedule::Every { .. } | Schedule::Cron { .. } => {}
        _ => return false,
    }
    let next = calendar::next_after(&schedule, now);
    if next.is_none() || next >= record.next_due {
        return false;
    }
    record.schedule = json!(schedule);
    record.recorded_until = record.recorded_until.max(record.last_due);
    (record.next_due, record.last_due) = (next, None);
    true
}

/// Returns the first instant from `at` on that is neither a slot nor on record.
pub fn free_instant(record: &FollowupRecord, at: Timestamp, is_recorded: impl Fn(Timestamp) -> bool) -> Timestamp {
    let schedule = slots::schedule(record).ok();
    let is_slot = |at| schedule.as_ref().is_some_and(|schedule| calendar::is_slot(schedule, at));
    let mut at = at;
    while is_recorded(at) || is_slot(at) {
        at = at.plus_ms(1);
    }
    at
}

#[cfg(test)]
mod tests;
