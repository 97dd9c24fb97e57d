//! What becomes of due slots, and what is recorded of it. Pure but for the fresh task ids.

use nano_protocol::event::{Data, EventType};
use nano_protocol::followup::{FollowupState, Last, Overlap, RunState};
use nano_protocol::id::TaskId;
use nano_protocol::task::TaskState;
use nano_protocol::time::Timestamp;
use serde_json::json;

use super::calendar::{self, Plan, Schedule};
use crate::clock::Clock;
use crate::store::record::{Draft, FollowupRecord};
use crate::store::{Change, Key};

/// Notes what becomes of the due slots, up to the first that fires: its task, and what is recorded with it.
pub fn decide(
    record: &mut FollowupRecord,
    plan: Plan,
    last: Option<TaskState>,
    clock: &Clock,
) -> (Option<TaskId>, Vec<Change>) {
    let until = record.followup.until;
    let within = |slot: &Timestamp| until.is_none_or(|until| *slot <= until);
    let mut changes = Vec::new();
    for slot in plan.missed.into_iter().filter(within) {
        changes.extend(note(record, slot, RunState::Missed, None));
    }
    record.followup.missed += plan.unlisted;
    let in_the_way = match record.followup.overlap {
        Overlap::Skip => last.is_some_and(|state| !state.is_settled()),
        // One may wait, not two.
        Overlap::Queue => last == Some(TaskState::Queued),
        Overlap::Replace => false,
    };
    let mut firing = plan.fire.into_iter().filter(within).peekable();
    let mut fired = None;
    if let Some(slot) = firing.next() {
        fired = (!in_the_way).then(|| TaskId::from_ulid(&clock.ulid()));
        let state = if in_the_way { RunState::Skipped } else { RunState::Fired };
        changes.extend(note(record, slot, state, fired.clone()));
    }
    // The next one may be due as well: it is decided by itself, after this one is on record.
    record.next_due = firing.next().or(plan.next).filter(within);
    let spent = record.followup.max_runs.is_some_and(|most| record.followup.runs >= most);
    if spent || record.next_due.is_none() {
        record.followup.state = FollowupState::Done;
    }
    (fired, changes)
}

/// Returns what is to be decided now; none: the schedule cannot be read.
pub fn plan(record: &FollowupRecord, now: Timestamp) -> Option<Plan> {
    let schedule: Schedule = serde_json::from_value(record.schedule.clone()).ok()?;
    let followup = &record.followup;
    let next_due = record.next_due?;
    Some(calendar::due_slots(&schedule, record.last_due, next_due, now, followup.missed_policy, followup.grace_ms))
}

/// Notes what became of a slot: its row, its count, its event.
fn note(record: &mut FollowupRecord, slot: Timestamp, state: RunState, task: Option<TaskId>) -> Vec<Change> {
    let last = Last { slot, task: task.clone(), state };
    let row = Change::put(Key::slot(&record.followup.id, slot), &last);
    let data = json!({"followup": record.followup.id, "slot": slot, "task": task});
    let kind = match state {
        RunState::Fired => EventType::FollowupFired,
        RunState::Missed | RunState::Skipped => EventType::FollowupMissed,
    };
    record.followup.runs += u64::from(state == RunState::Fired);
    record.followup.missed += u64::from(state == RunState::Missed);
    // A slot that did not fire keeps the task before it: that one may still run.
    let task = if state == RunState::Fired { task } else { record.followup.last.take().and_then(|last| last.task) };
    (record.followup.last, record.last_due) = (Some(Last { task, ..last }), Some(slot));
    vec![row, event(record, kind, data)]
}

/// Makes an event of a follow-up.
pub fn event(record: &FollowupRecord, kind: EventType, data: Data) -> Change {
    Change::Event(Draft { session: Some(record.followup.session.clone()), task: None, kind, data })
}

#[cfg(test)]
mod tests;
