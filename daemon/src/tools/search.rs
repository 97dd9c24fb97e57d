//! `search`: a plain text, sought in the names and the contents of files.

use std::ops::ControlFlow;

use grep_regex::RegexMatcherBuilder;
use rustix::fs::FileType;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::Tool;
use super::file_tool::FileTool;
use super::read_file::at_least_one;
use super::walk::{Found, printable, walk};
use crate::sandbox::workspace::Workspace;

/// How many matches are shown unless told otherwise.
const LIMIT: usize = 100;

#[derive(Debug, Deserialize, schemars::JsonSchema)]
struct Args {
    /// The text, taken literally.
    query: String,
    /// A file or folder; the workspace unless given.
    path: Option<String>,
    /// How many matches to show.
    limit: Option<i64>,
}

/// Returns the tool.
pub fn tool() -> impl Tool {
    let description = "Searches the names and the contents of files for a text, taken literally. Honours \
                           .gitignore and skips binary files; prints the path, or file:line: text.";
    FileTool::new("search", description, search)
}

fn search(workspace: &Workspace, args: &Args, cancel: &CancellationToken) -> Result<String, String> {
    if args.query.is_empty() || args.query.contains('\n') {
        return Err("bad arguments: `query` must be one line of text".into());
    }
    let limit = at_least_one("limit", args.limit)?.unwrap_or(LIMIT);
    let matcher = RegexMatcherBuilder::new().fixed_strings(true).line_terminator(Some(b'\n')).build(&args.query);
    let matcher = matcher.map_err(|why| format!("bad query: {why}"))?;
    let (target, _) = workspace.find(args.path.as_deref().unwrap_or(".")).map_err(|why| why.to_string())?;
    let mut found = Found::new(limit, 0);
    walk(workspace, &target, cancel, |path, kind| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path != target && name.contains(&args.query) {
            found.push(&printable(&workspace.relative(path).to_string_lossy()));
        }
        if !found.full() && kind == FileType::RegularFile {
            found.search(workspace, path, &matcher, cancel);
        }
        if found.full() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    if cancel.is_cancelled() { Err(found.answer()) } else { Ok(found.answer()) }
}
