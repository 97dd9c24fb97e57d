//! What each input must lead to, noted before the machine sees it.

use nano_protocol::id::TaskId;
use nano_protocol::message::NotRun;
use nano_protocol::session::Delivery;

use super::super::super::{Input, Stop};
use super::{Answered, CallState, Turn, Witness, stop_end};

impl Witness {
    /// Tells whether `input` comes too late, or was never asked for.
    pub fn is_late(&self, input: &Input) -> bool {
        let known = |task: &TaskId| {
            self.running.as_ref() == Some(task) || self.held.as_ref() == Some(task) || self.queue.contains(task)
        };
        match input {
            Input::Replied(_) | Input::ModelFailed | Input::ModelStopped => !matches!(self.turn, Turn::Asked { .. }),
            Input::CallEnded(at, _) => self.calls.get(*at).is_none_or(|call| call.state != CallState::Running),
            Input::Cancel(task) => !known(task),
            Input::Withdraw(id) => {
                !self.queue.iter().any(|task| task.0 == *id) && !self.waiting.iter().any(|one| one.message.0 == *id)
            }
            Input::Stop(_) => self.running.is_none(),
            Input::Close => {
                self.running.is_none() && self.held.is_none() && self.queue.is_empty() && self.waiting.is_empty()
            }
            Input::Submit(_) | Input::Steer(_) | Input::Resume(_) | Input::Suspend => false,
        }
    }

    /// Takes note of an input before the machine sees it.
    pub fn expect(&mut self, input: &Input) {
        self.taken_back.clear();
        if self.is_late(input) {
            return;
        }
        match input {
            Input::Submit(_) | Input::Resume(_) => {}
            Input::Steer(steer) => self.expect_turn(steer.delivery),
            Input::Withdraw(id) => drop(self.taken_back.insert(id.clone())),
            Input::Replied(reply) => self.answered = Some(Answered::Reply(reply.clone())),
            Input::ModelFailed => self.answered = Some(Answered::Failed),
            Input::ModelStopped if self.suspended && self.stop.is_none() => self.turn = Turn::Closed,
            Input::ModelStopped => self.answered = Some(Answered::Stopped),
            Input::CallEnded(at, print) => self.expect_ended(*at, *print),
            Input::Cancel(task) if self.running.as_ref() == Some(task) => self.expect_stop(Stop::Cancel),
            Input::Cancel(task) => drop(self.taken_back.insert(task.0.clone())),
            Input::Stop(stop) => self.expect_stop(*stop),
            Input::Close => {
                self.taken_back.extend(self.queue.iter().chain(&self.held).map(|task| task.0.clone()));
                self.taken_back.extend(self.waiting.iter().map(|one| one.message.0.clone()));
                self.expect_stop(Stop::Cancel);
            }
            Input::Suspend => {
                self.suspended = true;
                self.model_stop_due();
            }
        }
    }

    fn expect_turn(&mut self, delivery: Delivery) {
        if delivery != Delivery::Note && self.turn == Turn::Acting {
            self.halted.get_or_insert(NotRun::Redirect);
        }
        if delivery == Delivery::Interrupt {
            self.stop_due();
        }
    }

    fn expect_ended(&mut self, at: usize, print: Option<u64>) {
        self.calls[at].state = CallState::Ended;
        let seen =
            print.map_or(0, |print| *self.record().repeats.entry(print).and_modify(|seen| *seen += 1).or_insert(1));
        self.ended = Some((at, seen));
        if seen >= 6 && self.stop.is_none() {
            self.stop = Some(Stop::Loop);
            self.halt(NotRun::Limit);
        }
    }

    fn expect_stop(&mut self, stop: Stop) {
        if self.running.is_none() {
            return;
        }
        let stop = *self.stop.get_or_insert(stop);
        if self.turn == Turn::Acting {
            self.halt(stop_end(stop).2);
        }
        self.stop_due();
    }

    fn halt(&mut self, why: NotRun) {
        if matches!(self.halted, None | Some(NotRun::Redirect)) {
            self.halted = Some(why);
        }
    }

    fn stop_due(&mut self) {
        self.model_stop_due();
        for call in self.calls.iter_mut().filter(|call| call.state == CallState::Running) {
            call.stop_due = true;
        }
    }

    fn model_stop_due(&mut self) {
        if let Turn::Asked { stop_due, .. } = &mut self.turn {
            *stop_due = true;
        }
    }
}
