//! `write_file`: a whole file, in one step.

use serde::Deserialize;

use super::Tool;
use super::file_tool::FileTool;
use crate::sandbox::workspace::{PathError, Workspace, shown};

#[derive(Debug, Deserialize, schemars::JsonSchema)]
struct Args {
    /// The file, relative to the workspace or absolute; missing folders are made.
    path: String,
    /// The whole contents.
    content: String,
}

/// Returns the tool.
pub fn tool() -> impl Tool {
    let description = "Writes a file, replacing what it held. Use edit_file to change a part of one.";
    FileTool::new("write_file", description, false, |workspace, args, _| {
        write(workspace, args).map_err(|why| why.to_string())
    })
}

fn write(workspace: &Workspace, args: &Args) -> Result<String, PathError> {
    let place = workspace.place(&args.path, true)?;
    let _turn = place.turn()?;
    place.replace(args.content.as_bytes())?;
    let new = if place.exists() { "" } else { "the new file " };
    Ok(format!("wrote {} bytes to {new}{}", args.content.len(), shown(&args.path)))
}
