//! Plays a cassette: JSON Lines, one turn of the model each. Offline demos and tests need no model.
//!
//! A turn is `{"text"?, "calls"?: [{"id"?, "name", "arguments"?}], "finish"?: "length"|"refused", "usage"?, "delay_ms"?,
//! "chunk_delay_ms"?, "error"?: {"message", "transient"?}}`; `arguments` is an object, or a string that stands for what
//! a model wrote. With `error` the turn fails after its text. Blank lines do not count.

use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

use nano_protocol::message::ToolCall;
use nano_protocol::task::Usage;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::sleep;

use super::calls::arguments;
use super::failure::permanent;
use super::{Answer, Class, Delta, Finish, Provider, ProviderError, Request, Sink};
use crate::sandbox::BoxFuture;

/// In how many pieces a text is given away, about.
const PIECES: usize = 4;

/// A cassette, checked.
#[derive(Debug)]
pub struct Replay {
    file: String,
    turns: Vec<Turn>,
}

#[derive(Debug)]
struct Turn {
    answer: Answer,
    delay: Duration,
    chunk_delay: Duration,
    error: Option<ProviderError>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    #[serde(default)]
    text: String,
    #[serde(default)]
    calls: Vec<Call>,
    finish: Option<Cut>,
    usage: Option<Usage>,
    #[serde(default)]
    delay_ms: u64,
    #[serde(default)]
    chunk_delay_ms: u64,
    error: Option<Failure>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    id: Option<String>,
    name: String,
    arguments: Option<Value>,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum Cut {
    Length,
    Refused,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Failure {
    message: String,
    #[serde(default)]
    transient: bool,
}

impl Replay {
    /// Reads and checks a cassette; an error says where and what.
    pub fn open(path: &Path) -> Result<Self, String> {
        let file = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| format!("{file}: {error}"))?;
        Self::parse(file, &text)
    }

    fn parse(file: String, text: &str) -> Result<Self, String> {
        let mut turns = Vec::new();
        for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
            turns.push(turn(line, turns.len()).map_err(|what| format!("{file}:{number}: {what}"))?);
        }
        Ok(Self { file, turns })
    }

    async fn play(&self, number: usize, sink: Sink<'_>) -> Result<Answer, ProviderError> {
        let Some(turn) = self.turns.get(number) else {
            let what =
                format!("the cassette {} has {} turns and this is reply {}", self.file, self.turns.len(), number + 1);
            return Err(permanent(what));
        };
        sleep(turn.delay).await;
        let letters: Vec<char> = turn.answer.text.chars().collect();
        for piece in letters.chunks(letters.len().div_ceil(PIECES).max(1)) {
            sink(Delta::Text(piece.iter().collect()));
            sleep(turn.chunk_delay).await;
        }
        turn.error.clone().map_or_else(|| Ok(turn.answer.clone()), Err)
    }
}

impl Provider for Replay {
    fn stream<'a>(&'a self, request: &'a Request, sink: Sink<'a>) -> BoxFuture<'a, Result<Answer, ProviderError>> {
        Box::pin(self.play(request.replies, sink))
    }
}

fn turn(line: &str, number: usize) -> Result<Turn, String> {
    let line: Line = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let mut ids = HashSet::new();
    let mut calls = Vec::new();
    for (i, given) in line.calls.into_iter().enumerate() {
        let call = call(given, || format!("call_{number}_{i}"))?;
        if !ids.insert(call.id.clone()) {
            return Err(format!("two calls have the id `{}`", call.id));
        }
        calls.push(call);
    }
    let finish = line.finish.map_or(Finish::Done, |cut| match cut {
        Cut::Length => Finish::Length,
        Cut::Refused => Finish::Refused,
    });
    let error = line.error.map(|error| ProviderError {
        class: if error.transient { Class::Transient } else { Class::Permanent },
        message: error.message,
        retry_after: None,
    });
    Ok(Turn {
        answer: Answer { text: line.text, calls, finish, usage: line.usage.unwrap_or_default() },
        delay: Duration::from_millis(line.delay_ms),
        chunk_delay: Duration::from_millis(line.chunk_delay_ms),
        error,
    })
}

fn call(call: Call, id: impl Fn() -> String) -> Result<ToolCall, String> {
    let text = match call.arguments {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text,
        Some(object @ Value::Object(_)) => object.to_string(),
        Some(other) => return Err(format!("arguments of `{}` are neither an object nor a string: {other}", call.name)),
    };
    let (arguments, arguments_raw) = arguments(text);
    Ok(ToolCall {
        id: call.id.filter(|id| !id.is_empty()).unwrap_or_else(id),
        name: call.name,
        arguments,
        arguments_raw,
    })
}

#[cfg(test)]
mod tests;
