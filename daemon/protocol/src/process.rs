//! `process.*`: commands that go on in the background.

use crate::id::{ProcessId, SessionId, SessionRef, TaskId};
use crate::time::Timestamp;

words!(
    /// How far a background process is.
    ProcessState {
        /// Something of it runs.
        Running = "running",
        /// It ended by itself.
        Exited = "exited",
        /// It was ended: by the agent, by a client, or with its session.
        Killed = "killed",
        /// It ended with the daemon.
        Lost = "lost",
    }
);

wire! {
    /// A command that goes on in the background.
    pub struct Process {
        /// Its id.
        pub id: ProcessId,
        /// The session that it belongs to, and ends with.
        pub session: SessionId,
        /// The task that began it.
        pub task: TaskId,
        /// The call that did.
        pub call: String,
        /// The command line.
        pub command: String,
        /// Where it started.
        pub cwd: String,
        /// How far it is.
        pub state: ProcessState,
        /// The exit status of its shell, if it ended so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub status: Option<i32>,
        /// The signal that ended its shell, such as `SIGKILL`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub signal: Option<String>,
        /// The limits that it came up against.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub limits: Vec<String>,
        /// The file that takes what it prints.
        pub output: String,
        /// When it began.
        pub started_at: Timestamp,
        /// When nothing of it ran any more, or when that was found.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub ended_at: Option<Timestamp>,
    }

    /// A page of background processes.
    pub struct Processes {
        /// Newest first.
        pub processes: Vec<Process>,
        /// Goes into `after` for the rest.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub next: Option<String>,
    }

    /// A piece of what a background process has printed.
    pub struct ProcessLog {
        /// It, as it was when this was read.
        pub process: Process,
        /// The text, without control characters.
        pub content: String,
        /// At which byte of all output it begins.
        pub offset: u64,
        /// At which byte the next piece begins.
        pub next_offset: u64,
        /// How many bytes were printed so far.
        pub bytes: u64,
    }
}

params! {
    /// Parameters of `process.list`.
    pub struct ProcessListParams {
        /// Only those of this session.
        pub session: Option<SessionRef>,
        /// Only those in this state.
        pub state: Option<ProcessState>,
        /// At most so many; 200 unless told.
        pub limit: Option<usize>,
        /// `next` of the page before.
        pub after: Option<String>,
    }

    /// Parameters of `process.log`.
    pub struct ProcessLogParams {
        /// Its id.
        pub process: String,
        /// The byte to begin at; the end of the output unless told.
        pub offset: Option<u64>,
        /// The last so many lines instead.
        pub tail: Option<usize>,
    }

    /// Parameters of the methods that take a process alone.
    pub struct ProcessParams {
        /// Its id.
        pub process: String,
    }
}
