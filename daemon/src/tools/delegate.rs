//! `delegate`: has another session do a piece of the work.

use serde::Deserialize;

use super::class::Class;
use super::typed::Typed;
use super::{Tool, ToolContext, ToolFault, ToolOutcome, ToolSpec, schema};
use crate::sandbox::BoxFuture;

/// What is to be done, and how.
#[derive(Debug, Clone, Deserialize, schemars::JsonSchema)]
pub struct Order {
    /// What to do, in words that make sense to somebody who has not read this conversation.
    pub content: String,
    /// The agent profile that does it; yours unless told.
    pub agent: Option<String>,
    /// The tools it gets, by name, of those that you have, or that the profile has; all of them unless told.
    pub tools: Option<Vec<String>>,
    /// Whether to wait for the result (true unless told); otherwise it comes later, as a message.
    pub wait: Option<bool>,
}

/// Has work done by other sessions; what can do that stands above the tools.
pub trait Delegator: Send + Sync {
    /// Opens a session for the work and, where that was ordered, waits for what comes of it. A call that is made again
    /// finds the session of the first time.
    fn delegate<'a>(&'a self, context: &'a ToolContext, order: Order) -> BoxFuture<'a, ToolOutcome>;
}

/// Returns the tool.
pub fn tool() -> impl Tool {
    let spec = ToolSpec {
        name: "delegate".into(),
        description: "Has a subagent do a piece of the work in a session of its own, which knows only what you tell \
                      it, works in the same folder and on the same computer with your tools, or some of them, or those of \
                      a profile that you name, and answers with its last words.".into(),
        input_schema: schema::schema::<Order>(),
        source: "core".into(),
        requires: &[],
        read_only: false,
    };
    // Its key is the id of the call: the child that it has made is found again.
    Typed::new(spec, |context, order| Box::pin(delegate(context, order))).classed(Class::Keyed)
}

async fn delegate(context: &ToolContext, order: Order) -> Result<ToolOutcome, ToolFault> {
    match &context.delegator {
        Some(delegator) => Ok(delegator.delegate(context, order).await),
        None => Ok(ToolOutcome::Failed("there is nobody to delegate to here".into())),
    }
}
