//! The double loop of one session as a pure machine: inputs in, effects out, no clock, no I/O.
//!
//! ```text
//!            Submit                 Replied                    last call ended
//!   idle ───────────────▶ asking ──────────────▶ acting ─────────────────────────┐
//!    ▲                      ▲  │ ModelStopped                                     │
//!    │ Finish, queue empty  │  ▼                                                  ▼
//!    └──────────────────────┴─ between turns: stopped? out of turns? steering? calls made? ──▶ asking again
//! ```
//!
//! All effects of one input are made durable in one commit before any of them acts, so a crash sees the machine before
//! an input or after it. Promises, each a property test: never two tasks at once; each call of a reply is closed
//! exactly once, in the reply's order; no steering is lost or doubled; turns are bounded; after a stop nothing starts.

use std::collections::{HashMap, VecDeque};

use nano_protocol::id::{MessageId, TaskId};
use nano_protocol::message::NotRun;
use nano_protocol::session::Delivery;
use nano_protocol::task::{Reason, TaskState};

use super::batch::Batch;

/// A task that waits for its turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queued {
    /// Which.
    pub task: TaskId,
    /// Model replies it may use.
    pub max_turns: u32,
    /// True when it ran before: its first message is in the transcript.
    pub resumed: bool,
    /// Replies in a row, up to now, that the length limit cut.
    pub cuts: u32,
    /// How often each call with its result was seen.
    pub repeats: HashMap<u64, u32>,
    /// Replies that count against `max_turns` already.
    pub turns: u32,
    /// The calls of its last reply, where some of them run again; else empty.
    pub left: Vec<Left>,
}

/// What a daemon that died left of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// It is closed in the transcript.
    Kept,
    /// Its result is known.
    Ended,
    /// It was started, and is started again.
    Again {
        /// Whether it only reads.
        read_only: bool,
    },
    /// It was never started, and is not now.
    Never,
    /// It waits for a person, as it did before.
    Waits,
}

impl Queued {
    /// A task that never ran.
    pub fn fresh(task: TaskId, max_turns: u32) -> Self {
        Self { task, max_turns, resumed: false, cuts: 0, repeats: HashMap::new(), turns: 0, left: Vec::new() }
    }
}

/// A steering message that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Steer {
    /// Which.
    pub message: MessageId,
    /// When it takes effect.
    pub delivery: Delivery,
}

/// What the machine needs to know of a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// One for each call: whether it only reads.
    pub calls: Vec<bool>,
    /// Whether the length limit cut it.
    pub cut: bool,
    /// Whether the task has now used all its tokens or money.
    pub over_budget: bool,
}

/// Why a running task is being ended before its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The caller cancelled it.
    Cancel,
    /// Its time is over.
    Timeout,
    /// Its tokens or money are used.
    Budget,
    /// It repeats itself.
    Loop,
    /// Its computer does not serve.
    Fault,
}

impl Stop {
    fn end(self) -> (TaskState, Reason) {
        match self {
            Self::Cancel => (TaskState::Cancelled, Reason::Cancelled),
            Self::Timeout => (TaskState::Failed, Reason::Timeout),
            Self::Budget => (TaskState::Failed, Reason::Budget),
            Self::Loop => (TaskState::Failed, Reason::Loop),
            Self::Fault => (TaskState::Failed, Reason::Error),
        }
    }

    fn not_run(self) -> NotRun {
        match self {
            Self::Cancel | Self::Fault => NotRun::Cancel,
            Self::Timeout | Self::Budget | Self::Loop => NotRun::Limit,
        }
    }
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// A task was accepted, or one that ended is taken up again.
    Submit(Queued),
    /// A steering message was accepted; the session is not idle.
    Steer(Steer),
    /// A waiting task or message is taken back.
    Withdraw(String),
    /// The model answered.
    Replied(Reply),
    /// The model gave up.
    ModelFailed,
    /// The model call ended because it was asked to.
    ModelStopped,
    /// A started call ended: what it was and came to, hashed; none: it does not count as a repetition.
    CallEnded(usize, Option<u64>),
    /// End this task, wherever it is.
    Cancel(TaskId),
    /// End the running task.
    Stop(Stop),
    /// Take up the interrupted task.
    Resume(Queued),
    /// Take nothing more, end everything.
    Close,
    /// The daemon goes down: start nothing more, end nothing.
    Suspend,
}

