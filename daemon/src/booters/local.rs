//! The booter `local`: this machine, as the daemon's user, within the session's level as far as this kernel can hold it.

mod ending;

use std::collections::HashMap;
use std::fs::DirBuilder;
use std::mem;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use nano_protocol::id::{SessionId, TaskId};
use nano_protocol::session::Level;
use nano_protocol::tool::Prompt;
use tokio_util::sync::CancellationToken;

use ending::ending;

use super::program::{PATH, on_path, runs};
use super::{BootRequest, Booter, Declared};
use crate::crash;
use crate::sandbox::confine::Plan;
use crate::sandbox::confine::force::Force;
use crate::sandbox::denial;
use crate::sandbox::helper::{Job, News};
use crate::sandbox::leftovers::MARK;
use crate::sandbox::limits::Limits;
use crate::sandbox::process::Process;
use crate::sandbox::reach::{Reach, told};
use crate::sandbox::{BoxFuture, Capabilities, Capability, Command, Ending, Language, Report, Sandbox, SandboxError};
use crate::tools::{Tool, registry};

/// What commands get of the daemon's environment: never keys, sockets or credentials.
const ENV: [&str; 10] = ["PATH", "HOME", "LANG", "TERM", "TZ", "USER", "LOGNAME", "TMPDIR", "SHELL", MARK];
/// Everything this booter may offer.
const DECLARED: [Capability; 3] = [Capability::Shell, Capability::Python, Capability::Filesystem];

/// Returns what programs that serve a session get of the daemon's environment.
pub fn allowed(env: Vec<(String, String)>) -> Vec<(String, String)> {
    let mut env: Vec<_> =
        env.into_iter().filter(|(name, _)| ENV.contains(&name.as_str()) || name.starts_with("LC_")).collect();
    if !env.iter().any(|(name, _)| name == "PATH") {
        env.push(("PATH".into(), PATH.into()));
    }
    env
}

/// Gives sessions the machine that the daemon runs on.
#[derive(Debug)]
pub struct LocalBooter {
    helper: PathBuf,
    env: Vec<(String, String)>,
    force: OnceLock<Force>,
}

impl LocalBooter {
    /// Makes the booter: `helper` is the executable of `nanod`, `env` the daemon's environment.
    pub fn new(helper: PathBuf, env: Vec<(String, String)>) -> Self {
        Self { helper, env: allowed(env), force: OnceLock::new() }
    }

    /// Has it work with less than this machine can do.
    #[must_use]
    pub fn with_force(self, force: Force) -> Self {
        Self { force: OnceLock::from(force), ..self }
    }

    /// Returns what of a level this machine can hold; tried when that is first asked for.
    fn force(&self) -> Force {
        *self.force.get_or_init(|| Force::of_this_machine(&self.helper))
    }

    fn on_path(&self, program: &str) -> Option<PathBuf> {
        let (_, path) = self.env.iter().find(|(name, _)| name == "PATH")?;
        on_path(program, path)
    }

    fn sandbox(&self, session: &SessionId) -> Result<Arc<dyn Sandbox>, SandboxError> {
        let shells = ["/bin/bash", "/bin/sh"].map(PathBuf::from);
        let shell = shells.into_iter().find(|file| runs(file));
        let shell =
            shell.ok_or(SandboxError::Boot { kind: "local", why: "there is no /bin/sh; install one".into() })?;
        let python = self.on_path("python3");
        let really = DECLARED.into_iter().filter(|one| *one != Capability::Python || python.is_some());
        let capabilities = Capabilities::Known(really.collect());
        let (helper, env, session) = (self.helper.clone(), self.env.clone(), session.clone());
        let (force, left) = (self.force(), Mutex::default());
        Ok(Arc::new(LocalSandbox { session, helper, env, shell, python, capabilities, force, left }))
    }
}

impl Booter for LocalBooter {
    fn kind(&self) -> &'static str {
        "local"
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        registry::local()
    }

    fn declared(&self, workspace: &Path) -> Declared {
        let text = format!(
            "You work on this machine, in the folder {}. Relative paths start there, and so do commands; each command \
             is a shell of its own, without a terminal and without input.",
            workspace.display()
        );
        let prompt = Prompt { name: "workspace".into(), source: "booter:local".into(), text };
        Declared { capabilities: DECLARED.into(), prompts: vec![prompt], ..Declared::default() }
    }

    fn bounds(&self, level: Level, workspace: &Path, elsewhere: bool) -> Option<String> {
        let told = told(level, workspace, elsewhere);
        Some(format!(
            "The level of this session is {level}. Of commands that means: {told}. What is refused for that is not to be \
             worked around; say what you would need."
        ))
    }

    fn lacking(&self, capability: Capability) -> String {
        match capability {
            Capability::Python => "python3 is not on PATH".into(),
            other => format!("this machine has no {}", other.as_str()),
        }
    }

    fn environment(&self) -> Vec<String> {
        // The mark is another one for each daemon and says nothing to a program.
        let told = self.env.iter().filter(|(name, _)| name != MARK);
        let mut all: Vec<_> = told.map(|(name, value)| format!("{name}={value}")).collect();
        all.sort();
        all
    }

    fn note(&self) -> Option<String> {
        Some(self.force().told())
    }

    fn is_whole(&self) -> bool {
        self.force().landlock.is_some() && self.force().lacking().is_empty()
    }

    fn attach<'a>(
        &'a self,
        request: &'a BootRequest,
        _handle: &'a str,
    ) -> BoxFuture<'a, Result<Arc<dyn Sandbox>, SandboxError>> {
        // Nothing is kept running: what this machine has now is what the session has.
        Box::pin(async { self.sandbox(&request.session) })
    }
}

