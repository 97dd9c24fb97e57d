//! Shell commands as jobs of a remote computer, for booters whose servers do not wait long enough, or cannot cancel.
//!
//! A command runs apart from the request that started it, and is watched by further, short ones. So it may take as long
//! as it was given, and is ended with all that it started at its time limit, on cancel, and with its task. It counts as
//! held from before its start until its end is known: nothing runs on that nobody would end.

mod script;

use std::collections::{BTreeSet, HashMap};
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use nano_protocol::id::TaskId;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use ulid::Ulid;

pub use script::quoted;
use script::{Look, State};

use crate::sandbox::{BoxFuture, Command, Ending, Report, SandboxError};

/// The longest that one request waits for a job's end: servers and what lies between give up after half a minute.
const WAIT: Duration = Duration::from_secs(20);
/// What a request waits for at least, however often one that waited longer failed.
const SHORT: Duration = Duration::from_millis(500);
/// How long a background command is watched for failing at once.
const BACKGROUND: Duration = Duration::from_millis(300);
/// How long a script may take beside its waiting.
const SLACK: Duration = Duration::from_secs(5);
/// How long ending may take: two grace times.
const STOP: Duration = Duration::from_secs(10);
/// How often in a row looking may fail.
const LOOKS: u32 = 5;
const GONE: &str = "the sandbox went away while the command ran; it is unknown how far the command got";
const UNSURE: &str = "the sandbox server did not wait for the command; it is unknown whether it began";
/// Marks what this process starts: what carries another mark was left by a daemon that is dead.
static RUN: LazyLock<String> = LazyLock::new(|| Ulid::generate().to_string());

/// What a short command line came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Said {
    /// Its exit status.
    pub code: i32,
    /// Its standard output; blanks at both ends may be missing.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

/// A computer that runs short command lines in its workspace.
pub trait Shell: Send + Sync {
    /// Runs a command line that ends within `limit`; none where the server did not wait for its end.
    fn sh(&self, line: String, limit: Duration) -> BoxFuture<'_, Result<Option<Said>, SandboxError>>;
}

/// The jobs of one computer.
#[derive(Debug, Default)]
pub struct Jobs {
    held: Mutex<HashMap<TaskId, BTreeSet<String>>>,
    /// Those whose folders may go with the next start.
    over: Mutex<Vec<String>>,
    /// Whether what a dead daemon left running was ended.
    swept: AtomicBool,
}

struct Job<'a> {
    id: &'a str,
    shell: &'a dyn Shell,
    command: &'a Command,
}

impl Jobs {
    /// Runs a shell command to its end, its time limit, or until `cancel`.
    pub async fn run(
        &self,
        shell: &dyn Shell,
        command: &Command,
        cancel: &CancellationToken,
    ) -> Result<Report, SandboxError> {
        let id = Ulid::generate().to_string();
        lock(&self.held).entry(command.task.clone()).or_default().insert(id.clone());
        let (job, over) = (Job { id: &id, shell, command }, mem::take(&mut *lock(&self.over)));
        let watched = tokio::select! {
            // Who cancels is not told of an end that came at the same moment.
            biased;
            () = cancel.cancelled() => job.end(Ending::Cancelled).await,
            watched = job.watch(&over, &self.swept) => watched,
        };
        match watched {
            Ok((ending, look)) => Ok(self.report(&job, ending, &look)),
            // What is gone, or was ended, needs nobody any more; else the end of the task tries again.
            Err(why) => {
                let is_over = matches!(why, SandboxError::Lost { .. } | SandboxError::Start(_));
                if is_over || matches!(job.stop().await, Ok(_) | Err(SandboxError::Lost { .. })) {
                    self.release(&command.task, &id);
                }
                Err(why)
            }
        }
    }

    fn report(&self, job: &Job<'_>, ending: Ending, look: &Look) -> Report {
        let (output, spill) = look.output().render();
        let running = ending == Ending::Running;
        let left_running = if running { 1 } else { look.left };
        if left_running == 0 {
            self.release(&job.command.task, job.id);
            if spill.is_none() {
                lock(&self.over).push(job.id.to_owned());
            }
        }
        let later = (left_running > 0).then(|| look.out.clone());
        Report { ending, output, spill: spill.or(later), left_running }
    }

    fn release(&self, task: &TaskId, id: &str) {
        let mut held = lock(&self.held);
        if let Some(of_task) = held.get_mut(task) {
            of_task.remove(id);
            if of_task.is_empty() {
                held.remove(task);
            }
        }
    }

    /// Ends what the task's commands left running.
    pub async fn end_task(&self, shell: &dyn Shell, task: &TaskId) {
        let ids = lock(&self.held).remove(task).unwrap_or_default();
        end(shell, ids.iter()).await;
    }

    /// Ends everything that was left running.
    pub async fn shutdown(&self, shell: &dyn Shell) {
        let held = mem::take(&mut *lock(&self.held));
        end(shell, held.values().flatten()).await;
    }
}

async fn end(shell: &dyn Shell, ids: impl Iterator<Item = &String>) {
    // All at once: the grace runs once, not once for each.
    let ended = join_all(ids.map(|id| stop(shell, id))).await;
    for error in ended.into_iter().filter_map(Result::err) {
        tracing::warn!(%error, "a command may be left running in the sandbox");
    }
}

async fn stop(shell: &dyn Shell, id: &str) -> Result<Look, SandboxError> {
    let late = || SandboxError::Failed("the sandbox did not end the command in time; it may run on".into());
    ask(shell, id, script::stop(id), STOP).await?.ok_or_else(late)
}

