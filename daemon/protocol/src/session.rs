//! Sessions: a durable conversation with a workspace, an agent, a booter and the tool list it really has.

use crate::Object;
use crate::id::{MessageId, SessionId, TaskId};
use crate::message::Message;
use crate::task::Usage;
use crate::time::Timestamp;
use crate::tool::{Prompt, Tool, Withheld};

mod params;

pub use params::{CreateParams, ListParams, MessagesParams, SessionParams, SteerParams, WithdrawParams};

words!(
    /// What a session is doing.
    SessionState {
        /// Nothing to do.
        Idle = "idle",
        /// A task runs.
        Running = "running",
        /// A task waits for resume or cancel.
        Interrupted = "interrupted",
        /// It takes nothing more.
        Closed = "closed",
    }
);

words!(
    /// How far the local booter lets tools reach.
    Level {
        /// Nothing may be written.
        ReadOnly = "read-only",
        /// The workspace may be written.
        WorkspaceWrite = "workspace-write",
        /// As the daemon's user.
        Host = "host",
    }
);

words!(
    /// A named set of tools.
    ToolMode {
        /// `read_file`, `write_file`, `edit_file`, exec, python.
        Core = "core",
        /// `read_file`, search, `list_dir`, grep.
        ReadOnly = "readonly",
        /// Both, and the rest.
        All = "all",
    }
);

words!(
    /// When a steering message takes effect.
    Delivery {
        /// After the running batch of calls.
        Note = "note",
        /// After the running call; no other starts.
        Redirect = "redirect",
        /// At once: the reply and the running call are stopped.
        Interrupt = "interrupt",
    }
);

words!(
    /// What became of a steering message.
    AcceptedAs {
        /// It waits for the end of the batch.
        Note = "note",
        /// It stops further calls.
        Redirect = "redirect",
        /// It stops what runs.
        Interrupt = "interrupt",
        /// The session was idle: it is a task.
        Task = "task",
    }
);

words!(
    /// How far something on a session's list is.
    TodoState {
        /// Nothing was done yet.
        Pending = "pending",
        /// It is being done.
        InProgress = "in_progress",
        /// It is done.
        Done = "done",
    }
);

wire! {
    /// Something to do, on a session's own list.
    pub struct Todo {
        /// What.
        pub text: String,
        /// How far it is.
        pub state: TodoState,
    }

    /// A session.
    pub struct Session {
        /// Its id.
        pub id: SessionId,
        /// Its name, unique among open sessions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub name: Option<String>,
        /// The uid it belongs to.
        pub owner: u32,
        /// Its agent profile.
        pub agent: String,
        /// The folder that tools work in.
        pub workspace: String,
        /// Its kind of computer.
        pub booter: String,
        /// Whether that computer has been booted.
        pub booted: bool,
        /// What the computer can do; null before boot or where it does not say.
        pub capabilities: Option<Vec<String>>,
        /// The model's name in the config.
        pub model: String,
        /// How far local tools reach.
        pub level: Level,
        /// The named set of tools.
        pub tool_mode: ToolMode,
        /// The tools by name; null: those of the mode.
        pub tools: Option<Vec<String>>,
        /// The skills by name; null: all.
        pub skills: Option<Vec<String>>,
        /// What it is doing.
        pub state: SessionState,
        /// Calls that a person has allowed for the rest of it, as rules.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub always: Vec<String>,
        /// The session that opened it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub parent: Option<SessionId>,
        /// The caller's own data.
        pub metadata: Object,
        /// When it was made.
        pub created_at: Timestamp,
        /// When it last changed.
        pub updated_at: Timestamp,
        /// What its tasks have used.
        pub usage: Usage,
        /// What its agent has on its list, in the result of `session.get`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub todo: Vec<Todo>,
    }

    /// Result of `session.list`.
    pub struct Sessions {
        /// Newest first.
        pub sessions: Vec<Session>,
        /// Goes into `after` for the rest.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub next: Option<String>,
    }

    /// Result of `session.tools`: the list the model gets, and what it does not get.
    pub struct SessionTools {
        /// The session.
        pub session: SessionId,
        /// Its kind of computer.
        pub booter: String,
        /// Whether that computer has been booted.
        pub booted: bool,
        /// Whether the list is what the computer can really do.
        pub exact: bool,
        /// What the computer can do; null before boot or where it does not say.
        pub capabilities: Option<Vec<String>>,
        /// Rises with every change of the list.
        pub revision: u64,
        /// Offered tools, in the order the model sees.
        pub tools: Vec<Tool>,
        /// Every registered tool that is not offered.
        pub withheld: Vec<Withheld>,
    }

    /// Result of `session.prompts`.
    pub struct SessionPrompts {
        /// The session.
        pub session: SessionId,
        /// Whether its computer has been booted.
        pub booted: bool,
        /// Whether the parts are what the computer can really do.
        pub exact: bool,
        /// The parts, in order.
        pub prompts: Vec<Prompt>,
        /// Exactly what the model gets.
        pub assembled: String,
    }

    /// Result of `session.messages`.
    pub struct Messages {
        /// Oldest first.
        pub messages: Vec<Message>,
        /// Goes into `after_seq` for the rest; absent at the end.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub next_after_seq: Option<u64>,
    }

    /// Result of `session.steer`.
    pub struct Steered {
        /// The message's id.
        pub message: MessageId,
        /// What became of it.
        pub accepted_as: AcceptedAs,
        /// The task it steers or is.
        pub task: TaskId,
        /// How many wait before it.
        pub position: usize,
    }

    /// One thing that waits in a session.
    pub struct Waiting {
        /// A task's or a steering message's id.
        pub id: String,
        /// `task` or `steering`.
        pub kind: WaitingKind,
        /// How steering is delivered.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub delivery: Option<Delivery>,
        /// Its text.
        pub content: String,
        /// When it was accepted.
        pub at: Timestamp,
    }

    /// Result of `session.queue`.
    pub struct Queue {
        /// In the order they will be taken.
        pub waiting: Vec<Waiting>,
    }
}

words!(
    /// What kind of thing waits.
    WaitingKind {
        /// A message for the running task.
        Steering = "steering",
        /// A queued task.
        Task = "task",
    }
);
