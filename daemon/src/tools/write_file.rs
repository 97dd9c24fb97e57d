//! `write_file`: a whole file, in one step.

use serde::Deserialize;

use super::Tool;
use super::changing::{ChangingTool, Intended};
use super::intents::before;
use crate::sandbox::workspace::{Workspace, shown};

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
    ChangingTool::new("write_file", description, write)
}

fn write(workspace: &Workspace, args: &Args, intended: &Intended) -> Result<String, String> {
    let mut place = workspace.place(&args.path, true).map_err(|why| why.to_string())?;
    let _turn = place.turn().map_err(|why| why.to_string())?;
    let new = if place.exists() { "" } else { "the new file " };
    let says = format!("wrote {} bytes to {new}{}", args.content.len(), shown(&args.path));
    let (before, contents) = (before(&mut place), args.content.as_bytes());
    intended.record(&place, before, contents, &says)?;
    place.replace(contents).map_err(|why| why.to_string())?;
    Ok(says)
}
