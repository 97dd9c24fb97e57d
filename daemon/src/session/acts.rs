//! What the machine's effects do, after they are on record; and what the actor's helpers tell it.

use std::time::Duration;

use tokio::time::Instant;

use super::actor::{Actor, News};
use super::steering_watch::SteeringWatch;
use super::task::Effect;
use crate::store::StoreError;

impl Actor {
    /// Does what `effect` says beyond its record.
    pub(super) async fn act(&mut self, effect: Effect) -> Result<(), StoreError> {
        match effect {
            Effect::Begin(_) => self.begin_task(),
            Effect::Ask => return self.ask().await,
            Effect::Start(call) => self.start_call(call),
            Effect::StopCall(call) => self.stop_call(call),
            Effect::StopModel => self.stop_model(),
            Effect::Ended(call, _) => self.after_call(call).await,
            Effect::Finish(..) => return self.tell_ends().await,
            Effect::TurnBegin
            | Effect::Open
            | Effect::Inject(_)
            | Effect::KeepReply
            | Effect::KeepResult(_)
            | Effect::Settle(..)
            | Effect::TurnEnd
            | Effect::Carry(_)
            | Effect::Dropped(_) => {}
        }
        Ok(())
    }

    /// Takes what one of the helpers tells.
    pub(super) async fn hear(&mut self, news: News) -> Result<(), StoreError> {
        match news {
            News::Answered(generation, answer) if generation == self.generation => self.answered(answer).await,
            News::ModelStopped(generation) if generation == self.generation => self.model_stopped().await,
            News::CallEnded(generation, at, outcome) if generation == self.generation => {
                self.call_ended(at, outcome).await
            }
            News::Prepared(generation) if generation == self.generation => self.prepared().await,
            // Late: what it belongs to has ended without it.
            News::Answered(..) | News::ModelStopped(_) | News::CallEnded(..) | News::Prepared(_) => Ok(()),
            News::Booted(booted) => self.booted(booted).await,
            News::SteeringFile => self.take_steering_file().await,
        }
    }

    fn begin_task(&mut self) {
        let agent = self.agent();
        let record = self.turn_task.as_ref().and_then(|task| self.tasks.get(task));
        let limit = record.and_then(|record| record.limits.timeout_ms).map(Duration::from_millis).or(agent.timeout);
        if let Some(task) = &self.turn_task {
            tracing::info!(session = %self.record.session.id, %task, "task runs");
        }
        self.deadline = limit.map(|limit| Instant::now() + limit);
        // The task before may have had a watch: its lines are not this one's.
        self.watch = None;
        if self.deps.configured().config.steering.enabled && agent.enable_steering {
            self.watch = SteeringWatch::start(&self.deps, &self.record.session, self.news.clone());
        }
    }

    /// Tells of ends that are on record, and ends what the tasks left running.
    async fn tell_ends(&mut self) -> Result<(), StoreError> {
        for task in std::mem::take(&mut self.ended) {
            let reason = task.reason.map(nano_protocol::task::Reason::as_str);
            tracing::info!(session = %task.session, task = %task.id, state = %task.state, reason, "task ended");
            if self.turn_task.is_none() {
                self.deadline = None;
                self.watch = None;
            }
            self.end_processes(&task).await;
            self.tell_kin(&task);
            for reply in self.end_replies.remove(&task.id).unwrap_or_default() {
                drop(reply.send(Ok(task.clone())));
            }
        }
        self.answer_close().await
    }
}
