//! What goes back over the wire, and what a path and a query hold.

use std::io::{Result, Write};

use serde_json::{Value, json};

use crate::http::{self, Request};

/// An answer.
#[derive(Debug, Clone, Default)]
pub struct Reply {
    /// Its status.
    pub status: u16,
    /// Its headers, without its length.
    pub headers: Vec<(String, String)>,
    /// Its body.
    pub body: Vec<u8>,
}

impl Reply {
    /// Makes an answer of JSON.
    pub fn json(status: u16, body: &Value) -> Self {
        Self::text(status, "application/json", body.to_string())
    }

    /// Makes an answer of any type.
    pub fn text(status: u16, kind: &str, body: impl Into<Vec<u8>>) -> Self {
        Self { status, body: body.into(), ..Self::default() }.with("content-type", kind)
    }

    /// Makes the answer 204.
    pub fn nothing() -> Self {
        Self { status: 204, ..Self::default() }
    }

    /// Makes the answer of both servers' framework, `{"detail": …}`.
    pub fn detail(status: u16, detail: impl Into<Value>) -> Self {
        Self::json(status, &json!({ "detail": detail.into() }))
    }

    /// Makes the answer that carries a file.
    pub fn file(name: &str, bytes: Vec<u8>) -> Self {
        let disposition = format!("attachment; filename=\"{name}\"");
        Self::text(200, "application/octet-stream", bytes).with("content-disposition", &disposition)
    }

    /// Adds a header.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sends it whole.
    pub fn send(&self, stream: &mut impl Write) -> Result<()> {
        self.send_part(stream, self.body.len())
    }

    /// Sends its head and the first `count` bytes of its body.
    pub fn send_part(&self, stream: &mut impl Write, count: usize) -> Result<()> {
        let mut headers = self.headers.clone();
        if self.status != 204 {
            headers.push(("content-length".to_owned(), self.body.len().to_string()));
        }
        http::head(stream, self.status, &headers)?;
        stream.write_all(&self.body[..count])?;
        stream.flush()
    }
}

/// Returns the parts of a path, decoded, so that an encoded slash stays within its part.
pub fn parts(path: &str) -> Vec<String> {
    path.split('/').filter(|part| !part.is_empty()).map(decode).collect()
}

/// Tells whether a request has this method and these last parts of its path; `*` is any.
pub fn is_to(request: &Request, method: &str, suffix: &str) -> bool {
    let (own, wanted) = (request.path.split('/').rev(), suffix.split('/').filter(|part| !part.is_empty()).rev());
    let mut own = own.skip_while(|part| part.is_empty());
    let mut wanted = wanted.map(|part| (part, own.next()));
    (method == "*" || request.method == method)
        && wanted.all(|(part, own)| own.is_some_and(|own| part == "*" || part == own))
}

/// Returns a parameter of the query.
pub fn parameter(request: &Request, name: &str) -> Option<String> {
    let pairs = request.query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(key, value)| (key, value.replace('+', " "))).find(|(key, _)| *key == name).map(|(_, v)| decode(&v))
}

/// Returns a parameter that must be there.
pub fn needed(request: &Request, name: &str) -> std::result::Result<String, Reply> {
    parameter(request, name).ok_or_else(|| invalid("missing", &["query", name], "Field required", &Value::Null))
}

/// Returns a parameter that is a number from `least` to `most`.
pub fn number(
    request: &Request,
    name: &str,
    usual: usize,
    bounds: (usize, usize),
) -> std::result::Result<usize, Reply> {
    let Some(text) = parameter(request, name) else { return Ok(usual) };
    let value = text.parse().ok().filter(|value| (bounds.0..=bounds.1).contains(value));
    value.ok_or_else(|| invalid("int_range", &["query", name], "Input should be within its bounds", &json!(text)))
}

/// Returns a parameter that is true or false.
pub fn flag(request: &Request, name: &str) -> bool {
    parameter(request, name)
        .is_some_and(|text| matches!(text.to_ascii_lowercase().as_str(), "true" | "1" | "yes" | "on"))
}

/// Makes the framework's refusal of a request's shape.
pub fn invalid(kind: &str, place: &[&str], message: &str, input: &Value) -> Reply {
    Reply::detail(422, json!([{"type": kind, "loc": place, "msg": message, "input": input}]))
}

fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..2).filter(|_| *first == b'%').and_then(|pair| std::str::from_utf8(pair).ok());
        let byte = code.and_then(|pair| u8::from_str_radix(pair, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
