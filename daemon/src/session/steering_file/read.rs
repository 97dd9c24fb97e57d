//! Lines out of one file, with bounded memory whatever it holds.

use std::io;
use std::os::unix::fs::FileExt;

use nano_protocol::MAX_CONTENT;
use sha2::{Digest, Sha256};

use super::place::Source;
use super::{Line, Mark, Scan, line};

/// The longest line.
const MAX_LINE: usize = MAX_CONTENT;
/// So much is read at once; with more than a line, every scan gets on.
const CHUNK: usize = 4 * MAX_LINE;
/// So many lines are returned at once.
const MOST_LINES: usize = 256;
/// So much of a line that is too long is set aside.
const SHOWN: usize = 4096;
/// So many bytes before a position are remembered.
const TAIL: usize = 4096;

/// Appends the lines of `source` to `scan` and moves the mark `index` of its position.
pub fn lines(source: &Source, index: usize, scan: &mut Scan) -> io::Result<()> {
    let mark = scan.position.marks[index];
    let bytes = source.read(mark.offset, CHUNK)?;
    let before = scan.lines.len();
    let mut done = 0;
    while let Some((piece, length, is_whole)) = next_piece(&bytes[done..]) {
        if scan.lines.len() >= MOST_LINES {
            scan.more = true;
            break;
        }
        done += length;
        let mark = &mut scan.position.marks[index];
        let was_skipping = std::mem::replace(&mut mark.skipping, !is_whole);
        mark.advance(length, &bytes[..done]);
        if !was_skipping && !piece.trim_ascii().is_empty() {
            let line = to_line(piece, is_whole, scan);
            scan.lines.push(line);
        }
    }
    scan.more |= bytes.len() == CHUNK;
    if scan.lines.len() > before {
        // What a commit relies on must not vanish from the file when the power does.
        source.file.sync_data()?;
    }
    Ok(())
}

/// Returns the next line without its LF, its length with it, and whether it is whole: what goes on beyond the limit is
/// not. None: there is no LF yet.
fn next_piece(bytes: &[u8]) -> Option<(&[u8], usize, bool)> {
    match bytes.iter().position(|byte| *byte == b'\n') {
        Some(end) => Some((&bytes[..end], end + 1, true)),
        None if bytes.len() > MAX_LINE => Some((bytes, bytes.len(), false)),
        None => None,
    }
}

fn to_line(piece: &[u8], is_whole: bool, scan: &Scan) -> Line {
    let end = scan.position.clone();
    if is_whole && piece.len() <= MAX_LINE {
        return Line { end, raw: String::from_utf8_lossy(piece).into_owned(), parsed: line::parse(piece) };
    }
    let raw = String::from_utf8_lossy(&piece[..SHOWN]).into_owned();
    Line { end, raw, parsed: Err(format!("longer than {MAX_LINE} bytes")) }
}

impl Mark {
    /// Moves by `length` to the end of `bytes`, which lie before the new place.
    fn advance(&mut self, length: usize, bytes: &[u8]) {
        let tail = &bytes[bytes.len().saturating_sub(TAIL)..];
        self.offset += length as u64;
        (self.tail_length, self.tail) = (tail.len() as u64, digest(tail));
    }
}

impl Source {
    /// Returns where to go on: at `mark`, or at the start of a file that is not what the mark was made on.
    pub fn resume(&self, mark: Option<&Mark>) -> io::Result<Mark> {
        let start = Mark::start(self.identity);
        let Some(mark) = mark.filter(|mark| mark.offset <= self.size) else { return Ok(start) };
        let from = mark.offset.saturating_sub(mark.tail_length);
        let tail = self.read(from, usize::try_from(mark.tail_length).unwrap_or(TAIL).min(TAIL))?;
        Ok(if mark.tail_length == 0 || digest(&tail) == mark.tail { *mark } else { start })
    }

    /// Returns whether all that is left beyond `mark` is the beginning of a line.
    pub fn ends_within_a_line(&self, mark: &Mark) -> io::Result<bool> {
        let rest = self.read(mark.offset, MAX_LINE + 1)?;
        Ok(mark.offset + rest.len() as u64 == self.size && !rest.contains(&b'\n'))
    }

    /// Returns at most `length` bytes from `offset`, fewer only at the end of the file.
    pub fn read(&self, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        let left = usize::try_from(self.refreshed_size()?.saturating_sub(offset)).unwrap_or(length);
        let mut bytes = vec![0; length.min(left)];
        let mut filled = 0;
        while filled < bytes.len() {
            match self.file.read_at(&mut bytes[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        bytes.truncate(filled);
        Ok(bytes)
    }

    fn refreshed_size(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }
}

fn digest(bytes: &[u8]) -> u64 {
    let hash = Sha256::digest(bytes);
    hash.iter().take(8).fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}
