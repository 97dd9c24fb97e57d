//! Tool calls put together from the pieces that servers send, each in its own dialect.
//!
//! A piece finds its slot by index, else by id, else by its place in the array, else it is the last call's. Arguments
//! are text until the reply is over; only then are they decoded, all or nothing.

use std::collections::HashSet;

use nano_protocol::message::ToolCall;
use nano_protocol::{Object, strict};
use serde_json::Value;

/// The longest id that every server takes back.
const MAX_ID: usize = 64;

/// The calls of one reply so far, in order of appearance.
#[derive(Debug, Default)]
pub struct Calls(Vec<Slot>);

#[derive(Debug, Default)]
struct Slot {
    index: Option<i64>,
    /// In an array of several calls without index.
    place: Option<usize>,
    id: String,
    name: String,
    arguments: String,
}

/// One element of `tool_calls`; what is absent, null or of an odd type is empty.
struct Piece {
    index: Option<i64>,
    place: Option<usize>,
    id: String,
    name: String,
    arguments: String,
}

impl Calls {
    /// Takes the `tool_calls` of a delta or of a whole message.
    pub fn push(&mut self, calls: &Value) {
        let pieces = match calls {
            Value::Array(pieces) => pieces.as_slice(),
            Value::Object(_) => std::slice::from_ref(calls),
            _ => &[],
        };
        for (place, piece) in pieces.iter().enumerate() {
            self.add(Piece::read(piece, (pieces.len() > 1).then_some(place)));
        }
    }

    /// Tells whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the calls; an id that is missing, doubled, too long or among `taken` is replaced by one that is made of
    /// `replies`, the number of the reply in its session.
    pub fn finish(mut self, replies: usize, taken: &HashSet<&str>) -> Vec<ToolCall> {
        self.0.retain(|slot| !(slot.name.is_empty() && slot.arguments.trim().is_empty()));
        if self.0.iter().all(|slot| slot.index.is_some()) {
            self.0.sort_by_key(|slot| slot.index);
        }
        let mut used = HashSet::new();
        let mut call = |(number, slot): (usize, Slot)| {
            let free = |id: &String| !id.trim().is_empty() && !used.contains(id) && !taken.contains(id.as_str());
            let made = (number..).step_by(1000).map(|number| format!("call_{replies}_{number}"));
            let own = std::iter::once(slot.id).filter(|id| id.chars().count() <= MAX_ID);
            let id = own.chain(made).find(free).unwrap_or_default();
            used.insert(id.clone());
            let (arguments, arguments_raw) = arguments(slot.arguments);
            ToolCall { id, name: slot.name, arguments, arguments_raw }
        };
        self.0.into_iter().enumerate().map(&mut call).collect()
    }

    fn add(&mut self, piece: Piece) {
        let slot = self.continued_by(&piece).unwrap_or_else(|| {
            self.0.push(Slot { index: piece.index, place: piece.place, ..Slot::default() });
            self.0.len() - 1
        });
        if let Some(slot) = self.0.get_mut(slot) {
            slot.add(piece);
        }
    }

    fn continued_by(&self, piece: &Piece) -> Option<usize> {
        let slots = self.0.iter();
        let slot = match (piece.index, piece.place) {
            (Some(index), _) => slots.clone().rposition(|slot| slot.index == Some(index)).or_else(|| {
                slots.clone().rposition(|slot| slot.index.is_none() && !piece.id.is_empty() && slot.id == piece.id)
            }),
            (None, _) if !piece.id.is_empty() => slots.clone().rposition(|slot| slot.id == piece.id),
            (None, Some(place)) => slots.clone().rposition(|slot| slot.place == Some(place)),
            (None, None) => self.0.len().checked_sub(1),
        }?;
        self.0.get(slot).filter(|found| !found.is_followed_by(piece)).map(|_| slot)
    }
}

impl Slot {
    /// Tells whether a piece that seems to be this call's begins another: some servers number every call 0, or none.
    fn is_followed_by(&self, piece: &Piece) -> bool {
        if piece.name.is_empty() || self.name.is_empty() {
            return false;
        }
        let other_id = !piece.id.is_empty() && !self.id.is_empty() && piece.id != self.id;
        if self.arguments.trim().is_empty() {
            return other_id;
        }
        let other = other_id || piece.name != self.name || piece.arguments.trim_start().starts_with('{');
        other && object(&self.arguments).is_some()
    }

    fn add(&mut self, piece: Piece) {
        if self.id.is_empty() {
            self.id = piece.id;
        }
        let may_grow = self.arguments.is_empty() && self.name != piece.name;
        if self.name.is_empty() || may_grow {
            self.name.push_str(&piece.name);
        }
        self.arguments.push_str(&piece.arguments);
    }
}

impl Piece {
    fn read(piece: &Value, place: Option<usize>) -> Self {
        let function = piece.get("function").unwrap_or(piece);
        let index = piece.get("index").and_then(|index| index.as_i64().or_else(|| index.as_str()?.parse().ok()));
        let text = |value: Option<&Value>| match value {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        Self {
            index,
            place: place.filter(|_| index.is_none()),
            id: text(piece.get("id")),
            name: text(function.get("name")),
            arguments: text(function.get("arguments")),
        }
    }
}

/// Decodes the arguments of a call: an object, or an object in a string; else none and the text as it is.
pub fn arguments(text: String) -> (Object, Option<String>) {
    if text.trim().is_empty() {
        return (Object::new(), None);
    }
    let inner = || object(&serde_json::from_str::<String>(&text).ok()?);
    match object(&text).or_else(inner) {
        Some(object) => (object, None),
        None => (Object::new(), Some(text)),
    }
}

/// Decodes an object without doubled keys and not too deep to be stored and sent on.
fn object(text: &str) -> Option<Object> {
    if !text.trim_start().starts_with('{') || !text.trim_end().ends_with('}') {
        return None;
    }
    strict::check(text).ok()?;
    serde_json::from_str(text).ok()
}

#[cfg(test)]
mod tests;
