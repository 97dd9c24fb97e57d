//! Judges what the machine says against what is on record and under way.

use nano_protocol::id::{MessageId, TaskId};
use nano_protocol::message::NotRun;
use nano_protocol::session::Delivery;
use nano_protocol::task::{Reason, TaskState};

use super::super::super::{Effect, Machine, Reply, Stop};
use super::{Answered, Call, CallState, Promise, Record, Turn, Witness, stop_end};

impl Witness {
    /// Judges one effect and puts it on record.
    pub fn see(&mut self, effect: &Effect) {
        if std::mem::take(&mut self.carry_due) {
            let carried = matches!(effect, Effect::Carry(_));
            self.claim(Promise::SteeringIsNeitherLostNorDoubled, carried, "what waits is carried when a task ends");
        }
        match effect {
            Effect::Begin(task) => self.begin(task),
            Effect::TurnBegin => self.turn_begin(),
            Effect::Open => {
                let first = self.turn == Turn::Begun && !std::mem::replace(&mut self.record().opened, true);
                self.claim(Promise::TurnsHaveOneShape, first, "the first message comes once, first");
            }
            Effect::Inject(messages) => self.inject(messages),
            Effect::Ask => self.ask(),
            Effect::KeepReply => self.keep_reply(),
            Effect::Start(at) => self.start(*at),
            Effect::Ended(at, seen) => {
                let right = self.ended.take() == Some((*at, *seen));
                self.claim(Promise::RepeatsAreCounted, right, &format!("call {at} was seen {seen} times"));
            }
            Effect::KeepResult(at) => self.close_call(*at, CallState::Ended),
            Effect::Settle(at, why) => {
                self.reached.insert(format!("not run: {why}"));
                let never = self.calls.get(*at).is_some_and(|call| call.state == CallState::Never);
                let right = if never { *why == NotRun::Restart } else { self.halted == Some(*why) };
                self.claim(Promise::EachCallHasOneResult, right, &format!("call {at} is not run for {why}"));
                self.close_call(*at, if never { CallState::Never } else { CallState::Waiting });
            }
            Effect::TurnEnd => self.turn_end(),
            Effect::StopModel => {
                let right = self.turn == Turn::Asked { stop_due: true, stopping: false };
                self.claim(Promise::StopsReachWhatRuns, right, "the model is stopped once, when that was asked for");
                self.turn = Turn::Asked { stop_due: true, stopping: true };
            }
            Effect::StopCall(at) => {
                let call = self.calls.get_mut(*at).filter(|call| call.state == CallState::Running && call.stop_due);
                let right = call.map(|call| call.stopping = true).is_some();
                self.claim(
                    Promise::StopsReachWhatRuns,
                    right,
                    &format!("call {at} is stopped when that was asked for"),
                );
            }
            Effect::Finish(task, state, reason) => self.finish(task, *state, *reason),
            Effect::Carry(messages) => {
                let all = self.waiting.iter().map(|one| &one.message).eq(messages);
                self.claim(Promise::SteeringIsNeitherLostNorDoubled, all, "all that waits is carried");
            }
            Effect::Dropped(message) => {
                let asked = self.taken_back.remove(&message.0);
                let waits = self.waiting.iter().any(|one| one.message == *message);
                self.claim(Promise::SteeringIsNeitherLostNorDoubled, asked && waits, "dropped when taken back");
                self.waiting.retain(|one| one.message != *message);
                self.dropped.insert(message.clone());
            }
        }
    }

    fn begin(&mut self, task: &TaskId) {
        let alone = self.running.is_none() && self.held.is_none();
        self.claim(Promise::OneTaskAtATime, alone, &format!("{task} began beside another"));
        self.claim(Promise::SuspendedNothingStarts, !self.suspended, "a task");
        let front = self.queue.pop_front().is_some_and(|front| front == *task);
        self.claim(Promise::TheQueueKeepsItsOrder, front, &format!("{task} overtook"));
        self.queue.retain(|one| one != task);
        (self.stop, self.turn, self.last, self.failed, self.halted) = (None, Turn::Closed, None, false, None);
        self.running = Some(task.clone());
        self.record().state = TaskState::Running;
        if !self.calls.is_empty() {
            self.turn = Turn::Acting;
            let turned = self.waiting.iter().any(|one| one.delivery != Delivery::Note);
            self.halted = turned.then_some(NotRun::Redirect);
        }
    }

    fn nothing_new(&mut self, what: &str) {
        self.claim(Promise::NothingStartsAfterAStop, self.stop.is_none(), what);
        self.claim(Promise::SuspendedNothingStarts, !self.suspended, what);
        self.claim(Promise::OneTaskAtATime, self.running.is_some(), what);
    }

    fn turn_begin(&mut self) {
        self.nothing_new("a turn");
        self.claim(Promise::TurnsHaveOneShape, self.turn == Turn::Closed, "one turn at a time");
        let due = self.due();
        self.claim(Promise::EndsForTheRightReason, due.is_none(), &format!("it goes on where it ends with {due:?}"));
        self.turn = Turn::Begun;
    }

