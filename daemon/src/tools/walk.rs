//! Walking a folder for `grep` and `search`, and collecting the lines they found.
//!
//! Links are not followed, and each file is opened beneath the workspace. `.gitignore` counts from the workspace
//! downwards, in a repository or not; what is asked for by name is searched even if it is ignored.

use std::io::Read;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use grep_regex::RegexMatcher;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::FileType;
use tokio_util::sync::CancellationToken;

use super::file_tool::Cancellable;
use super::read_file::with_notes;
use crate::sandbox::workspace::{Workspace, entries};

/// The longest line that is shown whole, in characters.
const LINE: usize = 500;
/// The longest answer, in bytes.
const BYTES: usize = 50 * 1024;
/// The longest line that is searched, in bytes: one is held in memory.
const HEAP: usize = 8 * 1024 * 1024;
/// As much of a `.gitignore` is read, in bytes.
const IGNORE_FILE: u64 = 1024 * 1024;

/// Calls `visit` for everything at or below `target` in order of names, until it breaks or the token fires.
pub fn walk(
    workspace: &Workspace,
    target: &Path,
    cancel: &CancellationToken,
    mut visit: impl FnMut(&Path, FileType) -> ControlFlow<()>,
) {
    let root = if target.starts_with(workspace.path()) { workspace.path() } else { target };
    let mut walker = Walker { workspace, target, cancel, visit: &mut visit, ignores: Vec::new() };
    let walked = match workspace.find(&root.to_string_lossy()) {
        Ok((_, false)) => walker.entry(root, FileType::RegularFile),
        _ => walker.folder(root),
    };
    // How far it came does not matter: the visitor knows what it has.
    walked.break_value();
}

struct Walker<'a> {
    workspace: &'a Workspace,
    target: &'a Path,
    cancel: &'a CancellationToken,
    visit: &'a mut dyn FnMut(&Path, FileType) -> ControlFlow<()>,
    /// The rules of the folders from the root to here.
    ignores: Vec<Gitignore>,
}

impl Walker<'_> {
    fn folder(&mut self, folder: &Path) -> ControlFlow<()> {
        let Ok(opened) = self.workspace.folder_at("", folder) else { return ControlFlow::Continue(()) };
        let mut entries = entries(&opened, usize::MAX).unwrap_or_default();
        entries.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        self.ignores.push(self.rules(folder));
        let walked = entries.into_iter().try_for_each(|(name, kind)| self.entry(&folder.join(name), kind));
        self.ignores.pop();
        walked
    }

    fn entry(&mut self, path: &Path, kind: FileType) -> ControlFlow<()> {
        if self.cancel.is_cancelled() {
            return ControlFlow::Break(());
        }
        let (asked_for, below) = (self.target.starts_with(path), path.starts_with(self.target));
        if !asked_for && (!below || path.ends_with(".git") || self.ignored(path, kind)) {
            return ControlFlow::Continue(());
        }
        if below {
            (self.visit)(path, kind)?;
        }
        if kind == FileType::Directory { self.folder(path) } else { ControlFlow::Continue(()) }
    }

    /// Tells whether the innermost rule that knows `path` ignores it.
    fn ignored(&self, path: &Path, kind: FileType) -> bool {
        let matched = self.ignores.iter().rev().map(|rules| rules.matched(path, kind == FileType::Directory));
        matched.into_iter().find(|one| !one.is_none()).is_some_and(|one| one.is_ignore())
    }

    /// Reads a `.gitignore` like any file that somebody else may have laid there: regular, inside, bounded.
    fn rules(&self, folder: &Path) -> Gitignore {
        let file: PathBuf = folder.join(".gitignore");
        let mut text = Vec::new();
        if let Ok(file) = self.workspace.file_at("", &file) {
            // What could be read counts.
            file.take(IGNORE_FILE).read_to_end(&mut text).ok();
        }
        let mut builder = GitignoreBuilder::new(folder);
        for line in String::from_utf8_lossy(&text).lines() {
            // A line that git would not understand either is none.
            builder.add_line(None, line).ok();
        }
        builder.build().unwrap_or_else(|_| Gitignore::empty())
    }
}

