//! Children: sessions that work for another one, and what comes of that.
//!
//! A child, its task and a record of both below the parent are made in one commit. The record stays until the end of the
//! task is recorded with the parent, in one commit with that: as the result of the call that waits for it, else as a
//! note or a task of its own. So an end is told once, whatever dies in between; until then whoever starts looks again.

mod closing;
mod delegator;
mod end;
mod opening;

use nano_protocol::error::RpcError;
use nano_protocol::event::EventType;
use nano_protocol::id::{MessageId, SessionId, TaskId};
use nano_protocol::message::{Message, Outcome};
use nano_protocol::session::{Delivery, SessionState};
use nano_protocol::task::{Limits, Origin, Task, TaskState};
use serde_json::json;
use tokio::sync::oneshot;

use super::actor::{Actor, Command};
use super::admission::Submission;
use super::deps::Deps;
use super::obey::Refusal;
use super::registry::Registry;
use super::task::{Input, Steer};
use crate::store::record::call::CallRecord;
use crate::store::record::{ChildRecord, MadeBy, SessionRecord, SteeringRecord, TaskRecord};
use crate::store::{Change, Key, StoreError};
use crate::tools::ToolOutcome;

pub use closing::close_for_person;

/// How many sessions may stand in a chain below the first.
const DEPTH: u32 = 3;
/// How many children may work for one session at once.
const AT_ONCE: usize = 8;
/// How many tasks may stand in a chain, each begun by the result of work that the one before did not wait for.
const ROUNDS: u32 = 8;

