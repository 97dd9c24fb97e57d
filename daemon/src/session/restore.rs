//! Taking up a session from the store: open calls are closed on record, then its tasks go on as the agent says.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use nano_protocol::event::EventType;
use nano_protocol::id::{MessageId, SessionId, TaskId};
use nano_protocol::message::{Message, NotRun, Outcome, Role, ToolCall};
use nano_protocol::session::SessionState;
use nano_protocol::task::{Reason, TaskError, TaskState};
use serde_json::json;
use tokio::sync::mpsc;

use super::actor::{Actor, Memory, News};
use super::admission;
use super::deps::Deps;
use super::registry::Registry;
use super::task::{Machine, Queued, Steer};
use super::transcript;
use crate::config::Resume;
use crate::store::record::{CallRecord, Draft, SessionRecord, SteeringRecord, TaskRecord};
use crate::store::{Change, Commit, Key, StoreError};

/// How often a task goes on by itself after the daemon died.
const RESTARTS: u32 = 2;
/// More than any session holds: reading is by range, never by guess.
const ALL: usize = usize::MAX;

/// Makes the actor of a session from what the store holds.
pub(super) async fn restore(
    deps: &Arc<Deps>,
    registry: &Registry,
    id: &SessionId,
    news: mpsc::Sender<News>,
) -> Result<Option<Actor>, StoreError> {
    let Some(mut record) = deps.store.get::<SessionRecord>(&Key::session(id))? else { return Ok(None) };
    let tasks = open_tasks(deps, id)?;
    let steering: Vec<SteeringRecord> = deps.store.scan(&Key::below(b'w', &id.0), None, ALL)?;
    let mut transcript = deps.store.all_messages(id)?;
    let mut changes = Vec::new();
    let skills = super::skills::offer(deps, &record.session).await;
    changes.extend(super::offered::refresh_tools(deps, &mut record, &skills).map(|data| {
        Change::Event(Draft { session: Some(id.clone()), task: None, kind: EventType::SessionToolsChanged, data })
    }));
    close_open_calls(deps, id, &mut transcript, &mut changes)?;
    let mut restored = Restored { tasks: HashMap::new(), queue: VecDeque::new(), held: None };
    for task in tasks {
        restored.take(deps, task, &record, &transcript, &mut changes);
    }
    if restored.held.is_some() && record.session.state != SessionState::Closed {
        record.session.state = SessionState::Interrupted;
    }
    if !changes.is_empty() {
        // With the task's state that of its session, or a reader in between would see them disagree.
        changes.push(Change::session(&record));
        let receipt = deps.store.commit(Commit::owed(changes)).await?;
        transcript::number(&mut transcript, &receipt);
    }
    let waiting = steering.iter().map(|one| Steer { message: one.id.clone(), delivery: one.delivery }).collect();
    let machine = Machine::restore(restored.held, restored.queue, waiting);
    let memory = Memory { record, machine, tasks: restored.tasks, steering, transcript, skills };
    Ok(Some(Actor::new(deps.clone(), registry.clone(), memory, news)))
}

/// Returns the tasks that have not ended, the running one first, then in order of arrival.
fn open_tasks(deps: &Deps, session: &SessionId) -> Result<Vec<TaskRecord>, StoreError> {
    let ids: Vec<String> = deps.store.ids_backwards(&Key::below(b'o', &session.0), None).collect();
    let mut tasks = Vec::new();
    for id in ids.into_iter().rev() {
        tasks.extend(deps.store.get::<TaskRecord>(&Key::task(&TaskId(id)))?);
    }
    tasks.sort_by_key(|record| (record.task.state == TaskState::Queued, record.queued_at, record.task.seq));
    Ok(tasks)
}

/// Writes a result for every call of the last reply that has none.
fn close_open_calls(
    deps: &Deps,
    session: &SessionId,
    transcript: &mut Vec<Message>,
    changes: &mut Vec<Change>,
) -> Result<(), StoreError> {
    let Some(at) = transcript.iter().rposition(|message| !message.tool_calls.is_empty()) else { return Ok(()) };
    let Some(reply) = transcript.get(at).cloned() else { return Ok(()) };
    let answered =
        |call: &ToolCall| transcript.iter().skip(at).any(|message| message.tool_call_id.as_ref() == Some(&call.id));
    let open: Vec<(usize, ToolCall)> =
        reply.tool_calls.iter().cloned().enumerate().filter(|(_, call)| !answered(call)).collect();
    for (place, call) in open {
        let key = Key::call(session, place);
        let started = deps.store.get::<CallRecord>(&key)?.filter(|record| record.id == call.id);
        let id = MessageId::from_ulid(&deps.clock.ulid());
        let mut message = closing(id, &reply, call, started, deps.clock.now());
        super::children::reword(deps, session, &mut message);
        changes.push(Change::Delete(key));
        changes.push(Change::Message(session.clone(), Box::new(message.clone())));
        transcript.push(message);
    }
    Ok(())
}

