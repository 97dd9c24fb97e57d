//! Messages of a transcript.

use crate::Object;
use crate::id::{MessageId, TaskId};
use crate::time::Timestamp;

words!(
    /// Whose words a message holds.
    Role {
        /// The caller's, or a parent session's.
        User = "user",
        /// The model's.
        Assistant = "assistant",
        /// A tool's result.
        Tool = "tool",
        /// Said into a running task.
        Steering = "steering",
        /// A follow-up that fell due.
        Followup = "followup",
    }
);

words!(
    /// Why a call never started.
    NotRun {
        /// Steering asked for no further call.
        Redirect = "redirect",
        /// The task was cancelled.
        Cancel = "cancel",
        /// The reply was cut by the length limit.
        Length = "length",
        /// The daemon ended before the call began.
        Restart = "restart",
        /// A limit of the task was reached.
        Limit = "limit",
        /// Policy forbade it.
        Denied = "denied",
    }
);

words!(
    /// How a call that did start ended without its own result.
    Outcome {
        /// It was stopped on the way.
        Stopped = "stopped",
        /// It was running when the daemon died.
        Unknown = "unknown",
    }
);

wire! {
    /// One call of a tool that a reply asks for.
    pub struct ToolCall {
        /// Unique in the session.
        pub id: String,
        /// The tool's name as the model wrote it.
        pub name: String,
        /// The arguments; empty where the model's text was not an object.
        pub arguments: Object,
        /// The model's text where it was not a JSON object.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub arguments_raw: Option<String>,
    }

    /// One message of a transcript.
    pub struct Message {
        /// Its id.
        pub id: MessageId,
        /// The number of its `message.added` event; 0 until it is recorded.
        pub seq: u64,
        /// The task it belongs to.
        pub task: TaskId,
        /// Whose words it holds.
        pub role: Role,
        /// The text, without the source prefix that the model sees.
        pub content: String,
        /// The calls that an assistant message asks for.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub tool_calls: Vec<ToolCall>,
        /// The call that a tool message answers.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub tool_call_id: Option<String>,
        /// The tool that was called.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub tool_name: Option<String>,
        /// Whether the call did what was asked; tool messages only.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub ok: Option<bool>,
        /// Why the call never started.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub not_run: Option<NotRun>,
        /// How a started call ended without its own result.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub outcome: Option<Outcome>,
        /// True for a reply that was stopped on the way.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub partial: Option<bool>,
        /// Where a message that is not the caller's own comes from, such as `followup fup_…`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub source: Option<String>,
        /// The sender's own data.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub metadata: Option<Object>,
        /// When it was recorded.
        pub at: Timestamp,
    }
}

impl Message {
    /// Makes an unrecorded message of `task` with nothing but text.
    pub fn text(id: MessageId, task: TaskId, role: Role, content: impl Into<String>, at: Timestamp) -> Self {
        Self {
            id,
            seq: 0,
            task,
            role,
            content: content.into(),
            tool_calls: Vec::new(),
            tool_call_id: None,
            tool_name: None,
            ok: None,
            not_run: None,
            outcome: None,
            partial: None,
            source: None,
            metadata: None,
            at,
        }
    }
}
