//! Follow-ups that wait for events and for tasks, and the count of failed tasks: all from the log, in its order.
//!
//! Each event is heard once: what a follow-up has heard is in its record, together with what came of it. Where the log
//! was left is kept now and then, so that a start reads no more of it than it must.

use std::collections::BTreeSet;
use std::time::Duration;

use nano_protocol::event::{Data, Event, EventType};
use nano_protocol::followup::FollowupState;
use nano_protocol::id::{FollowupId, TaskId};
use nano_protocol::task::{Origin, TaskState};
use nano_protocol::time::Timestamp;

use super::book::Awaited;
use super::calendar::{Schedule, happening};
use super::firing::Run;
use super::scheduler::{AGAIN_MS, Scheduler};
use super::{slots, states};
use crate::session::event_log::Published;
use crate::store::record::{FollowupRecord, TaskRecord};
use crate::store::{Change, Commit, Key};

/// So long a session that is deleted waits until follow-ups have heard of its end.
const PATIENCE: Duration = Duration::from_secs(5);
/// Events that are read at once.
const PAGE: usize = 256;
/// So many events pass before the place in the log is kept anew.
const KEEP: u64 = 1000;

/// Something that sets a follow-up off.
pub(super) struct Cause {
    /// When it happened.
    pub at: Timestamp,
    /// How many follow-ups stand in the chain that it ends.
    pub depth: u32,
    /// What the task is told beside the follow-up's content.
    pub line: Option<String>,
}

impl Scheduler {
    /// Hears every event until the daemon goes down.
    pub(super) async fn listen(&self) {
        let stopping = self.deps().shutdown.stopping().clone();
        let (store, events) = (&self.deps().store, &self.deps().events);
        let mut head = events.head();
        let mut cursor = store.get::<u64>(&place()).ok().flatten().unwrap_or(0);
        let mut kept = cursor;
        // Those whose session took nothing when something happened: they hear it again.
        let mut behind: BTreeSet<FollowupId> = self.book().tasks_awaited().into_iter().collect();
        loop {
            head.borrow_and_update();
            let page = match events.read(store, cursor, PAGE) {
                Ok(page) => page,
                Err(error) => return tracing::error!(%error, "follow-ups hear no more events"),
            };
            for event in &page {
                if !self.hear(event, &mut behind).await {
                    return;
                }
                cursor = event.seq;
            }
            self.heard_to.send_replace(cursor);
            if !page.is_empty() && !stopping.is_cancelled() {
                continue;
            }
            self.catch_up(&mut behind, cursor).await;
            if behind.is_empty() && (cursor - kept >= KEEP || (stopping.is_cancelled() && cursor > kept)) {
                kept = cursor;
                let changes = vec![Change::put(place(), &cursor)];
                drop(store.commit(Commit::owed(changes)).await);
            }
            if stopping.is_cancelled() {
                return;
            }
            let again = Duration::from_millis(AGAIN_MS);
            tokio::select! {
                () = stopping.cancelled() => {}
                _ = head.changed() => {}
                () = tokio::time::sleep(again), if !behind.is_empty() => {}
            }
        }
    }

    /// Waits until all that has happened so far was heard; not for ever, for its tellers may be going down.
    pub async fn hear_out(&self) {
        let head = *self.deps().events.head().borrow();
        let mut heard = self.heard_to.subscribe();
        let all = heard.wait_for(|to| *to >= head);
        if tokio::time::timeout(PATIENCE, all).await.is_err() {
            tracing::warn!("a session is deleted before follow-ups heard of its end");
        }
    }

    /// Lets everyone hear an event whom it may concern; false: the next start has to tell it again.
    async fn hear(&self, event: &Published, behind: &mut BTreeSet<FollowupId>) -> bool {
        let ended = event.task.as_ref().filter(|_| event.kind == EventType::TaskFinished);
        let mut concerned = self.book().awaiting(&Awaited::Event(event.kind));
        if let Some(task) = ended {
            while !self.judge(task, event).await {
                // On a full disk it waits, and holds up nobody else.
                let stopping = self.deps().shutdown.stopping();
                if tokio::time::timeout(Duration::from_millis(AGAIN_MS), stopping.cancelled()).await.is_ok() {
                    return false;
                }
            }
            concerned.extend(self.book().awaiting(&Awaited::Task(task.clone())));
        }
        for id in concerned {
            if !behind.contains(&id) && !self.heard(&id, event).await {
                behind.insert(id);
            }
        }
        true
    }

    /// Lets those hear again what they could not act on.
    async fn catch_up(&self, behind: &mut BTreeSet<FollowupId>, cursor: u64) {
        for id in behind.clone() {
            if self.has_caught_up(&id, cursor).await {
                behind.remove(&id);
            }
        }
    }

    async fn has_caught_up(&self, id: &FollowupId, cursor: u64) -> bool {
        let Some(record) = self.get(id) else { return true };
        let mut from = record.seen_seq;
        if let Ok(Schedule::Task { .. }) = slots::schedule(&record) {
            return self.check_task_of(id).await;
        }
        while from < cursor {
            let Ok(page) = self.deps().events.read(&self.deps().store, from, PAGE) else { return false };
            for event in page.iter().filter(|event| event.seq <= cursor) {
                if !self.heard(id, event).await {
                    return false;
                }
            }
            from = page.last().map_or(cursor, |last| last.seq);
        }
        true
    }

    /// Lets a follow-up hear an event; false: it could not act on it now.
    async fn heard(&self, id: &FollowupId, published: &Published) -> bool {
        let _turn = self.turn.write().await;
        let Some(mut record) = self.get(id).filter(|record| record.followup.state == FollowupState::Active) else {
            return true;
        };
        let Ok(event) = serde_json::from_str::<Event>(published.json.get()) else { return true };
        if published.seq <= record.seen_seq || !is_meant(&record, &event) {
            return true;
        }
        let Some(cause) = self.cause(&record, &event) else { return true };
        record.seen_seq = published.seq;
        self.set_off(record, cause, Vec::new()).await
    }

