//! `read_file`: some lines of a text file, however large the file is.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek};

use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::Tool;
use super::file_tool::{Cancellable, FileTool};
use crate::sandbox::workspace::{Workspace, shown};

/// The most lines and bytes of one answer.
const LINES: usize = 2000;
const BYTES: usize = 50 * 1024;
/// How much of the beginning tells text from binary.
const LOOK: u64 = 8 * 1024;

#[derive(Debug, Deserialize, schemars::JsonSchema)]
struct Args {
    /// The file, relative to the workspace or absolute.
    path: String,
    /// The first line to read, from 1.
    offset: Option<i64>,
    /// How many lines to read.
    limit: Option<i64>,
}

fn read_lines(workspace: &Workspace, args: &Args, cancel: &CancellationToken) -> Result<String, String> {
    let first = at_least_one("offset", args.offset)?.unwrap_or(1);
    let limit = at_least_one("limit", args.limit)?.unwrap_or(LINES);
    let file = workspace.file(&args.path).map_err(|why| why.to_string())?;
    let named = shown(&args.path);
    read(file, &named, first, limit.min(LINES), cancel).map_err(|why| format!("`{named}`: {why}"))?
}

/// Returns the tool.
pub fn tool() -> impl Tool {
    let description = "Reads a text file: at most 2000 lines or 50 KiB at once. Use offset and limit for more.";
    FileTool::new("read_file", description, read_lines)
}

/// Refuses zero and less, for which there is no meaning.
pub(super) fn at_least_one(name: &str, value: Option<i64>) -> Result<Option<usize>, String> {
    let Some(value) = value else { return Ok(None) };
    match usize::try_from(value) {
        Ok(value) if value > 0 => Ok(Some(value)),
        _ => Err(format!("bad arguments: `{name}` must be 1 or more, not {value}")),
    }
}

fn read(
    mut file: File,
    path: &str,
    first: usize,
    limit: usize,
    cancel: &CancellationToken,
) -> io::Result<Result<String, String>> {
    let size = file.metadata()?.len();
    let mut beginning = Vec::new();
    file.by_ref().take(LOOK).read_to_end(&mut beginning)?;
    if is_binary(&beginning) {
        return Ok(Err(format!("`{path}` is a binary file of {size} bytes and is not shown")));
    }
    file.rewind()?;
    let mut reader = BufReader::with_capacity(64 * 1024, Cancellable(file, cancel.clone()));
    let skipped = skip_lines(&mut reader, first - 1)?;
    if skipped < first - 1 || (first > 1 && reader.fill_buf()?.is_empty()) {
        return Ok(Err(format!("offset {first} is beyond the end: `{path}` has {skipped} lines")));
    }
    let page = Page::read(&mut reader, limit)?;
    if is_binary(&page.bytes) {
        return Ok(Err(format!("`{path}` is a binary file of {size} bytes and is not shown")));
    }
    let more = !reader.fill_buf()?.is_empty();
    Ok(Ok(page.show(first, more)))
}

/// Tells whether `bytes` are no text: a NUL, or more than a tenth that is not UTF-8.
pub(super) fn is_binary(bytes: &[u8]) -> bool {
    let invalid: usize = bytes.utf8_chunks().map(|chunk| chunk.invalid().len()).sum();
    memchr::memchr(0, bytes).is_some() || invalid > 4 + bytes.len() / 10
}

/// Skips so many lines, if there are as many, and returns how many there were.
fn skip_lines(reader: &mut impl BufRead, wanted: usize) -> io::Result<usize> {
    let (mut skipped, mut open) = (0, false);
    while skipped < wanted {
        let buffer = reader.fill_buf()?;
        if buffer.is_empty() {
            // A last line without its LF is a line.
            return Ok(skipped + usize::from(open));
        }
        let used = memchr::memchr(b'\n', buffer).map_or(buffer.len(), |at| at + 1);
        open = buffer.get(used - 1) != Some(&b'\n');
        skipped += usize::from(!open);
        reader.consume(used);
    }
    Ok(skipped)
}

/// What is shown of a file.
struct Page {
    bytes: Vec<u8>,
    lines: usize,
    /// The last line was too long to be shown whole.
    cut: bool,
}

impl Page {
    fn read(reader: &mut impl BufRead, limit: usize) -> io::Result<Self> {
        let mut page = Self { bytes: Vec::new(), lines: 0, cut: false };
        while page.lines < limit {
            let start = page.bytes.len();
            let room = (BYTES - start) as u64;
            let read = reader.by_ref().take(room).read_until(b'\n', &mut page.bytes)?;
            if read == 0 {
                break;
            }
            let whole = page.bytes.ends_with(b"\n") || reader.fill_buf()?.is_empty();
            if !whole && start > 0 {
                // Lines are shown whole: this one begins the next page.
                page.bytes.truncate(start);
                page.cut = false;
                return Ok(page);
            }
            page.lines += 1;
            if !whole {
                page.cut = true;
                break;
            }
        }
        Ok(page)
    }

    fn show(self, first: usize, more: bool) -> String {
        let mut bytes = self.bytes.as_slice();
        if first == 1 {
            bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        }
        if self.cut {
            // The character at the cut may be half there.
            let half = bytes.utf8_chunks().last().map_or(0, |chunk| chunk.invalid().len().min(3));
            bytes = &bytes[..bytes.len() - half];
        }
        let text = String::from_utf8_lossy(bytes).replace("\r\n", "\n");
        let last = first + self.lines - usize::from(self.lines > 0);
        let mut notes = Vec::new();
        if text.is_empty() && !more {
            notes.push("the file is empty".to_owned());
        } else if self.cut {
            notes.push(format!(
                "line {last} is longer than {BYTES} bytes and is cut here; continue with offset={}",
                last + 1
            ));
        } else if more {
            notes.push(format!("lines {first}-{last} of more; continue with offset={}", last + 1));
        } else if first > 1 {
            notes.push(format!("lines {first}-{last}, the end"));
        }
        if std::str::from_utf8(bytes).is_err() {
            notes.push("bytes that are not UTF-8 are shown as \u{fffd}".to_owned());
        }
        with_notes(text, &notes)
    }
}

/// Adds notes in brackets, each a line of its own.
pub(super) fn with_notes(mut text: String, notes: &[String]) -> String {
    for note in notes {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.extend(["[", note, "]\n"]);
    }
    text
}