struct LocalSandbox {
    session: SessionId,
    helper: PathBuf,
    env: Vec<(String, String)>,
    shell: PathBuf,
    python: Option<PathBuf>,
    capabilities: Capabilities,
    force: Force,
    left: Mutex<HashMap<TaskId, Vec<Process>>>,
}

impl LocalSandbox {
    fn job(&self, command: &Command) -> Result<Job, SandboxError> {
        let program = match command.language {
            Language::Shell => Some(&self.shell),
            Language::Python => self.python.as_ref(),
        };
        let program = program.cloned().ok_or_else(|| SandboxError::Start("python3 is not on PATH".into()))?;
        let (language, text) = (command.language, command.text.clone());
        let cwd = command.cwd.clone().ok_or_else(|| SandboxError::Start("no folder was named".into()))?;
        let mut env = self.env.clone();
        let plan = Plan { limits: Limits::of_command(&self.session.0, &cwd), ..self.plan(command, &mut env)? };
        Ok(Job { program, language, text, cwd, place: command.place, env, plan: Some(plan), input: false })
    }

    /// Returns what the command must not do, and tells it where to put what it needs for a while.
    fn plan(&self, command: &Command, env: &mut Vec<(String, String)>) -> Result<Plan, SandboxError> {
        let no_level = || SandboxError::Start("nobody said how far it may reach; this is a bug in nanod".into());
        let reach = command.reach.as_ref().ok_or_else(no_level)?;
        if reach.level == Level::Host {
            return Ok(Plan::default());
        }
        if self.force.landlock.is_none() {
            return Err(SandboxError::Start(self.force.told() + "; only `level = \"host\"` runs commands here"));
        }
        if let Some(gone) = reach.known.iter().find(|path| !path.exists()) {
            // It may be somewhere else now, and could be read there.
            let gone = gone.display();
            return Err(SandboxError::Start(format!(
                "{gone}, which nanod keeps from commands, is not where it was; put it back, or take it out of the \
                 config and restart nanod"
            )));
        }
        // Without it the command does without: there may be no room.
        DirBuilder::new().recursive(true).mode(0o700).create(&reach.temporary).ok();
        let own = self.force.mounts && reach.has_own_tmp();
        let temporary = if own { "/tmp".into() } else { reach.temporary.to_string_lossy().into_owned() };
        env.retain(|(name, _)| name != "TMPDIR");
        env.push(("TMPDIR".into(), temporary));
        Ok(Plan { reach: Some(Reach::clone(reach)), mounts: self.force.mounts, ..Plan::default() })
    }

    async fn start(&self, command: Command) -> Result<Process, SandboxError> {
        let job = Job { input: true, ..self.job(&command)? };
        crash::point("process.spawn.before");
        let mut process = Process::start(&self.helper, &job, command.spill, command.spool).await?;
        crash::point("process.spawn.after");
        process.output().keep_all();
        process.goes_on_alone();
        match process.news().await {
            Some(News::Failed(why)) => Err(SandboxError::Start(why)),
            _ => Ok(process),
        }
    }

    async fn run(&self, command: Command, cancel: &CancellationToken) -> Result<Report, SandboxError> {
        let job = self.job(&command)?;
        crash::point("exec.spawn.before");
        let mut process = Process::start(&self.helper, &job, command.spill.clone(), command.spool.clone()).await?;
        crash::point("exec.spawn.after");
        let mut limits = Vec::new();
        let ending = ending(&mut process, &command, cancel, &mut limits).await?;
        if matches!(ending, Ending::TimedOut | Ending::Cancelled) {
            limits.extend(process.ended().await);
        }
        process.drain().await;
        let left_running = process.alive();
        let later = if left_running > 0 { process.output().keep_the_rest() } else { None };
        let (output, spill) = process.output().render();
        let mut output = denial::noted(output, &ending, command.reach.as_deref());
        output.extend(limits.iter().map(|limit| format!("\n[{limit}]")));
        if left_running > 0 {
            process.goes_on_alone();
            self.keep(command.task, process);
        }
        Ok(Report { ending, output, spill: spill.or(later), left_running })
    }

    fn keep(&self, task: TaskId, process: Process) {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let of_task = left.entry(task).or_default();
        of_task.retain(|process| process.alive() > 0);
        of_task.push(process);
    }

    async fn end(mut processes: Vec<Process>) {
        // All are asked before one is waited for: the grace runs once, not once for each.
        processes.iter_mut().for_each(Process::end);
        for process in &mut processes {
            process.ended().await;
        }
    }
}

impl Sandbox for LocalSandbox {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn has_hosts_files(&self) -> bool {
        true
    }

    fn run<'a>(
        &'a self,
        command: Command,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Report, SandboxError>> {
        Box::pin(self.run(command, cancel))
    }

    fn start(&self, command: Command) -> BoxFuture<'_, Result<Process, SandboxError>> {
        Box::pin(self.start(command))
    }

    fn end_task<'a>(&'a self, task: &'a TaskId) -> BoxFuture<'a, ()> {
        let processes = self.left.lock().unwrap_or_else(PoisonError::into_inner).remove(task).unwrap_or_default();
        Box::pin(Self::end(processes))
    }

    fn shutdown(&self) -> BoxFuture<'_, ()> {
        let left = mem::take(&mut *self.left.lock().unwrap_or_else(PoisonError::into_inner));
        Box::pin(Self::end(left.into_values().flatten().collect()))
    }
}