    /// Makes a cause of an event; none: the follow-up itself brought it about.
    fn cause(&self, record: &FollowupRecord, event: &Event) -> Option<Cause> {
        let own = &record.followup.id.0;
        let told = |at: &str| event.data.pointer(at).and_then(Data::as_str);
        if told("/followup") == Some(own) || told("/followup/id") == Some(own) {
            return None;
        }
        let task = event.task.as_ref().and_then(|task| self.task(task));
        let made_by = task.and_then(|task| task.made_by);
        if made_by.as_ref().is_some_and(|made_by| made_by.followup == record.followup.id) {
            return None;
        }
        // What becomes of a slot tells itself how far down a chain that was.
        let told = event.data.get("depth").and_then(Data::as_u64).and_then(|depth| depth.try_into().ok());
        let before: u32 = told.unwrap_or(0).max(made_by.map_or(0, |made_by| made_by.depth));
        Some(Cause { at: event.at, depth: record.depth.max(before + 1), line: None })
    }

    /// Sets a follow-up off, together with what is recorded of that; false: its session takes nothing now.
    pub(super) async fn set_off(&self, mut record: FollowupRecord, cause: Cause, with: Vec<Change>) -> bool {
        let id = record.followup.id.clone();
        let slot = states::free_instant(&record, cause.at, |at| self.is_recorded(&id, at));
        let last = self.last_task(&record);
        let (task, mut changes) = slots::happen(&mut record, slot, cause.depth, last, &self.deps().clock);
        changes.extend(with);
        let Some(task) = task else {
            if cause.depth > slots::MOST_DEPTH {
                tracing::warn!(followup = %id, "it is not set off: the chain of follow-ups is too long");
            }
            return self.ask(&record, changes).await.is_ok();
        };
        let line = cause.line.map(|line| format!("\n\n{line}")).unwrap_or_default();
        let content = format!("{}{line}", record.followup.content);
        self.make(record, Run { task, content, depth: cause.depth, keyed: None }, changes).await
    }

    fn task(&self, id: &TaskId) -> Option<TaskRecord> {
        self.deps().store.get::<TaskRecord>(&Key::task(id)).ok().flatten()
    }

    /// Sets off one that waits for a task which has ended already; false: not now.
    async fn check_task_of(&self, id: &FollowupId) -> bool {
        let _turn = self.turn.write().await;
        let Some(record) = self.get(id).filter(|record| record.followup.state == FollowupState::Active) else {
            return true;
        };
        match slots::schedule(&record) {
            Ok(Schedule::Task { task }) if self.task(&task).is_none() => {
                self.fail(record, format!("task {task} is gone")).await
            }
            _ => self.check_task(record).await,
        }
    }

    /// The same, for who holds the turn.
    pub(super) async fn check_task(&self, record: FollowupRecord) -> bool {
        let Some((at, depth)) = self.end(&record) else { return true };
        let cause = Cause { at, depth: record.depth.max(depth + 1), line: None };
        self.set_off(record, cause, Vec::new()).await
    }

    /// Notes an end that passed while the follow-up was paused.
    pub(super) fn missed_end(&self, record: &mut FollowupRecord) -> Vec<Change> {
        let Some((at, _)) = self.end(record) else { return Vec::new() };
        record.followup.state = FollowupState::Done;
        slots::missed(record, at)
    }

    /// Returns when the task ended that is waited for, and how many follow-ups stand behind it.
    fn end(&self, record: &FollowupRecord) -> Option<(Timestamp, u32)> {
        let Ok(Schedule::Task { task }) = slots::schedule(record) else { return None };
        let task = self.task(&task)?;
        let has_ended = matches!(task.task.state, TaskState::Succeeded | TaskState::Failed | TaskState::Cancelled);
        let depth = task.made_by.map_or(0, |made_by| made_by.depth);
        has_ended.then(|| (task.task.finished_at.unwrap_or(task.task.created_at), depth))
    }

    /// Counts the end of a task for the follow-up that made it; false: that could not be recorded.
    async fn judge(&self, task: &TaskId, published: &Published) -> bool {
        // What its tasks delegate is counted with them.
        let own = self.task(task).filter(|task| task.task.origin == Origin::Followup);
        let Some(made_by) = own.and_then(|task| task.made_by) else { return true };
        let Ok(event) = serde_json::from_str::<Event>(published.json.get()) else { return true };
        let state = event.data.pointer("/task/state").and_then(Data::as_str);
        let Some(state) = state.and_then(|state| state.parse::<TaskState>().ok()) else { return true };
        let _turn = self.turn.write().await;
        let Some(mut record) = self.get(&made_by.followup) else { return true };
        match states::judge(&mut record, task, state, published.seq) {
            Some(changes) => self.ask(&record, changes).await.is_ok(),
            None => true,
        }
    }
}

/// Tells whether a follow-up waits for this event.
fn is_meant(record: &FollowupRecord, event: &Event) -> bool {
    match slots::schedule(record) {
        Ok(Schedule::Task { task }) => event.kind == EventType::TaskFinished && event.task.as_ref() == Some(&task),
        Ok(Schedule::Event { event: kind, matches, session }) => {
            let whose = event.session.as_ref();
            let meant = session.unwrap_or_else(|| record.followup.session.clone());
            let is_theirs = whose.is_none_or(|whose| *whose == meant);
            kind == event.kind && is_theirs && happening::fits(&matches, &event.data)
        }
        _ => false,
    }
}

fn place() -> Key {
    Key::meta("followups")
}
