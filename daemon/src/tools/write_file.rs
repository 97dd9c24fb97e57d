//! `write_file`: a whole file, in one step.

use nano_protocol::Object;
use serde::Deserialize;

use super::blocking::{blocking, file_tool};
use super::{Tool, ToolContext, ToolFault, ToolOutcome, ToolSpec, schema};
use crate::sandbox::BoxFuture;
use crate::sandbox::workspace::{PathError, Workspace, shown};

/// Writes whole files.
#[derive(Debug)]
pub struct WriteFile(ToolSpec);

#[derive(Debug, Deserialize, schemars::JsonSchema)]
struct Args {
    /// The file, relative to the workspace or absolute; missing folders are made.
    path: String,
    /// The whole contents.
    content: String,
}

impl Default for WriteFile {
    fn default() -> Self {
        let description = "Writes a file, replacing what it held. Use edit_file to change a part of one.";
        Self(file_tool("write_file", description, schema::schema::<Args>(), false))
    }
}

impl Tool for WriteFile {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        arguments: Object,
    ) -> BoxFuture<'a, Result<ToolOutcome, ToolFault>> {
        blocking(context, move |workspace, _| {
            let args: Args = schema::decode(arguments)?;
            write(workspace, &args).map_err(|why| why.to_string())
        })
    }
}

fn write(workspace: &Workspace, args: &Args) -> Result<String, PathError> {
    let place = workspace.place(&args.path, true)?;
    let _turn = place.turn()?;
    place.replace(args.content.as_bytes())?;
    let new = if place.exists() { "" } else { "the new file " };
    Ok(format!("wrote {} bytes to {new}{}", args.content.len(), shown(&args.path)))
}
