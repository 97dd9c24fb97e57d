//! Tools: what a model can have done. [`set`] decides which are offered; each other file is one tool.

pub mod changing;
pub mod class;
pub mod custom;
pub mod datetime;
pub mod delegate;
pub mod download_file;
pub mod edit_file;
pub mod exec;
pub mod file_tool;
pub mod grep;
pub mod intents;
pub mod list_dir;
pub mod load_skill;
pub mod matching;
pub mod naming;
pub mod process;
pub mod python;
pub mod read_file;
pub mod registry;
pub mod replace;
pub mod schedule_followup;
pub mod schema;
pub mod search;
pub mod set;
pub mod todo;
pub mod typed;
pub mod upload_file;
pub mod walk;
pub mod web;
pub mod write_file;

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use nano_protocol::Object;
use nano_protocol::id::{SessionId, TaskId};
use tokio_util::sync::CancellationToken;

use class::Class;

use crate::sandbox::workspace::Workspace;
use crate::sandbox::{BoxFuture, Capability, Sandbox, SandboxError};
use crate::skills::offer::Offer;
use crate::store::Change;

/// What is fixed about a tool.
#[derive(Debug, Clone)]
pub struct ToolSpec {
    /// `^[a-zA-Z0-9_-]{1,64}$`.
    pub name: Cow<'static, str>,
    /// What it does, for the model.
    pub description: Cow<'static, str>,
    /// The JSON Schema of its arguments: an object.
    pub input_schema: Object,
    /// `core`, `booter:KIND`, `skill` …
    pub source: Cow<'static, str>,
    /// What the sandbox must be able to do; a tool that needs anything, or is a booter's, has the session booted (as does
    /// `load_skill` where the computer is a remote one, whose tools need the files of skills).
    pub requires: &'static [Capability],
    /// Changes nothing: may run beside others of its kind.
    pub read_only: bool,
}

/// Something a model can have done.
pub trait Tool: Send + Sync {
    /// Returns what is fixed about it.
    fn spec(&self) -> &ToolSpec;
    /// Returns the JSON Schema of what it returns, where that is said.
    fn output_schema(&self) -> Option<&Object> {
        None
    }
    /// Returns what becomes of a call of it that dies with the daemon.
    fn class(&self) -> Class {
        Class::usual(self.spec())
    }
    /// Returns, in one clause, why it cannot be offered to anybody just now, if so.
    fn barred(&self) -> Option<String> {
        None
    }
    /// Does it. What the model should read is an outcome; a fault ends the task.
    fn call<'a>(&'a self, context: &'a ToolContext, arguments: Object)
    -> BoxFuture<'a, Result<ToolOutcome, ToolFault>>;
}

/// What a call may use.
pub struct ToolContext {
    /// Whose call it is.
    pub session: SessionId,
    /// In which task.
    pub task: TaskId,
    /// The call's id.
    pub call: String,
    /// The session's folder, and how far beyond it file tools reach.
    pub workspace: Arc<Workspace>,
    /// The skills it is offered.
    pub skills: Arc<Offer>,
    /// The daemon's own files, which never leave this machine.
    pub private: Arc<crate::sandbox::private::Private>,
    /// The folder, by device and inode, that a person saw when the call was allowed.
    pub place: Option<(u64, u64)>,
    /// The session's computer; present for every tool that requires a capability.
    pub sandbox: Option<Arc<dyn Sandbox>>,
    /// Why it could not be had, when that was last tried.
    pub unbootable: Option<String>,
    /// How long a command may take that asks for nothing.
    pub exec_timeout: Duration,
    /// How long a command may ask for.
    pub exec_timeout_max: Duration,
    /// Folder of this session for output that is too long to return; made by who writes the first file.
    pub spill: PathBuf,
    /// The zone of the daemon's config, as an IANA name.
    pub time_zone: String,
    /// What makes follow-ups.
    pub later: Option<Arc<dyn schedule_followup::Later>>,
    /// What has work done by other sessions.
    pub delegator: Option<Arc<dyn delegate::Delegator>>,
    /// What keeps commands that go on in the background.
    pub background: Option<Arc<dyn process::Background>>,
    /// Where a call says what it is about to do to a file.
    pub intents: Option<Arc<intents::Intents>>,
    /// Fires when the call should end.
    pub cancel: CancellationToken,
}

/// What the model reads.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolOutcome {
    /// It was done.
    Done(String),
    /// It was not, and why.
    Failed(String),
    /// It was stopped by the cancel token or its time limit; what there was so far.
    Stopped(String),
    /// One of the others, and a change that is made in the commit that has it.
    Settles(Change, Box<ToolOutcome>),
}

/// What ends the task.
#[derive(Debug, thiserror::Error)]
pub enum ToolFault {
    /// The session's computer does not serve.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
}
