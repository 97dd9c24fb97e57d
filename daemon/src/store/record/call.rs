//! A call while it is under way: what another daemon needs to know of it.

use nano_protocol::id::ApprovalId;
use nano_protocol::message::{Message, NotRun, Outcome, ToolCall};
use nano_protocol::time::Timestamp;
use serde::{Deserialize, Serialize};

/// A call that has started and is not closed in the transcript yet.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CallRecord {
    /// The call's id.
    pub id: String,
    /// Its result, once there is one.
    pub result: Option<CallResult>,
    /// When it was last started; a version that did not know this did not know of intents either.
    #[serde(default)]
    pub begun: Option<Timestamp>,
    /// How often it was started: more than once where a daemon after the first ran it again.
    #[serde(default)]
    pub starts: u32,
    /// What it is about to do to a file: on record before that is touched.
    #[serde(default)]
    pub intent: Option<Intent>,
    /// What a person was last asked about it.
    #[serde(default)]
    pub approval: Option<ApprovalId>,
}

/// What a call is about to do to a file, told so that one can see afterwards whether it was done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intent {
    /// The file.
    pub path: String,
    /// What it holds; none: there is no such file.
    pub before: Option<Mark>,
    /// What it will hold.
    pub after: Mark,
    /// The call's result then.
    pub says: String,
}

/// What tells the contents of a file from others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// How many bytes.
    pub bytes: u64,
    /// Their SHA-256, or of what is too long to be read for this, which file it is and when it was changed.
    pub print: String,
}

/// What a call came to.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CallResult {
    /// What the model reads.
    pub content: String,
    /// Whether it did what was asked.
    pub ok: bool,
    /// Whether it was stopped on the way.
    pub stopped: bool,
    /// Whether it died with the daemon, and nobody knows what came of it.
    #[serde(default)]
    pub unknown: bool,
    /// Why it counts as never run, if it does.
    #[serde(default)]
    pub not_run: Option<NotRun>,
}

impl CallResult {
    /// Makes `message` the result of `call`.
    pub fn tell(self, call: ToolCall, message: &mut Message) {
        (message.tool_call_id, message.tool_name) = (Some(call.id), Some(call.name));
        (message.content, message.ok, message.not_run) = (self.content, Some(self.ok), self.not_run);
        let stopped = self.stopped.then_some(Outcome::Stopped);
        message.outcome = stopped.or(self.unknown.then_some(Outcome::Unknown));
    }
}
