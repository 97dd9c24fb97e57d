//! `process`: looks after commands that go on in the background.

use serde::Deserialize;

use super::exec::LOCAL;
use super::typed::Typed;
use super::{Tool, ToolContext, ToolFault, ToolOutcome, ToolSpec, schema};
use crate::sandbox::{BoxFuture, Capability, Command};

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "a word about each would not fit into a plain list of words, which models read best")]
pub enum Action {
    List,
    Log,
    Write,
    Kill,
}

/// What is to be done, and to which.
#[derive(Debug, Clone, Deserialize, schemars::JsonSchema)]
pub struct Order {
    /// What to do: list them all, show what one has printed, write to its input, or end it.
    pub action: Action,
    /// Which one, for all but list.
    pub id: Option<String>,
    /// For log: the byte of its output to begin at; the end is shown unless told.
    pub offset: Option<i64>,
    /// For log: show so many of the last lines instead.
    pub tail: Option<i64>,
    /// For write: the text, with its line end.
    pub text: Option<String>,
    /// For write: close its input after that.
    pub end: Option<bool>,
}

/// Keeps commands in the background; what can do that stands above the tools.
pub trait Background: Send + Sync {
    /// Starts a command that goes on when the call, the turn and the task have ended.
    fn start<'a>(&'a self, context: &'a ToolContext, command: Command) -> BoxFuture<'a, ToolOutcome>;
    /// Does what is ordered about one of this session.
    fn act<'a>(&'a self, context: &'a ToolContext, order: Order) -> BoxFuture<'a, ToolOutcome>;
}

/// Returns the tool.
pub fn tool() -> impl Tool {
    let spec = ToolSpec {
        name: "process".into(),
        description: "Looks after commands that exec has started with `background`: lists them, shows what one has \
                      printed, writes to its input, or ends it with everything that it has started."
            .into(),
        input_schema: schema::schema::<Order>(),
        source: LOCAL.into(),
        requires: &[Capability::Shell],
        read_only: false,
    };
    Typed::new(spec, |context, order| Box::pin(act(context, order)))
}

async fn act(context: &ToolContext, order: Order) -> Result<ToolOutcome, ToolFault> {
    match &context.background {
        Some(background) => Ok(background.act(context, order).await),
        None => Ok(ToolOutcome::Failed("nothing is kept in the background here".into())),
    }
}
