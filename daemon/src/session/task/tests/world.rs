//! Plays the actor, the model, the tools, the clients and the crashes around a machine, in any order.

use std::collections::VecDeque;

use nano_protocol::id::TaskId;
use nano_protocol::session::Delivery;
use nano_protocol::task::TaskState;
use proptest::collection::vec;
use proptest::prelude::*;

use super::super::{Input, Machine, Queued, Reply, Stop};
use super::witness::{Promise, Turn, Witness};

/// What becomes of a task that ran when its daemon died.
#[derive(Debug, Clone, Copy)]
pub enum Resume {
    Auto,
    Ask,
    Never,
}

/// What the model does.
#[derive(Debug, Clone)]
pub enum Answer {
    Says(Reply),
    Fails,
    /// It obeys, if it was told to stop.
    Stops,
}

/// What happens next; numbers choose among what there is. `lost`: the daemon dies after it accepted, before it acted.
#[derive(Debug, Clone)]
pub enum Op {
    Submit {
        max_turns: u32,
        lost: bool,
    },
    Steer {
        delivery: Delivery,
        lost: bool,
    },
    Resume {
        which: usize,
        lost: bool,
    },
    Withdraw(usize),
    Cancel(usize),
    Model(Answer),
    CallEnds {
        which: usize,
        print: Option<u64>,
    },
    /// A call ends that may not run at all.
    AnyCallEnds(usize),
    Stop(Stop),
    Close,
    Suspend,
    /// Its calls at these places run again, if it goes on.
    Die(Resume, u16),
}

/// Reads a reply out of random numbers: few calls of both kinds, or many that nearly all read.
fn reply(many: bool, flags: u8, bits: u16) -> Reply {
    let count = if many { 8 + bits % 4 } else { bits % 4 };
    let reads = |at| if many { at + 6 != bits >> 12 } else { bits >> (4 + at) & 1 == 0 };
    Reply { calls: (0..count).map(reads).collect(), cut: flags % 10 == 9, over_budget: flags % 20 == 8 }
}

/// Reads what happens next out of random numbers: a union of strategies takes twenty times as long to draw from.
fn op((kind, more, bits): (u8, u8, u16)) -> Op {
    let (which, lost) = (usize::from(bits % 60), more % 10 == 9);
    let delivery = [Delivery::Note, Delivery::Redirect, Delivery::Interrupt][which % 3];
    match kind % 100 {
        0..40 => {
            Op::CallEnds { which, print: [Some(7), None, Some(7), Some(7), Some(8), Some(9)][usize::from(more % 6)] }
        }
        40..56 => Op::Model(Answer::Says(reply(kind % 4 == 3, more, bits))),
        56..60 => Op::Model(Answer::Stops),
        60..62 => Op::Model(Answer::Fails),
        62..70 => Op::Submit { max_turns: u32::from(bits % 12), lost },
        70..80 => Op::Steer { delivery, lost },
        80..85 => Op::Resume { which, lost },
        85..87 => Op::Withdraw(which),
        87..90 => Op::Cancel(which),
        90..93 => Op::AnyCallEnds(which % 12),
        93..95 => Op::Stop([Stop::Timeout, Stop::Fault, Stop::Budget, Stop::Loop][which % 4]),
        95 => Op::Suspend,
        _ => Op::Die([Resume::Auto, Resume::Ask, Resume::Auto, Resume::Never][which % 4], bits.rotate_left(7)),
    }
}

/// Makes scripts; some close the session on the way.
pub fn script() -> impl Strategy<Value = Vec<Op>> {
    (vec(any::<(u8, u8, u16)>(), 0..120), 0..600usize).prop_map(|(numbers, close)| {
        let mut ops: Vec<Op> = numbers.into_iter().map(op).collect();
        if close < ops.len() {
            ops.insert(close, Op::Close);
        }
        ops
    })
}

/// Picks one, if there is one.
fn pick<T: Clone>(from: &[T], which: usize) -> Option<T> {
    from.get(which % from.len().max(1)).cloned()
}

/// A machine and all around it.
pub struct World {
    machine: Machine,
    pub witness: Witness,
    closed: bool,
}

impl World {
    /// Plays a script, then lets everything come to its end.
    pub fn play(ops: &[Op]) -> Witness {
        let mut world = Self { machine: Machine::default(), witness: Witness::default(), closed: false };
        for op in ops {
            world.take(op);
        }
        world.run_out();
        world.witness
    }

    fn take(&mut self, op: &Op) {
        match *op {
            Op::Submit { max_turns, lost } => self.submit(max_turns, lost),
            Op::Steer { delivery, lost } => self.steer(delivery, lost),
            Op::Resume { which, lost } => self.resume(which, lost),
            Op::Withdraw(which) => self.withdraw(which),
            Op::Cancel(which) => self.cancel(which),
            Op::Model(ref answer) => self.answer(answer),
            Op::CallEnds { which, print } => {
                if let Some(at) = pick(&self.witness.running_calls(), which) {
                    self.feed(Input::CallEnded(at, print));
                }
            }
            Op::AnyCallEnds(at) => self.feed(Input::CallEnded(at, Some(7))),
            Op::Stop(stop) => self.feed(Input::Stop(stop)),
            Op::Close => {
                self.closed = true;
                self.feed(Input::Close);
            }
            Op::Suspend => self.feed(Input::Suspend),
            Op::Die(resume, again) => self.die(resume, again),
        }
    }

