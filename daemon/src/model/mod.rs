//! Models: one request in, one reply out, with pieces on the way. [`retry`] says what is tried again.
//!
//! Bytes flow one way: [`openai`] reads them from the server, [`intake`] frames them ([`sse`]) and decodes them
//! ([`chunk`], [`calls`], [`think`]) into an [`Answer`]; what goes wrong is put into words by [`failure`] and [`crate::http::wait`].
//! All but [`openai`], [`replay`] and [`detect`] is pure.

pub mod body;
pub mod calls;
pub mod catalog;
pub mod chunk;
pub mod detect;
pub mod failure;
pub mod intake;
pub mod openai;
pub mod replay;
pub mod retry;
pub mod sse;
pub mod think;

use std::time::Duration;

use nano_protocol::message::ToolCall;
use nano_protocol::task::Usage;
use nano_protocol::tool::Tool;

use crate::sandbox::BoxFuture;

/// One message as a provider sees it.
#[derive(Debug, Clone, PartialEq)]
pub enum ChatMessage {
    /// The caller, steering and follow-ups.
    User(String),
    /// The model.
    Assistant {
        /// What it said.
        text: String,
        /// What it called.
        calls: Vec<ToolCall>,
    },
    /// A call's result; they stand in the reply's order, one for each call.
    Tool {
        /// The call.
        id: String,
        /// The tool.
        name: String,
        /// The result.
        text: String,
    },
}

/// One request.
#[derive(Debug, Clone)]
pub struct Request {
    /// The assembled prompt; empty: none is sent.
    pub system: String,
    /// The transcript.
    pub messages: Vec<ChatMessage>,
    /// What may be called.
    pub tools: Vec<Tool>,
    /// The number of model replies, whole or partial, that the session's transcript holds already.
    pub replies: usize,
}

/// A piece of a reply on its way; a hint for people, never the truth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delta {
    /// Of the answer.
    Text(String),
    /// Of the reasoning before it.
    Reasoning(String),
}

/// Takes pieces; must not block.
pub type Sink<'a> = &'a (dyn Fn(Delta) + Send + Sync);

/// Why a reply ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// The model was done, or wants its calls run.
    Done,
    /// The length limit cut it: its calls must not run.
    Length,
    /// The model or a filter refused.
    Refused,
}

/// A whole reply.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// What it said.
    pub text: String,
    /// What it calls, each id non-empty and unique within the reply, in order.
    pub calls: Vec<ToolCall>,
    /// Why it ended.
    pub finish: Finish,
    /// What it used, without cost.
    pub usage: Usage,
}

/// Whether a failed request is worth another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Overload, rate limit, a broken connection: the same request may succeed.
    Transient,
    /// Key, quota, a request that is not valid: it will not.
    Permanent,
}

/// A request that failed.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct ProviderError {
    /// Whether to try again.
    pub class: Class,
    /// One line; never a key, never a whole body.
    pub message: String,
    /// How long the server asks to wait.
    pub retry_after: Option<Duration>,
}

/// Speaks to one model.
pub trait Provider: Send + Sync {
    /// Makes one request and reads its reply. Dropping the future stops both.
    fn stream<'a>(&'a self, request: &'a Request, sink: Sink<'a>) -> BoxFuture<'a, Result<Answer, ProviderError>>;
}
