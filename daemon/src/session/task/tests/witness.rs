//! Watches a machine from outside: keeps what is on record and what is under way, and notes every broken promise.
//! It knows the rules of the loop on its own: nothing here asks the machine what is right.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use nano_protocol::id::{MessageId, TaskId};
use nano_protocol::message::NotRun;
use nano_protocol::session::Delivery;
use nano_protocol::task::{Reason, TaskState};

use super::super::{Left, Queued, Reply, Steer, Stop};

mod expect;
mod judge;

/// What the machine promises; each has its own test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Promise {
    OneTaskAtATime,
    EachTaskEndsOnce,
    EndsForTheRightReason,
    EachCallHasOneResult,
    CallsStartInOrder,
    HaltedCallsNeverStart,
    NothingStartsAfterAStop,
    StopsReachWhatRuns,
    SteeringIsNeitherLostNorDoubled,
    TurnsAreBounded,
    TurnsHaveOneShape,
    TheQueueKeepsItsOrder,
    RepeatsAreCounted,
    LateInputsChangeNothing,
    SuspendedNothingStarts,
    ItNeverGetsStuck,
}

/// A task as it is on record.
#[derive(Debug, Clone)]
pub struct Record {
    pub state: TaskState,
    pub max_turns: u32,
    pub opened: bool,
    pub turns: u32,
    pub cuts: u32,
    pub repeats: HashMap<u64, u32>,
    asks: u32,
    /// Requests that a crash or a suspension may have left without a reply.
    pub lives: u32,
}

