//! The bytes of a file as text and as lines; LF, CRLF and CR all end a line.

use std::borrow::Cow;

/// What stands before the text of some files, and is none of it.
pub const BOM: char = '\u{feff}';

/// The text of a file, without a byte order mark.
pub struct Source<'a> {
    /// The text; what is no UTF-8 stands as U+FFFD.
    pub text: Cow<'a, str>,
    /// How many bytes of byte order marks stood before it.
    pub mark: usize,
    /// The first byte of the text that is no UTF-8; up to there, text and file agree.
    pub bad: Option<usize>,
}

/// One line, without its end.
#[derive(Debug, Clone, Copy)]
pub struct Line<'a> {
    /// Where it begins in the text, in bytes.
    pub start: usize,
    /// What stands in it.
    pub text: &'a str,
}

impl<'a> Source<'a> {
    /// Reads bytes as text.
    pub fn decode(mut bytes: &'a [u8]) -> Self {
        let whole = bytes.len();
        while let Some(rest) = bytes.strip_prefix(BOM.to_string().as_bytes()) {
            bytes = rest;
        }
        let bad = str::from_utf8(bytes).err().map(|error| error.valid_up_to());
        Self { text: String::from_utf8_lossy(bytes), mark: whole - bytes.len(), bad }
    }
}

/// Returns the lines of `text`; nothing after the last end of line is no line.
pub fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let rest = text.get(start..).filter(|rest| !rest.is_empty())?;
        let length = rest.find(['\n', '\r']).unwrap_or(rest.len());
        let (line, end) = rest.split_at(length);
        let found = Line { start, text: line };
        start += length + if end.starts_with("\r\n") { 2 } else { usize::from(!end.is_empty()) };
        Some(found)
    })
}

/// Returns `text` with LF alone at its lines' ends.
pub fn with_line_feeds(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

/// Returns the place of byte `offset` of `text`.
pub fn place(text: &str, offset: usize) -> (usize, usize) {
    let before = with_line_feeds(text.get(..offset).unwrap_or(text));
    let line = before.rfind('\n').map_or(0, |end| end + 1);
    (before.matches('\n').count() + 1, before[line..].chars().count() + 1)
}
