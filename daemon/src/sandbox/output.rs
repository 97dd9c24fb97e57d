//! What a program printed: head and tail in memory, the whole in a file once something had to be left out.

use std::collections::VecDeque;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// How many bytes of the beginning are kept.
pub const HEAD: usize = 10 * 1024;
/// How many bytes of the end are kept.
pub const TAIL: usize = 40 * 1024;
/// The longest line that is shown whole.
const LINE: usize = 4 * 1024;
/// The most that goes into the file.
const SPILL: u64 = 64 * 1024 * 1024;

/// Collects output in bounded memory.
#[derive(Debug)]
pub struct Output {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
    path: PathBuf,
    spill: Spill,
    spill_always: bool,
}

#[derive(Debug)]
enum Spill {
    /// Nothing was left out yet.
    Unneeded,
    Open(File),
    /// It is somewhere else, and nothing had to be left out yet.
    Offered,
    /// It is somewhere else.
    Elsewhere,
    /// The file ends early, for this reason.
    Partial(String),
}

impl Output {
    /// Starts to collect; `path` is where the whole goes once that is needed.
    pub fn new(path: PathBuf) -> Self {
        Self { head: Vec::new(), tail: VecDeque::new(), total: 0, path, spill: Spill::Unneeded, spill_always: false }
    }

    /// Makes one of `total` bytes that were printed in another computer, where `path` holds them all; `head` and `tail`
    /// are what is known of them here.
    pub fn elsewhere(path: PathBuf, head: &[u8], tail: &[u8], total: u64) -> Self {
        let cut = total > (head.len() + tail.len()) as u64;
        let spill = if cut { Spill::Elsewhere } else { Spill::Offered };
        let (head, tail) = (head.to_vec(), tail.iter().copied().collect());
        Self { head, tail, total, path, spill, spill_always: false }
    }

    /// Takes the next piece.
    pub fn push(&mut self, piece: &[u8]) {
        if self.total + piece.len() as u64 > (HEAD + TAIL) as u64 || self.spill_always {
            self.open_spill();
        }
        self.write_spill(piece);
        self.total += piece.len() as u64;
        let (first, rest) = piece.split_at(piece.len().min(HEAD - self.head.len()));
        self.head.extend_from_slice(first);
        self.tail.extend(&rest[rest.len().saturating_sub(TAIL)..]);
        self.tail.drain(..self.tail.len().saturating_sub(TAIL));
    }

    /// Has all that comes from now on written to the file, and returns where that is, unless the file is at its end.
    pub fn keep_the_rest(&mut self) -> Option<PathBuf> {
        self.spill_always = true;
        (!matches!(self.spill, Spill::Partial(_))).then(|| self.path.clone())
    }

    /// Returns the readable text, and the file if it holds all of what the text does not.
    pub fn render(&mut self) -> (String, Option<PathBuf>) {
        let left_out = self.total.saturating_sub((self.head.len() + self.tail.len()) as u64);
        let tail: Vec<u8> = self.tail.iter().copied().collect();
        let (text, clipped) = if left_out == 0 {
            clip_lines(&readable(&[self.head.as_slice(), &tail].concat()))
        } else {
            let (head, head_clipped) = clip_lines(&readable(whole_lines_before(&self.head)));
            let (tail, tail_clipped) = clip_lines(&readable(whole_lines_after(&tail)));
            let note = format!("[… {left_out} bytes left out; {} …]", self.whereabouts());
            (format!("{}\n{note}\n{tail}", head.trim_end_matches('\n')), head_clipped || tail_clipped)
        };
        if !clipped {
            return (text, self.complete());
        }
        self.open_spill();
        (format!("{}\n[long lines were cut; {}]\n", text.trim_end_matches('\n'), self.whereabouts()), self.complete())
    }

    fn complete(&self) -> Option<PathBuf> {
        matches!(self.spill, Spill::Open(_) | Spill::Elsewhere).then(|| self.path.clone())
    }

