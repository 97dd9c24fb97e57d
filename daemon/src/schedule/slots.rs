//! What becomes of due slots, and what is recorded of it. Pure but for the fresh task ids.

use nano_protocol::event::{Data, EventType};
use nano_protocol::followup::{FollowupState, Last, Missed, Overlap, RunState};
use nano_protocol::id::TaskId;
use nano_protocol::task::TaskState;
use nano_protocol::time::Timestamp;
use serde_json::json;

use super::calendar::{self, Plan, Schedule};
use crate::clock::{Clock, Moment};
use crate::store::record::{Draft, FollowupRecord};
use crate::store::{Change, Key};

/// So many follow-ups may stand in a chain, each brought about by a task of the one before.
pub const MOST_DEPTH: u32 = 3;

/// What happens may set off a follow-up so often within an hour: no chain that cannot be seen may go on for ever.
const MOST_AN_HOUR: u64 = 1000;
const HOUR_MS: i64 = 3_600_000;

/// Returns a record's schedule, or why it cannot be used.
pub fn schedule(record: &FollowupRecord) -> Result<Schedule, String> {
    let read = serde_json::from_value::<Schedule>(record.schedule.clone());
    let schedule = read.map_err(|why| format!("its schedule cannot be read: {why}"))?;
    schedule.check().map_err(|why| format!("its slots cannot be computed any more: {why}"))?;
    Ok(schedule)
}

/// Returns how much later than its slots it fires.
pub fn jitter(record: &FollowupRecord) -> i64 {
    record.followup.jitter_ms.map_or(0, |most| calendar::jitter_ms(&record.followup.id.0, most))
}

/// Returns the time that decides about a schedule's slots. A delay that began with this start of the machine goes by the
/// clock that nobody sets; that clock's time is told as the wall clock would tell it had nobody set that one either.
pub fn now_for(schedule: &Schedule, moment: &Moment) -> Timestamp {
    match schedule {
        Schedule::After { due, boot: Some(boot) } if *boot.boot == *moment.boot => {
            due.plus_ms(moment.boot_ms.cast_signed().saturating_sub(boot.ms.cast_signed()))
        }
        _ => moment.wall,
    }
}

/// Returns what is to be decided now, or why that cannot be told.
pub fn plan(record: &FollowupRecord, moment: &Moment) -> Result<Plan, String> {
    let schedule = schedule(record)?;
    let (followup, Some(next_due)) = (&record.followup, record.next_due) else { return Ok(Plan::default()) };
    // It fires that much later than its slots, so at any time it has come as far as its slots were earlier.
    let now = now_for(&schedule, moment).plus_ms(-jitter(record));
    let bounds = (now, followup.until.map(|until| until.plus_ms(-jitter(record))));
    Ok(calendar::due_slots(&schedule, record.last_due, next_due, bounds, followup.missed_policy, followup.grace_ms))
}

/// Leaves out what is on record already.
pub fn only_new(plan: &mut Plan, is_recorded: impl Fn(Timestamp) -> bool) {
    plan.missed.retain(|slot| !is_recorded(*slot));
    plan.fire.retain(|slot| !is_recorded(*slot));
}

/// Notes what becomes of the due slots, up to the first that fires: its task, and what is recorded with it.
pub fn decide(
    record: &mut FollowupRecord,
    plan: Plan,
    last: Option<TaskState>,
    clock: &Clock,
) -> (Option<TaskId>, Vec<Change>) {
    let mut changes = Vec::new();
    for slot in plan.missed {
        changes.extend(missed(record, slot));
    }
    record.followup.missed += plan.unlisted;
    let mut firing = plan.fire.into_iter();
    let mut fired = None;
    if let Some(slot) = firing.next() {
        // Who wants all slots that were missed gets them one after the other, not one of them.
        let waits = plan.late && record.followup.missed_policy == Missed::All;
        let (task, noted) = run(record, slot, (record.depth, waits), last, clock);
        changes.extend(noted);
        (fired, record.last_due) = (task, Some(slot));
    }
    // The next one may be due as well: it is decided by itself, after this one is on record.
    record.next_due = firing.next().or(plan.next);
    if is_spent(record) || record.next_due.is_none() {
        record.followup.state = FollowupState::Done;
    }
    (fired, changes)
}

