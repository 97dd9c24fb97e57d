//! What the keys of a front matter mean, and what is odd about them.

use nano_protocol::Object;
use serde_json::Value;

use crate::fence::Cut;
use crate::key::{self, HIDDEN};
use crate::name;
use crate::node::{Entry, Node, Place, What};
use crate::problems::{At, Problems};
use crate::yaml::Front;

/// How long a description and a compatibility may be by the format, in characters.
const MOST_DESCRIPTION: usize = 1024;
const MOST_COMPATIBILITY: usize = 500;

/// Reads the fields of one front matter and says what is odd.
pub struct Fields<'a> {
    front: &'a Front,
    cut: &'a Cut<'a>,
    problems: &'a mut Problems,
}

impl<'a> Fields<'a> {
    /// Takes what the fields are read from.
    pub fn new(front: &'a Front, cut: &'a Cut<'a>, problems: &'a mut Problems) -> Self {
        Self { front, cut, problems }
    }

    /// Returns the name: that of the folder where there is none.
    pub fn name(&mut self, folder: &str) -> String {
        let folder = name::normal(folder);
        let Some((place, text)) = self.text("name").map(|(place, text)| (place, name::normal(&text))) else {
            let at = self.key_place("name");
            self.problems.add(at, format!("no name; it is called {folder:?} after its folder"));
            return folder;
        };
        if text.is_empty() {
            self.add(place, format!("the name is blank; it is called {folder:?} after its folder"));
            return folder;
        }
        if text != folder {
            self.add(place, format!("the name {text:?} is not that of the folder, {folder:?}"));
        }
        if let Some(oddity) = name::oddity(&text) {
            self.add(place, oddity);
        }
        text
    }

    /// Returns the description, or why there is none.
    pub fn description(&mut self) -> Result<String, (At, &'static str)> {
        let Some((place, text)) = self.text("description") else {
            return Err((
                self.key_place("description"),
                "no description: add a line `description: …` to the front matter",
            ));
        };
        let description = collapsed(&text);
        if description.is_empty() {
            return Err((self.cut.at(place), "no description: it is blank"));
        }
        if text.trim().chars().count() > MOST_DESCRIPTION {
            self.add(place, format!("the description has more than {MOST_DESCRIPTION} characters"));
        }
        Ok(description)
    }

    /// Says what is odd about the other keys, and about the YAML.
    pub fn rest(&mut self) {
        let front = self.front;
        for oddity in &front.odd {
            self.add(oddity.place, oddity.message.clone());
        }
        for (key, value) in &front.entries {
            match key.text().as_str() {
                "compatibility" => self.compatibility(value),
                "metadata" => self.metadata(value),
                HIDDEN => self.switch(value, HIDDEN),
                text if key::is_known(text) => {}
                text => self.unknown(key.start, text),
            }
        }
    }

    /// Returns the front matter as JSON; metadata that is JSON in a text as what it says.
    pub fn object(&self) -> Object {
        let value = |key: &Node, value: &Node| match key.text().as_str() {
            "metadata" => json(value).map_or_else(|| value.value(), Value::Object),
            _ => value.value(),
        };
        self.front.entries.iter().map(|(key, node)| (key.text(), value(key, node))).collect()
    }

    /// Whether the model is not to see it.
    pub fn hidden(&self) -> bool {
        self.entry(HIDDEN).is_some_and(|(_, value)| is_true(&value.value()))
    }

    fn add(&mut self, place: Place, message: impl Into<String>) {
        self.problems.add(self.cut.at(place), message);
    }

    /// The place of a key; of the front matter where it is not.
    fn key_place(&self, key: &str) -> At {
        self.entry(key).map_or(self.cut.start(), |(key, _)| self.cut.at(key.start))
    }

