//! A booted box: programs run below `run.sh`, which keeps their output in a file and ends all that they started.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::mem;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nano_protocol::id::TaskId;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use ulid::Ulid;

use super::client::Exec;
use super::execution::{Event, Execution, collect};
use super::files;
use super::heard::Heard;
use super::serve::Server;
use crate::booters::jobs::{Said, Shell};
use crate::booters::program::signal_name;
use crate::booters::skill_files::SkillFiles;
use crate::sandbox::output::readable;
use crate::sandbox::{BoxFuture, Capabilities, Capability, Command, Ending, Language, Report, Sandbox, SandboxError};

const RUN: &str = concat!(include_str!("kin.sh"), include_str!("run.sh"));
const END: &str = concat!(include_str!("kin.sh"), include_str!("end.sh"));
/// A longer text does not fit into an argument and goes by standard input.
const ARGUMENT_MAX: usize = 100_000;
/// How long after its time the server ends a program by itself, should the daemon be gone.
const SLACK: Duration = Duration::from_secs(15);
/// How long a background command is watched for failing at once.
const BACKGROUND: Duration = Duration::from_millis(500);
/// How long a start that is under way is waited for once nobody wants it, so that it can be ended.
const STARTING: Duration = Duration::from_secs(2);
/// How long ending everything of a task may take.
const ENDING: Duration = Duration::from_secs(15);

/// The most that a short script prints.
const SHORT: usize = 64 << 10;

/// A box of a session.
pub struct BoxSandbox {
    server: Arc<Server>,
    id: String,
    capabilities: Capabilities,
    /// How long a call may take for which the box has to be started.
    cold: Duration,
    /// The tasks that ran something, with what still listens to programs in the background.
    tasks: Mutex<HashMap<TaskId, Vec<JoinHandle<()>>>>,
    skills: SkillFiles,
}

/// A short shell script with arguments, as an execution.
pub fn script(text: &str, args: &[&str]) -> Exec {
    let args = ["-c", text, "sh"].into_iter().chain(args.iter().copied()).map(str::to_owned).collect();
    Exec { command: "/bin/sh", args, stdin: Some(String::new()), ..Exec::default() }
}

impl BoxSandbox {
    /// Takes up a box that runs, and finds out what it can do beside what is `sure`.
    pub async fn join(
        server: Arc<Server>,
        id: &str,
        mut sure: BTreeSet<Capability>,
        cold: Duration,
    ) -> Result<Self, SandboxError> {
        let api = server.api().await?;
        let (code, _, _) = collect(&api, id, &script("python3 -c 0", &[]), cold, SHORT).await?;
        if code == 0 {
            sure.insert(Capability::Python);
        }
        let capabilities = Capabilities::Known(sure);
        Ok(Self {
            server,
            id: id.to_owned(),
            capabilities,
            cold,
            tasks: Mutex::default(),
            skills: SkillFiles::default(),
        })
    }

    async fn run(&self, command: Command, cancel: &CancellationToken) -> Result<Report, SandboxError> {
        self.held().entry(command.task.clone()).or_default();
        let out = format!("/tmp/nano/{}", Ulid::generate());
        let api = self.server.api().await?;
        let program = exec(&command, &out);
        let mut heard = Heard::new(&out);
        let mut starting = pin!(Execution::start(&api, &self.id, &program, self.cold));
        let started = tokio::select! {
            biased;
            started = &mut starting => Some(started),
            () = cancel.cancelled() => timeout(STARTING, starting).await.ok(),
        };
        // What may have been started all the same ends with the task.
        let Some(started) = started else { return Ok(report(Ending::Cancelled, &heard, None)) };
        let mut execution = started?;
        let ending = ending(&mut execution, &mut heard, &command, cancel).await.map_err(|why| heard.with(why))?;
        if matches!(ending, Ending::TimedOut | Ending::Cancelled) {
            execution.end(|event| heard.hear(event)).await;
        }
        let mut report = report(ending, &heard, execution.broken());
        if report.ending == Ending::Running {
            report.left_running = 1;
            self.listen(command.task, execution);
        }
        report.spill = (report.left_running > 0).then(|| PathBuf::from(out));
        Ok(report)
    }

    /// Keeps listening: the server ends what nobody listens to for some minutes.
    fn listen(&self, task: TaskId, mut execution: Execution) {
        let listening =
            tokio::spawn(async move { while let Ok(Event::Out(_) | Event::Err(_)) = execution.next().await {} });
        let mut held = self.held();
        let of_task = held.entry(task).or_default();
        of_task.retain(|one| !one.is_finished());
        of_task.push(listening);
    }

