//! One model call: the request, retries and fallbacks, and its way back to the actor.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nano_protocol::MAX_CONTENT;
use nano_protocol::event::{Data, Event, EventType};
use nano_protocol::id::{SessionId, TaskId};
use nano_protocol::message::Role;
use nano_protocol::task::{TaskError, Usage};
use serde_json::json;

use super::actor::{Actor, KeptReply, News, OpenCall};
use super::deps::Deps;
use super::task::{Input, Reply};
use super::{admission, prompt, transcript};
use crate::crash;
use crate::model::catalog::Catalog;
use crate::model::failure::permanent;
use crate::model::{Answer, Delta, Finish, ProviderError, Request, retry};
use crate::store::StoreError;

/// How much of malformed arguments is kept.
const RAW: usize = 4096;

impl Actor {
    /// Starts the model call of the turn that was just recorded.
    pub(super) fn start_model_call(&mut self) {
        self.generation += 1;
        let tools = self.offered().wire();
        let parts = prompt::parts(&self.agent().system_prompt, self.booter_prompts(), self.skills.prompts(), &tools);
        let request = Request {
            system: prompt::assembled(&parts),
            messages: transcript::project(&self.transcript),
            tools,
            replies: self.transcript.iter().filter(|message| message.role == Role::Assistant).count(),
        };
        let stop = self.running.token();
        self.model_stop = Some(stop.clone());
        self.partial = Arc::default();
        let call = ModelCall {
            deps: self.deps.clone(),
            session: self.record.session.id.clone(),
            task: self.turn_task.clone(),
            model: self.record.session.model.clone(),
            agent: self.record.session.agent.clone(),
            partial: self.partial.clone(),
            request,
        };
        let (news, generation) = (self.news.clone(), self.generation);
        self.deps.shutdown.spawn("model-call", async move {
            let answered = tokio::select! {
                biased;
                () = stop.cancelled() => News::ModelStopped(generation),
                answer = call.make() => News::Answered(generation, answer),
            };
            // The actor may be gone; then nobody needs it.
            drop(news.send(answered).await);
        });
    }

    /// Takes the model's answer, or why there is none.
    pub(super) async fn answered(&mut self, answer: Result<Answer, ProviderError>) -> Result<(), StoreError> {
        self.model_stop = None;
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                self.failure = Some(TaskError { kind: "model".into(), message: error.message });
                return self.feed(Input::ModelFailed).await;
            }
        };
        let answer = self.unique(bounded(answer));
        let toolset = self.offered();
        let reply = Reply {
            calls: answer
                .calls
                .iter()
                .map(|call| toolset.get(&call.name).is_none_or(|tool| tool.spec().read_only))
                .collect(),
            cut: answer.finish == Finish::Length,
            over_budget: self.over_budget_with(&answer.usage),
        };
        self.open = answer.calls.iter().cloned().map(OpenCall::new).collect();
        self.reply = Some(KeptReply { answer, partial: false });
        self.feed(Input::Replied(reply)).await
    }

    /// Takes what came of a reply that was stopped.
    pub(super) async fn model_stopped(&mut self) -> Result<(), StoreError> {
        self.model_stop = None;
        let text = std::mem::take(&mut *self.partial.lock().unwrap_or_else(PoisonError::into_inner));
        let answer = Answer { text, calls: Vec::new(), finish: Finish::Done, usage: Usage::default() };
        self.reply = Some(KeptReply { answer, partial: true });
        self.feed(Input::ModelStopped).await
    }

    /// Makes call ids unique in the session.
    fn unique(&self, mut answer: Answer) -> Answer {
        let taken =
            |id: &str| self.transcript.iter().any(|message| message.tool_calls.iter().any(|call| call.id == id));
        for call in answer.calls.iter_mut().filter(|call| taken(&call.id)) {
            call.id = format!("call_{}", self.deps.clock.ulid());
        }
        answer
    }

    fn over_budget_with(&self, usage: &Usage) -> bool {
        let Some(mut record) = self.turn_task.as_ref().and_then(|task| self.tasks.get(task)).cloned() else {
            return false;
        };
        record.task.usage.add(usage);
        admission::over_budget(&record, &self.agent())
    }
}

