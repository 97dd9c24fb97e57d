//! A sandbox of Bay as a session's computer.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use nano_protocol::id::TaskId;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::bay::{Ask, Bay};
use super::boot::{look, lost, stop};
use super::fault::Fault;
use super::state::{self, Status};
use super::{keeper, paths};
use crate::http::call::Method;
use crate::sandbox::output::readable;
use crate::sandbox::{BoxFuture, Capabilities, Command, Ending, Language, Report, Sandbox, SandboxError};

/// The longest time that Bay gives one program.
const LONGEST: Duration = Duration::from_mins(5);
/// How long a file may take to be written where it is going, and how many of its bytes add a second to that.
const TRANSFER: Duration = Duration::from_mins(2);
const BYTES_A_SECOND: u64 = 256 << 10;

/// A sandbox that serves.
pub struct NeoSandbox {
    bay: Arc<Bay>,
    id: String,
    capabilities: Capabilities,
    /// How many programs Python had run after the last one; fewer later means that it was started anew.
    python_runs: AtomicI64,
    _keeper: AbortOnDropHandle<()>,
}

impl NeoSandbox {
    /// Takes up the sandbox that Bay tells this of, and keeps it alive from now on.
    pub fn new(bay: Arc<Bay>, id: &str, told: &Value, ttl: Duration) -> Self {
        let keeper = tokio::spawn(keeper::keep(bay.clone(), id.to_owned(), ttl));
        let (capabilities, python_runs) = (state::capabilities(told), AtomicI64::new(0));
        Self { bay, id: id.to_owned(), capabilities, python_runs, _keeper: AbortOnDropHandle::new(keeper) }
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

    async fn judged(&self, fault: Fault) -> SandboxError {
        // One that is being deleted loses its files first.
        let is_going = fault.is_not_found() && fault.words.to_lowercase().contains("cargo not found");
        if is_going || fault.code == "sandbox_expired" {
            return lost(fault.words);
        }
        if fault.is_not_found() {
            match look(&self.bay, &self.id).await {
                Err(gone @ SandboxError::Lost { .. }) => return gone,
                Ok(told) if state::status(&told) == Status::Gone => return lost(fault.words),
                _ => {}
            }
        }
        SandboxError::Failed(fault.words)
    }

    async fn shell(&self, command: &Command) -> Result<Report, SandboxError> {
        let timeout = command.timeout.min(LONGEST);
        let cwd = command.cwd.as_ref().map(|cwd| paths::relative(&cwd.to_string_lossy())).transpose();
        let cwd = cwd.map_err(|why| SandboxError::Failed(format!("cwd: {why}")))?;
        let mut body = json!({"command": command.text, "timeout": timeout.as_secs().max(1)});
        if let Some(cwd) = cwd {
            body["cwd"] = cwd.into();
        }
        let reply = self.call(&Ask::post(self.path("shell/exec"), &body).taking(timeout)).await?;
        Ok(shell_report(&reply))
    }

    async fn python(&self, command: &Command) -> Result<Report, SandboxError> {
        let timeout = command.timeout.min(LONGEST);
        let body = json!({"code": command.text, "timeout": timeout.as_secs().max(1)});
        let reply = self.call(&Ask::post(self.path("python/exec"), &body).taking(timeout)).await?;
        let mut report = python_report(&reply);
        let runs = reply.pointer("/data/execution_count").and_then(Value::as_i64);
        if let Some(runs) = runs
            && runs <= self.python_runs.swap(runs, Ordering::Relaxed)
        {
            report.output.push_str("\n[Python was started anew since the last call: earlier variables are gone]");
        }
        if command.timeout > LONGEST {
            report.output.push_str("\n[the server gives Python 300 s at most]");
        }
        Ok(report)
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
        let run = async {
            match command.language {
                Language::Shell => self.shell(&command).await,
                Language::Python => self.python(&command).await,
            }
        };
        tokio::select! {
            // Who cancels is not told of an end that came at the same moment.
            biased;
            () = cancel.cancelled() => Ok(self.stop_compute().await),
            report = run => report,
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

/// Joins what a program printed and what it complained of.
fn joined(output: &str, error: &str) -> String {
    let parts: Vec<String> =
        [output, error].into_iter().filter(|part| !part.is_empty()).map(|part| readable(part.as_bytes())).collect();
    parts.iter().map(|part| part.trim_end_matches('\n')).collect::<Vec<_>>().join("\n")
}

fn shell_report(reply: &Value) -> Report {
    let code = reply.get("exit_code").and_then(Value::as_i64).and_then(|code| i32::try_from(code).ok());
    let has_succeeded = reply.get("success").and_then(Value::as_bool).unwrap_or(false);
    let (output, error) = (text(reply, "output"), text(reply, "error"));
    let ending = match code {
        Some(-1) if error == TIMED_OUT => Ending::TimedOut,
        Some(code) => Ending::Exited(code),
        None => Ending::Exited(i32::from(!has_succeeded)),
    };
    let error = if ending == Ending::TimedOut { "" } else { error };
    Report { ending, output: joined(output, error), spill: None, left_running: 0 }
}

/// What Bay says of a program that was stopped at its time limit.
const TIMED_OUT: &str = "Command timed out";

fn python_report(reply: &Value) -> Report {
    let has_succeeded = reply.get("success").and_then(Value::as_bool).unwrap_or(false);
    let error = text(reply, "error");
    let is_late = !has_succeeded && !error.contains("Traceback") && error.contains("timed out");
    let ending = if is_late { Ending::TimedOut } else { Ending::Exited(i32::from(!has_succeeded)) };
    let images = reply.pointer("/data/output/images").and_then(Value::as_array).map_or(0, Vec::len);
    let mut output = joined(text(reply, "output"), error);
    if images > 0 {
        output.extend(["\n[", &images.to_string(), " pictures are not shown: save them to files]"]);
    }
    Report { ending, output, spill: None, left_running: 0 }
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

    fn skill_folder<'a>(&'a self, _name: &'a str, folder: &'a Path) -> BoxFuture<'a, Result<String, SandboxError>> {
        Box::pin(std::future::ready(Ok(folder.to_string_lossy().into_owned())))
    }

    fn end_task<'a>(&'a self, _task: &'a TaskId) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }

    fn shutdown(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}
