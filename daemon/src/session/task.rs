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

use super::batch::{Batch, Step};

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
}

impl Queued {
    /// A task that never ran.
    pub fn fresh(task: TaskId, max_turns: u32) -> Self {
        Self { task, max_turns, resumed: false, cuts: 0, repeats: HashMap::new(), turns: 0 }
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
    Asking { stopping: bool },
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
    /// Tells whether a call or a model request is under way.
    pub fn is_busy(&self) -> bool {
        match self.run.as_ref().map(|run| &run.phase) {
            Some(Phase::Asking { .. }) => true,
            Some(Phase::Acting(batch)) => batch.is_running(),
            Some(Phase::Resting) | None => false,
        }
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

    fn next_task(&mut self, out: &mut Vec<Effect>) {
        if self.suspended || self.run.is_some() || self.held.is_some() {
            return;
        }
        if let Some(next) = self.queue.pop_front() {
            self.start(next, out);
        }
    }

    fn start(&mut self, next: Queued, out: &mut Vec<Effect>) {
        let Queued { task, max_turns, resumed, cuts, repeats, turns } = next;
        out.push(Effect::Begin(task.clone()));
        self.run = Some(Run { task, opened: resumed, turns, max_turns, cuts, repeats, stop: None, phase: Phase::Resting });
        self.between_turns(true, out);
    }

    /// Decides what follows when no model call and no tool call is under way; `again`: the model has something to read.
    fn between_turns(&mut self, again: bool, out: &mut Vec<Effect>) {
        let Some(run) = &mut self.run else { return };
        let stopped = run.stop.map(Stop::end);
        if let Some((state, reason)) = stopped {
            self.finish(state, reason, out);
        } else if !again && self.waiting.is_empty() {
            self.finish(TaskState::Succeeded, Reason::Done, out);
        } else if self.suspended {
            run.phase = Phase::Resting;
        } else if run.turns >= run.max_turns {
            self.finish(TaskState::Failed, Reason::MaxTurns, out);
        } else {
            run.phase = Phase::Asking { stopping: false };
            out.push(Effect::TurnBegin);
            if !std::mem::replace(&mut run.opened, true) {
                out.push(Effect::Open);
            }
            if !self.waiting.is_empty() {
                out.push(Effect::Inject(std::mem::take(&mut self.waiting).into_iter().map(|one| one.message).collect()));
            }
            out.push(Effect::Ask);
        }
    }

    fn steer(&mut self, steer: Steer, out: &mut Vec<Effect>) {
        let delivery = steer.delivery;
        self.waiting.push(steer);
        let Some(run) = &mut self.run else { return };
        match (&mut run.phase, delivery) {
            (Phase::Asking { stopping: stopping @ false }, Delivery::Interrupt) => {
                *stopping = true;
                out.push(Effect::StopModel);
            }
            (Phase::Acting(batch), Delivery::Redirect) => batch.halt(NotRun::Redirect),
            (Phase::Acting(batch), Delivery::Interrupt) => {
                batch.halt(NotRun::Redirect);
                out.extend(batch.running().into_iter().map(Effect::StopCall));
            }
            _ => {}
        }
    }

    fn withdraw(&mut self, id: &str, out: &mut Vec<Effect>) {
        if let Some(at) = self.waiting.iter().position(|one| one.message.0 == id) {
            out.push(Effect::Dropped(self.waiting.remove(at).message));
        } else if self.queue.iter().any(|one| one.task.0 == id) {
            self.cancel(&TaskId(id.to_owned()), out);
        }
    }

    fn replied(&mut self, reply: &Reply, out: &mut Vec<Effect>) {
        let steered = !self.waiting.is_empty();
        let turned = self.waiting.iter().any(|one| one.delivery != Delivery::Note);
        let Some(run) = self.run.as_mut().filter(|run| matches!(run.phase, Phase::Asking { .. })) else { return };
        out.push(Effect::KeepReply);
        run.turns += 1;
        run.cuts = if reply.cut { run.cuts + 1 } else { 0 };
        // An answer that nothing follows is an answer, whatever it cost.
        if reply.over_budget && (steered || !reply.calls.is_empty()) {
            run.stop.get_or_insert(Stop::Budget);
        }
        let mut batch = Batch::new(&reply.calls);
        if let Some(stop) = run.stop {
            batch.halt(stop.not_run());
        } else if reply.cut {
            batch.halt(NotRun::Length);
        } else if turned {
            batch.halt(NotRun::Redirect);
        }
        run.phase = Phase::Acting(batch);
        self.go_on(out);
    }

    /// Moves the batch on: results into the transcript in order, then what may start.
    fn go_on(&mut self, out: &mut Vec<Effect>) {
        let suspended = self.suspended;
        let Some(Run { phase: Phase::Acting(batch), cuts, .. }) = &mut self.run else { return };
        let (cuts, called) = (*cuts, !batch.is_empty());
        for step in batch.advance(!suspended) {
            out.push(match step {
                Step::Keep(call) => Effect::KeepResult(call),
                Step::Settle(call, why) => Effect::Settle(call, why),
                Step::Start(call) => Effect::Start(call),
            });
        }
        if !batch.is_over() {
            return;
        }
        out.push(Effect::TurnEnd);
        let stopped = self.run.as_ref().is_some_and(|run| run.stop.is_some());
        if !stopped && (cuts >= 2 || (cuts == 1 && !called)) {
            self.finish(TaskState::Failed, Reason::Length, out);
        } else {
            self.between_turns(called, out);
        }
    }

    fn model_failed(&mut self, out: &mut Vec<Effect>) {
        let Some(run) = self.run.as_ref().filter(|run| matches!(run.phase, Phase::Asking { .. })) else { return };
        let (state, reason) = run.stop.map_or((TaskState::Failed, Reason::Error), Stop::end);
        out.push(Effect::TurnEnd);
        self.finish(state, reason, out);
    }

    fn model_stopped(&mut self, out: &mut Vec<Effect>) {
        let suspended = self.suspended;
        let Some(run) = self.run.as_mut().filter(|run| matches!(run.phase, Phase::Asking { .. })) else { return };
        if suspended && run.stop.is_none() {
            // The request is made again after the restart: what came of it never was.
            run.phase = Phase::Resting;
            return;
        }
        run.turns += 1;
        // It was not the length limit that cut it.
        run.cuts = 0;
        out.extend([Effect::KeepReply, Effect::TurnEnd]);
        self.between_turns(true, out);
    }

    fn call_ended(&mut self, call: usize, print: Option<u64>, out: &mut Vec<Effect>) {
        let Some(Run { phase: Phase::Acting(batch), repeats, stop, .. }) = &mut self.run else { return };
        if !batch.end(call) {
            return;
        }
        let seen = print.map_or(0, |print| {
            let seen = repeats.entry(print).or_insert(0);
            *seen += 1;
            *seen
        });
        if seen >= REPEATS_ENDED && stop.is_none() {
            *stop = Some(Stop::Loop);
            batch.halt(Stop::Loop.not_run());
        }
        out.push(Effect::Ended(call, seen));
        self.go_on(out);
    }

    fn cancel(&mut self, task: &TaskId, out: &mut Vec<Effect>) {
        let (state, reason) = Stop::Cancel.end();
        if self.running() == Some(task) {
            self.stop(Stop::Cancel, out);
        } else if self.held.as_ref() == Some(task) {
            self.held = None;
            out.push(Effect::Finish(task.clone(), state, reason));
            self.carry(out);
            self.next_task(out);
        } else if let Some(at) = self.queue.iter().position(|one| one.task == *task) {
            self.queue.remove(at);
            out.push(Effect::Finish(task.clone(), state, reason));
        }
    }

    fn stop(&mut self, stop: Stop, out: &mut Vec<Effect>) {
        let Some(run) = &mut self.run else { return };
        // The first reason stands.
        let stop = *run.stop.get_or_insert(stop);
        match &mut run.phase {
            Phase::Asking { stopping: stopping @ false } => {
                *stopping = true;
                out.push(Effect::StopModel);
            }
            Phase::Asking { stopping: true } => {}
            Phase::Acting(batch) => {
                batch.halt(stop.not_run());
                out.extend(batch.running().into_iter().map(Effect::StopCall));
                self.go_on(out);
            }
            Phase::Resting => self.between_turns(true, out),
        }
    }

    fn resume(&mut self, task: Queued, out: &mut Vec<Effect>) {
        if self.held.as_ref() == Some(&task.task) {
            self.held = None;
            self.queue.push_front(task);
        } else {
            self.queue.push_back(task);
        }
        self.next_task(out);
    }

    fn close(&mut self, out: &mut Vec<Effect>) {
        let rest: Vec<TaskId> = self.queue().cloned().chain(self.held.clone()).collect();
        for task in rest {
            self.cancel(&task, out);
        }
        self.stop(Stop::Cancel, out);
    }

    fn suspend(&mut self, out: &mut Vec<Effect>) {
        self.suspended = true;
        let Some(run) = &mut self.run else { return };
        if let Phase::Asking { stopping: stopping @ false } = &mut run.phase {
            *stopping = true;
            out.push(Effect::StopModel);
        }
    }

    fn finish(&mut self, state: TaskState, reason: Reason, out: &mut Vec<Effect>) {
        if let Some(run) = self.run.take() {
            out.push(Effect::Finish(run.task, state, reason));
            self.carry(out);
            self.next_task(out);
        }
    }

    fn carry(&self, out: &mut Vec<Effect>) {
        if !self.waiting.is_empty() {
            out.push(Effect::Carry(self.waiting.iter().map(|one| one.message.clone()).collect()));
        }
    }
}

#[cfg(test)]
mod tests;