    fn inject(&mut self, messages: &[MessageId]) {
        let right = self.turn == Turn::Begun && self.record().opened;
        self.claim(Promise::TurnsHaveOneShape, right, "steering comes between turns, after the first message");
        let all = !messages.is_empty() && self.waiting.iter().map(|one| &one.message).eq(messages);
        self.claim(Promise::SteeringIsNeitherLostNorDoubled, all, "all that waits goes in, in order");
        self.waiting.retain(|one| !messages.contains(&one.message));
        self.injected.extend_from_slice(messages);
    }

    fn ask(&mut self) {
        self.nothing_new("a request");
        let right = self.turn == Turn::Begun && self.record().opened && self.waiting.is_empty();
        self.claim(Promise::TurnsHaveOneShape, right, "the model is asked in a turn, when it can read all");
        let record = self.record();
        record.asks += 1;
        let bounded = record.turns < record.max_turns && record.asks < record.max_turns + record.lives;
        self.claim(Promise::TurnsAreBounded, bounded, "more requests than turns");
        self.turn = Turn::Asked { stop_due: false, stopping: false };
    }

    fn keep_reply(&mut self) {
        let asked = matches!(self.turn, Turn::Asked { .. });
        self.claim(Promise::TurnsHaveOneShape, asked, "a reply to nothing");
        let reply = match self.answered.take() {
            Some(Answered::Reply(reply)) => Some(reply),
            Some(Answered::Stopped) => None,
            other => return self.claim(Promise::TurnsHaveOneShape, false, &format!("kept {other:?}")),
        };
        let cut = reply.as_ref().is_some_and(|reply| reply.cut);
        let record = self.record();
        record.turns += 1;
        record.cuts = if cut { record.cuts + 1 } else { 0 };
        let bounded = record.turns <= record.max_turns;
        self.claim(Promise::TurnsAreBounded, bounded, "more replies than turns");
        self.take_calls(reply.as_ref());
        (self.turn, self.last) = (Turn::Acting, reply);
    }

    fn take_calls(&mut self, reply: Option<&Reply>) {
        let Some(reply) = reply else { return self.calls.clear() };
        let call = |&read_only| Call { read_only, state: CallState::Waiting, stop_due: false, stopping: false };
        self.calls = reply.calls.iter().map(call).collect();
        // An answer that nothing follows is an answer, whatever it cost.
        if reply.over_budget && !(reply.calls.is_empty() && self.waiting.is_empty()) {
            self.stop.get_or_insert(Stop::Budget);
        }
        let turned = self.waiting.iter().any(|one| one.delivery != Delivery::Note);
        self.halted = match self.stop {
            Some(stop) => Some(stop_end(stop).2),
            None if reply.cut => Some(NotRun::Length),
            None => turned.then_some(NotRun::Redirect),
        };
    }

    fn start(&mut self, at: usize) {
        self.nothing_new("a call");
        self.claim(
            Promise::HaltedCallsNeverStart,
            self.halted.is_none(),
            &format!("call {at} in spite of {:?}", self.halted),
        );
        let next = self.turn == Turn::Acting && self.startable() == Some(at);
        self.claim(Promise::CallsStartInOrder, next, &format!("call {at} among {:?}", self.calls));
        if let Some(call) = self.calls.get_mut(at) {
            let before = std::mem::replace(&mut call.state, CallState::Running);
            self.reached.extend((before == CallState::Again).then(|| "run again".to_owned()));
        }
        self.reached.insert(format!("{} at once", self.running_calls().len()));
    }

    fn close_call(&mut self, at: usize, from: CallState) {
        let first = self.turn == Turn::Acting && self.first_open() == Some(at);
        // What was to run again and may not any more has the result that it had without that.
        let unmade = self.halted.is_some() && from == CallState::Ended;
        let right = first && (self.calls[at].state == from || (unmade && self.calls[at].state == CallState::Again));
        self.claim(Promise::EachCallHasOneResult, right, &format!("result of call {at} among {:?}", self.calls));
        if let Some(call) = self.calls.get_mut(at) {
            call.state = CallState::Closed;
        }
    }

    fn turn_end(&mut self) {
        self.claim(Promise::EachCallHasOneResult, self.first_open().is_none(), "a turn ends with open calls");
        if matches!(self.turn, Turn::Asked { .. }) {
            self.failed = matches!(self.answered.take(), Some(Answered::Failed));
        }
        let right = self.turn == Turn::Acting || self.failed;
        self.claim(
            Promise::TurnsHaveOneShape,
            right,
            "a turn ends after its reply, or without one where the model failed",
        );
        self.turn = Turn::Closed;
        self.calls.clear();
    }

