//! `schedule_followup`: what is to be done later becomes a task of this session then.

use nano_protocol::followup::{Followup, Trigger};
use nano_protocol::id::{SessionId, TaskId};
use serde::Deserialize;

use super::class::Class;
use super::typed::Typed;
use super::{Tool, ToolContext, ToolFault, ToolOutcome, ToolSpec, schema};
use crate::sandbox::BoxFuture;

/// A follow-up on its way; the error is for the model.
pub type Scheduling<'a> = BoxFuture<'a, Result<Followup, String>>;

/// The call that schedules.
#[derive(Debug, Clone, Copy)]
pub struct By<'a> {
    /// Of which session.
    pub session: &'a SessionId,
    /// In which task.
    pub task: &'a TaskId,
    /// Its id.
    pub call: &'a str,
}

/// Makes follow-ups; what can do that stands above the tools.
pub trait Later: Send + Sync {
    /// Makes one of the session of a call, for the agent that makes this call; the same call has one follow-up.
    fn schedule<'a>(&'a self, by: By<'a>, content: String, trigger: Trigger) -> Scheduling<'a>;
}

#[derive(Debug, Deserialize, schemars::JsonSchema)]
struct Args {
    /// What to do then, in words that make sense without this conversation at hand.
    content: String,
    /// When: give one of `after_ms`, `at`, `every_ms`, `cron`, `on`, `external`.
    trigger: Trigger,
}

/// Returns the tool.
pub fn tool() -> impl Tool {
    let spec = ToolSpec {
        name: "schedule_followup".into(),
        description: "Schedules a message that becomes a task of this session later: once, again and again, or when \
                      something happens."
            .into(),
        input_schema: schema::schema::<Args>(),
        source: "core".into(),
        requires: &[],
        read_only: false,
    };
    // Its key is the id of the call: the follow-up that it has made is found again.
    Typed::new(spec, |context, args| Box::pin(schedule(context, args))).classed(Class::Keyed)
}

async fn schedule(context: &ToolContext, Args { content, trigger }: Args) -> Result<ToolOutcome, ToolFault> {
    let Some(later) = &context.later else {
        return Ok(ToolOutcome::Failed("follow-ups cannot be scheduled here".into()));
    };
    let by = By { session: &context.session, task: &context.task, call: &context.call };
    let made = later.schedule(by, content, trigger).await;
    Ok(made.map_or_else(ToolOutcome::Failed, |followup| ToolOutcome::Done(text(&followup))))
}

fn text(followup: &Followup) -> String {
    let times: Vec<String> = followup.next.iter().map(ToString::to_string).collect();
    let when = match times.as_slice() {
        [] => "It fires when what it waits for happens.".into(),
        times => format!("It fires next at {} (UTC).", times.join(", ")),
    };
    format!("Scheduled as {}. {when}", followup.id)
}
