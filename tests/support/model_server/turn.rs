//! One scripted turn of the model and how it goes over the wire.

use std::io::{Result, Write};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::http;

/// What the model does with one request. `{n}` in texts, ids and arguments stands for the request's number.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Turn {
    /// What it says, a piece for each word.
    pub text: String,
    /// What it calls.
    pub calls: Vec<Call>,
    /// The finish reason where it is not the usual one.
    pub finish: Option<String>,
    /// An error status instead of a reply.
    pub status: Option<u16>,
    /// Seconds that an error asks to wait.
    pub retry_after: Option<u64>,
    /// Accepts the request and never answers.
    pub hang: bool,
    /// Where the reply waits for the test.
    pub gate: Option<Gate>,
    /// Only for a request whose messages hold this text.
    pub when: Option<String>,
    /// Serves any number of requests.
    pub repeat: bool,
}

/// A call that the model makes.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// Its id.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments; a string goes out as it is.
    pub arguments: Value,
}

/// A place where a reply waits.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gate {
    /// What the test opens.
    pub name: String,
    /// After so many pieces, or before the finish where there are fewer; 0: before the first byte.
    #[serde(default)]
    pub after: usize,
}

impl Turn {
    /// Makes a turn that says `text`.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Makes a turn that calls `exec` with `command`.
    pub fn exec(id: impl Into<String>, command: impl Into<String>) -> Self {
        let command: String = command.into();
        let call = Call { id: id.into(), name: "exec".to_owned(), arguments: json!({ "command": command }) };
        Self { calls: vec![call], ..Self::default() }
    }

    /// Holds the turn at a gate before its first byte.
    #[must_use]
    pub fn gated(mut self, name: &str) -> Self {
        self.gate = Some(Gate { name: name.to_owned(), after: 0 });
        self
    }

    /// Tells whether the turn may answer `request`.
    pub fn fits(&self, request: &Value) -> bool {
        self.when.as_ref().is_none_or(|text| request["messages"].to_string().contains(text))
    }

    /// Sends the turn, waiting at its gate by `pass`, which says false when all is over.
    pub fn play(&self, stream: &mut impl Write, number: usize, pass: impl Fn(&str) -> bool) -> Result<()> {
        let hold = |at: usize| self.gate.as_ref().is_none_or(|gate| gate.after != at || pass(&gate.name));
        if !hold(0) || (self.hang && !pass("never")) {
            return Ok(());
        }
        if let Some(status) = self.status {
            let body = json!({"error": {"message": "scripted failure", "type": "scripted"}}).to_string();
            return http::reply(stream, status, self.retry_after, &body);
        }
        http::begin_events(stream)?;
        http::event(stream, &chunk(&json!({"role": "assistant", "content": null}), None))?;
        let pieces = self.pieces(number);
        for (sent, piece) in pieces.iter().enumerate() {
            if sent > 0 && !hold(sent) {
                return Ok(());
            }
            http::event(stream, &chunk(piece, None))?;
        }
        let late = self.gate.as_ref().filter(|gate| gate.after > 0 && gate.after >= pieces.len());
        if late.is_some_and(|gate| !pass(&gate.name)) {
            return Ok(());
        }
        self.end(stream)
    }

    fn end(&self, stream: &mut impl Write) -> Result<()> {
        let usual = if self.calls.is_empty() { "stop" } else { "tool_calls" };
        let finish = self.finish.as_deref().unwrap_or(usual);
        http::event(stream, &chunk(&json!({}), Some(finish)))?;
        let usage = json!({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15});
        http::event(stream, &json!({"id": "x", "choices": [], "usage": usage}).to_string())?;
        http::event(stream, "[DONE]")
    }

    fn pieces(&self, number: usize) -> Vec<Value> {
        let number = number.to_string();
        let text = self.text.replace("{n}", &number);
        let words = text.split_inclusive(' ').map(|word| json!({ "content": word })).collect::<Vec<_>>();
        let calls = self.calls.iter().enumerate().flat_map(|(index, call)| call.pieces(index, &number));
        words.into_iter().chain(calls).collect()
    }
}

impl Call {
    /// Makes the pieces of a call: its head, then its arguments in two halves.
    fn pieces(&self, index: usize, number: &str) -> [Value; 3] {
        let text = self.arguments.as_str().map_or_else(|| self.arguments.to_string(), str::to_owned);
        let text = text.replace("{n}", number);
        let middle = (0..=text.len() / 2).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        let (first, second) = text.split_at(middle);
        let id = self.id.replace("{n}", number);
        let head =
            json!({"index": index, "id": id, "type": "function", "function": {"name": self.name, "arguments": ""}});
        let part = |text: &str| json!({"tool_calls": [{"index": index, "function": {"arguments": text}}]});
        [json!({ "tool_calls": [head] }), part(first), part(second)]
    }
}

fn chunk(delta: &Value, finish: Option<&str>) -> String {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
    json!({"id": "x", "object": "chat.completion.chunk", "created": 0, "model": "scripted", "choices": [choice]})
        .to_string()
}