/// What to do, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Record that the task runs.
    Begin(TaskId),
    /// Record that a turn begins.
    TurnBegin,
    /// Record the task's first message.
    Open,
    /// Move these steering messages into the transcript.
    Inject(Vec<MessageId>),
    /// Call the model.
    Ask,
    /// Record the model's reply, or as much of it as came.
    KeepReply,
    /// Record that the call starts, and start it.
    Start(usize),
    /// Record that a started call has ended, and how often the same call came to the same by now.
    Ended(usize, u32),
    /// Record the result of an ended call in the transcript.
    KeepResult(usize),
    /// Record that the call never starts.
    Settle(usize, NotRun),
    /// Record that the turn is over.
    TurnEnd,
    /// Stop the model call.
    StopModel,
    /// Stop a running call.
    StopCall(usize),
    /// Record the task's end.
    Finish(TaskId, TaskState, Reason),
    /// Record that these messages wait for the next task.
    Carry(Vec<MessageId>),
    /// Record that a waiting message was taken back.
    Dropped(MessageId),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Phase {
    Asking {
        stopping: bool,
    },
    Acting(Batch),
    /// Between turns of a daemon that goes down.
    Resting,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Run {
    task: TaskId,
    /// Whether its first message is in the transcript.
    opened: bool,
    turns: u32,
    max_turns: u32,
    cuts: u32,
    repeats: HashMap<u64, u32>,
    stop: Option<Stop>,
    phase: Phase,
}

/// A call and its result seen so often is warned of in the result.
pub const REPEATS_WARNED: u32 = 3;
/// A call and its result seen so often ends the task.
const REPEATS_ENDED: u32 = 6;

/// The machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Machine {
    queue: VecDeque<Queued>,
    waiting: Vec<Steer>,
    run: Option<Run>,
    /// An interrupted task: nothing else runs before it is resumed or cancelled.
    held: Option<TaskId>,
    suspended: bool,
}

impl Machine {
    /// Takes up what a daemon before left: an interrupted task, a queue, waiting messages.
    pub fn restore(held: Option<TaskId>, queue: VecDeque<Queued>, waiting: Vec<Steer>) -> Self {
        Self { queue, waiting, held, ..Self::default() }
    }

    /// Returns the task that runs or is interrupted.
    pub fn current(&self) -> Option<&TaskId> {
        self.run.as_ref().map(|run| &run.task).or(self.held.as_ref())
    }
    /// Returns the task that runs.
    pub fn running(&self) -> Option<&TaskId> {
        self.run.as_ref().map(|run| &run.task)
    }
    /// Tells whether an interrupted task holds the session.
    pub fn is_held(&self) -> bool {
        self.held.is_some()
    }
    /// Tells whether nothing runs, waits to run or is interrupted.
    pub fn is_idle(&self) -> bool {
        self.run.is_none() && self.held.is_none() && self.queue.is_empty()
    }
    /// Returns the waiting tasks, in order.
    pub fn queue(&self) -> impl Iterator<Item = &TaskId> {
        self.queue.iter().map(|one| &one.task)
    }
    /// Returns the waiting steering, in order.
    pub fn waiting(&self) -> &[Steer] {
        &self.waiting
    }

    /// Begins what waits, after [`Machine::restore`].
    pub fn begin(&mut self) -> Vec<Effect> {
        let mut out = Vec::new();
        self.next_task(&mut out);
        out
    }

    /// Takes one input and says what to do.
    #[must_use]
    pub fn on(&mut self, input: Input) -> Vec<Effect> {
        let mut out = Vec::new();
        match input {
            Input::Submit(task) => {
                self.queue.push_back(task);
                self.next_task(&mut out);
            }
            Input::Steer(steer) => self.steer(steer, &mut out),
            Input::Withdraw(id) => self.withdraw(&id, &mut out),
            Input::Replied(reply) => self.replied(&reply, &mut out),
            Input::ModelFailed => self.model_failed(&mut out),
            Input::ModelStopped => self.model_stopped(&mut out),
            Input::CallEnded(call, print) => self.call_ended(call, print, &mut out),
            Input::Cancel(task) => self.cancel(&task, &mut out),
            Input::Stop(stop) => self.stop(stop, &mut out),
            Input::Resume(task) => self.resume(task, &mut out),
            Input::Close => self.close(&mut out),
            Input::Suspend => self.suspend(&mut out),
        }
        out
    }
}

mod steps;

#[cfg(test)]
mod tests;
