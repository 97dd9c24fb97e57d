//! Tasks: one thing to do, submitted to a session.

use crate::Object;
use crate::id::{SessionId, SessionRef, TaskId};
use crate::session::CreateParams;
use crate::time::Timestamp;

words!(
    /// What becomes of a task that ran when the daemon ended.
    Resume {
        /// It goes on by itself, twice at most.
        Auto = "auto",
        /// It waits for resume or cancel.
        Ask = "ask",
        /// It has failed.
        Never = "never",
    }
);

words!(
    /// Where a task comes from.
    Origin {
        /// A caller submitted it.
        User = "user",
        /// A follow-up fell due.
        Followup = "followup",
        /// A steering message reached an idle session.
        Steering = "steering",
        /// A parent session delegated it.
        Subagent = "subagent",
    }
);

words!(
    /// How far a task is.
    TaskState {
        /// It waits for its turn.
        Queued = "queued",
        /// It runs.
        Running = "running",
        /// An answer came.
        Succeeded = "succeeded",
        /// It ended without one.
        Failed = "failed",
        /// It was cancelled.
        Cancelled = "cancelled",
        /// It waits for resume or cancel.
        Interrupted = "interrupted",
    }
);

impl TaskState {
    /// Tells whether nothing more happens by itself: `task.wait` answers here.
    pub fn is_settled(self) -> bool {
        !matches!(self, Self::Queued | Self::Running)
    }
}

words!(
    /// Why a task ended as it did.
    Reason {
        /// An answer came.
        Done = "done",
        /// The reply was cut by the length limit.
        Length = "length",
        /// It used all its turns.
        MaxTurns = "max_turns",
        /// It used all its time.
        Timeout = "timeout",
        /// It repeated itself.
        Loop = "loop",
        /// It used all its tokens or money.
        Budget = "budget",
        /// Policy ended it.
        Denied = "denied",
        /// The model or the booter gave up.
        Error = "error",
        /// It was cancelled.
        Cancelled = "cancelled",
        /// The daemon ended and the task was not resumed.
        Restart = "restart",
    }
);

wire! {
    /// Tokens and money.
    #[derive(Default)]
    pub struct Usage {
        /// Tokens read by the model.
        pub input_tokens: u64,
        /// Tokens written by the model.
        pub output_tokens: u64,
        /// In the currency of the config's prices; absent without prices.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub cost: Option<f64>,
    }

    /// What made a task fail.
    pub struct TaskError {
        /// A word for programs: `model`, `booter`, `store`, or the reason.
        pub kind: String,
        /// One line for people.
        pub message: String,
    }

    /// A task.
    pub struct Task {
        /// Its id.
        pub id: TaskId,
        /// The number of its `task.queued` event.
        pub seq: u64,
        /// The session it runs in.
        pub session: SessionId,
        /// Where it comes from.
        pub origin: Origin,
        /// What to do.
        pub content: String,
        /// How far it is.
        pub state: TaskState,
        /// Why it ended so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub reason: Option<Reason>,
        /// The last assistant text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub result: Option<String>,
        /// What made it fail.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub error: Option<TaskError>,
        /// What it used.
        pub usage: Usage,
        /// Model replies so far.
        pub turns: u32,
        /// The caller's own data.
        pub metadata: Object,
        /// When it was accepted.
        pub created_at: Timestamp,
        /// When it began.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub started_at: Option<Timestamp>,
        /// When it ended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub finished_at: Option<Timestamp>,
        /// True where the idempotency key was known.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pub replayed: bool,
    }

    /// Result of `task.list`.
    pub struct Tasks {
        /// Newest first.
        pub tasks: Vec<Task>,
        /// Goes into `after` for the rest.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub next: Option<String>,
    }
}

impl Usage {
    /// Adds another's tokens and money.
    pub fn add(&mut self, other: &Self) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        if let Some(cost) = other.cost {
            self.cost = Some(self.cost.unwrap_or(0.0) + cost);
        }
    }
}

params! {
    /// Bounds of one task, beside the agent's.
    pub struct Limits {
        /// Model replies.
        pub max_turns: Option<u32>,
        /// Wall clock in milliseconds.
        pub timeout_ms: Option<u64>,
        /// Input and output tokens together.
        pub tokens: Option<u64>,
        /// Money, in the currency of the config's prices.
        pub cost: Option<f64>,
    }

    /// Parameters of `task.submit`.
    pub struct SubmitParams {
        /// The session to run in.
        pub session: Option<SessionRef>,
        /// The session to make for it.
        pub create: Option<CreateParams>,
        /// What to do.
        pub content: String,
        /// The caller's own data.
        pub metadata: Option<Object>,
        /// The same key and parameters answer the same task.
        pub idempotency_key: Option<String>,
        /// Bounds of this task.
        pub limits: Option<Limits>,
    }

    /// Parameters of the methods that take a task alone.
    pub struct TaskParams {
        /// Its id.
        pub task: String,
    }

    /// Parameters of `task.wait`.
    pub struct WaitParams {
        /// Its id.
        pub task: String,
        /// How long to wait; for ever unless told.
        pub timeout_ms: Option<u64>,
    }

    /// Parameters of `task.list`.
    pub struct TaskListParams {
        /// Only those of this session.
        pub session: Option<SessionRef>,
        /// Only those in this state.
        pub state: Option<TaskState>,
        /// At most so many; 200 unless told.
        pub limit: Option<usize>,
        /// `next` of the page before.
        pub after: Option<String>,
    }
}
