//! What the file tools share: a spec that needs a file system, and work that may block.

use std::io::{self, Read};
use std::sync::Arc;

use nano_protocol::Object;
use tokio_util::sync::CancellationToken;

use super::{ToolContext, ToolFault, ToolOutcome, ToolSpec};
use crate::sandbox::workspace::Workspace;
use crate::sandbox::{BoxFuture, Capability};

/// Returns the spec of a tool that works on the session's files.
pub fn file_tool(name: &'static str, description: &'static str, input_schema: Object, read_only: bool) -> ToolSpec {
    ToolSpec { name, description, input_schema, source: "booter:local", requires: &[Capability::Filesystem], read_only }
}

/// Does `work` where it may block; it watches the token itself, so that what it changes is never left in doubt.
pub fn blocking(
    context: &ToolContext,
    work: impl FnOnce(&Workspace, &CancellationToken) -> Result<String, String> + Send + 'static,
) -> BoxFuture<'_, Result<ToolOutcome, ToolFault>> {
    let (workspace, cancel) = (Arc::clone(&context.workspace), context.cancel.clone());
    Box::pin(async move {
        if cancel.is_cancelled() {
            return Ok(ToolOutcome::Stopped("stopped before it began".into()));
        }
        Ok(match tokio::task::spawn_blocking(move || work(&workspace, &cancel)).await {
            Ok(Ok(text)) => ToolOutcome::Done(text),
            Ok(Err(why)) if context.cancel.is_cancelled() => ToolOutcome::Stopped(why),
            Ok(Err(why)) => ToolOutcome::Failed(why),
            Err(_) => ToolOutcome::Failed("the tool broke down; this is a bug in nanod".into()),
        })
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
