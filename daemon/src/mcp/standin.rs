//! What stands for a server whose tools are not known, or for a tool that cannot be had: it says why.

use std::sync::Arc;

use nano_protocol::Object;

use crate::sandbox::BoxFuture;
use crate::tools::{Tool, ToolContext, ToolFault, ToolOutcome, ToolSpec};

struct StandIn {
    spec: ToolSpec,
    why: Option<String>,
}

/// Returns what stands for all tools of a server; without a reason it counts as offered.
pub fn standin(server: &str, why: Option<&str>) -> Arc<dyn Tool> {
    barred(server, format!("{}*", super::names::prefix(server)), why.map(str::to_owned))
}

/// Returns what stands for one tool, or for all where `name` ends with `*`.
pub(super) fn barred(server: &str, name: String, why: Option<String>) -> Arc<dyn Tool> {
    let source = format!("mcp:{server}").into();
    let (description, input_schema) = ("".into(), Object::new());
    let spec = ToolSpec { name: name.into(), description, input_schema, source, requires: &[], read_only: false };
    Arc::new(StandIn { spec, why })
}

/// Returns the server that a tool is of.
pub fn server_of(tool: &dyn Tool) -> Option<&str> {
    tool.spec().source.strip_prefix("mcp:")
}

impl Tool for StandIn {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn barred(&self) -> Option<String> {
        self.why.clone()
    }

    fn call<'a>(&'a self, _: &'a ToolContext, _: Object) -> BoxFuture<'a, Result<ToolOutcome, ToolFault>> {
        let why = self.why.clone().unwrap_or_else(|| "it is not known yet".into());
        Box::pin(std::future::ready(Ok(ToolOutcome::Failed(why))))
    }
}
