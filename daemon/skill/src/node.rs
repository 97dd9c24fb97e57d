//! Front matter as it is written: each scalar's own text, and where it stands.

use std::collections::HashMap;

use serde_json::{Number, Value};

/// A line and a character of the front matter, both from 0.
pub type Place = (usize, usize);

/// One value.
#[derive(Debug, Clone)]
pub struct Node {
    /// Where it begins.
    pub start: Place,
    /// Where it ends.
    pub end: Place,
    /// Its value.
    pub what: What,
}

/// The kinds of value.
#[derive(Debug, Clone)]
pub enum What {
    /// A scalar; a plain one is neither quoted nor a block.
    Text {
        /// Its text, escapes undone.
        text: String,
        /// Whether it could be something else than text.
        plain: bool,
    },
    /// A sequence.
    List {
        /// Its items.
        items: Vec<Node>,
        /// Whether it is written in brackets.
        flow: bool,
    },
    /// A mapping.
    Map {
        /// Its keys and values, each key once.
        entries: Vec<Entry>,
        /// Whether it is written in braces.
        flow: bool,
    },
}

/// A key and its value.
pub type Entry = (Node, Node);

/// Something a reader of the file should know.
#[derive(Debug)]
pub struct Oddity {
    /// Where.
    pub place: Place,
    /// What.
    pub message: String,
}

impl Node {
    /// Whether it is nothing: empty, `null` or `~`.
    pub fn is_null(&self) -> bool {
        matches!(&self.what, What::Text { text, plain: true } if matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL"))
    }

    /// Whether it is a list or a map.
    pub fn is_nested(&self) -> bool {
        !matches!(self.what, What::Text { .. })
    }

    /// Its text; lists and maps as a reader would say them.
    pub fn text(&self) -> String {
        match &self.what {
            What::Text { text, .. } => text.clone(),
            What::List { items, .. } => items.iter().map(Self::text).collect::<Vec<_>>().join(", "),
            What::Map { entries, .. } => {
                let pair = |(key, value): &Entry| format!("{}: {}", key.text(), value.text());
                entries.iter().map(pair).collect::<Vec<_>>().join(", ")
            }
        }
    }

    /// Its JSON. Only what reads the same either way is a number: `1.10` stays a text.
    pub fn value(&self) -> Value {
        match &self.what {
            _ if self.is_null() => Value::Null,
            What::Text { text, plain: true } => scalar(text),
            What::Text { text, plain: false } => Value::String(text.clone()),
            What::List { items, .. } => items.iter().map(Self::value).collect(),
            What::Map { entries, .. } => entries.iter().map(|(key, value)| (key.text(), value.value())).collect(),
        }
    }

    /// How many nodes it is made of, how deep, and the bytes of its texts.
    pub fn size(&self) -> (usize, usize, usize) {
        let children: Vec<&Self> = match &self.what {
            What::Text { text, .. } => return (1, 1, text.len()),
            What::List { items, .. } => items.iter().collect(),
            What::Map { entries, .. } => entries.iter().flat_map(|(key, value)| [key, value]).collect(),
        };
        let sizes = children.into_iter().map(Self::size);
        let sum =
            |all: (usize, usize, usize), one: (usize, usize, usize)| (all.0 + one.0, all.1.max(one.1), all.2 + one.2);
        let (nodes, depth, bytes) = sizes.fold((1, 0, 0), sum);
        (nodes, depth + 1, bytes)
    }
}

fn scalar(text: &str) -> Value {
    match text {
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    // Not by serde_json: it reads the last digit of some fractions wrong.
    let whole = || text.parse::<i64>().map(Number::from).or_else(|_| text.parse::<u64>().map(Number::from)).ok();
    let number = whole().or_else(|| Number::from_f64(text.parse().ok()?)).filter(|number| number.to_string() == text);
    number.map_or_else(|| Value::String(text.to_owned()), Value::Number)
}

/// Keeps the last value of each key, and says which keys came again.
pub fn unique(entries: Vec<Entry>, odd: &mut Vec<Oddity>) -> Vec<Entry> {
    let mut seen = HashMap::new();
    let mut kept: Vec<Option<Entry>> = Vec::new();
    for (key, value) in entries {
        let text = key.text();
        if let Some(earlier) = seen.insert(text.clone(), kept.len()) {
            let message = format!("the key {text:?} stands here again; this, the last one, counts");
            odd.push(Oddity { place: key.start, message });
            kept[earlier] = None;
        }
        kept.push(Some((key, value)));
    }
    kept.into_iter().flatten().collect()
}
