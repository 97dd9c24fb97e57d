//! Replacing a text in the bytes of a file. Pure.
//!
//! Every byte outside the match stays; what is put in takes the line ends of what it replaces.

use std::ops::Range;

use memchr::memmem;

use super::matching::{Found, find};

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
        _ if edit.all => {}
        count => {
            let where_ = places(&lines);
            return Err(format!(
                "old_text occurs {count} times ({where_}); add surrounding lines to it, or set replace_all"
            ));
        }
    }
    let mut contents = Vec::with_capacity(file.len());
    let mut done = 0;
    for range in found {
        contents.extend_from_slice(&file[done..range.start]);
        contents.extend_from_slice(&with_line_ends(edit, file, &range));
        done = range.end;
    }
    contents.extend_from_slice(&file[done..]);
    Ok(Replaced { contents, lines, tolerant })
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
    if !ends.contains(&true) && !edit.old.contains("\r\n") {
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
    use super::{Edit, replace};

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
    }
}
