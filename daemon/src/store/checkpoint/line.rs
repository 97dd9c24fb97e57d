//! One record as one line of JSON: `["key text", value]`, the value as it is stored.

use std::io::{self, ErrorKind};

use serde_json::value::RawValue;

use super::super::keys;
use super::super::tail::Record;

/// Appends the line of a record, or says why its value makes none.
pub fn encode(out: &mut Vec<u8>, key: &[u8], value: &[u8]) -> io::Result<()> {
    let text = keys::text(key);
    // What is read back must be the very bytes.
    if keys::one_line(value).is_none() {
        return Err(io::Error::new(ErrorKind::InvalidData, format!("the value of {text} is not one line of JSON")));
    }
    out.push(b'[');
    serde_json::to_writer(&mut *out, &text)?;
    out.push(b',');
    out.extend_from_slice(value);
    out.extend_from_slice(b"]\n");
    Ok(())
}

/// Reads a line back.
pub fn decode(line: &[u8]) -> io::Result<Record> {
    let (text, value): (String, &RawValue) = serde_json::from_slice(line)?;
    let key = keys::parse(&text).ok_or_else(|| io::Error::new(ErrorKind::InvalidData, format!("{text} is no key")))?;
    Ok((key, value.get().as_bytes().to_vec()))
}

/// Keys as text inside a manifest.
pub mod key_text {
    use serde::{Deserialize, Deserializer, Serializer, de};

    use super::keys;

    pub fn serialize<S: Serializer>(key: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&keys::text(key))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(deserializer)?;
        keys::parse(&text).ok_or_else(|| de::Error::custom(format!("{text} is no key")))
    }
}