/// Cuts what is longer than a message may be.
fn bounded(mut answer: Answer) -> Answer {
    if answer.text.len() > MAX_CONTENT {
        let note = format!("\n[cut: the reply had {} bytes]", answer.text.len());
        answer.text.truncate(answer.text.floor_char_boundary(MAX_CONTENT - note.len()));
        answer.text.push_str(&note);
    }
    for raw in answer.calls.iter_mut().filter_map(|call| call.arguments_raw.as_mut()) {
        raw.truncate(raw.floor_char_boundary(RAW));
    }
    answer
}

struct ModelCall {
    deps: Arc<Deps>,
    session: SessionId,
    task: Option<TaskId>,
    model: String,
    agent: String,
    partial: Arc<Mutex<String>>,
    request: Request,
}

impl ModelCall {
    /// Asks the model, again where that may help, then its fallbacks.
    async fn make(&self) -> Result<Answer, ProviderError> {
        if self.deps.agent_is_gone(&self.agent) {
            let message = format!("agent {} is gone; make it again, or add [agents.{0}] to the config", self.agent);
            return Err(permanent(message));
        }
        // A server that was found may come up after the daemon.
        let models = self.deps.look_for_models().await;
        let mut last = None;
        for name in models.chain(&self.model) {
            if last.is_some() {
                self.record(EventType::ModelFallback, json!({"model": name})).await;
            }
            match self.ask(&models, &name).await {
                Ok(answer) => return Ok(answer),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| not_configured(&self.model)))
    }

    async fn ask(&self, models: &Catalog, name: &str) -> Result<Answer, ProviderError> {
        let provider = models.get(name).ok_or_else(|| not_configured(name))?;
        let mut attempt = 0;
        loop {
            self.partial().clear();
            let sink = |delta: Delta| self.take(delta);
            crash::point("model.ask.before");
            let answered = provider.stream(&self.request, &sink).await;
            crash::point("model.ask.after");
            let error = match answered {
                Ok(mut answer) => {
                    answer.usage.cost = models.cost(name, &answer.usage);
                    return Ok(answer);
                }
                Err(error) => error,
            };
            let Some(delay) = retry::delay(attempt, &error, self.jitter()) else { return Err(error) };
            attempt += 1;
            let data = json!({"attempt": attempt, "delay_ms": millis(delay), "error": error.message});
            self.record(EventType::ModelRetry, data).await;
            tokio::time::sleep(delay).await;
        }
    }

    fn take(&self, delta: Delta) {
        let (kind, text) = match delta {
            Delta::Text(text) => {
                self.partial().push_str(&text);
                (EventType::TextDelta, text)
            }
            Delta::Reasoning(text) => (EventType::ReasoningDelta, text),
        };
        let (session, task) = (Some(self.session.clone()), self.task.clone());
        let at = self.deps.clock.now();
        self.deps.events.delta(&Event { seq: None, session, task, at, kind, data: json!({"text": text}) });
    }

    async fn record(&self, kind: EventType, data: Data) {
        // A store that fails here fails the actor's next commit, which ends it.
        drop(self.deps.record(Some(self.session.clone()), self.task.clone(), kind, data).await);
    }

    fn partial(&self) -> std::sync::MutexGuard<'_, String> {
        self.partial.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a number from 0 to 1 that differs between sessions and moments: the random end of a fresh id.
    fn jitter(&self) -> f64 {
        let digits = self.deps.clock.ulid();
        f64::from(digits.bytes().rev().take(2).fold(0_u32, |sum, byte| sum * 64 + u32::from(byte) % 64)) / 4096.0
    }
}

fn not_configured(model: &str) -> ProviderError {
    permanent(format!("model {model} is not configured; nanoctl models lists what there is"))
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
