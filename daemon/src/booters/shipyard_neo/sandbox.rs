//! A sandbox of Bay as a session's computer.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use nano_protocol::id::TaskId;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use super::bay::{Ask, Bay};
use super::boot::{failed, gone, look, stop};
use super::fault::Fault;
use super::state::{self, Status};
use super::{history, keeper, paths};
use crate::booters::jobs::{Jobs, Said, Shell};
use crate::booters::kernel::Kernel;
use crate::booters::skill_files::SkillFiles;
use crate::http::call::Method;
use crate::sandbox::{BoxFuture, Capabilities, Command, Ending, Language, Report, Sandbox, SandboxError};

/// The longest time that Bay gives one Python program.
const LONGEST: Duration = Duration::from_mins(5);
const NONSENSE: &str =
    "the server's reply makes no sense; whether it took effect is not known: look before it is done again";
const ANEW: &str = "[Python was started anew since the last call: earlier variables are gone]";
/// How long a file may take to be written where it is going, and how many of its bytes add a second to that.
const TRANSFER: Duration = Duration::from_mins(2);
const BYTES_A_SECOND: u64 = 256 << 10;
/// How long work that goes on may take after the end of the session.
const WORK: Duration = Duration::from_mins(1);

/// A sandbox that serves.
pub struct NeoSandbox {
    bay: Arc<Bay>,
    id: String,
    capabilities: Capabilities,
    /// How many programs Python had run after the last one; fewer later means that it was started anew.
    python_runs: AtomicI64,
    jobs: Jobs,
    skills: SkillFiles,
    /// What goes on even where the call that began it was given up.
    work: TaskTracker,
    _keeper: AbortOnDropHandle<()>,
}

impl NeoSandbox {
    /// Takes up the sandbox that Bay tells this of, and keeps it alive from now on.
    pub fn new(bay: Arc<Bay>, id: &str, told: &Value, ttl: Duration) -> Self {
        // It ends with this, and nothing is lost by that.
        let keeper = tokio::spawn(keeper::keep(bay.clone(), id.to_owned(), ttl));
        Self {
            bay,
            id: id.to_owned(),
            capabilities: state::capabilities(told),
            python_runs: AtomicI64::new(0),
            jobs: Jobs::default(),
            skills: SkillFiles::default(),
            work: TaskTracker::new(),
            _keeper: AbortOnDropHandle::new(keeper),
        }
    }

    /// Returns the path of something of this sandbox.
    pub fn path(&self, below: &str) -> String {
        format!("sandboxes/{}/{below}", self.id)
    }

    /// Makes a call; a sandbox that turns out to be gone is told apart from what failed in one that is there.
    pub async fn call(&self, ask: &Ask) -> Result<Value, SandboxError> {
        match self.bay.call(ask).await {
            Ok(value) => Ok(value),
            Err(fault) => Err(self.judged(fault).await),
        }
    }

    /// Makes a call, and tells all that is known of why it failed.
    pub async fn attempt(&self, ask: &Ask) -> Result<Value, Fault> {
        self.bay.call(ask).await
    }