    async fn end(&self, tasks: HashMap<TaskId, Vec<JoinHandle<()>>>) {
        for (task, listening) in tasks {
            let marked = script(END, &[&format!("NANO_TASK={}", mark(&task))]);
            let ended = match self.server.api().await {
                Ok(api) => collect(&api, &self.id, &marked, ENDING, SHORT).await.map(drop),
                Err(why) => Err(why),
            };
            if let Err(error) = ended {
                tracing::debug!(%error, %task, "what a task left running was not ended");
            }
            listening.iter().for_each(JoinHandle::abort);
        }
    }

    fn held(&self) -> MutexGuard<'_, HashMap<TaskId, Vec<JoinHandle<()>>>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns what a task's processes are known by, which is not the beginning of another's.
fn mark(task: &TaskId) -> String {
    format!("{task}:")
}

fn exec(command: &Command, out: &str) -> Exec {
    let keep = if command.background { "keep" } else { "" };
    let language = match command.language {
        Language::Shell => "shell",
        Language::Python => "python",
    };
    let mut exec = script(RUN, &[out, &mark(&command.task), keep, language]);
    if command.text.len() <= ARGUMENT_MAX {
        exec.args.push(command.text.clone());
    } else {
        exec.stdin = Some(command.text.clone());
    }
    exec.timeout_seconds = (!command.background).then(|| (command.timeout + SLACK).as_secs_f64());
    exec.working_dir.clone_from(&command.cwd);
    exec
}

async fn ending(
    execution: &mut Execution,
    heard: &mut Heard,
    command: &Command,
    cancel: &CancellationToken,
) -> Result<Ending, SandboxError> {
    let limit = if command.background { BACKGROUND } else { command.timeout };
    let mut limit = pin!(sleep(limit));
    loop {
        let event = tokio::select! {
            // Who cancels is not told of an end that came at the same moment; an end beats the clock.
            biased;
            () = cancel.cancelled() => return Ok(Ending::Cancelled),
            event = execution.next() => event?,
            () = &mut limit => return Ok(if command.background { Ending::Running } else { Ending::TimedOut }),
        };
        heard.hear(event);
        if let Some(code) = heard.exit() {
            return Ok(ended(code));
        }
    }
}

fn ended(code: i32) -> Ending {
    if code < 0 { Ending::Signalled(signal_name(-code)) } else { Ending::Exited(code) }
}

fn report(ending: Ending, heard: &Heard, broken: Option<&str>) -> Report {
    Report { ending, output: heard.render(broken), spill: None, left_running: heard.left_running() }
}

impl Shell for BoxSandbox {
    fn sh(&self, line: String, limit: Duration) -> BoxFuture<'_, Result<Option<Said>, SandboxError>> {
        Box::pin(async move {
            let api = self.server.api().await?;
            let (code, out, err) = collect(&api, &self.id, &script(&line, &[]), self.cold + limit, SHORT).await?;
            Ok(Some(Said { code, stdout: readable(&out), stderr: readable(&err) }))
        })
    }
}

impl Sandbox for BoxSandbox {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn run<'a>(
        &'a self,
        command: Command,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Report, SandboxError>> {
        Box::pin(self.run(command, cancel))
    }

    fn upload<'a>(&'a self, file: File, path: &'a str) -> BoxFuture<'a, Result<String, SandboxError>> {
        Box::pin(async move { files::put(&self.server.api().await?, &self.id, file, path, self.cold).await })
    }

    fn download<'a>(&'a self, path: &'a str, into: File) -> BoxFuture<'a, Result<u64, SandboxError>> {
        Box::pin(async move { files::get(&self.server.api().await?, &self.id, path, into, self.cold).await })
    }

    fn skill_folder<'a>(&'a self, name: &'a str, folder: &'a Path) -> BoxFuture<'a, Result<String, SandboxError>> {
        Box::pin(self.skills.bring(self, self, name, folder))
    }

    fn end_task<'a>(&'a self, task: &'a TaskId) -> BoxFuture<'a, ()> {
        let listening = self.held().remove(task);
        Box::pin(self.end(listening.map(|one| (task.clone(), one)).into_iter().collect()))
    }

    fn shutdown(&self) -> BoxFuture<'_, ()> {
        let tasks = mem::take(&mut *self.held());
        Box::pin(self.end(tasks))
    }
}
