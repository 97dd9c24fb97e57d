//! The actor of one session: it owns the session while there is something to do, and decides nothing itself.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use nano_protocol::error::{ErrorKind, RpcError};
use nano_protocol::event::EventType;
use nano_protocol::id::TaskId;
use nano_protocol::message::{Message, ToolCall};
use nano_protocol::session::{AcceptedAs, Delivery, Session, SessionState, Steered};
use nano_protocol::task::{Task, TaskError, TaskState};
use serde_json::json;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::admission::{self, SteerRequest, Submission};
use super::deps::Deps;
use super::registry::Registry;
use super::steering_watch::SteeringWatch;
use super::task::{Effect, Input, Machine, Steer, Stop};
use crate::model::{Answer, ProviderError};
use crate::sandbox::{Sandbox, SandboxError};
use crate::store::record::{CallResult, Draft, SessionRecord, SteeringRecord, TaskRecord};
use crate::store::{Change, Commit, Key, Receipt, StoreError};
use crate::tools::set::ToolSet;
use crate::tools::{ToolFault, ToolOutcome};

/// Where an answer goes; nobody may be waiting any more.
pub type Reply<T> = oneshot::Sender<Result<T, RpcError>>;

/// What clients ask of a session.
pub enum Command {
    /// Take a task.
    Submit(Box<Submission>, Reply<Task>),
    /// Take a steering message.
    Steer(Box<SteerRequest>, Reply<Steered>),
    /// End a task; answered when it has ended.
    Cancel(TaskId, Reply<Task>),
    /// Take up an interrupted or failed task.
    Resume(TaskId, Reply<Task>),
    /// Take back what waits.
    Withdraw(String, Reply<()>),
    /// Boot the computer.
    Boot(Reply<Session>),
    /// Take nothing more; answered when all has ended.
    Close(Reply<Session>),
    /// Go on with what the store holds.
    Wake,
}

/// What the actor's own helpers tell it; a generation that is over is ignored.
pub(super) enum News {
    Answered(u64, Result<Answer, ProviderError>),
    ModelStopped(u64),
    CallEnded(u64, usize, Result<ToolOutcome, ToolFault>),
    Booted(Result<Arc<dyn Sandbox>, SandboxError>),
    SteeringFile,
}

/// A call of the last reply.
pub(super) struct OpenCall {
    pub call: ToolCall,
    pub result: Option<CallResult>,
    pub stop: Option<CancellationToken>,
}

/// A reply on its way into the transcript.
pub(super) struct KeptReply {
    pub answer: Answer,
    pub partial: bool,
}

pub(super) struct Actor {
    pub deps: Arc<Deps>,
    pub registry: Registry,
    pub record: SessionRecord,
    pub machine: Machine,
    /// Tasks that have not ended.
    pub tasks: HashMap<TaskId, TaskRecord>,
    /// Steering that waits, in order.
    pub steering: Vec<SteeringRecord>,
    pub transcript: Vec<Message>,
    /// The task whose turn is being recorded; the machine may already be at the next one.
    pub turn_task: Option<TaskId>,
    /// Tasks whose end is recorded and not told yet.
    pub ended: Vec<Task>,
    pub reply: Option<KeptReply>,
    pub open: Vec<OpenCall>,
    /// Rises with every model call: news of an older one is late.
    pub generation: u64,
    pub model_stop: Option<CancellationToken>,
    /// What came of the reply so far.
    pub partial: Arc<Mutex<String>>,
    pub toolset: Option<Arc<ToolSet>>,
    pub sandbox: Option<Arc<dyn Sandbox>>,
    pub booting: bool,
    /// Calls that wait for the computer.
    pub awaiting_boot: Vec<usize>,
    pub boot_replies: Vec<Reply<Session>>,
    pub close_replies: Vec<Reply<Session>>,
    pub end_replies: HashMap<TaskId, Vec<Reply<Task>>>,
    pub deadline: Option<Instant>,
    pub failure: Option<TaskError>,
    pub watch: Option<SteeringWatch>,
    pub news: mpsc::Sender<News>,
}