    /// Returns how the running task ends now, if it does.
    fn due(&mut self) -> Option<(TaskState, Reason)> {
        // Without a whole reply, the model has something to read.
        let bare = self.last.as_ref().is_some_and(|reply| reply.calls.is_empty());
        let (replied, steered) = (self.last.is_some(), !self.waiting.is_empty());
        let Record { turns, max_turns, cuts, .. } = *self.record();
        match self.stop {
            Some(stop) => Some((stop_end(stop).0, stop_end(stop).1)),
            None if self.failed => Some((TaskState::Failed, Reason::Error)),
            None if replied && (cuts >= 2 || (cuts == 1 && bare)) => Some((TaskState::Failed, Reason::Length)),
            None if bare && !steered => Some((TaskState::Succeeded, Reason::Done)),
            None => (turns >= max_turns).then_some((TaskState::Failed, Reason::MaxTurns)),
        }
    }

    fn finish(&mut self, task: &TaskId, state: TaskState, reason: Reason) {
        self.reached.insert(format!("ended: {reason}"));
        self.end(task, state);
        let right = if self.running.as_ref() == Some(task) {
            self.claim(Promise::TurnsHaveOneShape, self.turn == Turn::Closed, "a task ends in the middle of a turn");
            let due = self.due();
            (self.running, self.turn, self.carry_due) = (None, Turn::Closed, !self.waiting.is_empty());
            due == Some((state, reason))
        } else {
            self.carry_due = self.held.take_if(|held| held == task).is_some() && !self.waiting.is_empty();
            self.queue.retain(|one| one != task);
            self.taken_back.remove(&task.0) && (state, reason) == (TaskState::Cancelled, Reason::Cancelled)
        };
        self.claim(Promise::EndsForTheRightReason, right, &format!("{task} ended {state} for {reason}"));
    }

    /// Compares the machine with what should be, after all effects of an input.
    pub fn compare(&mut self, machine: &Machine) {
        let done = self.taken_back.is_empty() && self.answered.is_none() && !self.carry_due && self.ended.is_none();
        self.claim(Promise::ItNeverGetsStuck, done, "an input was passed over");
        let same = machine.running() == self.running.as_ref() && machine.is_held() == self.held.is_some();
        let current = machine.current() == self.running.as_ref().or(self.held.as_ref());
        self.claim(Promise::OneTaskAtATime, same && current, "it runs another task than was begun");
        self.claim(Promise::TheQueueKeepsItsOrder, machine.queue().eq(&self.queue), "its queue is another");
        let same = machine.waiting() == self.waiting;
        self.claim(Promise::SteeringIsNeitherLostNorDoubled, same, "it waits with other messages");
        self.claim(
            Promise::ItNeverGetsStuck,
            machine.is_busy() == self.is_busy(),
            "it is wrong about what is under way",
        );
        let idle = self.running.is_none() && self.held.is_none() && self.queue.is_empty();
        self.claim(Promise::ItNeverGetsStuck, machine.is_idle() == idle, "it is wrong about being idle");
        self.compare_progress();
    }

    fn compare_progress(&mut self) {
        let reached = match self.turn {
            Turn::Asked { stop_due, stopping } => stop_due == stopping,
            Turn::Closed | Turn::Begun | Turn::Acting => true,
        };
        let running = |call: &&Call| call.state == CallState::Running;
        let reached = reached && self.calls.iter().filter(running).all(|call| call.stop_due == call.stopping);
        self.claim(Promise::StopsReachWhatRuns, reached, "what should be stopped goes on");
        let kept = self.first_open().is_none_or(|at| self.calls[at].state != CallState::Ended);
        self.claim(Promise::EachCallHasOneResult, kept, "a result is held back");
        if self.suspended {
            return;
        }
        let goes_on =
            if self.running.is_some() { self.is_busy() } else { self.held.is_some() || self.queue.is_empty() };
        self.claim(Promise::ItNeverGetsStuck, goes_on, "nothing is under way, and something waits");
        let next = self.halted.is_some() || self.startable().is_none();
        self.claim(Promise::CallsStartInOrder, next, "a call waits that could start");
    }

    /// Judges the end: nothing is under way any more, and the last task has taken what waited.
    pub fn conclude(&mut self) {
        let ended =
            |record: &Record| !matches!(record.state, TaskState::Queued | TaskState::Running | TaskState::Interrupted);
        let all = self.tasks.values().all(ended);
        self.claim(Promise::EachTaskEndsOnce, all, "a task never ended");
        let in_order = self.injected.is_sorted_by(|one, next| one < next);
        self.claim(Promise::SteeringIsNeitherLostNorDoubled, in_order, "order of arrival, none twice");
        let once = self.injected.iter().all(|one| !self.dropped.contains(one));
        let all = self.injected.len() + self.dropped.len() == self.messages;
        self.claim(
            Promise::SteeringIsNeitherLostNorDoubled,
            once && all,
            "a message was lost, or came after it was dropped",
        );
    }
}
