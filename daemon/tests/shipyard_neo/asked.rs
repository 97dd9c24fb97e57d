//! Requests as they come to the server of the tests.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;

use serde_json::Value;

/// A request as it came.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    pub line: String,
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
    /// How many of the same method and path came before.
    pub before: usize,
}

impl Asked {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

impl Asked {
    /// Returns method, path and query.
    pub fn parts(&self) -> (&str, &str, &str) {
        let mut words = self.line.split(' ');
        let (method, path) = (words.next().unwrap(), words.next().unwrap());
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        (method, path, query)
    }
}

/// Reads a request; none where it is none.
pub fn read(stream: &TcpStream) -> Option<Asked> {
    let mut reader = BufReader::new(stream);
    let mut asked = Asked::default();
    reader.read_line(&mut asked.line).ok()?;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        asked.headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    let length = asked.headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    asked.body.resize(length, 0);
    reader.read_exact(&mut asked.body).ok()?;
    (!asked.line.is_empty()).then_some(asked)
}
