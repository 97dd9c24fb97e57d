//! What a background process has printed, piece by piece: of the file, or of what is known where the file ends early.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;

use crate::sandbox::text::{readable, whole_characters, whole_lines_after, whole_lines_before};

/// The most bytes of a piece.
const MOST: usize = 16 * 1024;
/// So many lines of the end are shown unless told.
const LINES: usize = 200;

/// Which piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// From this byte on.
    From(u64),
    /// The last lines.
    Tail(usize),
}

impl Part {
    /// Returns what is meant, the offset first.
    pub fn new(offset: Option<u64>, tail: Option<usize>) -> Self {
        offset.map_or(Self::Tail(tail.unwrap_or(LINES)), Self::From)
    }
}

/// A piece as it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The text.
    pub text: String,
    /// At which byte it begins.
    pub from: u64,
    /// At which byte the next one begins.
    pub next: u64,
    /// How many bytes there are.
    pub bytes: u64,
}

/// Where all that was printed is.
#[derive(Debug, Clone)]
pub(super) struct Printed {
    /// The file; it may end early, on a full disk or at its largest.
    pub file: PathBuf,
    pub bytes: u64,
    /// The first and the last bytes, as far as they are known.
    pub head: Vec<u8>,
    pub tail: Vec<u8>,
    /// Whether no more comes.
    pub is_over: bool,
}

impl Printed {
    /// Reads a piece.
    pub(super) fn page(&self, part: Part) -> Page {
        match part {
            Part::From(offset) => self.from(offset.min(self.bytes)),
            Part::Tail(lines) => self.tail(lines),
        }
    }

    /// Returns the last bytes, as far as they are known.
    pub(super) fn last(&self) -> Vec<u8> {
        let whole = self.bytes == (self.head.len() + self.tail.len()) as u64;
        if whole { [self.head.as_slice(), &self.tail].concat() } else { self.tail.clone() }
    }

    fn from(&self, offset: u64) -> Page {
        let (from, raw) = self.read(offset);
        let skipped =
            if from == 0 { 0 } else { raw.iter().take(3).take_while(|byte| (0x80..0xC0).contains(*byte)).count() };
        let whole = &raw[skipped.min(raw.len())..];
        let last = from + raw.len() as u64 >= self.bytes;
        let shown = match (last, self.is_over) {
            (true, true) => whole,
            (true, false) => whole_characters(whole),
            (false, _) => whole_lines_before(whole),
        };
        let gap = if from > offset { format!("[bytes {offset} to {from} are not kept]\n") } else { String::new() };
        let from = from + skipped as u64;
        let next = from + shown.len() as u64;
        Page { text: gap + &readable(shown), from, next, bytes: self.bytes }
    }

    fn tail(&self, lines: usize) -> Page {
        let start = self.bytes.saturating_sub(MOST as u64);
        let (from, raw) = self.read(start);
        let whole = if from == 0 { &raw[..] } else { whole_lines_after(&raw) };
        let mut ends = memchr::memrchr_iter(b'\n', whole.strip_suffix(b"\n").unwrap_or(whole));
        let begin = lines.checked_sub(1).map_or(whole.len(), |before| ends.nth(before).map_or(0, |at| at + 1));
        let shown = &whole[begin..];
        let shown = if self.is_over { shown } else { whole_characters(shown) };
        let from = from + (raw.len() - whole.len() + begin) as u64;
        Page { text: readable(shown), from, next: from + shown.len() as u64, bytes: self.bytes }
    }

    /// Returns bytes from `offset` on, or from where the next known ones are, and where that is.
    fn read(&self, offset: u64) -> (u64, Vec<u8>) {
        let most = |raw: &[u8], from: usize| raw[from..raw.len().min(from + MOST)].to_vec();
        let from_file = self.read_file(offset).unwrap_or_default();
        if !from_file.is_empty() {
            return (offset, from_file);
        }
        let within = usize::try_from(offset).unwrap_or(usize::MAX);
        if within < self.head.len() {
            return (offset, most(&self.head, within));
        }
        let begins = self.bytes.saturating_sub(self.tail.len() as u64);
        let from = offset.max(begins);
        (from, most(&self.tail, usize::try_from(from - begins).unwrap_or(usize::MAX).min(self.tail.len())))
    }

