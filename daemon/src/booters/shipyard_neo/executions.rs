//! The tools that look at what was run in the sandbox, and note something about it.

use std::sync::Arc;

use nano_protocol::Object;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::bay::Ask;
use super::history;
use super::lifecycle::{given, said};
use super::paths::step;
use super::sandbox::NeoSandbox;
use super::tool::{BayTool, compact, decoded, outcome, spec};
use crate::http::call::Method;
use crate::sandbox::{BoxFuture, SandboxError};
use crate::tools::{Tool, ToolContext, ToolFault, ToolOutcome, ToolSpec};

/// How many entries are asked for unless told, how many once some were left out, and how often.
const USUAL: usize = 100;
const PAGE: usize = 500;
const PAGES: usize = 10;

#[derive(Debug, Deserialize, JsonSchema)]
struct History {
    /// Only of this kind: python, shell, browser or `browser_batch`.
    exec_type: Option<String>,
    /// Only those that succeeded.
    success_only: Option<bool>,
    /// How many at most, 1 to 500; 100 unless given.
    limit: Option<i64>,
    /// How many of the newest to skip.
    offset: Option<i64>,
    /// Only those with one of these tags, separated by commas.
    tags: Option<String>,
    /// Only those with notes.
    has_notes: Option<bool>,
    /// Only those with a description.
    has_description: Option<bool>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Annotation {
    /// The execution, as `get_execution_history` names it.
    execution_id: String,
    /// What it did.
    description: Option<String>,
    /// Words to find it by, separated by commas.
    tags: Option<String>,
    /// What is worth knowing about it.
    notes: Option<String>,
}

/// Lists what was run.
struct Executions {
    spec: ToolSpec,
}

/// Returns them, in order.
pub fn all() -> Vec<Arc<dyn Tool>> {
    let description =
        "Lists what was run in the sandbox, newest first, with the ids that create_skill_candidate wants.";
    vec![
        Arc::new(Executions { spec: spec::<History>("get_execution_history", description, true) }),
        Arc::new(BayTool::new(
            "annotate_execution",
            "Adds a description, tags or notes to an execution.",
            false,
            |sandbox, Annotation { execution_id, description, tags, notes }| {
                let path = sandbox.path(&format!("history/{}", step(&execution_id)?));
                let body = [("description", description), ("tags", tags), ("notes", notes)];
                Ok(Ask::new(Method::PATCH, path).json(&given(body.map(|(name, text)| (name, text.map(Value::from))))))
            },
        )),
    ]
}

/// Asks for entries until there are as many as was asked for: those of nanod itself count as none.
async fn executions(sandbox: &NeoSandbox, asked: &History) -> Result<Value, SandboxError> {
    let usable = |count: Option<i64>| count.and_then(|count| usize::try_from(count).ok());
    let (most, skipped) = (usable(asked.limit).unwrap_or(USUAL), usable(asked.offset).unwrap_or(0));
    let (mut told, mut seen, mut reply) = (Vec::new(), 0, Value::Null);
    for page in 0..PAGES {
        let limit = if page == 0 { asked.limit } else { i64::try_from(PAGE).ok() };
        reply = sandbox.call(&entries(sandbox, asked, limit, seen)).await?;
        let Some(Value::Array(some)) = reply.get_mut("entries").map(Value::take) else { return Ok(reply) };
        let is_last = some.len() < usable(limit).unwrap_or(USUAL);
        seen += some.len();
        told.extend(some.into_iter().filter_map(history::told));
        if is_last || told.len() >= skipped + most {
            break;
        }
    }
    if let Some(fields) = reply.as_object_mut().filter(|_| told.len() < seen) {
        // It counts what is left out.
        fields.remove("total");
    }
    reply["entries"] = told.into_iter().skip(skipped).take(most).collect();
    Ok(reply)
}

fn entries(sandbox: &NeoSandbox, asked: &History, limit: Option<i64>, seen: usize) -> Ask {
    Ask::get(sandbox.path("history"))
        .query("exec_type", asked.exec_type.clone())
        .query("success_only", said(asked.success_only))
        .query("limit", said(limit))
        .query("offset", said(Some(seen).filter(|seen| *seen > 0)))
        .query("tags", asked.tags.clone())
        .query("has_notes", said(asked.has_notes))
        .query("has_description", said(asked.has_description))
}

impl Tool for Executions {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        arguments: Object,
    ) -> BoxFuture<'a, Result<ToolOutcome, ToolFault>> {
        Box::pin(async move {
            let (sandbox, asked) = match decoded(context, arguments) {
                Ok(decoded) => decoded,
                Err(why) => return Ok(ToolOutcome::Failed(why)),
            };
            tokio::select! {
                biased;
                () = context.cancel.cancelled() => Ok(ToolOutcome::Stopped("stopped before the reply came".into())),
                told = executions(&sandbox, &asked) => outcome(told.map(|told| ToolOutcome::Done(compact(&told)))),
            }
        })
    }
}
