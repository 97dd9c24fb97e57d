//! A segment: a file of lines, made with all its room, then given its name.
//!
//! ```text
//! 0000000000000042.jnl = header line, lines 42, 43, …, zeros up to its size
//! ```
//!
//! The first line is a header of the same form as the others. A segment is made only when every line before it is on
//! disk: that it is there says so.

use std::io;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::super::SCHEMA;
use super::super::disk::{DiskFile, Folder};
use super::AppendError;
use super::line::{Line, frame, unframe};

const ENDING: &str = ".jnl";
/// Behind the name of a segment that is being made.
const UNFINISHED: &str = ".jnl.new";
/// How much is read or zeroed at a time.
const BLOCK: usize = 64 * 1024;

/// Returns the name of the segment whose first line is `first`.
pub(super) fn name(first: u64) -> String {
    format!("{first:016}{ENDING}")
}

/// Returns the number of the first line of the segment that is named so.
pub(super) fn first_of(file: &str) -> Option<u64> {
    let first = file.strip_suffix(ENDING)?.parse().ok()?;
    // Numbers go on behind it.
    (name(first) == file && (1..u64::MAX / 2).contains(&first)).then_some(first)
}

/// Tells whether a file is a segment that was being made when the daemon died.
pub(super) fn is_unfinished(file: &str) -> bool {
    file.ends_with(UNFINISHED)
}

/// What a segment says of itself.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Header {
    format: String,
    /// The schema of the store when it was made.
    pub schema: u32,
    first: u64,
}

/// Returns the header of a segment and where it ends; none if it cannot be read.
pub(super) fn header(file: &Arc<dyn DiskFile>) -> Option<(Header, u64)> {
    let chunk = Chunks::new(file.clone()).next().ok().flatten().filter(|chunk| chunk.ended)?;
    let header = serde_json::from_slice(unframe(&chunk.bytes)?).ok()?;
    Some((header, chunk.end))
}

/// Makes a segment of at least `size` bytes; returns it with where its first line goes.
pub(super) fn make(folder: &dyn Folder, first: u64, size: u64) -> Result<(Arc<dyn DiskFile>, u64), AppendError> {
    let unfinished = format!("{first:016}{UNFINISHED}");
    let made = fill(folder, &unfinished, first, size);
    if let Err(AppendError::Write(_)) = made {
        // The room it took may be what the next try needs; if this fails too, opening removes it.
        drop(folder.remove(&unfinished));
    }
    made
}

fn fill(folder: &dyn Folder, unfinished: &str, first: u64, size: u64) -> Result<(Arc<dyn DiskFile>, u64), AppendError> {
    let file = folder.create(unfinished).map_err(AppendError::Write)?;
    let header = Header { format: "nano journal".into(), schema: SCHEMA, first };
    let header = frame(&serde_json::to_string(&header).map_err(io::Error::from).map_err(AppendError::Write)?);
    let begin = header.len() as u64;
    file.write_at(&header, 0).map_err(AppendError::Write)?;
    // Zeros that are written, not a hole: a line that goes there later needs no room and changes no length.
    let zeros = vec![0; BLOCK];
    let mut at = begin;
    while at < size {
        let length = usize::try_from(size - at).unwrap_or(BLOCK).min(BLOCK);
        file.write_at(zeros.get(..length).unwrap_or_default(), at).map_err(AppendError::Write)?;
        at += length as u64;
    }
    file.sync().map_err(AppendError::Sync)?;
    folder.rename(unfinished, &name(first)).map_err(AppendError::Write)?;
    folder.sync().map_err(AppendError::Sync)?;
    Ok((file, begin))
}

/// Bytes up to an end of line.
struct Chunk {
    bytes: Vec<u8>,
    /// Where in the file they end, with the end of line.
    end: u64,
    /// Whether there is an end of line.
    ended: bool,
}

/// The chunks of a file one by one; zeros before a chunk or at the end are passed over.
struct Chunks {
    file: Arc<dyn DiskFile>,
    block: Vec<u8>,
    /// How much of the block is read.
    length: usize,
    /// Where the rest of the block begins, in it and in the file.
    from: usize,
    at: u64,
}

impl Chunks {
    fn new(file: Arc<dyn DiskFile>) -> Self {
        Self { file, block: vec![0; BLOCK], length: 0, from: 0, at: 0 }
    }

    fn next(&mut self) -> io::Result<Option<Chunk>> {
        let mut bytes = Vec::new();
        loop {
            let rest = self.rest()?;
            if rest.is_empty() {
                return Ok((!bytes.is_empty()).then_some(Chunk { bytes, end: self.at, ended: false }));
            }
            let zeros = if bytes.is_empty() { rest.iter().take_while(|byte| **byte == 0).count() } else { 0 };
            let found = if zeros > 0 { None } else { memchr::memchr(b'\n', rest) };
            let length = if zeros > 0 { zeros } else { found.unwrap_or(rest.len()) };
            if zeros == 0 {
                bytes.extend_from_slice(rest.get(..length).unwrap_or_default());
            }
            self.pass(length + usize::from(found.is_some()));
            if found.is_some() {
                return Ok(Some(Chunk { bytes, end: self.at, ended: true }));
            }
        }
    }

    /// Returns what is read and not passed yet; nothing at the end.
    fn rest(&mut self) -> io::Result<&[u8]> {
        if self.from >= self.length {
            self.length = self.file.read_at(&mut self.block, self.at)?;
            self.from = 0;
        }
        Ok(self.block.get(self.from..self.length).unwrap_or_default())
    }

    fn pass(&mut self, length: usize) {
        self.from += length;
        self.at += length as u64;
    }
}

/// A line and where in its segment it ends.
pub(super) struct Placed {
    pub line: Line,
    pub end: u64,
}

/// The lines of one segment that can be read, in rising order of their numbers.
pub(super) struct SegmentLines {
    chunks: Chunks,
    next: u64,
    limit: u64,
    /// Where what was read so far ends, lines or not; zeros do not count.
    pub seen: u64,
}

impl SegmentLines {
    /// Those with a number from `next` on and below `limit`; what has another is left over from what was cut.
    pub fn new(file: Arc<dyn DiskFile>, next: u64, limit: u64) -> Self {
        Self { chunks: Chunks::new(file), next, limit, seen: 0 }
    }

    pub fn next(&mut self) -> io::Result<Option<Placed>> {
        while let Some(chunk) = self.chunks.next()? {
            self.seen = chunk.end;
            let line = if chunk.ended { Line::decode(&chunk.bytes) } else { None };
            if let Some(line) = line.filter(|line| (self.next..self.limit).contains(&line.number)) {
                self.next = line.number + 1;
                return Ok(Some(Placed { line, end: chunk.end }));
            }
        }
        Ok(None)
    }
}