    fn read_file(&self, offset: u64) -> std::io::Result<Vec<u8>> {
        let mut file = File::open(&self.file)?;
        file.seek(SeekFrom::Start(offset))?;
        let mut raw = Vec::new();
        let most = self.bytes.saturating_sub(offset).min(MOST as u64);
        file.take(most).read_to_end(&mut raw)?;
        Ok(raw)
    }
}

#[cfg(test)]
mod tests {
    use super::{MOST, Page, Part, Printed};

    fn printed(name: &str, file: &[u8], all: &[u8], is_over: bool) -> Printed {
        let path = std::env::temp_dir().join(format!("nano-log-{}-{name}", std::process::id()));
        assert!(std::fs::write(&path, file).is_ok());
        let (head, tail) = (all[..all.len().min(4)].to_vec(), all[all.len().saturating_sub(6)..].to_vec());
        Printed { file: path, bytes: all.len() as u64, head, tail, is_over }
    }

    #[test]
    fn pieces() {
        let all = "eins\nzwei\nfünf\n\u{1b}[1mlast".as_bytes();
        let text = |part, is_over| {
            let printed = printed("pieces", all, all, is_over);
            let page = printed.page(part);
            assert!(std::fs::remove_file(&printed.file).is_ok());
            (page.text, page.from, page.next)
        };
        let end = all.len() as u64;
        for (part, expected, from) in [
            (Part::new(None, None), "eins\nzwei\nfünf\nlast", 0),
            (Part::Tail(1), "last", 16),
            (Part::Tail(2), "fünf\nlast", 10),
            (Part::Tail(0), "", end),
            (Part::From(5), "zwei\nfünf\nlast", 5),
            (Part::From(end), "", end),
            (Part::From(u64::MAX), "", end),
            // In the midst of a character.
            (Part::From(12), "nf\nlast", 13),
        ] {
            assert_eq!(text(part, true), (expected.into(), from, end), "{part:?}");
        }
    }

    #[test]
    fn a_character_that_is_not_whole_yet_waits() {
        let all = &"aü".as_bytes()[..2];
        let (open, over) = (printed("open", all, all, false), printed("over", all, all, true));
        for part in [Part::From(0), Part::Tail(9)] {
            assert_eq!(open.page(part), Page { text: "a".into(), from: 0, next: 1, bytes: 2 });
            assert_eq!(over.page(part), Page { text: "a\u{fffd}".into(), from: 0, next: 2, bytes: 2 });
        }
        assert!(std::fs::remove_file(&open.file).and_then(|()| std::fs::remove_file(&over.file)).is_ok());
    }

    #[test]
    fn what_the_file_lacks_comes_from_what_is_known() {
        let all = b"0123456789abcdef";
        let cut = printed("cut", &all[..5], all, true);
        assert_eq!(cut.page(Part::From(3)), Page { text: "34".into(), from: 3, next: 5, bytes: 16 });
        let gap = "[bytes 5 to 10 are not kept]\nabcdef".to_owned();
        assert_eq!(cut.page(Part::From(5)), Page { text: gap, from: 10, next: 16, bytes: 16 });
        assert!(std::fs::remove_file(&cut.file).is_ok());
        assert_eq!(cut.page(Part::From(1)).text, "123", "the head");
    }

    #[test]
    fn piece_after_piece_is_all_of_it() {
        let all = (0..20_000).map(|n| format!("{n} é\n")).collect::<Vec<_>>().concat();
        for (name, all) in [("lines", all), ("line", "é".repeat(30_000))] {
            let printed = printed(name, all.as_bytes(), all.as_bytes(), true);
            let (mut at, mut read) = (0, String::new());
            while at < printed.bytes {
                let page = printed.page(Part::From(at));
                assert!(page.from == at && page.next > at && page.text.len() <= MOST, "{name}");
                (at, read) = (page.next, read + &page.text);
            }
            assert!(read == all, "{name}");
            assert!(std::fs::remove_file(&printed.file).is_ok());
        }
    }
}
