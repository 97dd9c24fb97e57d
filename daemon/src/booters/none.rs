//! The booter `none`: a session without a computer. What it declares is exact.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use nano_protocol::id::TaskId;
use tokio_util::sync::CancellationToken;

use super::{BootRequest, Booter, Declared};
use crate::sandbox::{BoxFuture, Capabilities, Command, Report, Sandbox, SandboxError};
use crate::tools::Tool;

/// Boots nothing.
#[derive(Debug)]
pub struct NoneBooter;

impl Booter for NoneBooter {
    fn kind(&self) -> &'static str {
        "none"
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        Vec::new()
    }

    fn declared(&self, _workspace: &Path) -> Declared {
        Declared { fixed: true, ..Declared::default() }
    }

    fn attach<'a>(
        &'a self,
        _request: &'a BootRequest,
        _handle: &'a str,
    ) -> BoxFuture<'a, Result<Arc<dyn Sandbox>, SandboxError>> {
        let sandbox: Arc<dyn Sandbox> = Arc::new(NoneSandbox(Capabilities::Known(BTreeSet::new())));
        Box::pin(std::future::ready(Ok(sandbox)))
    }
}

struct NoneSandbox(Capabilities);

impl Sandbox for NoneSandbox {
    fn capabilities(&self) -> &Capabilities {
        &self.0
    }

    fn run<'a>(&'a self, _: Command, _: &'a CancellationToken) -> BoxFuture<'a, Result<Report, SandboxError>> {
        Box::pin(std::future::ready(Err(SandboxError::Start("this session has no computer".into()))))
    }

    fn end_task<'a>(&'a self, _task: &'a TaskId) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }

    fn shutdown(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}
