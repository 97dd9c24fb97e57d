//! Replacing a text in the bytes of a file. Pure.
//!
//! Exact matches come first. Only if there is none, line ends may differ: LF in the text then matches CRLF in the file.
//! What is put in takes the line ends of its surroundings.

use std::ops::Range;

use memchr::memmem;

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
}

impl Replaced {
    /// Returns the first places in words.
    pub fn places(&self) -> String {
        places(&self.lines)
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
    let mut found = find(file, edit.old.as_bytes(), edit.all);
    if found.is_empty() {
        found = find_any_line_end(file, edit.old, edit.all);
    }
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
    Ok(Replaced { contents, lines })
}

/// Finds the text; for one place to be the only one, places that overlap count too.
fn find(file: &[u8], old: &[u8], all: bool) -> Vec<Range<usize>> {
    let finder = memmem::Finder::new(old);
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = finder.find(&file[from..]) {
        let start = from + at;
        // A line end is one thing: its CR goes with its LF.
        let crlf = old[0] == b'\n' && start > 0 && file[start - 1] == b'\r';
        found.push(start - usize::from(crlf)..start + old.len());
        from = if all { start + old.len() } else { start + 1 };
    }
    found
}

/// Finds the text in the file as it would be with LF alone, and returns the places in the real one.
fn find_any_line_end(file: &[u8], old: &str, all: bool) -> Vec<Range<usize>> {
    let old = old.replace("\r\n", "\n");
    // Where, counted in the plain text, a LF had a CR before it.
    let mut ends = Vec::new();
    let mut plain = Vec::with_capacity(file.len());
    for (at, byte) in file.iter().enumerate() {
        match byte {
            b'\r' if file.get(at + 1) == Some(&b'\n') => ends.push(plain.len()),
            _ => plain.push(*byte),
        }
    }
    let real = |at: usize| at + ends.partition_point(|end| *end < at);
    find(&plain, old.as_bytes(), all).into_iter().map(|found| real(found.start)..real(found.end)).collect()
}

/// Gives `new` the line ends of the match, or else the nearest ones, where the two differ.
fn with_line_ends(edit: &Edit, file: &[u8], range: &Range<usize>) -> Vec<u8> {
    let first = memchr::memchr(b'\n', &file[range.start..]).map(|at| range.start + at);
    let nearest = first.or_else(|| memchr::memrchr(b'\n', &file[..range.start]));
    if nearest.is_some_and(|at| at > 0 && file[at - 1] == b'\r') {
        edit.new.replace("\r\n", "\n").replace('\n', "\r\n").into_bytes()
    } else if edit.old.contains("\r\n") {
        edit.new.replace("\r\n", "\n").into_bytes()
    } else {
        edit.new.as_bytes().to_vec()
    }
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
