//! `python`: a Python program.

use nano_protocol::Object;
use serde::Deserialize;

use super::exec::{Request, run};
use super::{Tool, ToolContext, ToolFault, ToolOutcome, ToolSpec, schema};
use crate::sandbox::{BoxFuture, Capability, Language};

/// Runs Python programs.
#[derive(Debug)]
pub struct Python(ToolSpec);

#[derive(Debug, Deserialize, schemars::JsonSchema)]
struct Args {
    /// The program.
    code: String,
    /// After how many seconds it is stopped.
    timeout: Option<i64>,
}

impl Default for Python {
    fn default() -> Self {
        Self(ToolSpec {
            name: "python",
            description: "Runs a Python 3 program in the workspace and returns what it prints. Each call is a fresh \
                          interpreter without input.",
            input_schema: schema::schema::<Args>(),
            source: "booter:local",
            requires: &[Capability::Python],
            read_only: false,
        })
    }
}

impl Tool for Python {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        arguments: Object,
    ) -> BoxFuture<'a, Result<ToolOutcome, ToolFault>> {
        Box::pin(async move {
            let Args { code, timeout } = match schema::decode(arguments) {
                Ok(args) => args,
                Err(why) => return Ok(ToolOutcome::Failed(why)),
            };
            run(context, Request { language: Language::Python, text: code, timeout, cwd: None, background: false })
                .await
        })
    }
}
