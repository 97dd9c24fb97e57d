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

/// A tool that works on the session's files.
pub struct FileTool<A> {
    spec: ToolSpec,
    work: Work<A>,
}

impl<A: JsonSchema> FileTool<A> {
    /// Makes a tool whose arguments are `A`.
    pub fn new(name: &'static str, description: &'static str, read_only: bool, work: Work<A>) -> Self {
        let (input_schema, requires) = (schema::schema::<A>(), &[Capability::Filesystem]);
        Self { spec: ToolSpec { name, description, input_schema, source: LOCAL, requires, read_only }, work }
    }
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
        Box::pin(async move {
            if cancel.is_cancelled() {
                return Ok(ToolOutcome::Stopped("stopped before it began".into()));
            }
            let done = move || work(&workspace, &schema::decode(arguments)?, &cancel);
            Ok(match tokio::task::spawn_blocking(done).await {
                Ok(Ok(text)) => ToolOutcome::Done(text),
                Ok(Err(why)) if context.cancel.is_cancelled() => ToolOutcome::Stopped(why),
                Ok(Err(why)) => ToolOutcome::Failed(why),
                Err(_) => ToolOutcome::Failed("the tool broke down; this is a bug in nanod".into()),
            })
        })
    }
}

/// A reader that ends in an error once the token fires: no file is so large that it cannot be left.
#[derive(Debug)]
pub struct Cancellable<R>(pub R, pub CancellationToken);

impl<R: Read> Read for Cancellable<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.1.is_cancelled() { Err(io::Error::other("stopped")) } else { self.0.read(buffer) }
    }
}
