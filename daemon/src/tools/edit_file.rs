//! `edit_file`: one text in place of another; every byte outside the match stays what it was.

use std::io::Read;

use serde::Deserialize;

use super::Tool;
use super::changing::{ChangingTool, Intended};
use super::intents::of_bytes;
use super::replace::{Edit, LARGEST, replace};
use crate::sandbox::workspace::{Workspace, shown};

#[derive(Debug, Deserialize, schemars::JsonSchema)]
struct Args {
    /// The file, relative to the workspace or absolute.
    path: String,
    /// The text to replace, exactly as it stands in the file.
    old_text: String,
    /// What takes its place.
    new_text: String,
    /// Replace every occurrence; otherwise `old_text` must occur once.
    replace_all: Option<bool>,
}

/// Returns the tool.
pub fn tool() -> impl Tool {
    let description = "Replaces a text in a file. old_text must occur exactly once unless replace_all is set; \
                           give enough lines around it.";
    ChangingTool::new("edit_file", description, edit)
}

fn edit(workspace: &Workspace, args: &Args, intended: &Intended) -> Result<String, String> {
    let path = shown(&args.path);
    let mut place = workspace.place(&args.path, false).map_err(|why| why.to_string())?;
    let _turn = place.turn().map_err(|why| why.to_string())?;
    let file = place.open().map_err(|why| why.to_string())?;
    let mut old = Vec::new();
    file.take(LARGEST as u64 + 1).read_to_end(&mut old).map_err(|why| format!("`{path}`: {why}"))?;
    if old.len() > LARGEST {
        return Err(format!("`{path}` is larger than {} MiB; change it with exec", LARGEST >> 20));
    }
    let edit = Edit { old: &args.old_text, new: &args.new_text, all: args.replace_all.unwrap_or(false) };
    let done = replace(&old, &edit).map_err(|why| format!("`{path}` was not changed: {why}"))?;
    let count = done.lines.len();
    let times = if count == 1 { "once".to_owned() } else { format!("{count} times") };
    let says = format!("replaced {times} in {path} ({})", done.places());
    intended.record(&place, Some(of_bytes(&old)), &done.contents, &says)?;
    place.replace(&done.contents).map_err(|why| why.to_string())?;
    Ok(says)
}
