//! `upload_file`: a file of the workspace goes into the session's remote computer.

use std::fs::File;
use std::path::Path;

use serde::Deserialize;

use super::typed::Typed;
use super::{Tool, ToolContext, ToolFault, ToolOutcome, ToolSpec, schema};
use crate::sandbox::workspace::{Workspace, shown};
use crate::sandbox::{BoxFuture, Capability, SandboxError};

#[derive(Debug, Deserialize, schemars::JsonSchema)]
struct Args {
    /// The file of the workspace on the host.
    local_path: String,
    /// Where it goes in the sandbox; the file's own name unless given.
    remote_path: Option<String>,
}

/// Returns the tool, named `source`.
pub fn tool(source: &'static str) -> impl Tool {
    let spec = ToolSpec {
        name: "upload_file".into(),
        description: "Copies a file of the workspace on the host into the sandbox.".into(),
        input_schema: schema::schema::<Args>(),
        source: source.into(),
        requires: &[Capability::Filesystem],
        read_only: false,
    };
    Typed::new(spec, |context, args| Box::pin(upload(context, args)))
}

async fn upload(context: &ToolContext, args: Args) -> Result<ToolOutcome, ToolFault> {
    let Some(sandbox) = &context.sandbox else {
        return Ok(ToolOutcome::Failed("this session has no computer".into()));
    };
    let file = match open(context, &args.local_path) {
        Ok(file) => file,
        Err(why) => return Ok(ToolOutcome::Failed(format!("local_path: {why}"))),
    };
    let name = match &args.remote_path {
        Some(path) => path.clone(),
        None => base_name(&args.local_path),
    };
    told(sandbox.upload(file, &name), context, |place| format!("uploaded {} to {place}", shown(&args.local_path))).await
}

/// Opens what may leave this machine: whatever file tools may reach, a file of the workspace that is not the daemon's.
fn open(context: &ToolContext, path: &str) -> Result<File, String> {
    let workspace = Workspace::open(context.workspace.path(), true).map_err(|why| why.to_string())?;
    let file = workspace.file(path).map_err(|why| why.to_string())?;
    match context.private.holds(&file, workspace.path()) {
        Ok(false) => Ok(file),
        Ok(true) => Err(own(path)),
        Err(why) => Err(why.to_string()),
    }
}

/// Says that a file is the daemon's.
pub(super) fn own(path: &str) -> String {
    format!("`{}` is one of nanod's own files, which stay as they are and where they are", shown(path))
}

/// Returns the last part of a path.
pub(super) fn base_name(path: &str) -> String {
    Path::new(path).file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Waits for a transfer, or until the call is stopped, and puts what came of it into words.
pub(super) async fn told<T>(
    transfer: BoxFuture<'_, Result<T, SandboxError>>,
    context: &ToolContext,
    done: impl FnOnce(T) -> String,
) -> Result<ToolOutcome, ToolFault> {
    let ended = tokio::select! {
        // What was done is told of, whoever stops it at that moment.
        biased;
        ended = transfer => ended,
        () = context.cancel.cancelled() => return Ok(ToolOutcome::Stopped("stopped before it ended".into())),
    };
    match ended {
        Ok(what) => Ok(ToolOutcome::Done(done(what))),
        Err(why @ (SandboxError::Start(_) | SandboxError::Failed(_))) => Ok(ToolOutcome::Failed(why.to_string())),
        Err(why) => Err(why.into()),
    }
}