/// Returns what a session has delegated and not heard of, oldest first.
fn of(deps: &Deps, parent: &SessionId) -> Result<Vec<ChildRecord>, StoreError> {
    let mut found = Vec::new();
    for id in deps.store.ids(&Key::below(b'd', &parent.0))? {
        match deps.store.get(&Key::child(parent, &SessionId(id))) {
            Ok(record) => found.extend(record),
            Err(error @ StoreError::Damaged(_)) => tracing::error!(%error, "what was delegated is left out"),
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// Returns why a session may delegate nothing just now.
fn barred(deps: &Deps, record: &SessionRecord) -> Option<String> {
    barred_by(deps, record, |_| true)
}

/// Returns why delegation is not offered just now: a call that is open has its child, and is made again after a restart.
pub(super) fn withheld(deps: &Deps, record: &SessionRecord) -> Option<String> {
    let calls: Vec<CallRecord> = deps.store.readable(&Key::below(b'c', &record.session.id.0)).unwrap_or_default();
    let is_open = |child: &ChildRecord| calls.iter().any(|call| call.result.is_none() && call.id == child.call);
    barred_by(deps, record, |child| !is_open(child))
}

fn barred_by(deps: &Deps, record: &SessionRecord, counts: impl Fn(&ChildRecord) -> bool) -> Option<String> {
    if record.depth >= DEPTH {
        return Some(format!("depth {} of {DEPTH} is reached", record.depth));
    }
    let works = |child: &ChildRecord| matches!(end::of(deps, child), Ok(None));
    let children = match of(deps, &record.session.id) {
        Ok(children) => children,
        Err(error) => return Some(format!("what this one has delegated cannot be read: {error}")),
    };
    let working = children.iter().filter(|child| counts(child) && works(child)).count();
    (working >= AT_ONCE).then(|| format!("{working} subagent sessions work for this one already"))
}

/// Returns what stands behind a task: what it delegates, and what comes of that, stands in the same chain.
fn chain(deps: &Deps, task: &TaskId) -> (Option<MadeBy>, u32) {
    let record = deps.store.get::<TaskRecord>(&Key::task(task)).ok().flatten();
    record.map(|record| (record.made_by, record.rounds)).unwrap_or_default()
}

/// Says in a call that died with the daemon what becomes of the work.
pub(super) fn reword(deps: &Deps, parent: &SessionId, message: &mut Message) {
    if message.outcome != Some(Outcome::Unknown) {
        return;
    }
    let of_call = |child: &ChildRecord| message.tool_call_id.as_ref() == Some(&child.call);
    // Where that cannot be read, the result comes all the same.
    if let Some(child) = of(deps, parent).unwrap_or_default().into_iter().find(of_call) {
        message.content = format!(
            "Interrupted: the daemon died while this ran. The subagent session {} is not lost by that: its result comes \
             as a message.",
            child.session
        );
    }
}

/// Has a session look at its children; it looks by itself when it starts.
pub(super) fn poke(registry: &Registry, id: &SessionId) {
    let (registry, id) = (registry.clone(), id.clone());
    let shutdown = registry.deps().shutdown.clone();
    shutdown.spawn("children", async move { drop(registry.send(&id, Command::Children).await) });
}

/// Ends a child's task; how that went is seen at its end.
fn cancel(registry: &Registry, child: &ChildRecord) {
    let (registry, id, task) = (registry.clone(), child.session.clone(), child.task.clone());
    let shutdown = registry.deps().shutdown.clone();
    shutdown.spawn("cancel-child", async move {
        if registry.is_within_reach(&id).is_err() {
            return closing::put_away(&registry, &id).await;
        }
        let (reply, _) = oneshot::channel();
        drop(registry.send(&id, Command::Cancel(task, reply)).await);
    });
}

impl Actor {
    /// Tells whether file tools stay in the workspace, by the profile or by one above.
    pub(super) fn is_restricted(&self) -> bool {
        self.record.restricted || self.agent().restrict_to_workspace
    }

    /// Records that the children of a cancelled task are to end with it.
    pub(super) fn stop_children(&self, ended: &Task, changes: &mut Vec<Change>) {
        if ended.state != TaskState::Cancelled {
            return;
        }
        let parent = &self.record.session.id;
        let told = |error: &StoreError| tracing::error!(%error, session = %parent, "subagent sessions may work on");
        let children = of(&self.deps, parent).inspect_err(told).unwrap_or_default();
        for child in children.into_iter().filter(|child| child.parent_task == ended.id) {
            let key = Key::child(parent, &child.session);
            // The call that waited for it may have told its end in this very commit.
            if changes.iter().any(|change| matches!(change, Change::Delete(gone) if *gone == key)) {
                continue;
            }
            changes.push(Change::put(key, &ChildRecord { stopped: true, ..child }));
        }
    }

    /// Tells those whom the end of a task concerns.
    pub(super) fn tell_kin(&self, ended: &Task) {
        let has_delegated = || of(&self.deps, &self.record.session.id).map_or(true, |children| !children.is_empty());
        if ended.state == TaskState::Cancelled && has_delegated() {
            poke(&self.registry, &self.record.session.id);
        }
        self.tell_parent();
        self.tell_lender();
    }

    /// Tells the parent, if there is one that has to hear of an end.
    pub(super) fn tell_parent(&self) {
        let session = &self.record.session;
        let Some(parent) = &session.parent else { return };
        let awaited = self.deps.store.get::<ChildRecord>(&Key::child(parent, &session.id)).ok().flatten();
        if awaited.is_some_and(|child| matches!(end::of(&self.deps, &child), Ok(Some(_)))) {
            poke(&self.registry, parent);
        }
    }

    /// Looks again after a call that may have left an end behind which it did not wait for.
    pub(super) fn look_for_children(&self, call: usize) {
        let delegates = self.open.get(call).is_some_and(|open| open.call.name == "delegate");
        let untold = || super::processes::untold(&self.deps, &self.record.session.id);
        if delegates || untold().map_or(true, |ends| !ends.is_empty()) {
            poke(&self.registry, &self.record.session.id);
        }
    }

    /// Takes what has come of children, and ends those that are to end.
    pub(super) async fn hear_children(&mut self) -> Result<(), StoreError> {
        let before = of(&self.deps, &self.record.session.id)?;
        for child in before.clone() {
            let waiting = |open: &super::actor::OpenCall| open.call.id == child.call && open.stop.is_some();
            if self.open.iter().any(waiting) {
                continue;
            }
            match end::of(&self.deps, &child)? {
                _ if self.record.session.state == SessionState::Closed => self.forget(&child).await?,
                Some(end) => self.hear_end(child, end.told).await?,
                None if child.stopped => cancel(&self.registry, &child),
                None => {}
            }
        }
        if of(&self.deps, &self.record.session.id)?.len() < before.len() {
            self.tell_lender();
        }
        Ok(())
    }

    /// Nobody is left to hear of it.
    async fn forget(&mut self, child: &ChildRecord) -> Result<(), StoreError> {
        let key = Key::child(&self.record.session.id, &child.session);
        self.commit(vec![Change::Delete(key)]).await.map(|_| ())
    }

    /// Takes an end: as a note where something goes on, else as a task. What ended because its task was cancelled begins
    /// no new one.
    async fn hear_end(&mut self, child: ChildRecord, told: String) -> Result<(), StoreError> {
        let content = end::bounded(&self.deps, &self.record.session.id, &child, told).await;
        if child.stopped || !self.machine.is_idle() {
            let key = Key::child(&self.record.session.id, &child.session);
            return self.note_end(key, source(&child), content).await;
        }
        let (made_by, rounds) = chain(&self.deps, &child.parent_task);
        let submission = Submission {
            id: TaskId::from_ulid(&self.deps.clock.ulid()),
            origin: Origin::Subagent,
            source: Some(source(&child)),
            content,
            metadata: nano_protocol::Object::new(),
            limits: Limits::default(),
            keyed: None,
            with: vec![Change::Delete(Key::child(&self.record.session.id, &child.session))],
            made_by,
            rounds: rounds + 1,
        };
        match self.submit(submission).await {
            Ok((_, input)) => self.feed_all(input).await,
            Err(Refusal::Store(error)) => Err(error),
            // An idle session that is open takes a task.
            Err(Refusal::Caller(error)) => {
                tracing::error!(%error, child = %child.session, "the end of a child is not taken yet");
                Ok(())
            }
        }
    }

    async fn feed_all(&mut self, input: Option<Input>) -> Result<(), StoreError> {
        match input {
            Some(input) => self.feed(input).await,
            None => Ok(()),
        }
    }

    /// Takes an end, of which `of` is the record, as a steering message, whatever the agent says of steering: nobody else
    /// may steer by this.
    pub(super) async fn note_end(&mut self, of: Key, source: String, content: String) -> Result<(), StoreError> {
        let (session, at) = (self.record.session.id.clone(), self.deps.clock.now());
        let id = MessageId::from_ulid(&self.deps.clock.ulid());
        let (delivery, source) = (Delivery::Note, Some(source));
        let place = self.next_place();
        let record = SteeringRecord { id: id.clone(), place, delivery, content, source, metadata: None, at };
        let mut changes = vec![
            Change::Delete(of),
            Change::steering(&session, &record),
            self.draft(EventType::SteeringQueued, json!({"message": id, "delivery": delivery})),
        ];
        if self.machine.is_idle() {
            changes.push(self.draft(EventType::SteeringCarried, json!({"message": id})));
        }
        self.commit(changes).await?;
        self.steering.push(record);
        self.feed(Input::Steer(Steer { message: id, delivery })).await
    }
}

fn source(child: &ChildRecord) -> String {
    format!("subagent {}", child.session)
}

fn refused(error: RpcError) -> ToolOutcome {
    ToolOutcome::Failed(match error.data.hint {
        Some(hint) => format!("{}; {hint}", error.message),
        None => error.message,
    })
}