    fn submit(&mut self, max_turns: u32, lost: bool) {
        if !self.closed {
            let queued = self.witness.accept_task(max_turns);
            self.begin(Input::Submit(queued), lost);
        }
    }

    /// Accepting is on record before the machine hears of it.
    fn begin(&mut self, input: Input, lost: bool) {
        if lost { self.die(Resume::Auto, 0) } else { self.feed(input) }
    }

    fn steer(&mut self, delivery: Delivery, lost: bool) {
        // A message to an idle session is a task.
        if self.machine.is_idle() {
            return self.submit(5, lost);
        }
        if !self.closed {
            let steer = self.witness.accept_message(delivery);
            self.begin(Input::Steer(steer), lost);
        }
    }

    fn resume(&mut self, which: usize, lost: bool) {
        let tasks = self.witness.tasks.iter();
        let may = tasks.filter(|(_, record)| matches!(record.state, TaskState::Failed | TaskState::Interrupted));
        let may: Vec<TaskId> = may.map(|(task, _)| task.clone()).collect();
        // The interrupted one, or one that failed.
        let chosen = self.witness.held.clone().filter(|_| which < 30).or_else(|| pick(&may, which));
        if let Some(task) = chosen.filter(|_| !self.closed) {
            let queued = self.witness.accept_resume(&task);
            self.begin(Input::Resume(queued), lost);
        }
    }

    fn withdraw(&mut self, which: usize) {
        let waiting = self.witness.waiting.iter().map(|one| one.message.0.clone());
        let tasks = self.witness.queue.iter().chain(&self.witness.running).map(|task| task.0.clone());
        let ids: Vec<String> = waiting.chain(tasks).chain(["msg_unknown".to_owned()]).collect();
        self.feed(Input::Withdraw(pick(&ids, which).unwrap_or_default()));
    }

    fn cancel(&mut self, which: usize) {
        let alive = self.witness.running.iter().chain(&self.witness.held).chain(&self.witness.queue);
        let tasks: Vec<TaskId> = alive.chain(self.witness.tasks.keys().take(1)).cloned().collect();
        self.feed(Input::Cancel(pick(&tasks, which).unwrap_or_else(|| TaskId("tsk_unknown".to_owned()))));
    }

    fn answer(&mut self, answer: &Answer) {
        let told = !matches!(self.witness.turn, Turn::Asked { stopping: false, .. });
        match answer {
            Answer::Says(reply) => self.feed(Input::Replied(reply.clone())),
            Answer::Fails => self.feed(Input::ModelFailed),
            Answer::Stops if told => self.feed(Input::ModelStopped),
            Answer::Stops => {}
        }
    }

    fn feed(&mut self, input: Input) {
        let late = self.witness.is_late(&input).then(|| self.machine.clone());
        let what = format!("{input:?}");
        self.witness.expect(&input);
        let effects = self.machine.on(input);
        if let Some(before) = late {
            let same = effects.is_empty() && self.machine == before;
            self.witness.claim(Promise::LateInputsChangeNothing, same, &what);
        }
        for effect in &effects {
            self.witness.see(effect);
        }
        self.witness.compare(&self.machine);
    }

    /// The daemon dies between two inputs, and another takes up what is on record.
    fn die(&mut self, resume: Resume, again: u16) {
        let goes_on = matches!(resume, Resume::Auto) && !self.closed;
        let left = self.witness.die(if goes_on { again } else { 0 });
        if let Some(task) = self.witness.running.take() {
            match resume {
                Resume::Auto => self.witness.queue.push_front(task),
                Resume::Ask => {
                    self.witness.tasks.get_mut(&task).unwrap().state = TaskState::Interrupted;
                    self.witness.held = Some(task);
                }
                Resume::Never => self.witness.end(&task, TaskState::Failed),
            }
        }
        let mut queue: VecDeque<Queued> =
            self.witness.queue.iter().map(|task| self.witness.tasks[task].queued(task)).collect();
        if let Some(first) = queue.front_mut() {
            first.left = left;
        }
        self.machine = Machine::restore(self.witness.held.clone(), queue, self.witness.waiting.clone());
        for record in self.witness.tasks.values_mut() {
            record.lives += 1;
        }
        // It died while it closed: then it goes on with that.
        if self.closed {
            return self.feed(Input::Close);
        }
        for effect in self.machine.begin() {
            self.witness.see(&effect);
        }
        self.witness.compare(&self.machine);
    }

    /// Answers all that is under way until nothing is; a last task takes what waits.
    fn run_out(&mut self) {
        if self.witness.suspended {
            self.die(Resume::Auto, u16::MAX);
        }
        if let Some(task) = self.witness.held.clone() {
            self.feed(Input::Cancel(task));
        }
        self.closed = false;
        self.submit(1, false);
        for _ in 0..10_000 {
            match (self.witness.turn, self.witness.running_calls().first()) {
                (Turn::Asked { stopping: true, .. }, _) => self.feed(Input::ModelStopped),
                (Turn::Asked { .. }, _) => {
                    self.feed(Input::Replied(Reply { calls: Vec::new(), cut: false, over_budget: false }));
                }
                (_, Some(&at)) => self.feed(Input::CallEnded(at, None)),
                (_, None) => return self.witness.conclude(),
            }
        }
        self.witness.claim(Promise::ItNeverGetsStuck, false, "it never comes to an end");
    }
}