/// Lines found so far, within the limits.
#[derive(Debug)]
pub struct Found {
    text: String,
    count: usize,
    limit: usize,
    context: usize,
    too_long: usize,
}

impl Found {
    /// Starts with nothing; takes up to `limit` matches with `context` lines around each.
    pub fn new(limit: usize, context: usize) -> Self {
        Self { text: String::new(), count: 0, limit, context, too_long: 0 }
    }

    /// Tells whether nothing more is taken.
    pub fn full(&self) -> bool {
        self.count >= self.limit || self.text.len() >= BYTES
    }

    /// Takes a match that is no line of a file.
    pub fn push(&mut self, line: &str) {
        self.count += 1;
        self.add(line);
    }

    /// Searches one file; one that cannot be read or is binary has no matches.
    pub fn search(&mut self, workspace: &Workspace, path: &Path, matcher: &RegexMatcher, cancel: &CancellationToken) {
        let Ok(file) = workspace.file_at("", path) else { return };
        let mut searcher = SearcherBuilder::new()
            .binary_detection(BinaryDetection::quit(0))
            .line_number(true)
            .before_context(self.context)
            .after_context(self.context)
            .heap_limit(Some(HEAP))
            .max_matches(Some((self.limit - self.count) as u64))
            .build();
        let name = printable(&workspace.relative(path).to_string_lossy());
        if self.context > 0 && !self.text.is_empty() {
            self.text.push_str("--\n");
        }
        let before = self.text.len();
        let sink = Lines { found: self, name };
        let failed = searcher.search_reader(matcher, Cancellable(file, cancel.clone()), sink).is_err();
        self.too_long += usize::from(failed && !cancel.is_cancelled());
        if self.text.len() == before && self.context > 0 {
            self.text.truncate(before.saturating_sub("--\n".len()));
        }
    }

    /// Returns the answer.
    pub fn answer(self) -> String {
        let mut notes = Vec::new();
        if self.text.is_empty() {
            notes.push("no matches".to_owned());
        } else if self.full() {
            notes.push(format!("stopped after {} matches; narrow the search or set limit", self.count));
        }
        if self.too_long > 0 {
            notes.push(format!("{} files could not be searched to their end", self.too_long));
        }
        with_notes(self.text, &notes)
    }

    fn add(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }
}

struct Lines<'a> {
    found: &'a mut Found,
    name: String,
}

impl Sink for Lines<'_> {
    type Error = std::io::Error;

    fn matched(&mut self, _: &Searcher, matched: &SinkMatch<'_>) -> Result<bool, Self::Error> {
        let line = clip(matched.bytes());
        self.found.push(&format!("{}:{}: {line}", self.name, matched.line_number().unwrap_or(0)));
        Ok(self.found.text.len() < BYTES)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> Result<bool, Self::Error> {
        let line = clip(context.bytes());
        self.found.add(&format!("{}-{}- {line}", self.name, context.line_number().unwrap_or(0)));
        Ok(self.found.text.len() < BYTES)
    }

    fn context_break(&mut self, _: &Searcher) -> Result<bool, Self::Error> {
        self.found.add("--");
        Ok(true)
    }
}

fn clip(line: &[u8]) -> String {
    let line = printable(String::from_utf8_lossy(line).trim_end_matches(['\r', '\n']));
    match line.char_indices().nth(LINE) {
        Some((at, _)) => format!("{} [… line cut]", &line[..at]),
        None => line,
    }
}

/// Returns `text` without control characters: a name must not look like two lines.
pub fn printable(text: &str) -> String {
    text.chars().map(|one| if one.is_control() && one != '\t' { '\u{fffd}' } else { one }).collect()
}
