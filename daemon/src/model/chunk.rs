//! The reply of a chat completion, put together from its chunks. Pure.
//!
//! Decoding is tolerant: null is absent, an odd type is no error, what is not known is ignored. A whole (unstreamed)
//! reply is one chunk with `message` in place of `delta`.

use std::collections::HashSet;

use nano_protocol::task::Usage;
use serde_json::Value;

use super::calls::Calls;
use super::failure::{find, transient};
use super::think::Splitter;
use super::{Answer, Delta, Finish, ProviderError, Sink};

/// A reply so far.
#[derive(Debug, Default)]
pub struct Reply {
    text: Splitter,
    calls: Calls,
    usage: Usage,
    /// Once the server gave a reason; the worst it gave.
    finish: Option<Finish>,
    /// The server said by a reason of its own that it failed.
    failed: bool,
    /// Anything of the model's was seen.
    begun: bool,
}

impl Reply {
    /// Takes the next chunk and hands on what can be shown.
    pub fn push(&mut self, chunk: &Value, sink: Sink) -> Result<(), ProviderError> {
        if let Some(report) = find(chunk) {
            return Err(report.within_reply());
        }
        self.count(chunk);
        // More than one choice was never asked for; some gateways put text and calls into one each.
        for choice in chunk.get("choices").and_then(Value::as_array).into_iter().flatten() {
            let pieces = choice.get("delta").filter(|delta| delta.is_object()).or_else(|| choice.get("message"));
            if let Some(pieces) = pieces {
                self.add(pieces, sink);
            }
            if let Some(reason) = choice.get("finish_reason").and_then(Value::as_str) {
                self.end(reason.trim());
            }
        }
        Ok(())
    }

    /// Tells whether the server gave the reason why the reply ends; more chunks may follow.
    pub fn has_ended(&self) -> bool {
        self.finish.is_some() || self.failed
    }

    /// Returns the reply. `complete` says that the transport saw its end, `replies` and `taken` serve for the ids of
    /// calls as in [`Calls::finish`].
    pub fn finish(self, complete: bool, replies: usize, taken: &HashSet<&str>) -> Result<Answer, ProviderError> {
        if self.failed {
            return Err(transient("the model server ended the reply with an error and no reason"));
        }
        match self.finish {
            None if !complete => return Err(transient("the reply is truncated: the model server closed it early")),
            None if !self.begun => return Err(transient("the reply is empty")),
            _ => {}
        }
        Ok(Answer {
            text: self.text.finish(),
            calls: self.calls.finish(replies, taken),
            finish: self.finish.unwrap_or(Finish::Done),
            usage: self.usage,
        })
    }

    fn add(&mut self, pieces: &Value, sink: Sink) {
        let reasoning = ["reasoning_content", "reasoning"].into_iter().map(|key| text(pieces.get(key)));
        if let Some(reasoning) = reasoning.into_iter().find(|text| !text.is_empty()) {
            sink(Delta::Reasoning(reasoning));
        }
        let refusal = text(pieces.get("refusal"));
        if !refusal.is_empty() {
            self.end("refusal");
        }
        let content = text(pieces.get("content"));
        self.begun |= !content.is_empty();
        for delta in [content, refusal].iter().filter(|piece| !piece.is_empty()).flat_map(|piece| self.text.push(piece))
        {
            sink(delta);
        }
        if let Some(calls) = pieces.get("tool_calls") {
            self.calls.push(calls);
        }
        self.begun |= !self.calls.is_empty();
    }

    /// Usage is cumulative where it comes often: the last number counts.
    fn count(&mut self, chunk: &Value) {
        let Some(usage) = chunk.get("usage") else { return };
        if let Some(tokens) = usage.get("prompt_tokens").and_then(Value::as_u64) {
            self.usage.input_tokens = tokens;
        }
        if let Some(tokens) = usage.get("completion_tokens").and_then(Value::as_u64) {
            self.usage.output_tokens = tokens;
        }
    }

    fn end(&mut self, reason: &str) {
        let finish = match reason.to_ascii_lowercase().as_str() {
            "" => return,
            "error" => {
                self.failed = true;
                return;
            }
            "length" | "max_tokens" | "max_output_tokens" | "model_length" | "model_context_window_exceeded" => {
                Finish::Length
            }
            "content_filter" | "refusal" | "safety" => Finish::Refused,
            _ => Finish::Done,
        };
        if matches!(self.finish, None | Some(Finish::Done)) {
            self.finish = Some(finish);
        }
    }
}

/// Reads text that is a string, or a list of parts with text.
fn text(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => parts.iter().map(text_of_part).collect(),
        _ => String::new(),
    }
}

fn text_of_part(part: &Value) -> &str {
    part.get("text").and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests;
