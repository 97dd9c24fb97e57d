//! `exec`: a shell command; and what it has in common with `python`.

use std::marker::PhantomData;
use std::path::PathBuf;
use std::time::Duration;

use nano_protocol::Object;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use ulid::Ulid;

use super::read_file::with_notes;
use super::{Tool, ToolContext, ToolFault, ToolOutcome, ToolSpec, intents, schema};
use crate::sandbox::{BoxFuture, Capability, Command, Ending, Language, Report, SandboxError};

#[derive(Debug, Deserialize, JsonSchema)]
struct Args {
    /// The command line, for bash or sh.
    command: String,
    /// After how many seconds it is stopped.
    timeout: Option<i64>,
    /// The folder it starts in; unless given, the one that commands usually start in.
    cwd: Option<String>,
    /// Answer at once and let it run on.
    background: Option<bool>,
}

impl From<Args> for Request {
    fn from(Args { command, timeout, cwd, background }: Args) -> Self {
        let background = background.unwrap_or(false);
        Self { language: Language::Shell, text: command, timeout, cwd, background }
    }
}

/// Returns the tool for a computer that shares the host's files.
pub fn local() -> impl Tool {
    let description = "Runs a shell command and returns what it prints. It has no input and is stopped at its time \
                          limit; what it leaves running ends with the task, but for what runs in the background.";
    ProgramTool::<Args>::new("exec", description, LOCAL, &[Capability::Shell])
}

/// Returns the tool for a remote computer.
pub fn remote(source: &'static str) -> impl Tool {
    let description = "Runs a shell command in the sandbox and returns what it prints. It has no input and is stopped \
                          at its time limit; what runs in the background ends with the task.";
    ProgramTool::<Args>::new("exec", description, source, &[Capability::Shell])
}

/// The source of what works on the host.
pub(super) const LOCAL: &str = "booter:local";

/// A tool that runs a program: its arguments say which.
pub(super) struct ProgramTool<A> {
    spec: ToolSpec,
    arguments: PhantomData<fn() -> A>,
}

impl<A: JsonSchema> ProgramTool<A> {
    pub fn new(
        name: &'static str,
        description: &'static str,
        source: &'static str,
        requires: &'static [Capability],
    ) -> Self {
        let input_schema = schema::schema::<A>();
        let (name, description, source) = (name.into(), description.into(), source.into());
        let spec = ToolSpec { name, description, input_schema, source, requires, read_only: false };
        Self { spec, arguments: PhantomData }
    }
}

impl<A: DeserializeOwned + JsonSchema + Into<Request> + Send> Tool for ProgramTool<A> {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        arguments: Object,
    ) -> BoxFuture<'a, Result<ToolOutcome, ToolFault>> {
        Box::pin(async move {
            match schema::decode::<A>(arguments) {
                Ok(args) => run(context, &self.spec.source, args.into()).await,
                Err(why) => Ok(ToolOutcome::Failed(why)),
            }
        })
    }
}

/// A program as the model asked for it.
pub(super) struct Request {
    pub language: Language,
    pub text: String,
    pub timeout: Option<i64>,
    pub cwd: Option<String>,
    pub background: bool,
}

async fn run(context: &ToolContext, source: &str, request: Request) -> Result<ToolOutcome, ToolFault> {
    let command = match command(context, source, request) {
        Ok(command) => command,
        Err(why) => return Ok(ToolOutcome::Failed(why)),
    };
    match &context.background {
        Some(background) if command.background && source == LOCAL => Ok(background.start(context, command).await),
        _ => carry_out(context, command).await,
    }
}

/// Runs a program in the session's computer and puts what it did into words.
pub(super) async fn carry_out(context: &ToolContext, command: Command) -> Result<ToolOutcome, ToolFault> {
    let no_computer = || ToolOutcome::Failed("this session has no computer".into());
    let Some(sandbox) = &context.sandbox else { return Ok(no_computer()) };
    let limit = command.timeout;
    match sandbox.run(command, &context.cancel).await {
        Ok(report) => Ok(outcome(report, limit)),
        Err(why @ (SandboxError::Start(_) | SandboxError::Failed(_))) => Ok(ToolOutcome::Failed(why.to_string())),
        Err(why) => Err(why.into()),
    }
}

fn command(context: &ToolContext, source: &str, request: Request) -> Result<Command, String> {
    if request.text.contains('\0') {
        return Err("bad arguments: the program's text has a NUL byte".into());
    }
    let timeout = timeout(context, request.timeout)?;
    let cwd = match request.cwd {
        Some(path) if source == LOCAL => Some(context.workspace.folder(&path).map_err(|why| format!("cwd: {why}"))?.1),
        None if source == LOCAL => Some(context.workspace.path().to_owned()),
        given => given.map(PathBuf::from),
    };
    let Request { language, text, background, .. } = request;
    // A fresh name: a call's id may be anything and need not be unique.
    let spill = context.spill.join(format!("output-{}.log", Ulid::generate()));
    let spool = intents::spool(&context.spill, &context.call);
    let (task, reach) = (context.task.clone(), context.workspace.reach());
    Ok(Command { language, text, cwd, place: context.place, timeout, task, spill, spool, reach, background })
}

fn timeout(context: &ToolContext, asked: Option<i64>) -> Result<Duration, String> {
    let Some(asked) = asked else { return Ok(context.exec_timeout) };
    let most = context.exec_timeout_max;
    match u64::try_from(asked) {
        Ok(seconds) if seconds > 0 && seconds <= most.as_secs() => Ok(Duration::from_secs(seconds)),
        _ => Err(format!("bad arguments: `timeout` must be 1 to {} seconds, not {asked}", most.as_secs())),
    }
}

fn outcome(report: Report, limit: Duration) -> ToolOutcome {
    let (make, ending): (fn(String) -> ToolOutcome, _) = match &report.ending {
        Ending::Exited(0) => (ToolOutcome::Done, None),
        Ending::Exited(code) => (ToolOutcome::Failed, Some(format!("exit status {code}"))),
        Ending::Signalled(name) => (ToolOutcome::Failed, Some(format!("killed by {name}"))),
        Ending::TimedOut => (ToolOutcome::Stopped, Some(format!("stopped after {} s", limit.as_secs_f64()))),
        Ending::Limited(own) => (ToolOutcome::Stopped, Some(format!("stopped after {} s", own.as_secs_f64()))),
        Ending::Cancelled => (ToolOutcome::Stopped, Some("stopped before it ended".into())),
        Ending::Running => (ToolOutcome::Done, Some("running in the background".into())),
    };
    let output = if report.output.trim().is_empty() { "(no output)".to_owned() } else { report.output };
    let mut notes: Vec<String> = ending.into_iter().collect();
    notes.extend(left_running(report.left_running, report.spill.as_deref()));
    make(with_notes(output, &notes).trim_end_matches('\n').to_owned())
}

fn left_running(count: usize, spill: Option<&std::path::Path>) -> Option<String> {
    let (processes, they) = match count {
        0 => return None,
        1 => ("1 process is".to_owned(), "it ends"),
        many => (format!("{many} processes are"), "they end"),
    };
    let later = spill.map_or_else(String::new, |path| format!("; further output goes to {}", path.display()));
    Some(format!("{processes} left running; {they} with the task{later}"))
}