    fn whereabouts(&self) -> String {
        match &self.spill {
            Spill::Open(_) | Spill::Elsewhere => format!("the whole output is in {}", self.path.display()),
            Spill::Partial(why) => format!("{} is not the whole output: {why}", self.path.display()),
            Spill::Unneeded | Spill::Offered => String::new(),
        }
    }

    /// Opens the file and writes what came so far, which is all still in memory.
    fn open_spill(&mut self) {
        match self.spill {
            Spill::Unneeded => {}
            Spill::Offered => {
                self.spill = Spill::Elsewhere;
                return;
            }
            Spill::Open(_) | Spill::Elsewhere | Spill::Partial(_) => return,
        }
        let so_far = [self.head.as_slice(), self.tail.make_contiguous()].concat();
        self.spill = match create(&self.path).and_then(|mut file| file.write_all(&so_far).map(|()| file)) {
            Ok(file) => Spill::Open(file),
            Err(why) => Spill::Partial(why.to_string()),
        };
    }

    fn write_spill(&mut self, piece: &[u8]) {
        let Spill::Open(file) = &mut self.spill else { return };
        let room = usize::try_from(SPILL.saturating_sub(self.total)).unwrap_or(0).min(piece.len());
        // A full disk ends the file, not the command.
        if let Err(why) = file.write_all(&piece[..room]) {
            self.spill = Spill::Partial(why.to_string());
        } else if room < piece.len() {
            self.spill = Spill::Partial(format!("it holds the first {} MiB", SPILL >> 20));
        }
    }
}