/// What an actor knows when it starts.
pub(super) struct Memory {
    pub record: SessionRecord,
    pub machine: Machine,
    pub tasks: HashMap<TaskId, TaskRecord>,
    pub steering: Vec<SteeringRecord>,
    pub transcript: Vec<Message>,
}

impl Actor {
    pub fn new(deps: Arc<Deps>, registry: Registry, memory: Memory, news: mpsc::Sender<News>) -> Self {
        let Memory { record, machine, tasks, steering, transcript } = memory;
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
            open: Vec::new(),
            generation: 0,
            model_stop: None,
            partial: Arc::default(),
            toolset: None,
            sandbox: None,
            booting: false,
            awaiting_boot: Vec::new(),
            boot_replies: Vec::new(),
            close_replies: Vec::new(),
            end_replies: HashMap::new(),
            deadline: None,
            failure: None,
            watch: None,
            news,
        }
    }

    /// Runs until nothing is left to do, or the daemon goes down.
    pub async fn run(mut self, mut inbox: mpsc::Receiver<Command>, mut news: mpsc::Receiver<News>) -> Result<(), StoreError> {
        let effects = self.machine.begin();
        self.apply(effects, Vec::new()).await?;
        let (stopping, cutting) = (self.deps.shutdown.stopping().clone(), self.deps.shutdown.cutting().clone());
        let (mut suspended, mut cut) = (false, false);
        loop {
            let deadline = self.deadline;
            // The daemon's end first, then what already happened, then what people ask for.
            tokio::select! {
                biased;
                () = cutting.cancelled(), if !cut => { cut = true; self.stop_calls(); }
                () = stopping.cancelled(), if !suspended => { suspended = true; self.suspend().await?; }
                Some(one) = news.recv() => self.hear(one).await?,
                () = tokio::time::sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => {
                    self.deadline = None;
                    self.feed(Input::Stop(Stop::Timeout)).await?;
                }
                Some(command) = inbox.recv() => self.obey(command).await?,
            }
            if suspended && !self.machine.is_busy() {
                return Ok(());
            }
            let idle = self.machine.is_idle() || (self.machine.is_held() && self.machine.running().is_none());
            if idle && !self.booting && self.registry.retire(&self.record.session.id, &inbox) {
                self.free_sandbox().await;
                return Ok(());
            }
        }
    }

    /// Gives one input to the machine and does what it says.
    pub async fn feed(&mut self, input: Input) -> Result<(), StoreError> {
        let effects = self.machine.on(input);
        self.apply(effects, Vec::new()).await
    }

    /// Makes the effects durable in one commit, then acts on them.
    pub async fn apply(&mut self, effects: Vec<Effect>, mut changes: Vec<Change>) -> Result<(), StoreError> {
        for effect in &effects {
            self.write(effect, &mut changes);
        }
        self.note_state(&mut changes);
        if !changes.is_empty() {
            self.commit(changes).await?;
        }
        for effect in effects {
            self.act(effect).await;
        }
        Ok(())
    }

    pub async fn commit(&mut self, changes: Vec<Change>) -> Result<Receipt, StoreError> {
        let receipt = self.deps.store.commit(Commit { owner: Some(self.record.session.owner), changes }).await?;
        let mut numbers = receipt.iter().filter(|event| event.kind == EventType::MessageAdded).filter_map(|event| event.seq);
        for message in self.transcript.iter_mut().filter(|message| message.seq == 0) {
            message.seq = numbers.next().unwrap_or_default();
        }
        Ok(receipt)
    }

    pub fn draft(&self, kind: EventType, data: serde_json::Value) -> Change {
        let task = self.turn_task.as_ref().or(self.machine.current()).cloned();
        Change::Event(Draft { session: Some(self.record.session.id.clone()), task, kind, data })
    }

    /// Records the session's state where it has changed.
    fn note_state(&mut self, changes: &mut Vec<Change>) {
        let state = match () {
            () if self.record.session.state == SessionState::Closed => SessionState::Closed,
            () if self.machine.is_held() => SessionState::Interrupted,
            () if self.machine.is_idle() => SessionState::Idle,
            () => SessionState::Running,
        };
        if self.record.session.state != state {
            self.record.session.state = state;
            self.record.session.updated_at = self.deps.clock.now();
            changes.push(Change::session(&self.record));
        }
    }

    async fn obey(&mut self, command: Command) -> Result<(), StoreError> {
        match command {
            Command::Submit(submission, reply) => {
                let answer = self.submit(*submission).await;
                self.answer(reply, answer).await
            }
            Command::Steer(request, reply) => {
                let answer = self.steer(*request).await;
                self.answer(reply, answer).await
            }
            Command::Cancel(task, reply) => self.cancel(task, reply).await,
            Command::Resume(task, reply) => {
                let answer = self.resume(&task).await;
                self.answer(reply, answer).await
            }
            Command::Withdraw(id, reply) => {
                let known = self.machine.queue().any(|task| task.0 == id) || self.steering.iter().any(|one| one.id.0 == id);
                let gone = || RpcError::new(ErrorKind::NotFound, format!("nothing with the id {id} waits in this session"));
                self.feed(Input::Withdraw(id.clone())).await?;
                drop(reply.send(if known { Ok(()) } else { Err(gone()) }));
                Ok(())
            }
            Command::Boot(reply) => self.boot_for(reply).await,
            Command::Close(reply) => self.close(reply).await,
            Command::Wake => Ok(()),
        }
    }

    /// Answers, then begins what was accepted: accepting and beginning are two commits.
    async fn answer<T>(&mut self, reply: Reply<T>, answer: Result<(T, Option<Input>), Refusal>) -> Result<(), StoreError> {
        match answer {
            Ok((answer, input)) => {
                drop(reply.send(Ok(answer)));
                match input {
                    Some(input) => self.feed(input).await,
                    None => Ok(()),
                }
            }
            Err(Refusal::Caller(error)) => {
                drop(reply.send(Err(error)));
                Ok(())
            }
            Err(Refusal::Store(error)) => {
                drop(reply.send(Err(super::deps::unavailable(&error))));
                Err(error)
            }
        }
    }

    async fn submit(&mut self, submission: Submission) -> Result<(Task, Option<Input>), Refusal> {
        admission::may_queue(&self.record.session, self.machine.queue().count())?;
        let agent = self.deps.agent(&self.record.session.agent);
        let record = admission::task_record(submission, &self.record.session, self.deps.clock.now());
        let (record, extra) = record;
        let id = record.task.id.clone();
        let queued = admission::queued(&record, &agent);
        let mut changes = vec![Change::Queued(Box::new(record.clone()))];
        changes.extend(extra);
        // Written with the task: a daemon that dies now must find that this session has something to do.
        if self.record.session.state == SessionState::Idle {
            self.record.session.state = SessionState::Running;
            changes.push(Change::session(&self.record));
        }
        let receipt = self.commit(changes).await?;
        let number = receipt.iter().find(|event| event.kind == EventType::TaskQueued).and_then(|event| event.seq);
        let record = self.tasks.entry(id).or_insert(record);
        record.task.seq = number.unwrap_or_default();
        Ok((record.task.clone(), Some(Input::Submit(queued))))
    }

    pub async fn steer(&mut self, request: SteerRequest) -> Result<(Steered, Option<Input>), Refusal> {
        let agent = self.deps.agent(&self.record.session.agent);
        admission::may_steer(&self.record.session, &agent, self.steering.len())?;
        if self.machine.is_idle() {
            return self.steer_as_task(request).await;
        }
        let task = self.machine.current().or_else(|| self.machine.queue().next()).cloned();
        let Some(task) = task else { return self.steer_as_task(request).await };
        let place = self.steering.last().map_or(self.deps.clock.now().0.cast_unsigned(), |last| last.place + 1);
        let delivery = request.delivery;
        let accepted_as = match delivery {
            Delivery::Note => AcceptedAs::Note,
            Delivery::Redirect => AcceptedAs::Redirect,
            Delivery::Interrupt => AcceptedAs::Interrupt,
        };
        let answer = Steered { message: request.id.clone(), accepted_as, task, position: self.steering.len() };
        let (record, mut changes) = request.into_record(place, &answer, self.deps.clock.now());
        changes.push(Change::steering(&self.record.session.id, &record));
        changes.push(self.draft(EventType::SteeringQueued, json!({"message": record.id, "delivery": delivery})));
        let steer = Steer { message: record.id.clone(), delivery };
        self.commit(changes).await?;
        self.steering.push(record);
        Ok((answer, Some(Input::Steer(steer))))
    }

    async fn steer_as_task(&mut self, request: SteerRequest) -> Result<(Steered, Option<Input>), Refusal> {
        let task = TaskId::from_ulid(&self.deps.clock.ulid());
        let message = request.id.clone();
        let answer = Steered { message, accepted_as: AcceptedAs::Task, task: task.clone(), position: 0 };
        let submission = request.into_submission(task, &answer, self.deps.clock.now());
        let (_, input) = self.submit(submission).await?;
        Ok((answer, input))
    }

    async fn cancel(&mut self, task: TaskId, reply: Reply<Task>) -> Result<(), StoreError> {
        if self.tasks.contains_key(&task) {
            self.end_replies.entry(task.clone()).or_default().push(reply);
            return self.feed(Input::Cancel(task)).await;
        }
        let ended = self.deps.store.get::<TaskRecord>(&Key::task(&task))?;
        let gone = || RpcError::new(ErrorKind::NotFound, format!("there is no task {task}"));
        drop(reply.send(ended.map(|record| record.task).ok_or_else(gone)));
        Ok(())
    }

    async fn resume(&mut self, task: &TaskId) -> Result<(Task, Option<Input>), Refusal> {
        let stored = self.tasks.get(task).cloned();
        let record = match stored {
            Some(record) => Some(record),
            None => self.deps.store.get::<TaskRecord>(&Key::task(task))?,
        };
        let mut record = record.ok_or_else(|| RpcError::new(ErrorKind::NotFound, format!("there is no task {task}")))?;
        admission::may_resume(&self.record.session, &record.task)?;
        let agent = self.deps.agent(&self.record.session.agent);
        let queued = admission::requeue(&mut record, &agent);
        let open = Change::put(Key::open_task(&record.task.session, task), &1);
        self.commit(vec![Change::task(&record), open]).await?;
        let answer = record.task.clone();
        self.tasks.insert(task.clone(), record);
        Ok((answer, Some(Input::Resume(queued))))
    }

    async fn close(&mut self, reply: Reply<Session>) -> Result<(), StoreError> {
        self.close_replies.push(reply);
        let was = std::mem::replace(&mut self.record.session.state, SessionState::Closed);
        if was != SessionState::Closed {
            self.record.session.updated_at = self.deps.clock.now();
            let session = &self.record.session;
            let closed = self.draft(EventType::SessionClosed, json!({"session": session}));
            self.commit(vec![Change::session(&self.record), closed]).await?;
            self.registry.note_closed(&self.record.session);
        }
        self.feed(Input::Close).await?;
        self.answer_close();
        Ok(())
    }

    /// Answers those who closed, once nothing runs any more.
    pub fn answer_close(&mut self) {
        if self.machine.is_idle() {
            for reply in self.close_replies.drain(..) {
                drop(reply.send(Ok(self.record.session.clone())));
            }
        }
    }

    async fn suspend(&mut self) -> Result<(), StoreError> {
        let effects = self.machine.on(Input::Suspend);
        let mut changes = Vec::new();
        for record in self.tasks.values_mut().filter(|record| record.task.state == TaskState::Running) {
            record.suspended = true;
            changes.push(Change::task(record));
        }
        self.apply(effects, changes).await
    }
}

/// Why a command is not obeyed.
pub(super) enum Refusal {
    Caller(RpcError),
    Store(StoreError),
}

impl From<RpcError> for Refusal {
    fn from(error: RpcError) -> Self {
        Self::Caller(error)
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}
