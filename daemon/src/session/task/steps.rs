//! How each input moves the machine.

use nano_protocol::id::TaskId;
use nano_protocol::message::NotRun;
use nano_protocol::session::Delivery;
use nano_protocol::task::{Reason, TaskState};

use super::super::batch::{Batch, Step};
use super::{Effect, Left, Machine, Phase, Queued, REPEATS_ENDED, Reply, Run, Steer, Stop};

impl Machine {
    /// Tells whether a call or a model request is under way.
    pub fn is_busy(&self) -> bool {
        match self.run.as_ref().map(|run| &run.phase) {
            Some(Phase::Asking { .. }) => true,
            Some(Phase::Acting(batch)) => batch.is_running(),
            Some(Phase::Resting) | None => false,
        }
    }
    /// Returns why no further call of the reply starts, if so.
    pub fn halted(&self) -> Option<NotRun> {
        self.run.as_ref().and_then(|run| if let Phase::Acting(batch) = &run.phase { batch.halted() } else { None })
    }

    pub(super) fn next_task(&mut self, out: &mut Vec<Effect>) {
        if self.suspended || self.run.is_some() || self.held.is_some() {
            return;
        }
        if let Some(next) = self.queue.pop_front() {
            self.start(next, out);
        }
    }

    fn start(&mut self, next: Queued, out: &mut Vec<Effect>) {
        let Queued { task, max_turns, resumed, cuts, repeats, turns, left } = next;
        out.push(Effect::Begin(task.clone()));
        self.run =
            Some(Run { task, opened: resumed, turns, max_turns, cuts, repeats, stop: None, phase: Phase::Resting });
        if left.is_empty() { self.between_turns(true, out) } else { self.take_up(&left, out) }
    }

    /// Goes on in the midst of a turn, with calls that another daemon began.
    fn take_up(&mut self, left: &[Left], out: &mut Vec<Effect>) {
        let Some(run) = &mut self.run else { return };
        let mut batch = Batch::left(left);
        if self.waiting.iter().any(|one| one.delivery != Delivery::Note) {
            batch.halt(NotRun::Redirect);
        }
        run.phase = Phase::Acting(batch);
        self.go_on(out);
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
                out.push(Effect::Inject(
                    std::mem::take(&mut self.waiting).into_iter().map(|one| one.message).collect(),
                ));
            }
            out.push(Effect::Ask);
        }
    }

    pub(super) fn steer(&mut self, steer: Steer, out: &mut Vec<Effect>) {
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

    pub(super) fn withdraw(&mut self, id: &str, out: &mut Vec<Effect>) {
        if let Some(at) = self.waiting.iter().position(|one| one.message.0 == id) {
            out.push(Effect::Dropped(self.waiting.remove(at).message));
        } else if self.queue.iter().any(|one| one.task.0 == id) {
            self.cancel(&TaskId(id.to_owned()), out);
        }
    }

    pub(super) fn replied(&mut self, reply: &Reply, out: &mut Vec<Effect>) {
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

    pub(super) fn model_failed(&mut self, out: &mut Vec<Effect>) {
        let Some(run) = self.run.as_ref().filter(|run| matches!(run.phase, Phase::Asking { .. })) else { return };
        let (state, reason) = run.stop.map_or((TaskState::Failed, Reason::Error), Stop::end);
        out.push(Effect::TurnEnd);
        self.finish(state, reason, out);
    }

    pub(super) fn model_stopped(&mut self, out: &mut Vec<Effect>) {
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

    pub(super) fn call_ended(&mut self, call: usize, print: Option<u64>, out: &mut Vec<Effect>) {
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

    pub(super) fn cancel(&mut self, task: &TaskId, out: &mut Vec<Effect>) {
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

    pub(super) fn stop(&mut self, stop: Stop, out: &mut Vec<Effect>) {
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

    pub(super) fn resume(&mut self, task: Queued, out: &mut Vec<Effect>) {
        if self.held.as_ref() == Some(&task.task) {
            self.held = None;
            self.queue.push_front(task);
        } else {
            self.queue.push_back(task);
        }
        self.next_task(out);
    }

    pub(super) fn close(&mut self, out: &mut Vec<Effect>) {
        // There is no next task that could hear it.
        out.extend(std::mem::take(&mut self.waiting).into_iter().map(|one| Effect::Dropped(one.message)));
        let rest: Vec<TaskId> = self.queue().cloned().chain(self.held.clone()).collect();
        for task in rest {
            self.cancel(&task, out);
        }
        self.stop(Stop::Cancel, out);
    }

    pub(super) fn suspend(&mut self, out: &mut Vec<Effect>) {
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
