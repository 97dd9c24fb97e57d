//! One line of the journal: a commit, numbered, whole or not at all, in text that a person can read.
//!
//! `<CRC-32 in hex> {"n":7,"synced":6,"head":9,"changes":[["put","s/ses_1",{…}],["del","…"],["del_all","…"]]}`: the
//! checksum is that of the JSON. A value is the JSON it is stored as, verbatim; one that is not JSON on one line is
//! `["put_bytes",key,text]`, in the text form of keys. Reading takes any bytes and never panics.

use std::fmt;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::super::keys;

/// One change of a commit as it is kept: keys in bytes, values as the JSON they are stored as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A record is written.
    Put(Vec<u8>, Vec<u8>),
    /// A record is removed.
    Delete(Vec<u8>),
    /// Every record whose key begins so is removed.
    DeleteAll(Vec<u8>),
}

/// A commit in the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Its number: one more than that of the line before.
    pub number: u64,
    /// The newest line that was known to be on disk when this one was written.
    pub synced: u64,
    /// The newest event number that was given out, with this commit.
    pub head: u64,
    /// What changes, in order.
    pub entries: Vec<Entry>,
}

impl Line {
    /// Returns it as text, with its end of line.
    pub fn encode(&self) -> Vec<u8> {
        let Self { number, synced, head, entries } = self;
        let changes: Vec<String> = entries.iter().map(encode_entry).collect();
        let changes = changes.join(",");
        frame(&format!(r#"{{"n":{number},"synced":{synced},"head":{head},"changes":[{changes}]}}"#))
    }

    /// Returns the line that `text` is, without its end of line; none if anything of it is not as it was written.
    pub fn decode(text: &[u8]) -> Option<Self> {
        let Wire { n, synced, head, changes } = serde_json::from_slice(unframe(text)?).ok()?;
        Some(Self { number: n, synced, head, entries: changes })
    }
}

/// Returns `json` with its checksum before it and an end of line behind.
pub(super) fn frame(json: &str) -> Vec<u8> {
    format!("{:08x} {json}\n", crc32fast::hash(json.as_bytes())).into_bytes()
}

/// Returns the JSON of a line if its checksum is right.
pub(super) fn unframe(text: &[u8]) -> Option<&[u8]> {
    let (sum, json) = text.split_at_checked(8)?;
    let json = json.strip_prefix(b" ")?;
    let sum = u32::from_str_radix(std::str::from_utf8(sum).ok()?, 16).ok()?;
    (sum == crc32fast::hash(json)).then_some(json)
}

#[derive(Deserialize)]
struct Wire {
    n: u64,
    synced: u64,
    head: u64,
    changes: Vec<Entry>,
}

fn encode_entry(entry: &Entry) -> String {
    match entry {
        Entry::Put(key, value) => match keys::one_line(value) {
            Some(json) => format!(r#"["put",{},{json}]"#, quoted(key)),
            None => format!(r#"["put_bytes",{},{}]"#, quoted(key), quoted(value)),
        },
        Entry::Delete(key) => format!(r#"["del",{}]"#, quoted(key)),
        Entry::DeleteAll(prefix) => format!(r#"["del_all",{}]"#, quoted(prefix)),
    }
}

/// Returns the text form as a JSON string; of what JSON escapes, it only has these two.
fn quoted(bytes: &[u8]) -> String {
    format!("\"{}\"", keys::text(bytes).replace('\\', r"\\").replace('"', "\\\""))
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_seq(Parts)
    }
}

struct Parts;

impl<'de> Visitor<'de> for Parts {
    type Value = Entry;

    fn expecting(&self, to: &mut fmt::Formatter) -> fmt::Result {
        to.write_str("a change")
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut parts: S) -> Result<Entry, S::Error> {
        let short = || S::Error::custom("a change is too short");
        let bytes = |text: String| keys::parse(&text).ok_or_else(|| S::Error::custom("a key has another form"));
        let kind: &str = parts.next_element()?.ok_or_else(short)?;
        let key = bytes(parts.next_element()?.ok_or_else(short)?)?;
        match kind {
            "put" => {
                let json: &RawValue = parts.next_element()?.ok_or_else(short)?;
                Ok(Entry::Put(key, json.get().as_bytes().to_vec()))
            }
            "put_bytes" => Ok(Entry::Put(key, bytes(parts.next_element()?.ok_or_else(short)?)?)),
            "del" => Ok(Entry::Delete(key)),
            "del_all" => Ok(Entry::DeleteAll(key)),
            _ => Err(S::Error::custom("a change of another kind")),
        }
    }
}
