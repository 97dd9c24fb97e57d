//! Errors of model servers, in whatever shape they come: found, put into one line, and classed.

use serde_json::Value;

use super::{Class, ProviderError};
use crate::http::wait::asked;

/// Where the reason is looked for, in this order.
const REASONS: [&str; 8] = ["message", "msg", "detail", "error", "errors", "error_description", "reason", "title"];
/// Where the words for programs are.
const CODES: [&str; 4] = ["code", "type", "status", "status_code"];
/// Words for what no retry mends, in codes and types.
const PERMANENT: [&str; 10] = [
    "invalid_request",
    "invalid_api_key",
    "invalid_prompt",
    "authentication",
    "permission",
    "not_found",
    "context_length_exceeded",
    "exceed_context_size",
    "content_policy",
    "unsupported",
];
/// Words for an account that is used up: they turn a rate limit into something that waiting does not mend.
const QUOTA: [&str; 4] = ["insufficient_quota", "quota_exceeded", "billing", "insufficient_balance"];

/// An error as a server reports it in JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The reason, not yet safe to show.
    pub reason: String,
    codes: Vec<String>,
}

/// Returns the error in a text that may also be something else, such as a chunk of a reply.
pub fn find(value: &Value) -> Option<Report> {
    if let Value::Array(items) = value {
        return items.iter().find_map(find);
    }
    let object = value.as_object()?;
    let has = |key: &&str| object.get(*key).is_some_and(is_something);
    let is_error = ["error", "errors"].iter().any(has)
        || object.get("type").is_some_and(|kind| kind == "error")
        || (!object.contains_key("choices") && ["message", "msg", "detail"].iter().any(has));
    is_error.then(|| describe(value))
}

/// Reads a text that is an error, of any shape.
pub fn describe(value: &Value) -> Report {
    let value = match value {
        Value::Array(items) => items.first().unwrap_or(value),
        other => other,
    };
    let inner = value.get("error").filter(|inner| is_something(inner)).unwrap_or(value);
    let codes = [inner, value].into_iter().flat_map(|from| CODES.iter().filter_map(|key| from.get(*key)));
    Report { reason: reason(inner).unwrap_or_else(|| inner.to_string()), codes: codes.filter_map(word).collect() }
}

impl Report {
    /// Tells whether an error with this HTTP status may pass.
    pub fn class(&self, status: u16) -> Class {
        if self.says(&QUOTA) { Class::Permanent } else { class_of(status) }
    }

    /// Makes the error of a reply that began well.
    pub fn within_reply(self) -> ProviderError {
        let status = self.codes.iter().find_map(|code| code.parse().ok().filter(|code| (400..600).contains(code)));
        let class = match status {
            Some(status) => self.class(status),
            None if self.says(&QUOTA) || self.says(&PERMANENT) => Class::Permanent,
            None => Class::Transient,
        };
        let retry_after = asked(|_| None, &self.reason, 0.0).filter(|_| class == Class::Transient);
        ProviderError { class, message: format!("the model server reports: {}", self.reason), retry_after }
    }

    fn says(&self, words: &[&str]) -> bool {
        self.codes.iter().any(|code| words.iter().any(|word| code.contains(word)))
    }
}

/// Tells whether a request that was answered with this HTTP status may succeed later.
pub fn class_of(status: u16) -> Class {
    match status {
        408 | 409 | 425 | 429 | 500..=599 => Class::Transient,
        _ => Class::Permanent,
    }
}

/// Makes an error that another try may mend.
pub fn transient(message: impl Into<String>) -> ProviderError {
    ProviderError { class: Class::Transient, message: message.into(), retry_after: None }
}

/// Makes an error that no other try mends.
pub fn permanent(message: impl Into<String>) -> ProviderError {
    ProviderError { class: Class::Permanent, message: message.into(), retry_after: None }
}

/// Makes a reason safe to show: without the key, without markup, one line of at most `max` characters.
pub fn one_line(text: &str, key: Option<&str>, max: usize) -> String {
    let text = match key {
        Some(key) if !key.is_empty() => &text.replace(key, "[key]"),
        _ => text,
    };
    let start = text.to_ascii_lowercase();
    if let Some(markup) = ["<html", "<!doctype", "<head", "<body"].iter().filter_map(|tag| start.find(tag)).min() {
        let before = one_line(text.get(..markup).unwrap_or_default(), None, max);
        return format!("{before} (HTML, {} bytes)", text.len() - markup).trim_start().to_owned();
    }
    let blank = |c: char| c.is_whitespace() || c.is_control();
    let words: Vec<&str> = text.split(blank).filter(|word| !word.is_empty()).collect();
    let line = words.join(" ");
    match line.char_indices().nth(max) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

fn is_something(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.trim().is_empty(),
        Value::Object(object) => !object.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::Bool(true) => true,
    }
}

fn reason(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.trim().is_empty() => Some(text.clone()),
        Value::Object(object) => REASONS.iter().find_map(|key| reason(object.get(*key)?)),
        Value::Array(items) => items.iter().find_map(reason),
        Value::Number(_) | Value::String(_) | Value::Null | Value::Bool(_) => None,
    }
}

fn word(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.to_ascii_lowercase()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests;
