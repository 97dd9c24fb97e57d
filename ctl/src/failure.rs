//! The one conversion to `nanoctl: WHAT: WHY; TRY` and to an exit code.

use std::io::{self, Write as _};
use std::process::ExitCode;

use nano_protocol::error::{ErrorKind, RpcError};
use nano_protocol::task::{Task, TaskState};

use crate::visible::one_line;

/// What kind of failure it is: each has one exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The task failed or was interrupted.
    Failed,
    /// The command line is wrong.
    Usage,
    /// No daemon was reached, or it is shutting down.
    Unreachable,
    /// The connection broke: the same request may be sent again.
    Lost,
    /// There is no such thing.
    NotFound,
    /// The daemon, or a rule of the client, said no.
    Refused,
    /// The task was cancelled.
    Cancelled,
    /// `--timeout` ran out.
    TimedOut,
    /// Nobody reads the answer any more.
    ClosedPipe,
    /// A person stopped it and knows.
    Stopped,
}

/// Why a verb did not succeed, and what to try.
#[derive(Debug)]
pub struct Failure {
    /// Its kind.
    pub kind: Kind,
    /// What is wrong.
    pub why: String,
    /// What to try; where it is empty, what usually helps.
    pub hint: String,
    /// What the daemon called it.
    said: Option<ErrorKind>,
    /// The cause, shown with `-v`.
    detail: Option<String>,
}

impl Failure {
    /// Makes a failure of `kind`.
    pub fn new(kind: Kind, why: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { kind, why: why.into(), hint: hint.into(), said: None, detail: None }
    }

    /// Makes a usage error.
    pub fn usage(why: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(Kind::Usage, why, hint)
    }

    /// Makes the failure of a connection that broke.
    pub fn lost(error: &io::Error) -> Self {
        let why = format!("the connection to the daemon broke ({error})");
        Self::new(Kind::Lost, why, "see its log, then try again")
    }

    /// Makes the failure of a verb whose `--timeout` ran out.
    pub fn timed_out() -> Self {
        Self::new(Kind::TimedOut, "the time ran out", "give it more with --timeout")
    }

    /// Makes the failure of an answer that this version does not understand.
    pub fn misread(error: &serde_json::Error) -> Self {
        let why = format!("the daemon's answer is not understood ({error})");
        Self::new(Kind::Refused, why, "compare nanoctl --version with nanoctl status")
    }

    /// Returns the failure that a settled task means for who waited for it, none where it succeeded.
    pub fn of_task(task: &Task) -> Option<Self> {
        let reason = task.reason.map_or("", |reason| reason.as_str());
        let message = task.error.as_ref().map_or(reason, |error| &error.message);
        let id = &task.id;
        let (kind, hint) = match task.state {
            TaskState::Succeeded => return None,
            TaskState::Cancelled => (Kind::Cancelled, format!("nanoctl task {id} shows it")),
            TaskState::Failed | TaskState::Interrupted => {
                (Kind::Failed, format!("nanoctl resume {id} takes it up again"))
            }
            TaskState::Queued | TaskState::Running => (Kind::TimedOut, format!("nanoctl wait {id}")),
        };
        let why = match message {
            "" | "cancelled" => format!("{id} {}", task.state),
            message => format!("{id} {}: {message}", task.state),
        };
        Some(Self { detail: Some(format!("reason {reason}")), ..Self::new(kind, why, hint) })
    }

    /// Tells whether the same request may be sent again over a new connection.
    pub fn is_broken(&self) -> bool {
        matches!(self.kind, Kind::Lost | Kind::Unreachable)
    }

    /// Writes the line and returns the exit code; says nothing where only the reader went away.
    pub fn report(&self, what: &str, verbose: bool) -> ExitCode {
        if self.kind == Kind::ClosedPipe {
            // Ends as any other program whose reader went away: by the signal, without a word.
            drop(signal_hook::low_level::emulate_default_handler(signal_hook::consts::SIGPIPE));
            return ExitCode::SUCCESS;
        }
        if self.kind == Kind::Stopped {
            return ExitCode::from(self.code());
        }
        let mut stderr = io::stderr().lock();
        // Where stderr is gone too, the exit code is all that is left to say.
        drop(writeln!(stderr, "{}", self.line(what)));
        if let (true, Some(detail)) = (verbose, &self.detail) {
            drop(writeln!(stderr, "  {}", one_line(detail)));
        }
        ExitCode::from(self.code())
    }

    fn line(&self, what: &str) -> String {
        let usual = self.said.map_or_else(|| "-v says more".into(), |kind| usual_hint(kind, what));
        let hint = if self.hint.is_empty() { &usual } else { &self.hint };
        format!("nanoctl: {}: {}; {}", one_line(what), one_line(&self.why), one_line(hint))
    }

