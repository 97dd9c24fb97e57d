//! The actor of one session: it owns the session while there is something to do, and decides nothing itself.

use std::collections::HashMap;
use std::future::ready;
use std::sync::{Arc, Mutex};

use nano_protocol::approval::Approval;
use nano_protocol::error::RpcError;
use nano_protocol::event::{Data, EventType};
use nano_protocol::id::{ProcessId, TaskId};
use nano_protocol::message::{Message, ToolCall};
use nano_protocol::session::{Session, SessionState, Steered};
use nano_protocol::task::{Task, TaskError};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::admission::{SteerRequest, Submission};
use super::approving::{Answer, Gate};
use super::boot::Boot;
use super::computer::Attached;
use super::deps::Deps;
use super::registry::Registry;
use super::running::Running;
use super::steering_watch::SteeringWatch;
use super::task::{Effect, Input, Machine, Stop};
use super::waiting::Inbox;
use crate::model::{Answer as Reached, ProviderError};
use crate::policy::Verdict;
use crate::sandbox::SandboxError;
use crate::skills::offer::Offer;
use crate::store::record::call::{CallRecord, CallResult};
use crate::store::record::{Draft, SessionRecord, SteeringRecord, TaskRecord};
use crate::store::{Change, Commit, Receipt, StoreError};
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
    /// Lend the computer to a delegate, who may have found the one with this key gone.
    Lend(Option<String>, Reply<Attached>),
    /// Take nothing more; answered when all has ended.
    Close(Reply<Session>),
    /// Take a person's word on a call that waits for it.
    Answer(Answer, Reply<Approval>),
    /// Hear of children and background processes that have ended.
    Children,
    /// Take back what waits to be told of ends that a call shows.
    Unhear(Vec<ProcessId>, Reply<()>),
    /// Go on with what the store holds; answered once that is read.
    Wake(Option<Reply<()>>),
}

/// What the actor's own helpers tell it; a generation that is over is ignored.
pub(super) enum News {
    Answered(u64, Result<Reached, ProviderError>),
    ModelStopped(u64),
    CallEnded(u64, usize, Result<ToolOutcome, ToolFault>),
    Booted(Result<Attached, SandboxError>),
    SteeringFile,
    Prepared(u64),
}

/// A call of the last reply.
pub(super) struct OpenCall {
    pub call: ToolCall,
    /// It as it is on record while it runs.
    pub record: CallRecord,
    pub result: Option<CallResult>,
    pub stop: Option<CancellationToken>,
    /// Whether it was made once more because the computer was gone.
    pub again: bool,
    /// What is changed with its result.
    pub settles: Vec<Change>,
    /// Whether it may start.
    pub gate: Gate,
    /// What the rules say of it.
    pub verdict: Option<Verdict>,
}

impl OpenCall {
    pub fn new(call: ToolCall) -> Self {
        let record = CallRecord { id: call.id.clone(), ..CallRecord::default() };
        Self {
            call,
            record,
            result: None,
            stop: None,
            again: false,
            settles: Vec::new(),
            gate: Gate::Open,
            verdict: None,
        }
    }
}

/// A reply on its way into the transcript.
pub(super) struct KeptReply {
    pub answer: Reached,
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
    /// What it was offered when it last looked.
    pub skills: Arc<Offer>,
    pub boot: Boot,
    pub close_replies: Vec<Reply<Session>>,
    pub end_replies: HashMap<TaskId, Vec<Reply<Task>>>,
    pub deadline: Option<Instant>,
    pub failure: Option<TaskError>,
    pub watch: Option<SteeringWatch>,
    pub news: mpsc::Sender<News>,
    pub inbox: Inbox,
    pub running: Running,
}

impl Actor {
    /// Runs until nothing is left to do, or the daemon goes down.
    pub async fn run(
        mut self,
        inbox: mpsc::Receiver<Command>,
        mut news: mpsc::Receiver<News>,
    ) -> Result<(), StoreError> {
        self.inbox.commands = Some(inbox);
        let closed = self.record.session.state == SessionState::Closed;
        let effects = if closed { self.machine.on(Input::Close) } else { self.machine.begin() };
        self.apply(effects, Vec::new()).await?;
        self.answer_close().await?;
        self.hear_children().await?;
        self.tell_parent();
        let (stopping, cutting) = (self.deps.shutdown.stopping().clone(), self.deps.shutdown.cutting().clone());
        let (mut suspended, mut cut) = (false, false);
        loop {
            let (look, deadline) = (self.attend_gates().await?, self.deadline);
            // The daemon's end first, then what already happened, then what people ask for.
            tokio::select! {
                biased;
                () = cutting.cancelled(), if !cut => { cut = true; self.stop_calls(); }
                () = stopping.cancelled(), if !suspended => { suspended = true; self.suspend().await?; }
                () = ready(()), if self.inbox.holds() => self.obey_held().await?,
                Some(one) = news.recv() => self.hear(one).await?,
                () = tokio::time::sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => {
                    self.deadline = None;
                    self.feed(Input::Stop(Stop::Timeout)).await?;
                }
                Some(command) = self.inbox.recv() => self.obey(command).await?,
                () = tokio::time::sleep_until(look.unwrap_or_else(Instant::now)), if look.is_some() => {}
            }
            if suspended && !self.is_busy() {
                return Ok(());
            }
            let idle = self.machine.is_idle() || self.machine.is_held();
            if self.machine.is_idle() && self.is_over() && self.inbox.is_empty() {
                self.free_computer().await?;
            }
            let asked = self.boot.under_way || !self.close_replies.is_empty();
            if idle && !asked && self.retires() {
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
            self.act(effect).await?;
        }
        Ok(())
    }

    pub async fn commit(&mut self, changes: Vec<Change>) -> Result<Receipt, StoreError> {
        self.keep(Commit::owed(changes)).await
    }

    pub fn draft(&self, kind: EventType, data: Data) -> Change {
        let task = self.turn_task.as_ref().or(self.machine.current()).cloned();
        Change::Event(Draft { session: Some(self.record.session.id.clone()), task, kind, data })
    }
}