    /// Does work that has to come to its end whoever waits for it, and that [`Sandbox::shutdown`] waits for.
    pub fn spawn<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
        self.work.spawn(work)
    }

    async fn judged(&self, fault: Fault) -> SandboxError {
        // One that is being deleted loses its files first.
        let is_going = fault.is_not_found() && fault.words.to_lowercase().contains("cargo not found");
        if is_going || fault.code == "sandbox_expired" {
            return gone(&self.id);
        }
        let is_broken = fault.code == "ship_error" && fault.may_have_run;
        if fault.is_not_found() || is_broken {
            let told = look(&self.bay, &self.id).await;
            match told.map(|told| state::status(&told)) {
                Err(gone @ SandboxError::Lost { .. }) => return gone,
                Ok(Some(Status::Gone)) => return gone(&self.id),
                Ok(Some(Status::Failed)) => return failed(&self.id),
                _ => {}
            }
        }
        SandboxError::Failed(fault.words)
    }

    async fn python(&self, command: &Command) -> Result<Report, SandboxError> {
        let limit = command.timeout.min(LONGEST);
        let body = json!({"code": command.text, "timeout": limit.as_secs().max(1)});
        let reply = self.call(&Ask::post(self.path("python/exec"), &body).taking(limit)).await?;
        let Some(done) = reply.get("success").and_then(Value::as_bool) else {
            return Err(SandboxError::Failed(NONSENSE.into()));
        };
        let (text, runs) = (text(&reply, "output"), reply.pointer("/data/execution_count").and_then(Value::as_i64));
        let anew = runs.is_some_and(|runs| runs <= self.python_runs.swap(runs, Ordering::Relaxed));
        let kernel = Kernel {
            text: reply.pointer("/data/output/text").and_then(Value::as_str).unwrap_or(text),
            error: self::text(&reply, "error"),
            failed: !done,
            images: reply.pointer("/data/output/images").and_then(Value::as_array).map_or(&[], Vec::as_slice),
            notes: anew.then(|| ANEW.to_owned()).into_iter().collect(),
            own_limit: (command.timeout > LONGEST).then_some(LONGEST),
        };
        Ok(kernel.report(self).await)
    }

    /// Ends what cannot be ended by itself.
    async fn stop_compute(&self) -> Report {
        let output = match self.bay.call(&stop(&self.id)).await {
            Ok(_) => {
                "the sandbox's compute was stopped to end it: variables and processes are gone, files are kept".into()
            }
            Err(why) => {
                format!("it may run on until its time limit: the sandbox's compute could not be stopped: {why}")
            }
        };
        self.python_runs.store(0, Ordering::Relaxed);
        Report { ending: Ending::Cancelled, output, spill: None, left_running: 0 }
    }

    async fn run(&self, command: Command, cancel: &CancellationToken) -> Result<Report, SandboxError> {
        if command.language == Language::Shell {
            return self.jobs.run(self, &command, cancel).await;
        }
        if cancel.is_cancelled() {
            return Ok(Report { ending: Ending::Cancelled, output: String::new(), spill: None, left_running: 0 });
        }
        tokio::select! {
            // Who cancels is not told of an end that came at the same moment.
            biased;
            () = cancel.cancelled() => Ok(self.stop_compute().await),
            report = self.python(&command) => report,
        }
    }

    async fn upload(&self, file: File, path: &str) -> Result<String, SandboxError> {
        let path = paths::file(path).map_err(SandboxError::Failed)?;
        let size = file.metadata().map_or(0, |found| found.len());
        let time = TRANSFER + Duration::from_secs(size / BYTES_A_SECOND);
        let ask = Ask::new(Method::POST, self.path("filesystem/upload")).file(file, &path).twice_is_once();
        self.call(&ask.taking(time)).await?;
        Ok(format!("{}/{path}", paths::HOME))
    }

    async fn download(&self, path: &str, into: File) -> Result<u64, SandboxError> {
        let path = paths::file(path).map_err(SandboxError::Failed)?;
        let ask = Ask::get(self.path("filesystem/download")).query("path", Some(path)).taking(TRANSFER);
        match self.bay.download(&ask, into).await {
            Ok(count) => Ok(count),
            Err(fault) => Err(self.judged(fault).await),
        }
    }
}

fn text<'a>(reply: &'a Value, field: &str) -> &'a str {
    reply.get(field).and_then(Value::as_str).unwrap_or_default()
}

impl Shell for NeoSandbox {
    fn sh(&self, line: String, limit: Duration) -> BoxFuture<'_, Result<Option<Said>, SandboxError>> {
        Box::pin(async move {
            let mut body = json!({"command": line, "timeout": limit.as_secs().max(1)});
            if history::is_start(&line) {
                body["command"] = history::truthful(&line).into();
            } else {
                body["tags"] = history::OWN.into();
            }
            let reply = self.call(&Ask::post(self.path("shell/exec"), &body).taking(limit)).await?;
            let (stdout, stderr) = (text(&reply, "output").to_owned(), text(&reply, "error").to_owned());
            let code = reply.get("exit_code").and_then(Value::as_i64).and_then(|code| i32::try_from(code).ok());
            if code == Some(-1) && stderr == "Command timed out" {
                return Ok(None);
            }
            let failed = reply.get("success").and_then(Value::as_bool) == Some(false);
            Ok(Some(Said { code: code.unwrap_or(failed.into()), stdout, stderr }))
        })
    }
}

impl Sandbox for NeoSandbox {
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
        Box::pin(self.upload(file, path))
    }

    fn download<'a>(&'a self, path: &'a str, into: File) -> BoxFuture<'a, Result<u64, SandboxError>> {
        Box::pin(self.download(path, into))
    }

    fn skill_folder<'a>(&'a self, name: &'a str, folder: &'a Path) -> BoxFuture<'a, Result<String, SandboxError>> {
        Box::pin(self.skills.bring(self, self, name, folder))
    }

    fn end_task<'a>(&'a self, task: &'a TaskId) -> BoxFuture<'a, ()> {
        Box::pin(self.jobs.end_task(self, task))
    }

    fn shutdown(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.jobs.shutdown(self).await;
            self.work.close();
            // Each step of it is bounded; this is for all of them.
            drop(timeout(WORK, self.work.wait()).await);
        })
    }
}
