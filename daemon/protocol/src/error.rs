//! Errors on the wire: the JSON-RPC codes and the daemon's own, each with `data: {kind, hint?, retryable}`.

use serde::{Deserialize, Serialize};

/// What went wrong, as a closed set; the number is the JSON-RPC code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The line is not one JSON text.
    Parse,
    /// The JSON text is not a request.
    InvalidRequest,
    /// No such method.
    MethodNotFound,
    /// The parameters do not fit the method.
    InvalidParams,
    /// A defect of the daemon.
    Internal,
    /// No such session, task, follow-up …
    NotFound,
    /// The object's state or a taken name or key forbids it.
    Conflict,
    /// The caller may not do this.
    Denied,
    /// A bound is reached.
    Limit,
    /// What should be resumed or stopped has ended.
    NotRunning,
    /// A model, booter or the store cannot serve now.
    Unavailable,
    /// The daemon is going down.
    ShuttingDown,
    /// A line or content is too long.
    TooLarge,
}

impl ErrorKind {
    /// Every kind with its code.
    pub const CODES: [(Self, i32); 13] = [
        (Self::Parse, -32700),
        (Self::InvalidRequest, -32600),
        (Self::MethodNotFound, -32601),
        (Self::InvalidParams, -32602),
        (Self::Internal, -32603),
        (Self::NotFound, -32001),
        (Self::Conflict, -32002),
        (Self::Denied, -32003),
        (Self::Limit, -32004),
        (Self::NotRunning, -32005),
        (Self::Unavailable, -32006),
        (Self::ShuttingDown, -32007),
        (Self::TooLarge, -32008),
    ];

    /// Returns the JSON-RPC code.
    pub fn code(self) -> i32 {
        Self::CODES.iter().find(|(kind, _)| *kind == self).map_or(-32603, |(_, code)| *code)
    }

    /// Returns the kind with this code, if it is one of ours.
    pub fn from_code(code: i32) -> Option<Self> {
        Self::CODES.iter().find(|(_, c)| *c == code).map(|(kind, _)| *kind)
    }

    /// Tells whether the same request may succeed later without any change.
    pub fn retryable(self) -> bool {
        matches!(self, Self::Limit | Self::Unavailable | Self::ShuttingDown)
    }
}

/// The error object of a JSON-RPC answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RpcError {
    /// The JSON-RPC code.
    pub code: i32,
    /// One line: what and why.
    pub message: String,
    /// What programs branch on.
    pub data: ErrorData,
}

/// The machine part of an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ErrorData {
    /// The name of the code.
    pub kind: ErrorKind,
    /// What to try.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Whether the same request may succeed later.
    pub retryable: bool,
}

impl RpcError {
    /// Makes an error of `kind` that says `message`.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            code: kind.code(),
            message: message.into(),
            data: ErrorData { kind, hint: None, retryable: kind.retryable() },
        }
    }

    /// Adds what to try.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.data.hint = Some(hint.into());
        self
    }
}

impl std::fmt::Display for RpcError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for RpcError {}
