//! Taking up a session from the store: open calls are closed on record, then its tasks go on as the agent says.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use nano_protocol::event::EventType;
use nano_protocol::id::{SessionId, TaskId};
use nano_protocol::message::Message;
use nano_protocol::session::SessionState;
use nano_protocol::task::{Reason, TaskError, TaskState};
use serde_json::json;
use tokio::sync::mpsc;

use super::actor::{Actor, News, OpenCall};
use super::admission;
use super::boot::Boot;
use super::deps::Deps;
use super::recovery::{self, Settled, Step};
use super::registry::Registry;
use super::running::Running;
use super::task::{Machine, Queued, Steer};
use super::waiting::Inbox;
use super::{transcript, tries};
use crate::config::{AgentConfig, Resume};
use crate::crash;
use crate::skills::offer::Offer;
use crate::store::record::{Draft, SessionRecord, SteeringRecord, TaskRecord, Tries};
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
    own: (mpsc::Sender<News>, Running),
) -> Result<Option<Actor>, StoreError> {
    let Some(mut record) = deps.store.get::<SessionRecord>(&Key::session(id))? else { return Ok(None) };
    let mut tasks = open_tasks(deps, id)?;
    let mut steering: Vec<SteeringRecord> = deps.store.scan(&Key::below(b'w', &id.0), None, ALL)?;
    let mut transcript = deps.store.all_messages(id)?;
    // By its name a test says whose taking up is fatal.
    crash::point(id.as_str());
    let step = recovery::step(deps, id)?;
    let tries = tries::of(deps, id)?;
    let mut changes = tries::taken_up(id, &tries);
    for task in &mut tasks {
        count_restart(task, &tries);
    }
    let skills = super::skills::offer(deps, &record.session).await;
    changes.extend(super::offered::refresh_tools(deps, &mut record, &skills).map(|data| {
        Change::Event(Draft { session: Some(id.clone()), task: None, kind: EventType::SessionToolsChanged, data })
    }));
    let mut settled = match recovery::interrupted(deps, &record, &skills, &transcript)? {
        Some(interrupted) => {
            let task = tasks.iter().find(|task| task.task.id == interrupted.task);
            let goes_on = task.is_some_and(|task| goes_on(deps, &record, task));
            recovery::settle(deps, &record, interrupted, goes_on).await
        }
        None => Settled::default(),
    };
    changes.append(&mut settled.changes);
    changes.extend(super::processes::take_untold(deps, &record, &mut steering)?);
    let mut restored = Restored { tasks: HashMap::new(), queue: VecDeque::new(), held: None };
    for task in tasks {
        restored.take(deps, task, (&record, &transcript), (&step, &settled), &mut changes);
    }
    if settled.left.is_empty() {
        transcript.append(&mut settled.results);
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
    if !settled.left.is_empty() {
        crash::point("recovery.rerun.before");
    }
    recovery::forget_spools(&deps.spill(id));
    let open = if settled.left.is_empty() { Vec::new() } else { settled.open };
    let memory = Memory { record, machine, tasks: restored.tasks, steering, transcript, open, skills };
    Ok(Some(Actor::new(deps.clone(), registry.clone(), memory, own)))
}

/// What an actor knows when it starts.
struct Memory {
    record: SessionRecord,
    machine: Machine,
    tasks: HashMap<TaskId, TaskRecord>,
    steering: Vec<SteeringRecord>,
    transcript: Vec<Message>,
    open: Vec<OpenCall>,
    skills: Arc<Offer>,
}

impl Actor {
    fn new(
        deps: Arc<Deps>,
        registry: Registry,
        memory: Memory,
        (news, running): (mpsc::Sender<News>, Running),
    ) -> Self {
        let Memory { record, machine, tasks, steering, transcript, open, skills } = memory;
        Self {
            deps,
            registry,
            record,
            machine,
            tasks,
            steering,
            transcript,
            turn_task: None,
            ended: Vec::new(),
            reply: None,
            open,
            generation: 0,
            model_stop: None,
            partial: Arc::default(),
            toolset: None,
            skills,
            boot: Boot::default(),
            close_replies: Vec::new(),
            end_replies: HashMap::new(),
            deadline: None,
            failure: None,
            watch: None,
            news,
            inbox: Inbox::default(),
            running,
        }
    }
}

/// Returns the tasks that have not ended, the running one first, then in order of arrival.
pub(super) fn open_tasks(deps: &Deps, session: &SessionId) -> Result<Vec<TaskRecord>, StoreError> {
    let mut tasks = Vec::new();
    for id in deps.store.ids(&Key::below(b'o', &session.0))? {
        tasks.extend(deps.store.get::<TaskRecord>(&Key::task(&TaskId(id)))?);
    }
    tasks.sort_by_key(|record| (record.task.state == TaskState::Queued, record.queued_at, record.task.seq));
    Ok(tasks)
}

/// Counts that a task goes on in another daemon, unless the one before ended in an orderly way or died of other things.
fn count_restart(record: &mut TaskRecord, tries: &Tries) {
    if record.task.state == TaskState::Running {
        let clean = std::mem::take(&mut record.suspended);
        record.restarts += u32::from(!clean && !tries.spared);
    }
}

/// Tells whether a task goes on by itself.
fn goes_on(deps: &Deps, session: &SessionRecord, record: &TaskRecord) -> bool {
    let auto = deps.agent(&session.session.agent).resume == Resume::Auto && record.restarts <= RESTARTS;
    auto && record.task.state == TaskState::Running && session.session.state != SessionState::Closed
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
        (session, transcript): (&SessionRecord, &[Message]),
        (step, settled): (&Step, &Settled),
        changes: &mut Vec<Change>,
    ) {
        let agent = deps.agent(&session.session.agent);
        let id = record.task.id.clone();
        match record.task.state {
            TaskState::Running => {
                let worn = (record.restarts > RESTARTS).then(|| step.parks(record.restarts, &id));
                match agent.resume {
                    Resume::Auto if worn.is_none() && settled.held.is_none() => {
                        changes.push(Change::task(&record));
                        let left = settled.left.clone();
                        let results = &settled.results;
                        self.queue.push_back(Queued { left, ..going_on(&record, transcript, results, &agent) });
                    }
                    Resume::Never => return changes.extend(failed(deps, record)),
                    Resume::Auto | Resume::Ask => {
                        record.task.error = settled.held.clone().or(worn);
                        changes.extend(interrupt(&mut record));
                        self.held = Some(id.clone());
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
fn going_on(record: &TaskRecord, transcript: &[Message], results: &[Message], agent: &AgentConfig) -> Queued {
    let all = transcript.iter().chain(results);
    let own: Vec<Message> = all.filter(|message| message.task == record.task.id).cloned().collect();
    let mut queued = admission::queued(record, agent);
    queued.resumed = !own.is_empty();
    queued.turns = record.task.turns.saturating_sub(record.turns_before);
    queued.cuts = record.cuts;
    let counted: Vec<Message> =
        own.into_iter().filter(|message| message.seq == 0 || message.seq > record.seen_before).collect();
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

/// Has a task wait for a person.
pub(super) fn interrupt(record: &mut TaskRecord) -> [Change; 2] {
    (record.task.state, record.task.reason) = (TaskState::Interrupted, Some(Reason::Restart));
    [Change::task(record), event(record, EventType::TaskInterrupted)]
}

fn event(record: &TaskRecord, kind: EventType) -> Change {
    let task = &record.task;
    let data = json!({"task": task});
    Change::Event(Draft { session: Some(task.session.clone()), task: Some(task.id.clone()), kind, data })
}
