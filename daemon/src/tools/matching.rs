//! Where a text stands in a file: exactly, or else but for what editors and models change unseen. Pure.
//!
//! A tolerant match is looked for in a folded copy of both texts: line ends are LF, blanks before them are gone, quotes,
//! dashes, blanks and fullwidth letters are the ASCII ones. A place found there is told as the bytes of the real file, so
//! whatever is put in its place, all else stays as it is.

use std::ops::Range;

use memchr::memmem;

/// The places of a text, in order, and how they were found.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Byte ranges of the file.
    pub places: Vec<Range<usize>>,
    /// Whether the file's bytes there are others than the text's.
    pub tolerant: bool,
}

/// How many places are enough to say that there are too many, where one is wanted.
pub const SEVERAL: usize = 21;
/// How many there may be where all are.
pub const MOST: usize = 1_000_000;

/// Finds the text, at [`SEVERAL`] places or one more than [`MOST`] at most; for one place to be the only one, places that overlap count unless `all` is set.
pub fn find(file: &[u8], text: &str, all: bool) -> Found {
    let enough = if all { MOST + 1 } else { SEVERAL };
    let places: Vec<_> = search(file, text.as_bytes(), all).take(enough).map(|place| with_cr(file, place)).collect();
    if !places.is_empty() {
        return Found { places, tolerant: false };
    }
    let (folded, sought) = (Folded::new(file), Folded::new(text.as_bytes()));
    // What would be found everywhere was not meant.
    if sought.bytes.iter().all(u8::is_ascii_whitespace) {
        return Found::default();
    }
    let ends_in_blanks = text.ends_with(BLANKS);
    let places = search(&folded.bytes, &sought.bytes, all).map(|place| folded.real(&place));
    let fits = |place: &Range<usize>| !ends_in_blanks || is_blank_or_end(file, place.end);
    Found { places: places.filter(fits).take(enough).collect(), tolerant: true }
}

fn search(file: &[u8], text: &[u8], all: bool) -> impl Iterator<Item = Range<usize>> {
    let finder = memmem::Finder::new(text);
    let mut from = 0;
    std::iter::from_fn(move || {
        let start = from + finder.find(&file[from..])?;
        from = if all { start + text.len() } else { start + 1 };
        Some(start..start + text.len())
    })
}

/// A line end is one thing: its CR goes with its LF.
fn with_cr(file: &[u8], place: Range<usize>) -> Range<usize> {
    let parts = file[place.start] == b'\n' && place.start > 0 && file[place.start - 1] == b'\r';
    place.start - usize::from(parts)..place.end
}

/// Tells whether the line, or only blanks of it, ends here.
fn is_blank_or_end(file: &[u8], at: usize) -> bool {
    let rest = &file[at..];
    rest.first().is_none_or(u8::is_ascii_whitespace) || BLANKS.iter().any(|one| starts_with(rest, *one))
}

/// A text with the differences taken out that do not count, and where those were.
struct Folded {
    bytes: Vec<u8>,
    breaks: Vec<Break>,
}

/// From here on the folded text and the real one are shifted against each other.
struct Break {
    folded: usize,
    real: usize,
}

impl Folded {
    fn new(text: &[u8]) -> Self {
        let mut folded = Self { bytes: Vec::with_capacity(text.len()), breaks: Vec::new() };
        let mut at = 0;
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            let body = line.strip_suffix(b"\n").map_or(line, |body| body.strip_suffix(b"\r").unwrap_or(body));
            let kept = without_blanks(body);
            folded.take(kept, at);
            if kept.len() < body.len() || line.len() > body.len() + 1 {
                folded.shift(at + kept.len());
                folded.shift(at + body.len());
            }
            at += line.len();
            if line.len() > body.len() {
                folded.bytes.push(b'\n');
            }
            if line.len() > body.len() + 1 {
                folded.shift(at);
            }
        }
        folded
    }

    fn take(&mut self, text: &[u8], mut at: usize) {
        for chunk in text.utf8_chunks() {
            for one in chunk.valid().chars() {
                at += one.len_utf8();
                match plain(one) {
                    Some(plain) => {
                        self.bytes.push(plain);
                        self.shift(at);
                    }
                    None => self.bytes.extend_from_slice(one.encode_utf8(&mut [0; 4]).as_bytes()),
                }
            }
            at += chunk.invalid().len();
            self.bytes.extend_from_slice(chunk.invalid());
        }
    }

    /// Notes that the next folded byte stands for what begins at `real`.
    fn shift(&mut self, real: usize) {
        self.breaks.push(Break { folded: self.bytes.len(), real });
    }

    /// Returns the real place of a folded one; blanks that were dropped at its ends are not part of it.
    fn real(&self, place: &Range<usize>) -> Range<usize> {
        let shifted = |breaks: usize, at| self.breaks[..breaks].last().map_or(at, |one| one.real + (at - one.folded));
        let start = shifted(self.breaks.partition_point(|one| one.folded <= place.start), place.start);
        let before = self.breaks.partition_point(|one| one.folded < place.end);
        let at_end = self.breaks.get(before).filter(|one| one.folded == place.end);
        start..at_end.map_or_else(|| shifted(before, place.end), |one| one.real)
    }
}