/// Runs a script about a job; none where the server did not wait for its end.
async fn ask(shell: &dyn Shell, id: &str, line: String, limit: Duration) -> Result<Option<Look>, SandboxError> {
    let Some(said) = shell.sh(line, limit + SLACK).await? else { return Ok(None) };
    let look = Look::read(id, &said.stdout).ok_or_else(|| {
        let why = if said.stderr.is_empty() { "its shell says nothing" } else { said.stderr.trim() };
        SandboxError::Failed(format!(
            "the sandbox does not run commands as it should (exit status {}): {why}",
            said.code
        ))
    });
    look.map(Some)
}

impl Job<'_> {
    async fn watch(&self, over: &[String], swept: &AtomicBool) -> Result<(Ending, Look), SandboxError> {
        let (started, mut most) = (self.start(over, swept).await, WAIT);
        // Counted from its beginning: the computer may have had to wake up for it.
        let end = Instant::now() + self.command.timeout.saturating_sub(self.first_wait());
        let mut look = match started {
            Ok(Some(look)) => look,
            Ok(None) => match self.look(end, &mut most).await? {
                look if look.state == State::Dead => return Err(SandboxError::Failed(UNSURE.into())),
                look => look,
            },
            Err(SandboxError::Failed(why)) => self.find(why).await?,
            Err(why) => return Err(why),
        };
        loop {
            let ending = match look.state {
                State::Exited(code) => Ending::Exited(code),
                State::Dead => Ending::Signalled("SIGKILL".into()),
                State::Nowhere => {
                    let cwd = look.out.display();
                    return Err(SandboxError::Start(format!("cwd: there is no folder {cwd} in the sandbox")));
                }
                State::Running if self.command.background => Ending::Running,
                State::Running if Instant::now() >= end => return self.end(Ending::TimedOut).await,
                State::Running => {
                    look = self.look(end, &mut most).await?;
                    continue;
                }
            };
            return Ok((ending, look));
        }
    }

    async fn start(&self, over: &[String], swept: &AtomicBool) -> Result<Option<Look>, SandboxError> {
        let pieces = script::pieces(&self.command.text);
        let (last, first) = pieces.split_last().unwrap_or((&"", &[]));
        for piece in first {
            let said = self.shell.sh(script::put(self.id, piece), SLACK).await?;
            if said.is_none_or(|said| said.code != 0) {
                return Err(SandboxError::Failed("the sandbox did not take the whole command; it was not run".into()));
            }
        }
        let (background, wait) = (self.command.background, self.first_wait());
        let before = script::Before { over, sweep: !swept.load(Ordering::Relaxed) };
        let line = script::launch(self.id, &RUN, last, &self.cwd(), &before, wait, background);
        let started = ask(self.shell, self.id, line, wait).await;
        swept.fetch_or(matches!(started, Ok(Some(_))), Ordering::Relaxed);
        started
    }

    /// Looks whether a start worked whose reply did not come, for whatever reason `why` says.
    async fn find(&self, why: String) -> Result<Look, SandboxError> {
        match ask(self.shell, self.id, script::look(self.id, Duration::ZERO), Duration::ZERO).await {
            Ok(Some(look)) if look.state != State::Dead => Ok(look),
            _ => Err(SandboxError::Failed(why)),
        }
    }

    /// Returns how long the start itself waits for the end.
    fn first_wait(&self) -> Duration {
        if self.command.background { BACKGROUND } else { self.command.timeout.min(WAIT) }
    }

    fn cwd(&self) -> String {
        match &self.command.cwd {
            Some(cwd) if cwd.is_absolute() => cwd.to_string_lossy().into_owned(),
            // Never an option, a search through CDPATH or `-`.
            Some(cwd) => format!("./{}", cwd.display()),
            None => ".".into(),
        }
    }

    /// Looks until that works: a look changes nothing. One that fails may have waited longer than something between
    /// here and there does, so the next ones wait for less than `most` was.
    async fn look(&self, end: Instant, most: &mut Duration) -> Result<Look, SandboxError> {
        let mut failed = 0;
        loop {
            let wait = end.saturating_duration_since(Instant::now()).min(*most);
            match ask(self.shell, self.id, script::look(self.id, wait), wait).await {
                Ok(Some(look)) => return Ok(look),
                Ok(None) | Err(SandboxError::Failed(_)) if failed < LOOKS => {
                    (failed, *most) = (failed + 1, (*most / 2).max(SHORT));
                }
                Ok(None) => break,
                // Something was done, so it is not the kind of loss after which all is simply done again.
                Err(SandboxError::Lost { why, .. }) => return Err(SandboxError::Failed(format!("{GONE} ({why})"))),
                Err(why) => return Err(why),
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        Err(SandboxError::Failed("the sandbox server does not wait for commands at all; is it overloaded?".into()))
    }

    /// Ends the job, and with it the call: also where there is no computer any more to end it in.
    async fn end(&self, ending: Ending) -> Result<(Ending, Look), SandboxError> {
        match self.stop().await {
            Err(SandboxError::Lost { why, .. }) => Ok((ending, Look::nothing(format!("[{GONE} ({why})]")))),
            stopped => stopped.map(|look| (ending, look)),
        }
    }

    async fn stop(&self) -> Result<Look, SandboxError> {
        stop(self.shell, self.id).await
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
