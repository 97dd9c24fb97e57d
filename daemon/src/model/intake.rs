//! The body of a reply, from bytes to an answer, whatever kind of body it turns out to be. Pure.
//!
//! What is not an event stream is kept and judged at its end: servers answer 200 with plain JSON, or with a web page.

use std::collections::HashSet;

use serde_json::Value;

use super::chunk::Reply;
use super::failure::{permanent, transient};
use super::{Answer, ProviderError, Sink, sse};

/// The longest body in bytes.
const MAX_BODY: usize = 64 * 1024 * 1024;
const END: &str = "[DONE]";

/// A body so far.
#[derive(Debug, Default)]
pub struct Intake {
    parser: sse::Parser,
    reply: Reply,
    /// Everything, until the first event.
    kept: Vec<u8>,
    read: usize,
    streams: bool,
    complete: bool,
}

impl Intake {
    /// Takes the next bytes; returns true when nothing after them matters.
    pub fn push(&mut self, bytes: &[u8], sink: Sink) -> Result<bool, ProviderError> {
        self.read += bytes.len();
        if self.read > MAX_BODY {
            return Err(permanent(format!("the reply is longer than {MAX_BODY} bytes")));
        }
        if !self.streams {
            self.kept.extend_from_slice(bytes);
        }
        if self.is_document() {
            return Ok(false);
        }
        for event in self.parser.push(bytes).map_err(|error| permanent(error.to_string()))? {
            self.event(&event, sink)?;
            if self.complete {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Tells whether the reply itself is over, though the server may say more.
    pub fn has_ended(&self) -> bool {
        self.reply.has_ended()
    }

    /// Takes the end of the body.
    pub fn finish(mut self, sink: Sink, replies: usize, taken: &HashSet<&str>) -> Result<Answer, ProviderError> {
        if !self.complete
            && !self.is_document()
            && let Some(event) = std::mem::take(&mut self.parser).finish()
        {
            let last = self.event(&event, sink);
            // Half a chunk after the reason does not spoil the reply.
            if !self.has_ended() {
                last?;
            }
        }
        if !self.streams {
            self.document(sink)?;
        }
        self.reply.finish(self.complete, replies, taken)
    }

    /// Tells whether the body starts like JSON or markup, as no line of an event stream does.
    fn is_document(&self) -> bool {
        !self.streams && matches!(self.kept.trim_ascii_start().first(), Some(b'{' | b'[' | b'<'))
    }

    fn event(&mut self, event: &str, sink: Sink) -> Result<(), ProviderError> {
        self.streams = true;
        self.kept = Vec::new();
        // Usually one chunk, but some servers do not end an event before the next begins.
        for text in if is_json(event) { vec![event] } else { event.lines().collect() } {
            self.chunk(text.trim(), sink)?;
        }
        Ok(())
    }

    fn chunk(&mut self, text: &str, sink: Sink) -> Result<(), ProviderError> {
        if text == END {
            self.complete = true;
        }
        // Words, such as a ping, are no chunks.
        if self.complete || !text.starts_with(['{', '[']) {
            return Ok(());
        }
        let chunk = serde_json::from_str(text).map_err(|_| {
            transient(format!("the reply is truncated or garbled: a chunk of {} bytes is not JSON", text.len()))
        })?;
        self.reply.push(&chunk, sink)
    }

    /// Judges a body that was no event stream.
    fn document(&mut self, sink: Sink) -> Result<(), ProviderError> {
        let body = String::from_utf8_lossy(&std::mem::take(&mut self.kept)).into_owned();
        let body = without_comments(&body);
        if body.is_empty() {
            return Ok(());
        }
        if !body.starts_with(['{', '[']) {
            let kind = if body.starts_with('<') { "HTML" } else { "neither JSON nor an event stream" };
            return Err(permanent(format!("the reply is {kind} ({} bytes); check base_url", body.len())));
        }
        for value in serde_json::Deserializer::from_str(body).into_iter::<Value>() {
            let value = value.map_err(|_| transient(format!("the reply is truncated JSON ({} bytes)", body.len())))?;
            self.reply.push(&value, sink)?;
            if value.get("choices").is_none() {
                return Err(permanent(format!(
                    "the reply is JSON but no completion ({} bytes); check base_url",
                    body.len()
                )));
            }
        }
        self.complete = true;
        Ok(())
    }
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

/// Skips blank lines and the comments that keep a connection alive.
fn without_comments(body: &str) -> &str {
    let mut rest = body.trim_start_matches('\u{feff}').trim();
    while rest.starts_with(':') {
        rest = rest.split_once('\n').map_or("", |(_, after)| after).trim_start();
    }
    rest
}

#[cfg(test)]
mod tests;
