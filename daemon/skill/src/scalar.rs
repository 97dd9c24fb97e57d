//! Writes YAML that every reader reads alike: plain where that is safe, else in double quotes on one line.

use nano_protocol::Object;
use serde_json::Value;

/// How long a key may be that stands before a colon.
const MOST_KEY: usize = 1000;

/// Writes a text.
pub fn text(text: &str) -> String {
    if is_plain(text) { text.to_owned() } else { quoted(text) }
}

/// Writes the entries of a map, a line each or more, `indent` deep.
pub fn entries(map: &Object, indent: usize) -> String {
    map.iter().flat_map(|(key, value)| [pad(indent), head(key, indent), self::value(value, indent)]).collect()
}

fn head(key: &str, indent: usize) -> String {
    let key = text(key);
    if key.chars().count() > MOST_KEY { format!("? {key}\n{}:", pad(indent)) } else { format!("{key}:") }
}

/// Writes a value behind its key or dash, and the end of the line.
fn value(value: &Value, indent: usize) -> String {
    match value {
        Value::Object(map) if !map.is_empty() => format!("\n{}", entries(map, indent + 2)),
        Value::Array(items) if !items.is_empty() => {
            let item = |item| format!("{}-{}", pad(indent + 2), self::value(item, indent + 2));
            format!("\n{}", items.iter().map(item).collect::<String>())
        }
        Value::String(text) => format!(" {}\n", self::text(text)),
        other => format!(" {other}\n"),
    }
}

fn pad(indent: usize) -> String {
    " ".repeat(indent)
}

fn is_plain(text: &str) -> bool {
    let is_word = |part: char| part.is_alphanumeric() || matches!(part, '-' | '_' | '.' | '/' | '+');
    let is_safe =
        |part: char| part == ' ' || is_word(part) || ",;!?()'\"&*%@=<>[]{}|~$^`#:\\".contains(part) || is_wide(part);
    let first = text.chars().next().is_some_and(char::is_alphabetic);
    let has_sign = [": ", " #", "---"].iter().any(|sign| text.contains(sign));
    first && text.chars().all(is_safe) && !has_sign && !text.ends_with([' ', ':']) && !is_other(text)
}

/// What is neither ASCII nor something that a reader of YAML 1.1 breaks a line at or refuses.
fn is_wide(part: char) -> bool {
    !part.is_ascii() && !is_refused(part) && !part.is_whitespace()
}

/// Whether some reader takes it for something else than text.
fn is_other(text: &str) -> bool {
    let words = ["null", "true", "false", "yes", "no", "on", "off", "y", "n"];
    words.contains(&text.to_lowercase().as_str())
}

fn is_refused(part: char) -> bool {
    let is_odd = matches!(part, '\u{85}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}');
    part.is_control() || is_odd
}

/// JSON's quotes, with nothing in them that a reader could refuse, break a line at, or take for a fence.
fn quoted(text: &str) -> String {
    let mut written = String::from('"');
    for part in text.chars() {
        match part {
            '"' | '\\' => written.extend(['\\', part]),
            '\n' => written.push_str("\\n"),
            '\r' => written.push_str("\\r"),
            '\t' => written.push_str("\\t"),
            '-' if written.ends_with("--") => written.push_str("\\u002d"),
            part if is_refused(part) => written.extend(format!("\\u{:04x}", u32::from(part)).chars()),
            part => written.push(part),
        }
    }
    written.push('"');
    written
}
