//! From bytes to requests: lines, single requests, batches; and from answers to lines. Pure.

use nano_protocol::MAX_BATCH;
use nano_protocol::error::{ErrorKind, RpcError};
use nano_protocol::jsonrpc::{Request, Response};
use nano_protocol::strict;
use serde_json::value::RawValue;

/// Cuts bytes into lines; a line is at most `max` bytes.
pub(super) struct Lines {
    bytes: Vec<u8>,
    scanned: usize,
    max: usize,
}

/// A line is longer than is taken: nothing behind it can be understood.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLong;

impl Lines {
    pub fn new(max: usize) -> Self {
        Self { bytes: Vec::new(), scanned: 0, max }
    }

    /// Returns where to read into.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Tells whether a line has begun and not ended.
    pub fn is_partial(&self) -> bool {
        !self.bytes.is_empty()
    }

    /// Returns the next whole line without its end.
    pub fn next(&mut self) -> Result<Option<Vec<u8>>, TooLong> {
        let fresh = self.bytes.get(self.scanned..).unwrap_or(&[]);
        let Some(at) = fresh.iter().position(|byte| *byte == b'\n').map(|at| at + self.scanned) else {
            self.scanned = self.bytes.len();
            // A CR at the end may belong to the line's end.
            let line = self.bytes.strip_suffix(b"\r").unwrap_or(&self.bytes);
            return if line.len() > self.max { Err(TooLong) } else { Ok(None) };
        };
        let rest = self.bytes.split_off(at + 1);
        let mut line = std::mem::replace(&mut self.bytes, rest);
        self.scanned = 0;
        line.pop();
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        if line.len() > self.max { Err(TooLong) } else { Ok(Some(line)) }
    }

    /// Returns what stood behind the last line end when the peer stopped writing.
    pub fn rest(&mut self) -> Vec<u8> {
        self.scanned = 0;
        std::mem::take(&mut self.bytes)
    }
}

/// What a line asks for.
#[derive(Debug)]
pub(super) enum Frame {
    /// Nothing: a blank line.
    Blank,
    /// One request or notification, or why it is none.
    One(Parsed),
    /// Several, answered together.
    Batch(Vec<Parsed>),
}

/// A request as far as it could be read.
#[derive(Debug)]
pub(super) struct Parsed {
    /// Echoed in the answer; none: no answer.
    pub id: Option<Box<RawValue>>,
    /// The method and its parameters, or what is wrong.
    pub call: Result<Call, RpcError>,
}

/// A method with its parameters.
#[derive(Debug)]
pub(super) struct Call {
    pub method: String,
    pub params: Option<Box<RawValue>>,
}

impl Parsed {
    fn broken(error: RpcError) -> Self {
        Self { id: Some(null()), call: Err(error) }
    }
}

fn null() -> Box<RawValue> {
    RawValue::NULL.to_owned()
}

fn invalid(why: impl Into<String>) -> RpcError {
    RpcError::new(ErrorKind::InvalidRequest, why)
}

/// Reads one line.
pub(super) fn parse(line: &[u8]) -> Frame {
    let Ok(text) = std::str::from_utf8(line) else {
        return Frame::One(Parsed::broken(RpcError::new(ErrorKind::Parse, "the line is not UTF-8")));
    };
    let text = text.trim_matches([' ', '\t', '\r']);
    if text.is_empty() {
        return Frame::Blank;
    }
    if let Err(why) = strict::check(text) {
        return Frame::One(Parsed::broken(RpcError::new(
            ErrorKind::Parse,
            format!("the line is not JSON as it should be: {why}"),
        )));
    }
    if !text.starts_with('[') {
        return Frame::One(request(text));
    }
    let parts: Vec<Box<RawValue>> = serde_json::from_str(text).unwrap_or_default();
    match parts.len() {
        0 => Frame::One(Parsed::broken(invalid("a batch holds at least one request"))),
        1..=MAX_BATCH => Frame::Batch(parts.iter().map(|part| request(part.get())).collect()),
        many => {
            Frame::One(Parsed::broken(invalid(format!("a batch holds at most {MAX_BATCH} requests, this one {many}"))))
        }
    }
}

fn request(text: &str) -> Parsed {
    let request: Request = match serde_json::from_str(text) {
        Ok(request) if text.starts_with('{') => request,
        Ok(_) => return Parsed::broken(invalid("a request is an object")),
        Err(why) => return Parsed::broken(invalid(format!("this is no request: {why}"))),
    };
    let id = match request.id {
        Some(id) if !is_id(&id) => return Parsed::broken(invalid("an id is a string, a number or null")),
        id => id,
    };
    let word = |raw: Option<Box<RawValue>>| raw.and_then(|raw| serde_json::from_str::<String>(raw.get()).ok());
    if word(request.jsonrpc).as_deref() != Some("2.0") {
        return Parsed { id: id.or_else(|| Some(null())), call: Err(invalid("jsonrpc must be \"2.0\"")) };
    }
    let Some(method) = word(request.method) else {
        return Parsed { id: id.or_else(|| Some(null())), call: Err(invalid("method must be a string")) };
    };
    Parsed { id, call: Ok(Call { method, params: request.params }) }
}

fn is_id(id: &RawValue) -> bool {
    id.get() == "null" || id.get().starts_with(['"', '-']) || id.get().starts_with(|c: char| c.is_ascii_digit())
}

/// Tells whether the peer speaks HTTP, which will never become JSON.
pub(super) fn is_http(line: &[u8]) -> bool {
    let verbs =
        [b"GET ".as_slice(), b"POST ", b"PUT ", b"HEAD ", b"OPTIONS ", b"DELETE ", b"CONNECT ", b"PATCH ", b"PRI "];
    verbs.iter().any(|verb| line.starts_with(verb))
}

/// Writes an answer, without its line end.
pub(super) fn answer(id: &RawValue, result: &Result<Box<RawValue>, RpcError>) -> String {
    let response = Response { jsonrpc: "2.0", id, result: result.as_deref().ok(), error: result.as_ref().err() };
    // Raw JSON, text keys: it always encodes.
    serde_json::to_string(&response).unwrap_or_default()
}

#[cfg(test)]
mod tests;
