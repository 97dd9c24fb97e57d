//! The second pass, for front matter that is not YAML as a whole: each top-level `key:` chunk is parsed alone, and the
//! value of one that fails is taken as text. No chunk costs another its value.

use crate::fault::Fault;
use crate::fence::Cut;
use crate::key;
use crate::node::{Node, Oddity, What, unique};
use crate::problems::Problems;
use crate::yaml::{self, Front};

/// How much of a text a message shows.
const MOST_SHOWN: usize = 60;

/// A top-level key and the lines of its value.
#[derive(Debug, Clone, Copy)]
pub struct Chunk<'a> {
    /// The key.
    pub key: &'a str,
    /// Its line, from 0.
    pub first: usize,
    /// The line after its last one.
    pub end: usize,
    /// Where its value begins in its first line, in bytes.
    pub value: usize,
}

/// Splits lines into chunks; what stands before the first key is in none.
pub fn chunks<'a>(lines: &[&'a str]) -> Vec<Chunk<'a>> {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let keys = || lines.iter().enumerate().filter_map(|(number, line)| Some((number, *line, key::leading(line)?)));
    let Some(base) = keys().next().map(|(_, line, _)| indent(line)) else { return Vec::new() };
    let mut found: Vec<Chunk<'a>> = Vec::new();
    for (first, _, (key, value)) in keys().filter(|(_, line, _)| indent(line) <= base) {
        if let Some(before) = found.last_mut() {
            before.end = first;
        }
        found.push(Chunk { key, first, end: lines.len(), value });
    }
    found
}

/// Reads what can be read of a front matter that `fault` makes no YAML.
pub fn read(cut: &Cut<'_>, fault: &Fault, problems: &mut Problems) -> Front {
    let lines: Vec<&str> = cut.lines.iter().map(|line| line.text).collect();
    let chunks = chunks(&lines);
    let mut front = Front::default();
    let mut repairs = Vec::new();
    for chunk in &chunks {
        read_chunk(*chunk, &lines, &mut front, &mut repairs);
    }
    let is_explained = !repairs.is_empty();
    for repair in repairs {
        problems.add(cut.at(repair.place), repair.message);
    }
    let before = chunks.first().map_or(lines.len(), |chunk| chunk.first);
    let is_stray = |line: &str| !line.trim().is_empty() && !line.starts_with('#');
    if chunks.is_empty() {
        problems.add(cut.at(fault.place), format!("the front matter is not YAML that can be used: {}", fault.message));
    } else if let Some(line) = lines[..before].iter().copied().position(is_stray) {
        problems.add(cut.at((line, 0)), "text before the first `key:` is left out");
    } else if !is_explained {
        problems.add(cut.at(fault.place), format!("{}; each key was read alone", fault.message));
    }
    front.entries = unique(front.entries, &mut front.odd);
    front
}

/// Adds the chunk's entry, and what had to be done for it.
fn read_chunk(chunk: Chunk<'_>, lines: &[&str], front: &mut Front, repairs: &mut Vec<Oddity>) {
    let own = &lines[chunk.first..chunk.end];
    let fault = match alone(own, chunk.first, front) {
        Ok(()) => return,
        Err(fault) => plainer(fault, own[0], chunk),
    };
    let spaced: Vec<String> = own.iter().map(|line| spaced(line)).collect();
    let is_tabbed = spaced.iter().zip(own).any(|(spaced, line)| spaced != line);
    if is_tabbed && alone(&spaced, chunk.first, front).is_ok() {
        repairs.push(Oddity { place: fault.place, message: format!("{}; read as two spaces", fault.message) });
    } else if let Some(map) = inner(chunk, lines, repairs) {
        front.entries.push(entry(chunk, lines, map));
    } else {
        let text = salvage(own, chunk.value);
        repairs.push(Oddity { place: fault.place, message: repaired(&fault, chunk.key, &text) });
        front.entries.push(entry(chunk, lines, What::Text { text, plain: false }));
    }
}

