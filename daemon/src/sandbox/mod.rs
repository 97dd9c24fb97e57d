//! Sandboxes: the computers of sessions, and what they can do. Processes are started here and nowhere else.

pub mod adopted;
pub mod cgroup;
pub mod confine;
pub mod denial;
pub mod descendants;
pub mod features;
pub mod helper;
pub mod lease;
pub mod leftovers;
pub mod limits;
pub mod output;
pub mod path_error;
pub mod peer;
pub mod place;
pub mod private;
pub mod process;
pub mod protected;
pub mod reach;
pub mod seen;
pub mod service;
pub mod spool;
pub mod text;
pub mod workspace;

use std::any::Any;
use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use nano_protocol::id::TaskId;
use tokio_util::sync::CancellationToken;

/// A boxed future, for traits that are used as objects.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// One thing a sandbox can do; tools state which they need.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Capability {
    /// Runs shell commands.
    Shell,
    /// Runs Python.
    Python,
    /// Has files.
    Filesystem,
    /// Drives a browser.
    Browser,
    /// Reaches a network.
    Network,
}

impl Capability {
    const WORDS: [(Self, &'static str); 5] = [
        (Self::Shell, "shell"),
        (Self::Python, "python"),
        (Self::Filesystem, "filesystem"),
        (Self::Browser, "browser"),
        (Self::Network, "network"),
    ];

    /// Returns the word on the wire.
    pub fn as_str(self) -> &'static str {
        Self::WORDS.iter().find(|(one, _)| *one == self).map_or("", |(_, word)| word)
    }

    /// Returns the capability that `word` names, if it is known.
    pub fn parse(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(_, known)| *known == word).map(|(one, _)| *one)
    }
}

/// What a booted sandbox says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Capabilities {
    /// It does not say: the declared tools stay.
    Unknown,
    /// Exactly these.
    Known(BTreeSet<Capability>),
}

/// A booted computer; a booter's own tools know its concrete type.
pub trait Sandbox: Any + Send + Sync {
    /// Returns what it can do.
    fn capabilities(&self) -> &Capabilities;
    /// Tells whether it has the host's files, and the workspace among them.
    fn has_hosts_files(&self) -> bool {
        false
    }
    /// Runs a program to its end, its time limit, or until `cancel`; never fails for what the program does.
    fn run<'a>(
        &'a self,
        command: Command,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Report, SandboxError>>;
    /// Starts a program that goes on when nobody waits for it; only a computer that shares the host's files can.
    fn start(&self, _command: Command) -> BoxFuture<'_, Result<process::Process, SandboxError>> {
        Box::pin(std::future::ready(Err(SandboxError::Failed(
            "nothing goes on behind its task on this computer".into(),
        ))))
    }
    /// Writes a file of the host to `path` in the computer, and returns where it is there. A computer that shares the
    /// host's files has no use for it.
    fn upload<'a>(&'a self, _file: File, _path: &'a str) -> BoxFuture<'a, Result<String, SandboxError>> {
        Box::pin(std::future::ready(Err(SandboxError::Failed("this computer has the host's files already".into()))))
    }
    /// Reads a file of the computer into one of the host; returns how many bytes it has.
    fn download<'a>(&'a self, _path: &'a str, _into: File) -> BoxFuture<'a, Result<u64, SandboxError>> {
        Box::pin(std::future::ready(Err(SandboxError::Failed("this computer has the host's files already".into()))))
    }
    /// Makes the skill's folder, which lies on the host, readable to the session's tools; returns where it is for them.
    fn skill_folder<'a>(&'a self, _name: &'a str, folder: &'a Path) -> BoxFuture<'a, Result<String, SandboxError>> {
        Box::pin(std::future::ready(Ok(folder.to_string_lossy().into_owned())))
    }
    /// Ends everything that the task's commands left running.
    fn end_task<'a>(&'a self, task: &'a TaskId) -> BoxFuture<'a, ()>;
    /// Ends everything that was left running; the computer itself is given back by its booter.
    fn shutdown(&self) -> BoxFuture<'_, ()>;
}

/// What to run.
#[derive(Debug, Clone)]
pub struct Command {
    /// In which language.
    pub language: Language,
    /// The program's text.
    pub text: String,
    /// Where, in the computer; its workspace unless told. A computer that shares the host's files is always told.
    pub cwd: Option<PathBuf>,
    /// Which folder that must be, by device and inode, if that matters.
    pub place: Option<(u64, u64)>,
    /// How long at most.
    pub timeout: Duration,
    /// Who asked: what is left running ends with it.
    pub task: TaskId,
    /// Where the whole output goes once it is too long to return.
    pub spill: PathBuf,
    /// Where what it printed last is while it runs, on a computer that shares the host's files.
    pub spool: PathBuf,
    /// How far it reaches, on a computer that shares the host's files; there it must be said.
    pub reach: Option<Arc<reach::Reach>>,
    /// Answer once it runs instead of at its end; it counts as left running.
    pub background: bool,
}

/// The language of a program's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Language {
    /// A command line for `sh`.
    Shell,
    /// Python source.
    Python,
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// By itself, with this status.
    Exited(i32),
    /// By a signal of this name, such as `SIGKILL`.
    Signalled(String),
    /// Stopped at its time limit.
    TimedOut,
    /// Stopped at a limit of the computer's own, before its time limit.
    Limited(Duration),
    /// Stopped by the cancel token.
    Cancelled,
    /// It runs on, as was asked.
    Running,
}

/// What a program did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// How it ended.
    pub ending: Ending,
    /// Its standard output and error in order of arrival: all of it, or head and tail around a note.
    pub output: String,
    /// The file with the whole output, where `output` is not all of it or more may come.
    pub spill: Option<PathBuf>,
    /// How many processes it left running.
    pub left_running: usize,
}

/// Why a sandbox cannot serve.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// It cannot be booted here.
    #[error("{kind} cannot be booted: {why}")]
    Boot {
        /// The booter's kind.
        kind: &'static str,
        /// The reason and what to try.
        why: String,
    },
    /// It is gone, and nothing was done; another one may be booted.
    #[error("the {kind} computer is gone: {why}")]
    Lost {
        /// The booter's kind.
        kind: &'static str,
        /// How that is known.
        why: String,
    },
    /// A command could not even be started.
    #[error("the command could not be started: {0}")]
    Start(String),
    /// What was asked for did not work, or nobody knows whether it did: the words, which a model reads, say which.
    #[error("{0}")]
    Failed(String),
    /// A path is not usable.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

impl SandboxError {
    /// Makes an error about `path`.
    pub fn io(path: &Path, source: std::io::Error) -> Self {
        Self::Io { path: path.to_owned(), source }
    }
}
