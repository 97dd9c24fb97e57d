//! Replacing a text in the bytes of a file. Pure.
//!
//! Every byte outside the match stays; what is put in takes the line ends of what it replaces.

use std::ops::Range;

use memchr::memmem;

use super::matching::{Found, MOST, SEVERAL, find};

/// The largest file that is edited, before and after that, in bytes: it is held in memory.
pub const LARGEST: usize = 32 * 1024 * 1024;

/// What to replace by what.
#[derive(Debug)]
pub struct Edit<'a> {
    /// The text sought.
    pub old: &'a str,
    /// What takes its place.
    pub new: &'a str,
    /// Everywhere, or in the one place where it must be.
    pub all: bool,
}

/// A file with the edit made.
#[derive(Debug, PartialEq, Eq)]
pub struct Replaced {
    /// The file's new contents.
    pub contents: Vec<u8>,
    /// The lines, from 1, where something was replaced.
    pub lines: Vec<usize>,
    /// Whether the text stood there in other characters.
    pub tolerant: bool,
}

impl Replaced {
    /// Returns the first places in words, and how the text was found there.
    pub fn places(&self) -> String {
        let how =
            if self.tolerant { "tolerant match: quotes, dashes, blanks or line ends differ" } else { "exact match" };
        format!("{}; {how}", places(&self.lines))
    }
}

/// Makes the edit, or tells why not.
pub fn replace(file: &[u8], edit: &Edit) -> Result<Replaced, String> {
    if edit.old.is_empty() {
        return Err("bad arguments: `old_text` is empty; use write_file for a whole file".into());
    }
    if edit.old == edit.new {
        return Err("bad arguments: `old_text` and `new_text` are the same".into());
    }
    let Found { places: found, tolerant } = find(file, edit.old, edit.all);
    let lines = line_numbers(file, &found);
    match found.len() {
        0 => return Err(not_found(file, edit.old)),
        1 => {}
        count if edit.all && count > MOST => {
            return Err(format!("old_text occurs more than {MOST} times; change it with exec"));
        }
        _ if edit.all => {}
        count => {
            let count = if count < SEVERAL { count.to_string() } else { format!("more than {}", SEVERAL - 1) };
            let where_ = places(&lines);
            return Err(format!(
                "old_text occurs {count} times ({where_}); add surrounding lines to it, or set replace_all"
            ));
        }
    }
    let contents = replaced(file, edit, found)?;
    if contents == file {
        return Err("nothing would change: new_text stands there already, in the file's own line ends".into());
    }
    Ok(Replaced { contents, lines, tolerant })
}

fn replaced(file: &[u8], edit: &Edit, places: Vec<Range<usize>>) -> Result<Vec<u8>, String> {
    let mut contents = Vec::with_capacity(file.len());
    let mut done = 0;
    for place in places {
        // A CR that is the end of one place may be part of the line end that the next begins with.
        contents.extend_from_slice(&file[done..place.start.max(done)]);
        contents.extend_from_slice(&with_line_ends(edit, file, &place));
        done = place.end;
        if contents.len() + file.len() - done > LARGEST {
            return Err(format!("it would be larger than {} MiB then; change it with exec", LARGEST >> 20));
        }
    }
    contents.extend_from_slice(&file[done..]);
    Ok(contents)
}

/// Gives the lines of `new` the line ends that those of the match have, or else the nearest ones, where the two differ.
fn with_line_ends(edit: &Edit, file: &[u8], range: &Range<usize>) -> Vec<u8> {
    let has_cr = |at: usize| at > 0 && file[at - 1] == b'\r';
    let mut ends: Vec<bool> =
        memchr::memchr_iter(b'\n', &file[range.clone()]).map(|at| has_cr(range.start + at)).collect();
    if ends.is_empty() {
        let next = memchr::memchr(b'\n', &file[range.end..]).map(|at| range.end + at);
        ends.extend(next.or_else(|| memchr::memrchr(b'\n', &file[..range.start])).map(has_cr));
    }
    if ends.is_empty() {
        return edit.new.as_bytes().to_vec();
    }
    let new = edit.new.replace("\r\n", "\n");
    let mut lines = new.split('\n');
    let mut given = lines.next().unwrap_or_default().to_owned();
    for (at, line) in lines.enumerate() {
        let crlf = ends.get(at).or(ends.last()).is_some_and(|crlf| *crlf);
        given.push_str(if crlf { "\r\n" } else { "\n" });
        given.push_str(line);
    }
    given.into_bytes()
}

fn not_found(file: &[u8], old: &str) -> String {
    let first = old.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let near = memmem::find(file, first.as_bytes()).filter(|_| !first.is_empty());
    match near {
        Some(at) => {
            let line = line_numbers(file, std::slice::from_ref(&(at..at)))[0];
            format!("old_text was not found; its first words are in line {line}, but blanks or later lines differ")
        }
        None => "old_text was not found; read the file again".into(),
    }
}