/// Reads metadata, a map by its meaning, key by key as well; what lies deeper in it is text.
fn inner(chunk: Chunk<'_>, lines: &[&str], repairs: &mut Vec<Oddity>) -> Option<What> {
    let (first, end) = (chunk.first + 1, chunk.end);
    let line = lines[chunk.first];
    // At the top alone: a file must not choose how often its lines are read.
    let is_map = chunk.key == "metadata" && !line.starts_with([' ', '\t']) && line[chunk.value..].trim().is_empty();
    let is_deeper = lines.get(first).is_some_and(|line| line.starts_with(' ') && key::leading(line).is_some());
    if !is_map || !is_deeper {
        return None;
    }
    let mut front = Front::default();
    for inner in chunks(&lines[first..end]) {
        read_chunk(Chunk { first: first + inner.first, end: first + inner.end, ..inner }, lines, &mut front, repairs);
    }
    Some(What::Map { entries: unique(front.entries, repairs), flow: false })
}

/// A key without a space behind its colon is none to YAML, which then says something else.
fn plainer(fault: Fault, line: &str, chunk: Chunk<'_>) -> Fault {
    let is_tight = line[chunk.value..].starts_with(|part: char| !part.is_whitespace());
    let place = (chunk.first, line[..chunk.value].chars().count());
    if is_tight { Fault::new(place, "no space after the colon") } else { fault }
}

/// Parses the lines of one chunk into `front`.
fn alone<S: AsRef<str>>(own: &[S], first: usize, front: &mut Front) -> Result<(), Fault> {
    let text: String = own.iter().flat_map(|line| [line.as_ref(), "\n"]).collect();
    let parsed = yaml::parse(&text, first)?;
    front.entries.extend(parsed.entries);
    front.odd.extend(parsed.odd);
    Ok(())
}

/// The line with each TAB of its indentation as two spaces.
fn spaced(line: &str) -> String {
    let text = line.trim_start_matches([' ', '\t']);
    let indent = &line[..line.len() - text.len()];
    indent.replace('\t', "  ") + text
}

fn entry(chunk: Chunk<'_>, lines: &[&str], what: What) -> (Node, Node) {
    let column = |offset: usize| lines[chunk.first][..offset].chars().count();
    let key_column = column(lines[chunk.first].len() - lines[chunk.first].trim_start().len());
    let node = |column, what| Node { start: (chunk.first, column), end: (chunk.end, 0), what };
    let key = What::Text { text: chunk.key.to_owned(), plain: false };
    (node(key_column, key), node(column(chunk.value), what))
}

fn repaired(fault: &Fault, key: &str, text: &str) -> String {
    let mut shown: String = text.chars().take(MOST_SHOWN).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    format!("{}; `{key}` was read as the text {shown:?}: put it in quotes", fault.message)
}

/// The value as a person reads it: its lines as one, without a block sign that stands for nothing.
fn salvage(own: &[&str], value: usize) -> String {
    let first = without_sign(own[0][value..].trim());
    let more = own[1..].iter().filter(|line| !line.starts_with('#')).map(|line| line.trim());
    let pieces: Vec<&str> = std::iter::once(first).chain(more).filter(|piece| !piece.is_empty()).collect();
    unquoted(&pieces.join(" "))
}

fn without_sign(first: &str) -> &str {
    let Some(rest) = first.strip_prefix(['|', '>']) else { return first };
    let rest = rest.trim_start_matches(|sign: char| sign.is_ascii_digit() || matches!(sign, '+' | '-'));
    if rest.is_empty() || rest.starts_with([' ', '\t']) { rest.trim_start() } else { first }
}

/// Takes off quotes around the whole text: a quote inside that opens a word is the writer's, one that closes it is not.
fn unquoted(text: &str) -> String {
    let Some(quote) = text.chars().next().filter(|first| matches!(first, '"' | '\'')) else { return text.to_owned() };
    let rest = &text[1..];
    let inner = rest.strip_suffix(quote).filter(|inner| !inner.ends_with('\\')).unwrap_or(rest);
    let next = inner.match_indices(quote).find(|(at, _)| !inner[..*at].ends_with('\\'));
    let opens = |at: usize| inner[at + 1..].starts_with(char::is_alphanumeric);
    if next.is_some_and(|(at, _)| !opens(at)) {
        return text.to_owned();
    }
    if quote == '"' { inner.replace("\\\"", "\"").replace("\\n", " ") } else { inner.replace("''", "'") }
}
