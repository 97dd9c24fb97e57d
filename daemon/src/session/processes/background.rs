//! What the tools `exec` and `process` have done about background processes.

use std::time::Duration;

use nano_protocol::error::RpcError;
use nano_protocol::id::{ProcessId, SessionId};
use nano_protocol::process::{Process, ProcessState};

use super::begin::{Who, begin};
use super::log::{Page, Part};
use super::reading::{of_session, page, record};
use super::said;
use crate::sandbox::{BoxFuture, Command};
use crate::session::actor;
use crate::session::deps::unavailable;
use crate::session::registry::Registry;
use crate::store::{Change, Key};
use crate::tools::process::{Action, Background, Order};
use crate::tools::{ToolContext, ToolOutcome};

/// How long one is watched for failing at once.
const AT_ONCE: Duration = Duration::from_millis(100);
/// How many that have ended are listed.
const LISTED: usize = 20;

impl Background for Registry {
    fn start<'a>(&'a self, context: &'a ToolContext, command: Command) -> BoxFuture<'a, ToolOutcome> {
        Box::pin(async move { self.begun(context, command).await.unwrap_or_else(ToolOutcome::Failed) })
    }

    fn act<'a>(&'a self, context: &'a ToolContext, order: Order) -> BoxFuture<'a, ToolOutcome> {
        Box::pin(async move { self.acted(context, order).await.unwrap_or_else(ToolOutcome::Failed) })
    }
}

fn natural<T: TryFrom<i64>>(name: &str, asked: Option<i64>) -> Result<Option<T>, String> {
    let wrong = |asked| format!("bad arguments: `{name}` must be 0 or more, not {asked}");
    asked.map(|asked| T::try_from(asked).map_err(|_| wrong(asked))).transpose()
}

impl Registry {
    async fn begun(&self, context: &ToolContext, command: Command) -> Result<ToolOutcome, String> {
        if context.cancel.is_cancelled() {
            return Ok(ToolOutcome::Stopped("Stopped before it began.".into()));
        }
        let who = Who::of(context).ok_or("this session has no computer")?;
        let registry = self.clone();
        // On a task of its own: a call that is abandoned leaves none behind that nobody looks after.
        let beginning =
            self.deps().shutdown.spawn("begin-process", async move { begin(&registry, who, command).await });
        let (process, live) = beginning.await.map_err(|why| why.to_string())??;
        if context.cancel.is_cancelled() {
            live.end().await;
        } else {
            tokio::time::timeout(AT_ONCE, live.ended.cancelled()).await.ok();
        }
        let (process, page) = self.looked(&process.id, Part::new(None, None))?;
        if process.state == ProcessState::Running {
            return Ok(ToolOutcome::Done(said::begun(&process, &page)));
        }
        let text = said::piece(&page, &said::state(&process, self.deps().clock.now()));
        let outcome = match (process.state, process.status) {
            (ProcessState::Exited, Some(0)) => ToolOutcome::Done(text),
            (ProcessState::Exited, _) => ToolOutcome::Failed(text),
            _ => ToolOutcome::Stopped(text),
        };
        Ok(self.shown(&context.session, vec![process.id], outcome).await)
    }

    async fn acted(&self, context: &ToolContext, order: Order) -> Result<ToolOutcome, String> {
        if order.action == Action::List {
            return self.listed(&context.session).await;
        }
        let id = order.id.as_deref().ok_or("bad arguments: `id` is missing")?;
        let id = self.own(&context.session, id)?;
        match order.action {
            Action::Write => self.written(context, &id, &order).await,
            Action::Kill => self.killed(context, &id).await,
            Action::Log | Action::List => {
                let (process, page) =
                    self.looked(&id, Part::new(natural("offset", order.offset)?, natural("tail", order.tail)?))?;
                let text = said::piece(&page, &said::state(&process, self.deps().clock.now()));
                Ok(self.shown_if_over(context, process, ToolOutcome::Done(text)).await)
            }
        }
    }

    /// Returns the one of this session with this id.
    fn own(&self, session: &SessionId, id: &str) -> Result<ProcessId, String> {
        let id = ProcessId(id.to_owned());
        match self.process(&id) {
            Ok(process) if process.session == *session => Ok(id),
            _ => {
                let id = crate::sandbox::workspace::shown(&id.0);
                Err(format!("there is no background process `{id}` in this session; list shows those there are"))
            }
        }
    }