fn closing(
    id: MessageId,
    reply: &Message,
    call: ToolCall,
    started: Option<CallRecord>,
    now: nano_protocol::time::Timestamp,
) -> Message {
    let mut message = Message::text(id, reply.task.clone(), Role::Tool, "", now);
    (message.tool_call_id, message.tool_name) = (Some(call.id), Some(call.name));
    match started.map(|record| record.result) {
        Some(Some(result)) => {
            (message.content, message.ok) = (result.content, Some(result.ok));
            message.outcome = result.stopped.then_some(Outcome::Stopped);
        }
        Some(None) => {
            (message.content, message.ok) = (transcript::UNKNOWN.into(), Some(false));
            message.outcome = Some(Outcome::Unknown);
        }
        None => {
            (message.content, message.ok) = (transcript::not_run_text(NotRun::Restart), Some(false));
            message.not_run = Some(NotRun::Restart);
        }
    }
    message
}

struct Restored {
    tasks: HashMap<TaskId, TaskRecord>,
    queue: VecDeque<Queued>,
    held: Option<TaskId>,
}

impl Restored {
    /// Decides how one task goes on.
    fn take(
        &mut self,
        deps: &Deps,
        mut record: TaskRecord,
        session: &SessionRecord,
        transcript: &[Message],
        changes: &mut Vec<Change>,
    ) {
        let agent = deps.agent(&session.session.agent);
        let id = record.task.id.clone();
        match record.task.state {
            TaskState::Running => {
                let clean = std::mem::take(&mut record.suspended);
                record.restarts += u32::from(!clean);
                match agent.resume {
                    Resume::Auto if record.restarts <= RESTARTS => {
                        changes.push(Change::task(&record));
                        self.queue.push_back(going_on(&record, transcript, &agent));
                    }
                    Resume::Never => return changes.extend(failed(deps, record)),
                    Resume::Auto | Resume::Ask => {
                        record.task.state = TaskState::Interrupted;
                        (record.task.reason, self.held) = (Some(Reason::Restart), Some(id.clone()));
                        changes.push(Change::task(&record));
                        changes.push(event(&record, EventType::TaskInterrupted));
                    }
                }
            }
            TaskState::Interrupted => self.held = Some(id.clone()),
            TaskState::Queued => {
                let mut queued = admission::queued(&record, &agent);
                queued.resumed = record.task.started_at.is_some();
                self.queue.push_back(queued);
            }
            // It ended; the open mark was left by a version that wrote the two apart.
            TaskState::Succeeded | TaskState::Failed | TaskState::Cancelled => return,
        }
        self.tasks.insert(id, record);
    }
}

/// Returns a running task as the machine takes it up: with what it has used, seen and repeated.
fn going_on(record: &TaskRecord, transcript: &[Message], agent: &crate::config::AgentConfig) -> Queued {
    let own: Vec<Message> = transcript.iter().filter(|message| message.task == record.task.id).cloned().collect();
    let mut queued = admission::queued(record, agent);
    queued.resumed = !own.is_empty();
    queued.turns = record.task.turns.saturating_sub(record.turns_before);
    queued.cuts = record.cuts;
    let counted: Vec<Message> = own.into_iter().filter(|message| message.seq > record.seen_before).collect();
    for print in transcript::fingerprints(&counted) {
        *queued.repeats.entry(print).or_insert(0) += 1;
    }
    queued
}

fn failed(deps: &Deps, mut record: TaskRecord) -> Vec<Change> {
    let task = &mut record.task;
    (task.state, task.reason, task.finished_at) = (TaskState::Failed, Some(Reason::Restart), Some(deps.clock.now()));
    let message = "the daemon ended while it ran (resume = \"never\")".into();
    task.error = Some(TaskError { kind: "restart".into(), message });
    let open = Change::Delete(Key::open_task(&record.task.session, &record.task.id));
    vec![Change::task(&record), open, event(&record, EventType::TaskFinished)]
}

fn event(record: &TaskRecord, kind: EventType) -> Change {
    let task = &record.task;
    let data = json!({"task": task});
    Change::Event(Draft { session: Some(task.session.clone()), task: Some(task.id.clone()), kind, data })
}