impl Record {
    /// Returns it as a daemon hands it to its machine.
    pub fn queued(&self, task: &TaskId) -> Queued {
        let Self { max_turns, opened, turns, cuts, repeats, .. } = self.clone();
        Queued { task: task.clone(), max_turns, resumed: opened, cuts, repeats, turns, left: Vec::new() }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Turn {
    #[default]
    Closed,
    Begun,
    Asked {
        stop_due: bool,
        stopping: bool,
    },
    Acting,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallState {
    Waiting,
    Running,
    Ended,
    Closed,
    /// Started by a daemon that died, to be started again.
    Again,
    /// Never started by a daemon that died.
    Never,
}

#[derive(Debug, Clone, Copy)]
pub struct Call {
    pub read_only: bool,
    pub state: CallState,
    stop_due: bool,
    stopping: bool,
}

#[derive(Debug)]
enum Answered {
    Reply(Reply),
    Failed,
    Stopped,
}

/// What is on record, what is under way, and what went wrong.
#[derive(Debug, Default)]
pub struct Witness {
    pub broken: Vec<(Promise, String)>,
    pub tasks: BTreeMap<TaskId, Record>,
    pub queue: VecDeque<TaskId>,
    pub held: Option<TaskId>,
    pub running: Option<TaskId>,
    pub waiting: Vec<Steer>,
    pub messages: usize,
    injected: Vec<MessageId>,
    dropped: BTreeSet<MessageId>,
    pub turn: Turn,
    pub calls: Vec<Call>,
    /// Why no call of this reply may start any more.
    halted: Option<NotRun>,
    pub stop: Option<Stop>,
    pub suspended: bool,
    /// The last whole reply since the task began in this life.
    last: Option<Reply>,
    failed: bool,
    answered: Option<Answered>,
    ended: Option<(usize, u32)>,
    taken_back: BTreeSet<String>,
    carry_due: bool,
    /// What the scripts have reached, for the test that they reach enough.
    pub reached: BTreeSet<String>,
}

fn stop_end(stop: Stop) -> (TaskState, Reason, NotRun) {
    match stop {
        Stop::Cancel => (TaskState::Cancelled, Reason::Cancelled, NotRun::Cancel),
        Stop::Timeout => (TaskState::Failed, Reason::Timeout, NotRun::Limit),
        Stop::Budget => (TaskState::Failed, Reason::Budget, NotRun::Limit),
        Stop::Loop => (TaskState::Failed, Reason::Loop, NotRun::Limit),
        Stop::Fault => (TaskState::Failed, Reason::Error, NotRun::Cancel),
    }
}

impl Witness {
    pub fn claim(&mut self, promise: Promise, holds: bool, what: &str) {
        if !holds {
            self.broken.push((promise, what.to_owned()));
        }
    }

    /// Puts a new task on record.
    pub fn accept_task(&mut self, max_turns: u32) -> Queued {
        let task = TaskId(format!("tsk_{:04}", self.tasks.len()));
        let (state, repeats) = (TaskState::Queued, HashMap::new());
        let record = Record { state, max_turns, opened: false, turns: 0, cuts: 0, repeats, asks: 0, lives: 1 };
        let queued = record.queued(&task);
        self.tasks.insert(task.clone(), record);
        self.queue.push_back(task);
        queued
    }

    /// Puts an interrupted or failed task back to those that wait, with all its turns.
    pub fn accept_resume(&mut self, task: &TaskId) -> Queued {
        if self.held.take_if(|held| held == task).is_some() {
            self.queue.push_front(task.clone());
        } else {
            self.queue.push_back(task.clone());
        }
        let record = self.tasks.get_mut(task).unwrap();
        (record.state, record.turns, record.cuts, record.asks, record.lives) = (TaskState::Queued, 0, 0, 0, 1);
        record.repeats.clear();
        record.queued(task)
    }

    /// Puts a steering message on record.
    pub fn accept_message(&mut self, delivery: Delivery) -> Steer {
        let steer = Steer { message: MessageId(format!("msg_{:04}", self.messages)), delivery };
        self.messages += 1;
        self.waiting.push(steer.clone());
        steer
    }

    /// Forgets what a process forgets when it dies. Calls that were open are closed on record, unless some of them are to
    /// run `again`: a bit for each place.
    pub fn die(&mut self, again: u16) -> Vec<Left> {
        (self.turn, self.stop, self.halted, self.suspended) = (Turn::Closed, None, None, false);
        (self.last, self.failed) = (None, false);
        for (at, call) in self.calls.iter_mut().enumerate() {
            call.state = match call.state {
                CallState::Running | CallState::Again if again >> (at % 16) & 1 == 1 => CallState::Again,
                CallState::Running | CallState::Again | CallState::Ended => CallState::Ended,
                CallState::Waiting | CallState::Never => CallState::Never,
                CallState::Closed => CallState::Closed,
            };
            (call.stop_due, call.stopping) = (false, false);
        }
        if !self.calls.iter().any(|call| call.state == CallState::Again) {
            self.calls.clear();
        }
        let left = |call: &Call| match call.state {
            CallState::Again => Left::Again { read_only: call.read_only },
            CallState::Never => Left::Never,
            CallState::Closed => Left::Kept,
            CallState::Ended | CallState::Running | CallState::Waiting => Left::Ended,
        };
        self.calls.iter().map(left).collect()
    }

    pub fn end(&mut self, task: &TaskId, state: TaskState) {
        let record = self.tasks.get_mut(task).unwrap();
        let open = matches!(record.state, TaskState::Queued | TaskState::Running | TaskState::Interrupted);
        record.state = state;
        self.claim(Promise::EachTaskEndsOnce, open, &format!("{task} ended twice"));
    }

    fn record(&mut self) -> &mut Record {
        let task = self.running.clone().unwrap();
        self.tasks.get_mut(&task).unwrap()
    }

    pub fn running_calls(&self) -> Vec<usize> {
        let calls = self.calls.iter().enumerate();
        calls.filter(|(_, call)| call.state == CallState::Running).map(|(at, _)| at).collect()
    }

    pub fn is_busy(&self) -> bool {
        matches!(self.turn, Turn::Asked { .. }) || !self.running_calls().is_empty()
    }

    fn first_open(&self) -> Option<usize> {
        self.calls.iter().position(|call| call.state != CallState::Closed)
    }

    /// Returns the call that may start next: one that writes runs alone, eight that read run together.
    fn startable(&self) -> Option<usize> {
        let next = self.calls.iter().position(|call| matches!(call.state, CallState::Waiting | CallState::Again))?;
        let running = self.running_calls();
        let together =
            self.calls[next].read_only && running.len() < 8 && running.iter().all(|&at| self.calls[at].read_only);
        (running.is_empty() || together).then_some(next)
    }
}