    /// The entry of `key`; else one whose key was meant to be that.
    fn entry(&self, key: &str) -> Option<&'a Entry> {
        let entries = &self.front.entries;
        let exact = entries.iter().rev().find(|(found, _)| found.text() == key);
        exact.or_else(|| entries.iter().rev().find(|(found, _)| key::meant(&found.text()) == Some(key)))
    }

    /// The text of a field and its place; none: it is not there or null.
    fn text(&mut self, key: &str) -> Option<(Place, String)> {
        let (_, value) = self.entry(key)?;
        if matches!(value.what, What::Text { plain: true, .. }) && self.is_commented(value) {
            self.add(
                value.end,
                format!("what comes after ` #` in the {key} is a comment and is lost; put the {key} in quotes"),
            );
        }
        if value.is_null() {
            return None;
        }
        let text = self.as_written(value);
        if value.is_nested() {
            self.add(value.start, format!("the {key} is a list or a map; it was read as text: put it in quotes"));
        }
        if text.chars().any(|part| part.is_control() && !is_space(part)) {
            self.add(value.start, format!("control characters in the {key}; they were read as spaces"));
        }
        Some((value.start, text))
    }

    fn is_commented(&self, value: &Node) -> bool {
        let (line, column) = value.end;
        let rest: Option<String> = self.cut.lines.get(line).map(|line| line.text.chars().skip(column).collect());
        // Nothing stands at the colon, by the parser.
        rest.is_some_and(|rest| rest.trim_start_matches(':').trim_start().starts_with('#'))
    }

    /// Text as it is; what is in brackets with its brackets.
    fn as_written(&self, value: &Node) -> String {
        if !matches!(value.what, What::List { flow: true, .. } | What::Map { flow: true, .. }) {
            return value.text();
        }
        let (from, to) = (value.start, value.end);
        let lines = self.cut.lines.iter().enumerate().skip(from.0).take(to.0 + 1 - from.0);
        let part = lines.map(|(number, line)| {
            let end = if number == to.0 { to.1 } else { usize::MAX };
            let start = if number == from.0 { from.1 } else { 0 };
            line.text.chars().take(end).skip(start).collect::<String>()
        });
        part.collect::<Vec<_>>().join(" ")
    }

    fn unknown(&mut self, place: Place, key: &str) {
        let shown: String = key.chars().take(64).collect();
        let is_there = |meant: &str| self.front.entries.iter().any(|(key, _)| key.text() == meant);
        match key::meant(key) {
            Some(meant) if is_there(meant) => {
                self.add(place, format!("the key {shown:?} is left out; `{meant}` counts"));
            }
            Some(meant) => self.add(place, format!("the key {shown:?} is read as `{meant}`: write it so")),
            None => self.add(place, format!("the key {shown:?} is not of the format; put it under `metadata`")),
        }
    }

    fn compatibility(&mut self, value: &Node) {
        let length = value.text().trim().chars().count();
        if value.is_nested() {
            self.add(value.start, "compatibility must be a text");
        } else if length == 0 || value.is_null() {
            self.add(value.start, "compatibility is empty; leave it out");
        } else if length > MOST_COMPATIBILITY {
            self.add(value.start, format!("compatibility has more than {MOST_COMPATIBILITY} characters"));
        }
    }

    /// Says what is odd about a switch that is not plainly on or off.
    fn switch(&mut self, node: &Node, key: &str) {
        let value = node.value();
        match switch(&value) {
            _ if value.is_boolean() || matches!(&value, Value::String(text) if text == "true" || text == "false") => {}
            Some(on) => self.add(node.start, format!("{key} was read as {on}: write `true` or `false`")),
            None => self.add(node.start, format!("{key} is neither `true` nor `false`; it was read as `false`")),
        }
    }

    fn metadata(&mut self, value: &Node) {
        let What::Map { entries, .. } = &value.what else {
            if json(value).is_some() {
                self.add(value.start, "metadata is JSON in a text; it was read as a map");
            } else if !value.is_null() {
                self.add(value.start, "metadata must be a map of keys and texts");
            }
            return;
        };
        if let Some((_, value)) = entries.iter().find(|(key, _)| key.text() == "always_load") {
            self.switch(value, "always_load");
        }
        if let Some((key, _)) = entries.iter().find(|(_, value)| value.is_nested()) {
            self.add(key.start, "metadata has a list or a map in it; strict readers take texts alone");
        }
    }
}

/// Returns whether `metadata.always_load` says so.
pub fn always_load(front: &Object) -> bool {
    front.get("metadata").and_then(|metadata| metadata.get("always_load")).is_some_and(is_true)
}

/// Returns `text` as one line.
pub fn collapsed(text: &str) -> String {
    let clean: String = text.chars().map(|part| if part.is_control() { ' ' } else { part }).collect();
    clean.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Reads a switch; words of older YAML count too. None: it is neither on nor off.
fn switch(value: &Value) -> Option<bool> {
    match value {
        Value::Null => Some(false),
        Value::Bool(value) => Some(*value),
        Value::String(text) => match text.trim().to_lowercase().as_str() {
            "true" | "yes" | "on" => Some(true),
            "false" | "no" | "off" | "" => Some(false),
            _ => None,
        },
        _ => None,
    }
}

fn is_true(value: &Value) -> bool {
    switch(value) == Some(true)
}

fn json(value: &Node) -> Option<Object> {
    let What::Text { text, .. } = &value.what else { return None };
    serde_json::from_str(text).ok()
}

fn is_space(part: char) -> bool {
    matches!(part, '\n' | '\r' | '\t' | '\u{85}')
}
