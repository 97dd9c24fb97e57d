//! `grep`: lines that match a regular expression.

use std::ops::ControlFlow;

use globset::{GlobBuilder, GlobMatcher};
use grep_regex::RegexMatcher;
use rustix::fs::FileType;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::Tool;
use super::file_tool::FileTool;
use super::read_file::at_least_one;
use super::walk::{Found, walk};
use crate::sandbox::workspace::Workspace;

/// How many matches are shown unless told otherwise, and the most lines around each.
const LIMIT: usize = 100;
const CONTEXT: i64 = 20;

#[derive(Debug, Deserialize, schemars::JsonSchema)]
struct Args {
    /// The regular expression; (?i) at its beginning ignores case.
    pattern: String,
    /// A file or folder; the workspace unless given.
    path: Option<String>,
    /// Only files whose name, or with a / in it whose path, matches, such as *.rs or src/**/*.ts.
    glob: Option<String>,
    /// How many lines to show around each match, up to 20.
    context: Option<i64>,
    /// How many matches to show.
    limit: Option<i64>,
}

/// Returns the tool.
pub fn tool() -> impl Tool {
    let description = "Searches files for lines that match a regular expression. Honours .gitignore and skips \
                           binary files; prints file:line: text.";
    FileTool::new("grep", description, grep)
}

fn grep(workspace: &Workspace, args: &Args, cancel: &CancellationToken) -> Result<String, String> {
    let limit = at_least_one("limit", args.limit)?.unwrap_or(LIMIT);
    let context = usize::try_from(args.context.unwrap_or(0).min(CONTEXT))
        .map_err(|_| "bad arguments: `context` must be 0 or more".to_owned())?;
    let matcher = RegexMatcher::new_line_matcher(&args.pattern).map_err(|why| format!("bad pattern: {why}"))?;
    let glob = args.glob.as_deref().map(glob).transpose()?;
    let (target, _) = workspace.find(args.path.as_deref().unwrap_or(".")).map_err(|why| why.to_string())?;
    let mut found = Found::new(limit, context);
    walk(workspace, &target, cancel, |path, kind| {
        let wanted = |glob: &GlobMatcher| glob.is_match(path.strip_prefix(&target).unwrap_or(path));
        // A file that was named is searched whatever the glob says of it.
        if kind == FileType::RegularFile && (path == target || glob.as_ref().is_none_or(wanted)) {
            found.search(workspace, path, &matcher, cancel);
        }
        if found.full() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    if cancel.is_cancelled() { Err(found.answer()) } else { Ok(found.answer()) }
}

/// Compiles a glob; without a `/` it means the name, in whatever folder.
fn glob(text: &str) -> Result<GlobMatcher, String> {
    let anywhere = if text.contains('/') { text.trim_start_matches('/').to_owned() } else { format!("**/{text}") };
    let glob = GlobBuilder::new(&anywhere).literal_separator(true).build();
    Ok(glob.map_err(|why| format!("bad glob: {why}"))?.compile_matcher())
}