    async fn written(&self, context: &ToolContext, id: &ProcessId, order: &Order) -> Result<ToolOutcome, String> {
        let (text, end) = (order.text.as_deref().unwrap_or_default(), order.end.unwrap_or(false));
        if text.is_empty() && !end {
            return Err("bad arguments: write takes `text`, `end`, or both".into());
        }
        let Some(live) = self.deps().processes.get(id) else { return self.over(context, id).await };
        let written = tokio::select! {
            written = live.write(text, end) => written,
            () = context.cancel.cancelled() => return Ok(ToolOutcome::Stopped("Stopped while it was written.".into())),
        };
        written.map_err(|why| format!("not written to {id}: {why}"))?;
        let closed = if end { ", and its input is closed" } else { "" };
        Ok(ToolOutcome::Done(format!("{} bytes written to {id}{closed}", text.len())))
    }

    async fn killed(&self, context: &ToolContext, id: &ProcessId) -> Result<ToolOutcome, String> {
        let Some(live) = self.deps().processes.get(id) else { return self.over(context, id).await };
        if !live.end().await {
            return Err(format!("{id} was told to end and has not yet: see log in a while"));
        }
        let process = self.process(id)?;
        let text = format!("{id} has ended: {}", said::state(&process, self.deps().clock.now()));
        Ok(self.shown_if_over(context, process, ToolOutcome::Done(text)).await)
    }

    /// Says of one that nothing can be done with it any more.
    async fn over(&self, context: &ToolContext, id: &ProcessId) -> Result<ToolOutcome, String> {
        let process = self.process(id)?;
        let text = format!("{id} has ended already: {}", said::state(&process, self.deps().clock.now()));
        Ok(self.shown_if_over(context, process, ToolOutcome::Failed(text)).await)
    }

    async fn listed(&self, session: &SessionId) -> Result<ToolOutcome, String> {
        let all = of_session(self.deps(), session).map_err(|error| unavailable(&error).message)?;
        let all = all.into_iter().map(|record| record.process);
        let (running, mut ended): (Vec<_>, Vec<_>) = all.partition(|one| one.state == ProcessState::Running);
        let more = ended.len().saturating_sub(LISTED);
        ended.truncate(LISTED);
        let now = self.deps().clock.now();
        let mut lines: Vec<String> = running.iter().chain(&ended).map(|one| said::line(one, now)).collect();
        if lines.is_empty() {
            lines.push("(there are none)".into());
        }
        lines.extend((more > 0).then(|| format!("[{more} older ones have ended too]")));
        let ended = ended.into_iter().map(|process| process.id).collect();
        Ok(self.shown(session, ended, ToolOutcome::Done(lines.join("\n"))).await)
    }

    fn process(&self, id: &ProcessId) -> Result<Process, String> {
        let found = record(self.deps(), id).map_err(|error| unavailable(&error).message)?;
        found.map(|record| record.process).ok_or_else(|| format!("there is no background process {id}"))
    }

    fn looked(&self, id: &ProcessId, part: Part) -> Result<(Process, Page), String> {
        let found = page(self.deps(), id, part).map_err(|error: RpcError| error.message)?;
        Ok(found)
    }

    async fn shown_if_over(&self, context: &ToolContext, process: Process, outcome: ToolOutcome) -> ToolOutcome {
        let ended = (process.state != ProcessState::Running).then_some(process.id);
        self.shown(&context.session, ended.into_iter().collect(), outcome).await
    }

    /// Has the result that shows these ends take the place of the notes about them.
    async fn shown(&self, session: &SessionId, ended: Vec<ProcessId>, outcome: ToolOutcome) -> ToolOutcome {
        if ended.is_empty() {
            return outcome;
        }
        let unheard = self.ask(session, |reply| actor::Command::Unhear(ended.clone(), reply)).await;
        if let Err(error) = unheard {
            tracing::warn!(%session, %error, "an end may be told twice");
        }
        let keys = ended.iter().map(|id| Key::untold(session, id));
        let untold = keys.filter(|key| matches!(self.deps().store.get::<u8>(key), Ok(Some(_))));
        untold.fold(outcome, |outcome, key| ToolOutcome::Settles(Change::Delete(key), Box::new(outcome)))
    }
}
