//! `list_dir`: what is in a folder.

use rustix::fs::FileType;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::Tool;
use super::file_tool::FileTool;
use super::read_file::{at_least_one, with_notes};
use super::walk::printable;
use crate::sandbox::workspace::{Workspace, entries};

/// How many entries are listed unless more are asked for.
const LIMIT: usize = 500;

#[derive(Debug, Deserialize, schemars::JsonSchema)]
struct Args {
    /// The folder; the workspace unless given.
    path: Option<String>,
    /// How many entries to list.
    limit: Option<i64>,
}

fn list(workspace: &Workspace, args: &Args, _: &CancellationToken) -> Result<String, String> {
    let limit = at_least_one("limit", args.limit)?.unwrap_or(LIMIT).min(4 * LIMIT);
    let mut names = names(workspace, args.path.as_deref().unwrap_or("."))?;
    names.sort_unstable();
    let notes = match names.len() {
        0 => vec!["the folder is empty".to_owned()],
        count if count > limit => vec![format!("{limit} of {count} entries; set limit for more, up to {}", 4 * LIMIT)],
        _ => Vec::new(),
    };
    names.truncate(limit);
    Ok(with_notes(names.join("\n"), &notes))
}

/// Returns the tool.
pub fn tool() -> impl Tool {
    let description = "Lists a folder by name, hidden entries too: folders end in /, links in @.";
    FileTool::new("list_dir", description, list)
}

fn names(workspace: &Workspace, path: &str) -> Result<Vec<String>, String> {
    let folder = workspace.folder(path).map_err(|why| why.to_string())?.0;
    let entries = entries(&folder, usize::MAX).map_err(|why| why.to_string())?;
    let mark = |kind| match kind {
        FileType::Directory => "/",
        FileType::Symlink => "@",
        _ => "",
    };
    Ok(entries.into_iter().map(|(name, kind)| printable(&name.to_string_lossy()) + mark(kind)).collect())
}
