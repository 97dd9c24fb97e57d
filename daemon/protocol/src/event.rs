//! Events: numbered, durable facts; and unnumbered pieces that may be lost.

use crate::id::{SessionId, SessionRef, TaskId};
use crate::time::Timestamp;

words!(
    /// What happened.
    EventType {
        /// A session was made.
        SessionCreated = "session.created",
        /// Its computer was booted.
        SessionBooted = "session.booted",
        /// Its tool list changed.
        SessionToolsChanged = "session.tools_changed",
        /// It takes nothing more.
        SessionClosed = "session.closed",
        /// Its computer is gone.
        SandboxLost = "sandbox.lost",
        /// A task was accepted.
        TaskQueued = "task.queued",
        /// A task began.
        TaskStarted = "task.started",
        /// A task waits for resume or cancel.
        TaskInterrupted = "task.interrupted",
        /// A task ended: the only end it has.
        TaskFinished = "task.finished",
        /// A model call began.
        TurnStarted = "turn.started",
        /// A reply and its calls are recorded.
        TurnFinished = "turn.finished",
        /// A message is in the transcript.
        MessageAdded = "message.added",
        /// A call began.
        ToolStarted = "tool.started",
        /// A call ended.
        ToolFinished = "tool.finished",
        /// A steering message waits.
        SteeringQueued = "steering.queued",
        /// A steering message is in the transcript.
        SteeringApplied = "steering.applied",
        /// A steering message waits for the session's next task.
        SteeringCarried = "steering.carried",
        /// A steering message was taken back.
        SteeringWithdrawn = "steering.withdrawn",
        /// A line of the steering file was set aside.
        SteeringRejected = "steering.rejected",
        /// A follow-up was made.
        FollowupScheduled = "followup.scheduled",
        /// A slot made a task.
        FollowupFired = "followup.fired",
        /// A slot passed.
        FollowupMissed = "followup.missed",
        /// A follow-up was cancelled.
        FollowupCancelled = "followup.cancelled",
        /// A background process ended.
        ProcessExited = "process.exited",
        /// A skill changed.
        SkillChanged = "skill.changed",
        /// A call waits for a person.
        ApprovalRequested = "approval.requested",
        /// A person answered.
        ApprovalAnswered = "approval.answered",
        /// A model call is tried again.
        ModelRetry = "model.retry",
        /// Another model is tried.
        ModelFallback = "model.fallback",
        /// The transcript was condensed.
        ContextCompacted = "context.compacted",
        /// Something was degraded.
        Warning = "warning",
        /// A piece of a reply; not durable.
        TextDelta = "text.delta",
        /// A piece of reasoning; not durable.
        ReasoningDelta = "reasoning.delta",
        /// A piece of a call's output; not durable.
        ToolOutput = "tool.output",
        /// Numbers that this reader did not get; not durable.
        Gap = "gap",
    }
);

impl EventType {
    /// Tells whether events of this type are numbered, stored and replayed.
    pub fn is_durable(self) -> bool {
        !matches!(self, Self::TextDelta | Self::ReasoningDelta | Self::ToolOutput | Self::Gap)
    }
}

/// The particulars of an event, by its type: an object that readers take what they know from.
pub type Data = serde_json::Value;

wire! {
    /// One event.
    pub struct Event {
        /// One rising number for the whole daemon; absent where not durable.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub seq: Option<u64>,
        /// The session it happened in.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub session: Option<SessionId>,
        /// The task it happened in.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub task: Option<TaskId>,
        /// When.
        pub at: Timestamp,
        /// What happened.
        #[serde(rename = "type")]
        pub kind: EventType,
        /// Particulars, by type.
        pub data: Data,
    }

    /// Result of `events.subscribe`.
    pub struct Subscribed {
        /// The number in this subscription's notifications.
        pub subscription: u64,
        /// The newest number there is.
        pub head_seq: u64,
    }
}

params! {
    /// Parameters of `events.subscribe`.
    pub struct SubscribeParams {
        /// Only this session's.
        pub session: Option<SessionRef>,
        /// Only this task's.
        pub task: Option<String>,
        /// Only these types; who names `approval.requested` says that somebody is there to answer.
        pub types: Option<Vec<EventType>>,
        /// Those after this number first; from now on unless told.
        pub since_seq: Option<u64>,
        /// Pieces of replies and output too.
        pub deltas: Option<bool>,
    }

    /// Parameters of `events.unsubscribe`.
    pub struct UnsubscribeParams {
        /// Which.
        pub subscription: u64,
    }
}
