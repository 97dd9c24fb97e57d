//! Writes documents: new ones, and old ones with as little changed as can be.

use nano_protocol::Object;
use nano_protocol::skill::Problem;

use crate::fence::{Cut, cut};
use crate::fields::collapsed;
use crate::node::{Place, What};
use crate::problems::problem;
use crate::repair::{Chunk, chunks};
use crate::source::{BOM, Line, with_line_feeds};
use crate::{Document, MAX_FILE, key, scalar, yaml};

const CANNOT: &str = "the front matter is not written so that it can be changed here; give the whole text";

/// Writes a new document. `metadata` is further front matter, key by key; `name` and `description` in it are left out.
pub fn compose(name: &str, description: &str, metadata: &Object, body: &str) -> String {
    let mut more = metadata.clone();
    more.retain(|key, _| key != "name" && key != "description");
    let (name, description) = (scalar::text(name), scalar::text(&collapsed(description)));
    let body = with_line_feeds(body.trim());
    let body = if body.is_empty() { body } else { format!("\n{body}\n") };
    format!("---\nname: {name}\ndescription: {description}\n{}---\n{body}", scalar::entries(&more, 0))
}

/// Returns `text` with another description or body; all else, comments and unknown keys too, stays byte for byte.
pub fn rewrite(text: &str, description: Option<&str>, body: Option<&str>) -> Result<String, Problem> {
    let old = text.trim_start_matches(BOM);
    let (mark, _) = text.split_at(text.len() - old.len());
    let mut new = old.to_owned();
    if let Some(body) = body {
        new = with_body(&new, body)?;
    }
    if let Some(description) = description {
        new = with_description(&new, &collapsed(description))?;
    }
    let new = format!("{mark}{new}");
    if new.len() as u64 > MAX_FILE {
        return Err(problem((1, 1), format!("the file would be larger than {MAX_FILE} bytes")));
    }
    verified(text, &new, description, body)?;
    Ok(new)
}

fn usable(text: &str) -> Result<Cut<'_>, Problem> {
    let whole = cut(text).filter(|cut| !cut.unclosed && !Document::read(text.as_bytes(), "").unclosed);
    whole.ok_or_else(|| problem((1, 1), "there is no closed front matter to change; give the whole text"))
}

fn with_body(text: &str, body: &str) -> Result<String, Problem> {
    let (head, old) = text.split_at(usable(text)?.body);
    let end = line_end(text);
    let gap = &old[..old.len() - old.trim_start().len()];
    let tail = &old[old.trim_end().len().max(gap.len())..];
    let body = with_line_feeds(body.trim()).replace('\n', end);
    let close = if head.ends_with(['\n', '\r']) { "" } else { end };
    let is_indented = gap.rsplit(['\n', '\r']).next().is_some_and(|rest| !rest.is_empty());
    let gap = if old.trim().is_empty() || is_indented { end } else { gap };
    let tail = if tail.is_empty() { end } else { tail };
    Ok(if body.is_empty() { format!("{head}{close}") } else { format!("{head}{close}{gap}{body}{tail}") })
}

fn with_description(text: &str, description: &str) -> Result<String, Problem> {
    let cut = usable(text)?;
    let lines: Vec<&str> = cut.lines.iter().map(|line| line.text).collect();
    let all = chunks(&lines);
    let find = |is: &dyn Fn(&str) -> bool| all.iter().rev().find(|chunk| is(chunk.key)).copied();
    let own = find(&|key| key == "description").or_else(|| find(&|key| key::meant(key) == Some("description")));
    let scalar = scalar::text(description);
    if let Some(chunk) = own {
        let (from, to) = value_range(&cut, chunk);
        return Ok(format!("{} {scalar}{}", &text[..from], &text[to..]));
    }
    if Document::read(text.as_bytes(), "").metadata.contains_key("description") {
        return Err(problem(cut.start(), CANNOT));
    }
    let name = all.iter().find(|chunk| chunk.key == "name").or(all.first());
    let chunk =
        name.ok_or_else(|| problem(cut.start(), "there is no `key: value` line to put the description below"))?;
    let to = last_line_end(&cut.lines[chunk.first..chunk.end]);
    let first = lines[chunk.first];
    let indent = &first[..first.len() - first.trim_start().len()];
    Ok(format!("{}{}{indent}description: {scalar}{}", &text[..to], line_end(text), &text[to..]))
}

/// From after the colon to the end of the value. Comments behind and below it are not its own.
fn value_range(cut: &Cut<'_>, chunk: Chunk<'_>) -> (usize, usize) {
    let from = cut.lines[chunk.first].start + chunk.value;
    let end = exact_end(cut, chunk).unwrap_or_else(|| last_line_end(&cut.lines[chunk.first..chunk.end]));
    // Nothing stands at the colon, by the parser.
    (from, end.max(from))
}

/// Where YAML says that the value ends; blocks end with their last line.
fn exact_end(cut: &Cut<'_>, chunk: Chunk<'_>) -> Option<usize> {
    let front = yaml::parse(&cut.text(), 0).ok()?;
    let (_, value) = front.entries.iter().find(|(key, _)| key.start.0 == chunk.first)?;
    let byte = |(line, column): Place| {
        let line = cut.lines.get(line)?;
        let offset = line.text.char_indices().nth(column).map_or(line.text.len(), |(offset, _)| offset);
        Some((line.start + offset, line.text[offset..].chars().next()))
    };
    let is_exact = match &value.what {
        What::Text { plain, .. } => *plain || matches!(byte(value.start)?.1, Some('"' | '\'')),
        What::List { flow, .. } | What::Map { flow, .. } => *flow,
    };
    is_exact.then(|| byte(value.end)).flatten().map(|(end, _)| end)
}

fn last_line_end(own: &[Line<'_>]) -> usize {
    let is_own = |line: &&Line<'_>| !line.text.trim().is_empty() && !line.text.starts_with('#');
    let last = own.iter().rev().find(is_own).unwrap_or(&own[0]);
    last.start + last.text.len()
}

/// The end of the first line.
fn line_end(text: &str) -> &'static str {
    match text.find(['\n', '\r']).map(|at| &text[at..]) {
        Some(rest) if rest.starts_with("\r\n") => "\r\n",
        Some(rest) if rest.starts_with('\r') => "\r",
        _ => "\n",
    }
}

/// A text that does not read back as what was asked for is not handed out.
fn verified(old: &str, new: &str, description: Option<&str>, body: Option<&str>) -> Result<(), Problem> {
    let [before, after] = [old, new].map(|text| Document::read(text.as_bytes(), ""));
    let wanted = description.map_or(before.description, collapsed);
    let wanted_body = body.map_or(before.body, |body| with_line_feeds(body.trim()));
    let without = |mut object: Object| {
        object.retain(|key, _| key != "description" && key::meant(key) != Some("description"));
        object
    };
    let is_same = without(before.metadata) == without(after.metadata) && before.name == after.name;
    if is_same && after.description == wanted && after.body == wanted_body {
        return Ok(());
    }
    Err(problem((1, 1), CANNOT))
}
