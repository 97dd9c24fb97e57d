//! The calls of one reply: which may start, which must not, and in which order their results are kept. Pure.

use nano_protocol::message::NotRun;

use super::task::Left;

/// How many calls that only read may run at once.
const AT_ONCE: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    Running,
    Ended,
    /// Started by a daemon that died; it runs once more.
    Again,
    /// Not started by a daemon that died, and not any more.
    Never,
    Kept,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Call {
    read_only: bool,
    state: State,
}

/// What to do next about one call, by its place in the reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Keep its result.
    Keep(usize),
    /// It never starts.
    Settle(usize, NotRun),
    /// Start it.
    Start(usize),
}

/// The calls of one reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Batch {
    calls: Vec<Call>,
    /// How many, from the first on, are closed in the transcript.
    kept: usize,
    halted: Option<NotRun>,
}

impl Batch {
    /// Takes one `read_only` for each call.
    pub fn new(read_only: &[bool]) -> Self {
        let calls = read_only.iter().map(|&read_only| Call { read_only, state: State::Waiting }).collect();
        Self { calls, kept: 0, halted: None }
    }

    /// Takes up those of a reply that a daemon left open.
    pub fn left(calls: &[Left]) -> Self {
        let call = |left: &Left| match *left {
            Left::Kept => Call { read_only: true, state: State::Kept },
            Left::Ended => Call { read_only: true, state: State::Ended },
            Left::Again { read_only } => Call { read_only, state: State::Again },
            Left::Waits => Call { read_only: false, state: State::Running },
            Left::Never => Call { read_only: true, state: State::Never },
        };
        Self { calls: calls.iter().map(call).collect(), kept: 0, halted: None }
    }

    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }
    pub fn is_over(&self) -> bool {
        self.kept == self.calls.len()
    }
    pub fn halted(&self) -> Option<NotRun> {
        self.halted
    }
    pub fn is_running(&self) -> bool {
        !self.running().is_empty()
    }

    /// Lets no further call start; the first reason stands, but a stop of the task is stronger than a turn of it.
    pub fn halt(&mut self, why: NotRun) {
        if matches!(self.halted, None | Some(NotRun::Redirect)) {
            self.halted = Some(why);
        }
    }

    /// Returns the places of the running calls.
    pub fn running(&self) -> Vec<usize> {
        let places = self.calls.iter().enumerate();
        places.filter(|(_, call)| call.state == State::Running).map(|(at, _)| at).collect()
    }

    /// Marks a running call as ended; false: it was not running, so its result is late.
    pub fn end(&mut self, at: usize) -> bool {
        let running = self.calls.get_mut(at).filter(|call| call.state == State::Running);
        running.map(|call| call.state = State::Ended).is_some()
    }

    /// Says what follows: results in order, then the next call, or the next ones where all only read.
    pub fn advance(&mut self, may_start: bool) -> Vec<Step> {
        let mut steps = Vec::new();
        while let Some(call) = self.calls.get(self.kept) {
            match (call.state, self.halted) {
                (State::Kept, _) => {}
                // One that ran before was not kept from running: what it came to is unknown.
                (State::Ended, _) | (State::Again, Some(_)) => steps.push(Step::Keep(self.kept)),
                (State::Never, _) => steps.push(Step::Settle(self.kept, NotRun::Restart)),
                (State::Waiting, Some(why)) => steps.push(Step::Settle(self.kept, why)),
                (State::Waiting | State::Again, None) | (State::Running, _) => break,
            }
            self.kept += 1;
        }
        if may_start && self.halted.is_none() {
            self.start(&mut steps);
        }
        steps
    }

    fn start(&mut self, steps: &mut Vec<Step>) {
        let running = self.running();
        let mut count = running.len();
        let mut all_read = running.iter().all(|&at| self.calls.get(at).is_some_and(|call| call.read_only));
        for (at, call) in self.calls.iter_mut().enumerate().skip(self.kept) {
            if !matches!(call.state, State::Waiting | State::Again) {
                continue;
            }
            let beside = call.read_only && all_read && count < AT_ONCE;
            if count > 0 && !beside {
                return;
            }
            call.state = State::Running;
            all_read &= call.read_only;
            count += 1;
            steps.push(Step::Start(at));
        }
    }
}