fn create(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// Cuts at the last line's end, if that is near, else at the last whole character.
fn whole_lines_before(head: &[u8]) -> &[u8] {
    let from = head.len().saturating_sub(LINE);
    match memchr::memrchr(b'\n', &head[from..]) {
        Some(at) => &head[..=from + at],
        None => &head[..head.len() - head.utf8_chunks().last().map_or(0, |chunk| unfinished(chunk.invalid()))],
    }
}

/// Returns the length of a character that was cut in the middle; anything else invalid stays visible.
fn unfinished(invalid: &[u8]) -> usize {
    if std::str::from_utf8(invalid).is_err_and(|why| why.error_len().is_none()) { invalid.len() } else { 0 }
}

/// Begins after the first line's end, if that is near, else at the first whole character.
fn whole_lines_after(tail: &[u8]) -> &[u8] {
    match memchr::memchr(b'\n', &tail[..tail.len().min(LINE)]) {
        Some(at) => &tail[at + 1..],
        None => &tail[tail.iter().take(3).take_while(|byte| (0x80..0xC0).contains(*byte)).count()..],
    }
}

/// Returns `raw` as text without escape sequences and control characters, but for LF and tab.
pub fn readable(raw: &[u8]) -> String {
    let text = String::from_utf8_lossy(raw).replace("\r\n", "\n");
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(one) = chars.next() {
        match one {
            '\u{1b}' => skip_escape(&mut chars),
            '\u{9b}' => skip_until_final(&mut chars),
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => skip_string(&mut chars),
            // A lone CR draws over the line; kept as a line of its own it can be read.
            '\r' => out.push('\n'),
            '\n' | '\t' => out.push(one),
            _ if one.is_control() || is_format(one) => {}
            _ => out.push(one),
        }
    }
    out
}

/// Marks that are not seen but change how the rest is shown or read: text direction, annotations.
fn is_format(one: char) -> bool {
    matches!(one, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{fff9}'..='\u{fffb}')
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn skip_escape(chars: &mut Chars) {
    match chars.peek() {
        Some('[') => {
            chars.next();
            skip_until_final(chars);
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            chars.next();
            skip_string(chars);
        }
        // Others: any intermediates, then one final character.
        Some(' '..='~') => {
            while chars.next_if(|one| (' '..='/').contains(one)).is_some() {}
            chars.next_if(|one| ('0'..='~').contains(one));
        }
        _ => {}
    }
}

/// Skips the parameters of a control sequence and its last character.
fn skip_until_final(chars: &mut Chars) {
    while chars.next_if(|one| (' '..='?').contains(one)).is_some() {}
    chars.next_if(|one| ('@'..='~').contains(one));
}

/// Skips to the end of a control string, which a line's end closes too: the rest must not vanish.
fn skip_string(chars: &mut Chars) {
    while let Some(one) = chars.next_if(|one| *one != '\n') {
        match one {
            '\u{7}' | '\u{9c}' => return,
            '\u{1b}' => {
                chars.next_if_eq(&'\\');
                return;
            }
            _ => {}
        }
    }
}

/// Shortens every line that is too long, and tells whether there was one.
fn clip_lines(text: &str) -> (String, bool) {
    let mut clipped = false;
    let lines = text.split_inclusive('\n').map(|line| {
        let body = line.trim_end_matches('\n');
        if body.len() <= LINE {
            return line.to_owned();
        }
        clipped = true;
        let end = (0..=LINE).rev().find(|at| body.is_char_boundary(*at)).unwrap_or(0);
        format!("{} [… {} bytes of this line left out]\n", &body[..end], body.len() - end)
    });
    (lines.collect(), clipped)
}

#[cfg(test)]
mod tests {
    use super::{HEAD, Output, TAIL, readable, whole_lines_after, whole_lines_before};

    #[test]
    fn text_is_readable() {
        let check = |raw: &[u8], expected: &str| assert_eq!(readable(raw), expected, "{raw:?}");
        check(b"a\x1b[1;31mb\x1b[0m\x1b]0;title\x07c\x1b]8;;u\x1b\\d\x1b(Be\x1bcf", "abcdef");
        check(b"\x1b[", "");
        check(b"\x1b", "");
        check(b"\x1b]0;never closed\nnext", "\nnext");
        check("\u{9b}31mx\u{9d}t\u{9c}y".as_bytes(), "xy");
        check(b"1%\r2%\r\nend\x00\x07\x08\x7f\t.", "1%\n2%\nend\t.");
        check("a\u{202e}b\u{fff9}ä".as_bytes(), "abä");
        check(b"\xff\xc3", "\u{fffd}\u{fffd}");
    }

    #[test]
    fn cuts_are_at_lines_or_characters() {
        assert_eq!(whole_lines_before(b"a\nb"), b"a\n");
        assert_eq!(whole_lines_before("aä".as_bytes().split_last().map_or(&[], |(_, rest)| rest)), b"a");
        assert_eq!(whole_lines_before(b"a\xff"), b"a\xff");
        assert_eq!(whole_lines_after(b"a\nb"), b"b");
        assert_eq!(whole_lines_after(&"äa".as_bytes()[1..]), b"a");
    }

    #[test]
    fn pieces_of_any_size_give_the_same() {
        let raw: Vec<u8> = (0..30_000).flat_map(|n| format!("{n}\n").into_bytes()).collect();
        let folder = std::env::temp_dir().join(format!("nano-output-{}", std::process::id()));
        let render = |size: usize| {
            let path = folder.join(size.to_string());
            let mut output = Output::new(path.clone());
            raw.chunks(size).for_each(|piece| output.push(piece));
            let (text, spill) = output.render();
            assert_eq!(spill.as_ref(), Some(&path));
            assert_eq!(std::fs::read(&path).ok().as_ref(), Some(&raw));
            text.replace(&path.display().to_string(), "PATH")
        };
        let expected = render(raw.len());
        assert!(expected.len() < HEAD + TAIL + 200 && expected.starts_with("0\n") && expected.ends_with("29999\n"));
        for size in [1, 7, HEAD, HEAD + 1, TAIL, HEAD + TAIL, HEAD + TAIL + 1] {
            assert_eq!(render(size), expected, "{size}");
        }
        assert!(std::fs::remove_dir_all(folder).is_ok());
    }
}
