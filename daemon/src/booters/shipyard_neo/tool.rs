//! What the tools of this booter share: one call of Bay each, its reply as JSON text.

use std::any::Any;
use std::path::PathBuf;
use std::sync::Arc;

use nano_protocol::Object;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::SOURCE;
use super::bay::Ask;
use super::fault::Fault;
use super::sandbox::NeoSandbox;
use crate::sandbox::{BoxFuture, Capability, SandboxError};
use crate::tools::{Tool, ToolContext, ToolFault, ToolOutcome, ToolSpec, schema};

/// The longest answer, in bytes.
const MOST: usize = 50 * 1024;

/// A tool that makes one call; `told` says what a good reply means.
pub struct BayTool<A> {
    spec: ToolSpec,
    ask: fn(&NeoSandbox, A) -> Result<Ask, Fault>,
    told: fn(&Value) -> ToolOutcome,
}

impl<A: JsonSchema> BayTool<A> {
    /// Makes a tool whose arguments are `A`.
    pub fn new(
        name: &'static str,
        description: &'static str,
        read_only: bool,
        ask: fn(&NeoSandbox, A) -> Result<Ask, Fault>,
    ) -> Self {
        Self { spec: spec::<A>(name, description, read_only), ask, told: |reply| ToolOutcome::Done(compact(reply)) }
    }

    /// Says what a good reply means.
    pub fn telling(self, told: fn(&Value) -> ToolOutcome) -> Self {
        Self { told, ..self }
    }

    /// Says that the sandbox has to have a browser.
    pub fn with_browser(mut self) -> Self {
        self.spec.requires = &[Capability::Browser];
        self
    }
}

/// Returns what is fixed about a tool of this booter.
pub fn spec<A: JsonSchema>(name: &'static str, description: &'static str, read_only: bool) -> ToolSpec {
    let input_schema = schema::schema::<A>();
    let (name, description, source) = (name.into(), description.into(), SOURCE.into());
    ToolSpec { name, description, input_schema, source, requires: &[], read_only }
}

impl<A: DeserializeOwned + JsonSchema + Send> Tool for BayTool<A> {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        arguments: Object,
    ) -> BoxFuture<'a, Result<ToolOutcome, ToolFault>> {
        Box::pin(async move {
            let asked = decoded(context, arguments).and_then(|(sandbox, args)| {
                let ask = (self.ask)(&sandbox, args).map_err(|fault| fault.words)?;
                let long = ask.too_long().map(|name| format!("bad arguments: `{name}` is too long"));
                long.map_or(Ok((sandbox, ask)), Err)
            });
            let (sandbox, ask) = match asked {
                Ok(asked) => asked,
                Err(why) => return Ok(ToolOutcome::Failed(why)),
            };
            tokio::select! {
                biased;
                () = context.cancel.cancelled() => Ok(ToolOutcome::Stopped(stopped(&ask).into())),
                reply = sandbox.call(&ask) => outcome(reply.map(|reply| (self.told)(&reply))),
            }
        })
    }
}

fn stopped(ask: &Ask) -> &'static str {
    if ask.is_read() {
        "stopped before the reply came"
    } else {
        "stopped before the reply came; whether it took effect is not known"
    }
}

/// Returns the session's sandbox and the arguments, or what is wrong with them.
pub fn decoded<A: DeserializeOwned + JsonSchema>(
    context: &ToolContext,
    arguments: Object,
) -> Result<(Arc<NeoSandbox>, A), String> {
    let args = schema::decode(arguments)?;
    let computer = context.sandbox.clone().map(|sandbox| sandbox as Arc<dyn Any + Send + Sync>);
    let sandbox = computer.and_then(|computer| computer.downcast::<NeoSandbox>().ok());
    Ok((sandbox.ok_or("this session has no sandbox of Shipyard Neo")?, args))
}

/// Does what must not be left half done: it goes on where the call is given up.
pub async fn whole<A, F>(
    context: &ToolContext,
    arguments: Object,
    work: impl FnOnce(Arc<NeoSandbox>, PathBuf, A) -> F,
) -> Result<ToolOutcome, ToolFault>
where
    A: DeserializeOwned + JsonSchema,
    F: Future<Output = Result<ToolOutcome, SandboxError>> + Send + 'static,
{
    let (sandbox, args) = match decoded(context, arguments) {
        Ok(decoded) => decoded,
        Err(why) => return Ok(ToolOutcome::Failed(why)),
    };
    let working = sandbox.spawn(work(sandbox.clone(), context.workspace.path().to_owned(), args));
    outcome(working.await.unwrap_or_else(|why| Err(SandboxError::Failed(why.to_string()))))
}

/// Tells what the model is to read from what ends its task.
pub fn outcome(result: Result<ToolOutcome, SandboxError>) -> Result<ToolOutcome, ToolFault> {
    match result {
        Ok(outcome) => Ok(outcome),
        Err(SandboxError::Failed(why)) => Ok(ToolOutcome::Failed(why)),
        Err(why) => Err(why.into()),
    }
}

/// Writes a reply as compact JSON, cut where it is too long.
pub fn compact(reply: &Value) -> String {
    let text = reply.to_string();
    match text.get(..text.floor_char_boundary(MOST)) {
        Some(start) if start.len() < text.len() => {
            format!("{start}\n[… {} of {} bytes: ask for less, as with limit and offset]", start.len(), text.len())
        }
        _ => text,
    }
}
