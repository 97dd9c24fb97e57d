//! A ship: the computer that an old Shipyard gives a session.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use nano_protocol::id::TaskId;
use serde_json::{Value, json};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::client::{Client, SOON};
use super::python;
use crate::booters::jobs::{Jobs, Said, Shell};
use crate::booters::skill_files::SkillFiles;
use crate::http::call::Method;
use crate::sandbox::{BoxFuture, Capabilities, Command, Language, Report, Sandbox, SandboxError};

/// A ship that serves.
pub struct Ship {
    pub client: Arc<Client>,
    pub id: String,
    jobs: Jobs,
    skills: SkillFiles,
    _kept: AbortOnDropHandle<()>,
}

impl Ship {
    /// Takes a ship over and keeps it from being stopped for as long as this lives.
    pub fn new(client: Client, id: String, ttl: Duration) -> Arc<Self> {
        let client = Arc::new(client);
        // It ends with this, and nothing is lost by that.
        let kept = AbortOnDropHandle::new(tokio::spawn(keep(client.clone(), id.clone(), ttl)));
        Arc::new(Self { client, id, jobs: Jobs::default(), skills: SkillFiles::default(), _kept: kept })
    }
}

/// Renews a ship's time well before it is over, until the ship is gone.
async fn keep(client: Arc<Client>, id: String, ttl: Duration) {
    let body = json!({"ttl": ttl.as_secs()});
    loop {
        let asked = client.ask(Method::POST, &format!("/ship/{id}/extend-ttl"), body.clone(), SOON).await;
        match asked.map(|reply| reply.status) {
            Ok(404) => return,
            Ok(200) => {}
            other => tracing::debug!(ship = %id, ?other, "its time could not be renewed"),
        }
        sleep((ttl / 3).max(Duration::from_millis(300))).await;
    }
}

impl Shell for Ship {
    fn sh(&self, line: String, limit: Duration) -> BoxFuture<'_, Result<Option<Said>, SandboxError>> {
        Box::pin(async move {
            let payload = json!({"command": line, "timeout": limit.as_secs().max(1)});
            let Some(data) = self.client.exec(&self.id, "shell/exec", payload, limit).await? else { return Ok(None) };
            let text = |name| data.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
            let code = data.get("return_code").and_then(Value::as_i64).and_then(|code| i32::try_from(code).ok());
            match (code, text("error")) {
                (Some(code), error) if code >= 0 || error.is_empty() => {
                    Ok(Some(Said { code, stdout: text("stdout"), stderr: text("stderr") }))
                }
                (_, error) if error == "Command timed out" => Ok(None),
                (_, error) => {
                    let why = if error.is_empty() { "it does not say why".into() } else { self.client.words(&error) };
                    Err(SandboxError::Failed(format!("the sandbox did not run the command: {why}")))
                }
            }
        })
    }
}

impl Sandbox for Ship {
    fn capabilities(&self) -> &Capabilities {
        &Capabilities::Unknown
    }

    fn run<'a>(
        &'a self,
        command: Command,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Report, SandboxError>> {
        Box::pin(async move {
            match command.language {
                Language::Shell => self.jobs.run(self, &command, cancel).await,
                Language::Python => python::run(self, &command, cancel).await,
            }
        })
    }

    fn upload<'a>(&'a self, file: File, path: &'a str) -> BoxFuture<'a, Result<String, SandboxError>> {
        Box::pin(self.send(file, path))
    }

    fn download<'a>(&'a self, path: &'a str, into: File) -> BoxFuture<'a, Result<u64, SandboxError>> {
        Box::pin(self.fetch(path, into))
    }

    fn skill_folder<'a>(&'a self, name: &'a str, folder: &'a Path) -> BoxFuture<'a, Result<String, SandboxError>> {
        Box::pin(self.skills.bring(self, self, name, folder))
    }

    fn end_task<'a>(&'a self, task: &'a TaskId) -> BoxFuture<'a, ()> {
        Box::pin(self.jobs.end_task(self, task))
    }

    fn shutdown(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.jobs.shutdown(self))
    }
}
