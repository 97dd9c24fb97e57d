//! What the file tools share: they need a file system, and their work may block.

use std::io::{self, Read};
use std::sync::Arc;

use nano_protocol::Object;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use super::exec::LOCAL;
use super::{Tool, ToolContext, ToolFault, ToolOutcome, ToolSpec, schema};
use crate::sandbox::workspace::Workspace;
use crate::sandbox::{BoxFuture, Capability};

/// What a file tool does with its arguments; it watches the token itself, so that what it changes is never in doubt.
type Work<A> = fn(&Workspace, &A, &CancellationToken) -> Result<String, String>;

/// A tool that reads the session's files.
pub struct FileTool<A> {
    spec: ToolSpec,
    work: Work<A>,
}

impl<A: JsonSchema> FileTool<A> {
    /// Makes a tool whose arguments are `A`.
    pub fn new(name: &'static str, description: &'static str, work: Work<A>) -> Self {
        Self { spec: spec::<A>(name, description, true), work }
    }
}

/// Returns what is fixed about a tool for the session's files.
pub fn spec<A: JsonSchema>(name: &'static str, description: &'static str, read_only: bool) -> ToolSpec {
    let (input_schema, requires) = (schema::schema::<A>(), &[Capability::Filesystem]);
    let (name, description, source) = (name.into(), description.into(), LOCAL.into());
    ToolSpec { name, description, input_schema, source, requires, read_only }
}

impl<A: DeserializeOwned + JsonSchema + Send + 'static> Tool for FileTool<A> {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        arguments: Object,
    ) -> BoxFuture<'a, Result<ToolOutcome, ToolFault>> {
        let (workspace, cancel, work) = (Arc::clone(&context.workspace), context.cancel.clone(), self.work);
        Box::pin(done(context, move || work(&workspace, &schema::decode(arguments)?, &cancel)))
    }
}

/// Does work that may block, and puts what came of it as the model reads it.
pub async fn done(
    context: &ToolContext,
    work: impl FnOnce() -> Result<String, String> + Send + 'static,
) -> Result<ToolOutcome, ToolFault> {
    if context.cancel.is_cancelled() {
        return Ok(ToolOutcome::Stopped("stopped before it began".into()));
    }
    Ok(match tokio::task::spawn_blocking(work).await {
        Ok(Ok(text)) => ToolOutcome::Done(text),
        Ok(Err(why)) if context.cancel.is_cancelled() => ToolOutcome::Stopped(why),
        Ok(Err(why)) => ToolOutcome::Failed(why),
        Err(_) => ToolOutcome::Failed("the tool broke down; this is a bug in nanod".into()),
    })
}

/// A reader that ends in an error once the token fires: no file is so large that it cannot be left.
#[derive(Debug)]
pub struct Cancellable<R>(pub R, pub CancellationToken);

impl<R: Read> Read for Cancellable<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.1.is_cancelled() { Err(io::Error::other("stopped")) } else { self.0.read(buffer) }
    }
}