/// Notes what becomes of something that happened outside of any schedule, `depth` follow-ups down a chain.
pub fn happen(
    record: &mut FollowupRecord,
    slot: Timestamp,
    depth: u32,
    last: Option<TaskState>,
    clock: &Clock,
) -> (Option<TaskId>, Vec<Change>) {
    if slot.0.saturating_sub(record.hour_began.0) >= HOUR_MS {
        (record.hour_began, record.in_hour) = (slot, 0);
    }
    record.in_hour += 1;
    if record.in_hour > MOST_AN_HOUR {
        let why =
            format!("it was set off {MOST_AN_HOUR} times within an hour: does its task bring about what it waits for?");
        (record.followup.state, record.followup.reason) = (FollowupState::Paused, Some(why));
        return (None, vec![row(record, slot, RunState::Skipped, None)]);
    }
    if depth > MOST_DEPTH {
        // No event tells of it: that might set off the next one.
        let row = row(record, slot, RunState::Skipped, None);
        return (None, vec![row]);
    }
    let (task, changes) = run(record, slot, (depth, false), last, clock);
    let once = matches!(schedule(record), Ok(Schedule::Task { .. }));
    if once || is_spent(record) {
        record.followup.state = FollowupState::Done;
    }
    (task, changes)
}

/// Notes a run that somebody asked for.
pub fn run_out_of_turn(
    record: &mut FollowupRecord,
    slot: Timestamp,
    last: Option<TaskState>,
    clock: &Clock,
) -> (TaskId, Vec<Change>) {
    let task = TaskId::from_ulid(&clock.ulid());
    replace(record, last);
    let changes = note(record, slot, RunState::Fired, record.depth, Some(task.clone()));
    // Of one that has no other turns this is its turn.
    let is_turn = matches!(schedule(record), Ok(Schedule::External));
    record.out_of_turn += u64::from(!is_turn);
    if is_spent(record) {
        record.followup.state = FollowupState::Done;
    }
    (task, changes)
}

/// Fires a slot unless the task before is in the way of one that does not wait.
fn run(
    record: &mut FollowupRecord,
    slot: Timestamp,
    (depth, waits): (u32, bool),
    last: Option<TaskState>,
    clock: &Clock,
) -> (Option<TaskId>, Vec<Change>) {
    let timed = record.next_due.is_some();
    let in_the_way = match record.followup.overlap {
        Overlap::Skip | Overlap::Queue if waits => false,
        Overlap::Skip => last.is_some_and(|state| !state.is_settled()),
        // One may wait, not two; what happens and will not come again waits in any number.
        Overlap::Queue => timed && last == Some(TaskState::Queued),
        Overlap::Replace => false,
    };
    if in_the_way {
        return (None, note(record, slot, RunState::Skipped, depth, None));
    }
    replace(record, last);
    let task = TaskId::from_ulid(&clock.ulid());
    (Some(task.clone()), note(record, slot, RunState::Fired, depth, Some(task)))
}

/// Notes the task that has to make room, in the commit that makes the new one: a crash in between forgets neither.
fn replace(record: &mut FollowupRecord, last: Option<TaskState>) {
    let open = matches!(last, Some(TaskState::Queued | TaskState::Running | TaskState::Interrupted));
    if record.followup.overlap == Overlap::Replace && open {
        record.replaces = record.followup.last.as_ref().and_then(|last| last.task.clone());
    }
}

/// Tells whether it has had all its turns.
fn is_spent(record: &FollowupRecord) -> bool {
    record.followup.max_runs.is_some_and(|most| record.followup.runs - record.out_of_turn >= most)
}

/// Notes a slot that passed.
pub fn missed(record: &mut FollowupRecord, slot: Timestamp) -> Vec<Change> {
    record.last_due = Some(slot);
    note(record, slot, RunState::Missed, record.depth, None)
}

/// Notes what became of a slot: its row, its count, its event, which tells how far down a chain that was.
fn note(
    record: &mut FollowupRecord,
    slot: Timestamp,
    state: RunState,
    depth: u32,
    task: Option<TaskId>,
) -> Vec<Change> {
    let data = json!({"followup": record.followup.id, "slot": slot, "task": task, "depth": depth});
    let kind = match state {
        RunState::Fired => EventType::FollowupFired,
        RunState::Missed | RunState::Skipped => EventType::FollowupMissed,
    };
    vec![row(record, slot, state, task), event(record, kind, data)]
}

/// Notes the row and the count of a slot.
fn row(record: &mut FollowupRecord, slot: Timestamp, state: RunState, task: Option<TaskId>) -> Change {
    let last = Last { slot, task: task.clone(), state };
    let row = Change::put(Key::slot(&record.followup.id, slot), &last);
    record.followup.runs += u64::from(state == RunState::Fired);
    record.followup.missed += u64::from(state == RunState::Missed);
    // A slot that did not fire keeps the task before it: that one may still run.
    let task = if state == RunState::Fired { task } else { record.followup.last.take().and_then(|last| last.task) };
    record.followup.last = Some(Last { task, ..last });
    row
}

/// Makes an event of a follow-up.
pub fn event(record: &FollowupRecord, kind: EventType, data: Data) -> Change {
    Change::Event(Draft { session: Some(record.followup.session.clone()), task: None, kind, data })
}

#[cfg(test)]
mod tests;