/// Returns the line of each place, which stand in order.
fn line_numbers(file: &[u8], found: &[Range<usize>]) -> Vec<usize> {
    let (mut line, mut from) = (1, 0);
    let number = |range: &Range<usize>| {
        line += memchr::memchr_iter(b'\n', &file[from..range.start]).count();
        from = range.start;
        line
    };
    found.iter().map(number).collect()
}

fn places(lines: &[usize]) -> String {
    let shown: Vec<_> = lines.iter().take(20).map(ToString::to_string).collect();
    let more = if lines.len() > 20 { ", …" } else { "" };
    format!("line{} {}{more}", if lines.len() == 1 { "" } else { "s" }, shown.join(", "))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::expect_used, reason = "tests")]

    use proptest::prelude::*;

    use super::super::matching::find;
    use super::{Edit, LARGEST, replace};

    #[test]
    fn edits() {
        let check = |file: &[u8], old, new, all, expected: Result<&[u8], &str>| {
            let got = replace(file, &Edit { old, new, all });
            let fits = match (&got, expected) {
                (Ok(got), Ok(wanted)) => got.contents == wanted,
                (Err(why), Err(part)) => why.contains(part),
                _ => false,
            };
            assert!(fits, "{got:?} instead of {expected:?}");
        };
        check(b"a b c", "b", "x", false, Ok(b"a x c"));
        check(b"", "b", "x", false, Err("not found"));
        check(b"a", "", "x", false, Err("`old_text` is empty"));
        check(b"a", "a", "a", false, Err("the same"));
        check(b"a\nb\na\n", "a", "x", false, Err("occurs 2 times (lines 1, 3)"));
        check(b"aaa", "aa", "x", false, Err("occurs 2 times"));
        check(b"aaa", "aa", "x", true, Ok(b"xa"));
        check(b"a\nb\na\n", "a", "x", true, Ok(b"x\nb\nx\n"));
        check(b"\xef\xbb\xbfone\r\ntwo\r\n", "one\ntwo", "1\n2", false, Ok(b"\xef\xbb\xbf1\r\n2\r\n"));
        check(b"one\r\ntwo\r\n", "one", "1\n2", false, Ok(b"1\r\n2\r\ntwo\r\n"));
        check(b"one\r\ntwo\r\n", "one\n", "", false, Ok(b"two\r\n"));
        check(b"one\r\ntwo", "\ntwo", "", false, Ok(b"one"));
        check(b"one\r\ntwo", "\ntwo", "\n2", false, Ok(b"one\r\n2"));
        check(b"one\ntwo\n", "one\r\ntwo", "1\r\n2", false, Ok(b"1\n2\n"));
        check(b"a\r\nb\nc\r\nd\n", "c\nd", "x\ny", false, Ok(b"a\r\nb\nx\r\ny\n"));
        check(b"a\r\nb\na\nb\n", "a\nb", "x", false, Ok(b"a\r\nb\nx\n"));
        check(b"\xff\xfe a \xff", "a", "b", false, Ok(b"\xff\xfe b \xff"));
        check("“ä” a\n".as_bytes(), "a\n", "b\n", false, Ok("“ä” b\n".as_bytes()));
        check(b"  a\n  b\n", "a\nb", "x", false, Err("in line 1, but blanks"));
        check(b"\nb\r\nb\r", "\nb\r", "x", true, Ok(b"xx"));
        check(b"a\r\nb\r\n", "a\r\nb", "a\nb", false, Err("nothing would change"));
        check(b"a\nb\n", "a\nb", "a\r\nb", true, Err("nothing would change"));
        check(&[b'a'; 20], "a", "x", false, Err("occurs 20 times"));
        check(&[b'a'; 100], "aa", "x", false, Err("occurs more than 20 times"));
    }

    #[test]
    fn neither_places_nor_results_are_without_bound() {
        let check = |file: &[u8], old, new: &str, all, part: &str| {
            let why = replace(file, &Edit { old, new, all }).expect_err("it is too much");
            assert!(why.contains(part), "{why}");
        };
        check(&vec![b'a'; 1 << 19], "a", &"b".repeat(10_000), true, "larger than 32 MiB then");
        check(&vec![b'a'; LARGEST], "a", "b", true, "more than 1000000 times");
        check(&vec![b'a'; LARGEST], "aa", "b", false, "more than 20 times");
        check(&[vec![b'a'; LARGEST - 1], vec![b'b']].concat(), "b", "cc", false, "larger than 32 MiB then");
    }

    proptest! {
        #[test]
        fn what_is_outside_the_places_stays(file in "[ab\r\n “-]{0,24}", old in "[ab\r\n \"-]{1,4}", all: bool) {
            let Ok(got) = replace(file.as_bytes(), &Edit { old: &old, new: "Z", all }) else { return Ok(()) };
            let (mut expected, mut done) = (Vec::new(), 0);
            for place in find(file.as_bytes(), &old, all).places {
                expected.push(&file.as_bytes()[done..place.start.max(done)]);
                done = place.end;
            }
            expected.push(&file.as_bytes()[done..]);
            let kept: Vec<_> = got.contents.split(|byte| *byte == b'Z').collect();
            prop_assert_eq!(kept, expected);
        }
    }
}
