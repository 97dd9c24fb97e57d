//! One tool call: run beside the actor, stopped by a token, abandoned when it ignores that.

use std::sync::Arc;
use std::time::Duration;

use nano_protocol::task::TaskError;

use super::actor::{Actor, News};
use super::task::{Input, Stop};
use super::transcript;
use crate::crash;
use crate::store::StoreError;
use crate::store::record::call::CallResult;
use crate::tools::{Tool, ToolContext, ToolFault, ToolOutcome};

/// How long a stopped call may take to end: TERM, two seconds, KILL, and some air.
const GRACE: Duration = Duration::from_secs(5);

impl Actor {
    /// Starts a call whose start is on record.
    pub(super) fn start_call(&mut self, at: usize) {
        let toolset = self.offered();
        let Some(open) = self.open.get_mut(at).filter(|open| !open.gate.holds()) else { return };
        let call = open.call.clone();
        let stop = self.running.token();
        open.stop = Some(stop.clone());
        let Some(tool) = toolset.get(&call.name) else {
            return self.tell(at, Ok(ToolOutcome::Failed(toolset.not_found_text(&call.name))));
        };
        if let Some(raw) = &call.arguments_raw {
            let text = format!("the arguments are not a JSON object; nothing was run. They were: {raw}");
            return self.tell(at, Ok(ToolOutcome::Failed(text)));
        }
        if self.boot.sandbox.is_none() && self.needs_computer(tool.spec()) {
            self.boot.waiting.push(at);
            return self.start_boot();
        }
        let tool = tool.clone();
        let workspace = match self.workspace() {
            Ok(workspace) => workspace,
            Err(error) => return self.tell(at, Err(ToolFault::Sandbox(error))),
        };
        if let Some(why) = self.is_another(at) {
            return self.tell(at, Ok(ToolOutcome::Failed(why)));
        }
        let context = self.context(at, workspace, stop);
        let (news, generation) = (self.news.clone(), self.generation);
        let running = self.running.track(async move {
            let outcome = run(tool, context, call.arguments).await;
            // The actor may be gone; then nobody needs it.
            drop(news.send(News::CallEnded(generation, at, outcome)).await);
        });
        self.deps.shutdown.spawn("tool-call", running);
    }

    /// Stops a call; one that waits for the computer has nothing to stop.
    pub(super) fn stop_call(&mut self, at: usize) {
        if let Some(waiting) = self.boot.waiting.iter().position(|&one| one == at) {
            self.boot.waiting.remove(waiting);
            return self.tell(at, Ok(ToolOutcome::Stopped("Stopped while the computer was being booted.".into())));
        }
        if let Some(stop) = self.open.get(at).and_then(|open| open.stop.as_ref()) {
            stop.cancel();
        }
    }

    /// Stops every running call.
    pub(super) fn stop_calls(&mut self) {
        for at in 0..self.open.len() {
            self.stop_call(at);
        }
    }

    /// Hands over an outcome that is known without running anything.
    fn tell(&self, at: usize, outcome: Result<ToolOutcome, ToolFault>) {
        let (news, generation) = (self.news.clone(), self.generation);
        self.deps.shutdown.spawn("tool-refused", async move {
            drop(news.send(News::CallEnded(generation, at, outcome)).await);
        });
    }

    /// Takes a call's outcome.
    pub(super) async fn call_ended(
        &mut self,
        at: usize,
        outcome: Result<ToolOutcome, ToolFault>,
    ) -> Result<(), StoreError> {
        let Some(outcome) = self.unless_lost(at, outcome) else { return Ok(()) };
        let Some(open) = self.open.get_mut(at).filter(|open| open.stop.is_some()) else { return Ok(()) };
        let (content, ok, stopped) = match outcome {
            Ok(ToolOutcome::Done(text)) => (text, true, false),
            Ok(ToolOutcome::Failed(text)) => (text, false, false),
            Ok(ToolOutcome::Stopped(text)) => (self.deps.stopped(text), false, true),
            Ok(ToolOutcome::Settles(change, outcome)) => {
                open.settles.push(change);
                return Box::pin(self.call_ended(at, Ok(*outcome))).await;
            }
            Err(fault) => {
                let text = fault.to_string();
                self.failure = Some(TaskError { kind: "booter".into(), message: text.clone() });
                open.result = Some(CallResult { content: text, ..CallResult::default() });
                let mut effects = self.machine.on(Input::Stop(Stop::Fault));
                effects.extend(self.machine.on(Input::CallEnded(at, None)));
                return self.apply(effects, Vec::new()).await;
            }
        };
        let print = (!stopped).then(|| transcript::fingerprint(&open.call, &content));
        open.result = Some(CallResult { content, ok, stopped, ..CallResult::default() });
        self.feed(Input::CallEnded(at, print)).await
    }
}

/// Runs a call to its end; after a stop it has a grace, then it is abandoned.
async fn run(
    tool: Arc<dyn Tool>,
    context: ToolContext,
    arguments: nano_protocol::Object,
) -> Result<ToolOutcome, ToolFault> {
    let cancel = context.cancel.clone();
    let name = tool.spec().name.clone();
    // On a task of its own: a panic ends this call and nothing else.
    let mut running = tokio::spawn(async move {
        crash::point("tool.call.before");
        let outcome = tool.call(&context, arguments).await;
        crash::point("tool.call.after");
        outcome
    });
    let overdue = async {
        cancel.cancelled().await;
        tokio::time::sleep(GRACE).await;
    };
    tokio::select! {
        ended = &mut running => ended.unwrap_or_else(|why| {
            tracing::error!(tool = %name, %why, "a tool panicked");
            Ok(ToolOutcome::Failed(format!("{name} failed inside the daemon; its log has the details")))
        }),
        () = overdue => {
            running.abort();
            Ok(ToolOutcome::Stopped("Stopped, but it did not end in time: it may still have effects.".into()))
        }
    }
}
