//! `submit`: hands a task in, prints its id, returns.

use std::path::PathBuf;

use nano_protocol::id::SessionRef;
use nano_protocol::method::{Method as _, TaskSubmit};
use nano_protocol::session::{CreateParams, Level, ToolMode};
use nano_protocol::task::{SubmitParams, Task};

use crate::client::{Raw, decode};
use crate::context::{Context, Start};
use crate::failure::Failure;
use crate::link::Link;
use crate::text;

/// What to do and where.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to do; - reads stdin, so does none with a piped stdin
    #[arg(value_name = "TEXT")]
    pub text: Option<String>,
    /// The session to do it in: id, prefix of the id or name; a fresh one unless told
    #[arg(short, long, value_name = "SESSION", conflicts_with_all = ["new", "agent", "model", "booter", "workspace", "tools", "level"])]
    pub session: Option<String>,
    /// Name the fresh session
    #[arg(long, value_name = "NAME")]
    pub new: Option<String>,
    /// What the fresh session is like
    #[command(flatten)]
    pub fresh: Fresh,
    /// The same key and TEXT answer the same task
    #[arg(long, value_name = "K")]
    pub idempotency_key: Option<String>,
}

/// What a fresh session is like.
#[derive(Debug, clap::Args)]
pub struct Fresh {
    /// Its agent profile
    #[arg(long, value_name = "A")]
    pub agent: Option<String>,
    /// Its model
    #[arg(long, value_name = "M")]
    pub model: Option<String>,
    /// Its kind of computer
    #[arg(long, value_name = "B")]
    pub booter: Option<String>,
    /// The folder it works in; the current one unless told
    #[arg(long, value_name = "DIR")]
    pub workspace: Option<PathBuf>,
    /// Its set of tools: core, readonly or all
    #[arg(long, value_name = "MODE")]
    pub tools: Option<ToolMode>,
    /// How far local tools reach: read-only, workspace-write or host
    #[arg(long, value_name = "L")]
    pub level: Option<Level>,
}

impl Fresh {
    /// Returns the session to make, named `name`.
    pub fn params(&self, name: Option<&String>) -> Result<CreateParams, Failure> {
        let folder = std::path::absolute(self.workspace.as_deref().unwrap_or(std::path::Path::new(".")));
        let folder = folder.map_err(|error| {
            Failure::usage(format!("the workspace cannot be named ({error})"), "name a folder with --workspace")
        })?;
        // A trailing dot or slash would only make the same folder look like another one.
        let folder: PathBuf = folder.components().collect();
        // Where cron and services stand by chance, nobody meant to work: the session gets a folder of its own.
        let by_chance = self.workspace.is_none() && folder == std::path::Path::new("/");
        let workspace = folder
            .into_os_string()
            .into_string()
            .map_err(|_| Failure::usage("the workspace's path is not UTF-8", "name another folder with --workspace"))?;
        Ok(CreateParams {
            name: name.cloned(),
            agent: self.agent.clone(),
            workspace: Some(workspace).filter(|_| !by_chance),
            booter: self.booter.clone(),
            model: self.model.clone(),
            level: self.level,
            tool_mode: self.tools,
            ..CreateParams::default()
        })
    }
}

impl Args {
    /// Returns the submission; its key makes sending it again harmless.
    pub fn params(&self, context: &Context) -> Result<SubmitParams, Failure> {
        if self.fresh.level == Some(Level::Host) {
            context.output.warn("the level is host: the session's commands are not confined");
        }
        let content = text::resolve(self.text.as_deref(), &context.output)?;
        let session = self.session.clone().map(SessionRef);
        let create = if session.is_none() { Some(self.fresh.params(self.new.as_ref())?) } else { None };
        let key = self.idempotency_key.clone().unwrap_or_else(|| ulid::Ulid::generate().to_string());
        Ok(SubmitParams { session, create, content, idempotency_key: Some(key), ..SubmitParams::default() })
    }
}

/// Submits over `link`, again where the connection breaks.
pub fn submit(link: &mut Link<'_>, params: &SubmitParams) -> Result<(Raw, Task), Failure> {
    let raw = link.persist(|client| client.call_raw(TaskSubmit::NAME, params))?;
    let task = decode(&raw)?;
    Ok((raw, task))
}

/// Carries out `submit`.
pub fn run(context: &Context, args: &Args) -> Result<(), Failure> {
    let params = args.params(context)?;
    let (raw, task) = submit(&mut Link::new(context, Start::Allowed)?, &params)?;
    let answer = if context.output.json { raw.get() } else { task.id.as_str() };
    Ok(context.output.answer(answer)?)
}