/// What is as good as a blank.
const BLANKS: [char; 17] = [
    ' ', '\t', '\u{a0}', '\u{2000}', '\u{2001}', '\u{2002}', '\u{2003}', '\u{2004}', '\u{2005}', '\u{2006}',
    '\u{2007}', '\u{2008}', '\u{2009}', '\u{200a}', '\u{202f}', '\u{205f}', '\u{3000}',
];

fn starts_with(text: &[u8], one: char) -> bool {
    text.starts_with(one.encode_utf8(&mut [0; 4]).as_bytes())
}

fn without_blanks(mut line: &[u8]) -> &[u8] {
    let shorter = |line: &'_ [u8], one: &char| {
        line.ends_with(one.encode_utf8(&mut [0; 4]).as_bytes()).then(|| line.len() - one.len_utf8())
    };
    while let Some(end) = BLANKS.iter().find_map(|one| shorter(line, one)) {
        line = &line[..end];
    }
    line
}

/// Returns the ASCII character that is often written instead, if there is one.
fn plain(one: char) -> Option<u8> {
    match one {
        '\u{2018}'..='\u{201b}' | '\u{2032}' => Some(b'\''),
        '\u{201c}'..='\u{201f}' | '\u{2033}' => Some(b'"'),
        '\u{2010}'..='\u{2015}' | '\u{2212}' => Some(b'-'),
        '\u{ff01}'..='\u{ff5e}' => u8::try_from(u32::from(one) - 0xfee0).ok(),
        one if !one.is_ascii() && BLANKS.contains(&one) => Some(b' '),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::find;

    #[test]
    fn tolerant_places_are_those_of_the_real_file() {
        let check = |file: &str, text: &str, expected: &[&str]| {
            let found = find(file.as_bytes(), text, false);
            let got: Vec<_> = found.places.iter().map(|place| &file[place.clone()]).collect();
            assert_eq!(got, expected, "{text:?} in {file:?}");
            assert_eq!(
                found.tolerant && !got.is_empty(),
                got.first().is_some_and(|one| *one != text),
                "{text:?} in {file:?}: {found:?}"
            );
        };
        check("a\r\nb\r\n", "a\nb", &["a\r\nb"]);
        check("a\r\nb\r\n", "\nb\n", &["\r\nb\r\n"]);
        check("a  \nb\t\nc", "a\nb\nc", &["a  \nb\t\nc"]);
        check("a  \nb  \n", "a\nb", &["a  \nb"]);
        check("a\nb\n", "a \nb  ", &["a\nb"]);
        check("foobar\nfoo\n", "foo ", &["foo"]);
        check("foobar\n", "foo ", &[]);
        check(
            "say \u{201c}hi\u{201d} \u{2014} it\u{2019}s",
            "\"hi\" - it's",
            &["\u{201c}hi\u{201d} \u{2014} it\u{2019}s"],
        );
        check("say \"hi\"", "\u{201c}hi\u{201d}", &["\"hi\""]);
        check("a\u{a0}b", "a b", &["a\u{a0}b"]);
        check("\u{ff08}x\u{ff09}", "(x)", &["\u{ff08}x\u{ff09}"]);
        check("caf\u{e9} \u{2460}", "cafe", &[]);
        check("  \n \n", "\n\n", &[]);
        // An exact place is the only one, whatever looks like it.
        check("\"a\"\n\u{201c}a\u{201d}\n", "\"a\"", &["\"a\""]);
        check("'a'\n\u{2018}a\u{2018}", "\u{2018}a\u{2019}", &["'a'", "\u{2018}a\u{2018}"]);
    }

    proptest! {
        #[test]
        fn what_was_written_otherwise_is_found(parts in prop::collection::vec("[a-c]{1,3}", 1..6), how in prop::collection::vec(0..5usize, 6)) {
            let ends = ["\n", "\r\n", "  \n", "\t\r\n", "\u{a0}\n"];
            let lines = |end: &dyn Fn(usize) -> &'static str| {
                parts.iter().enumerate().flat_map(|(at, part)| [part.as_str(), end(at)]).collect::<String>()
            };
            let (text, file) = (lines(&|_| "\n"), lines(&|at| ends[how[at]]));
            let found = find(format!("\u{2014}{file}<").as_bytes(), &text, false);
            prop_assert_eq!(found.places, vec![3..3 + file.len()]);
        }
    }
}