    /// Returns the exit code.
    pub fn code(&self) -> u8 {
        match self.kind {
            Kind::Failed => 1,
            Kind::Usage => 2,
            Kind::Unreachable | Kind::Lost => 3,
            Kind::NotFound => 4,
            Kind::Refused => 5,
            Kind::Cancelled => 6,
            Kind::TimedOut => 7,
            Kind::ClosedPipe => 0,
            Kind::Stopped => 130,
        }
    }
}

impl From<RpcError> for Failure {
    fn from(error: RpcError) -> Self {
        let kind = match error.data.kind {
            ErrorKind::NotFound => Kind::NotFound,
            ErrorKind::ShuttingDown => Kind::Unreachable,
            _ => Kind::Refused,
        };
        let hint = error.data.hint.clone().unwrap_or_default();
        let detail = Some(format!("the daemon answered {} ({})", error.code, word(error.data.kind)));
        Self { said: Some(error.data.kind), detail, ..Self::new(kind, error.message, hint) }
    }
}

/// Failures to write the answer: everything else that does I/O says what it did.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::new(Kind::ClosedPipe, "nobody reads the answer", "");
        }
        Self::new(Kind::Failed, format!("the answer cannot be written ({error})"), "make room where stdout goes")
    }
}

fn word(kind: ErrorKind) -> String {
    serde_json::to_string(&kind).unwrap_or_default().trim_matches('"').to_owned()
}

fn usual_hint(kind: ErrorKind, what: &str) -> String {
    let hint = match kind {
        ErrorKind::NotFound => return format!("{} shows what there is", lister(what)),
        ErrorKind::InvalidParams => return format!("see nanoctl {what} --help for what it takes"),
        ErrorKind::Conflict if what.starts_with("skills ") => "see nanoctl skills list",
        ErrorKind::Conflict => "choose another name or key, or see nanoctl sessions",
        ErrorKind::Denied => "ask the owner, or use a daemon of your own",
        ErrorKind::Limit => "wait for something to end, then try again",
        ErrorKind::NotRunning => "see its state with nanoctl task",
        ErrorKind::Unavailable => "see nanoctl models and nanoctl booters",
        ErrorKind::ShuttingDown => "try again when it has started again",
        ErrorKind::TooLarge => "put it into a file of the workspace and name the file",
        ErrorKind::MethodNotFound => "compare nanoctl --version with nanoctl status",
        ErrorKind::Parse | ErrorKind::InvalidRequest | ErrorKind::Internal => "see the daemon's log",
    };
    hint.to_owned()
}

/// Returns the verb that lists what `what` takes one of.
fn lister(what: &str) -> &'static str {
    match what.split_once(' ').unwrap_or((what, "")) {
        ("agents", _) => "nanoctl agents list",
        ("skills", "show" | "edit" | "delete") => "nanoctl skills list",
        ("task" | "wait" | "result" | "cancel" | "resume", _) => "nanoctl tasks",
        ("followup", "show" | "runs" | "trigger" | "pause" | "resume" | "cancel") => "nanoctl followup list",
        ("rpc", _) => "nanoctl rpc with the .list method of its kind",
        _ => "nanoctl sessions",
    }
}

#[cfg(test)]
mod tests {
    use super::{ErrorKind, Failure, RpcError};

    #[test]
    fn every_kind_of_error_has_its_code_and_one_line() {
        for (kind, code) in [
            (ErrorKind::NotFound, 4),
            (ErrorKind::ShuttingDown, 3),
            (ErrorKind::Conflict, 5),
            (ErrorKind::InvalidParams, 5),
            (ErrorKind::MethodNotFound, 5),
            (ErrorKind::Internal, 5),
            (ErrorKind::TooLarge, 5),
        ] {
            let failure = Failure::from(RpcError::new(kind, "no\nsuch \u{1b}[2Jthing"));
            assert_eq!(failure.code(), code, "{kind:?}");
            let line = failure.line("task");
            assert!(line.starts_with("nanoctl: task: no\\nsuch \\x1b[2Jthing; "), "{line}");
        }
        for (kind, what, hint) in [
            (ErrorKind::NotFound, "agents show", "nanoctl agents list shows what there is"),
            (ErrorKind::NotFound, "skills show", "nanoctl skills list shows what there is"),
            (ErrorKind::NotFound, "skills list", "nanoctl sessions shows what there is"),
            (ErrorKind::Conflict, "skills create", "see nanoctl skills list"),
            (ErrorKind::NotFound, "followup show", "nanoctl followup list shows what there is"),
            (ErrorKind::NotFound, "followup add", "nanoctl sessions shows what there is"),
            (ErrorKind::NotFound, "wait", "nanoctl tasks shows what there is"),
            (ErrorKind::InvalidParams, "followup add", "see nanoctl followup add --help for what it takes"),
        ] {
            let line = Failure::from(RpcError::new(kind, "no")).line(what);
            assert_eq!(line, format!("nanoctl: {what}: no; {hint}"));
        }
        let hinted = Failure::from(RpcError::new(ErrorKind::Limit, "full").hint("wait"));
        assert_eq!(hinted.line("submit"), "nanoctl: submit: full; wait");
    }
}
