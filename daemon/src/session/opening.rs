//! Opening a session: everything it is made of, checked against what there is.

use std::path::{Path, PathBuf};

use nano_protocol::error::{ErrorKind, RpcError};
use nano_protocol::id::{SessionId, is_session_name};
use nano_protocol::session::{CreateParams, Level, Session, SessionState};
use nano_protocol::task::{Task, Usage};
use rustix::fs::Access;
use serde_json::json;

use super::actor::Command;
use super::admission::{self, Keyed, Submission};
use super::configured::Configured;
use super::deps::Deps;
use super::profiles::no_such_tool;
use super::registry::Registry;
use crate::config::AgentConfig;
use crate::config::agent::kind;
use crate::sandbox::reach::bars_workspace;
use crate::store::Change;
use crate::store::record::SessionRecord;
use crate::tools::naming;

/// Opens a session for `uid`.
pub async fn open(
    registry: &Registry,
    uid: u32,
    params: CreateParams,
    keyed: Option<Keyed>,
) -> Result<Session, RpcError> {
    let id = SessionId::from_ulid(&registry.deps().clock.ulid());
    let _profile_stays = registry.deps().profiles.hold().await;
    let record = new_record(registry.deps(), uid, id, params, false)?;
    let with = keyed.map(|keyed| keyed.record(json!(record.session.id), record.session.created_at));
    let session = record.session.clone();
    registry.create(record, with.into_iter().collect()).await?;
    Ok(session)
}

/// Opens a session together with its first task: both are there, or neither.
pub async fn open_with_task(
    registry: &Registry,
    uid: u32,
    params: CreateParams,
    submission: Submission,
) -> Result<Task, RpcError> {
    let id = SessionId::from_ulid(&registry.deps().clock.ulid());
    registry.is_open()?;
    let lone = params.name.is_none();
    let profile_stays = registry.deps().profiles.hold().await;
    let mut record = new_record(registry.deps(), uid, id.clone(), params, lone)?;
    record.session.state = SessionState::Running;
    let (task, mut with) = admission::task_record(submission, &record.session, record.session.created_at);
    with.insert(0, Change::Queued(Box::new(task.clone())));
    let receipt = registry.create(record, with).await?;
    drop(profile_stays);
    let seq = admission::queued_number(&receipt);
    // It is accepted whatever follows: a daemon that goes down now leaves it to the next one.
    if let Err(error) = registry.send(&id, Command::Wake(None)).await {
        tracing::info!(session = %id, %error, "its task waits for the next start");
    }
    Ok(Task { seq, ..task.task })
}

pub(super) fn invalid(why: String) -> RpcError {
    RpcError::new(ErrorKind::InvalidParams, why)
}

/// Makes the record; `lone`: for one task, so its computer is given back when that has ended.
pub(super) fn new_record(
    deps: &Deps,
    uid: u32,
    id: SessionId,
    params: CreateParams,
    lone: bool,
) -> Result<SessionRecord, RpcError> {
    if let Some(name) = params.name.as_ref().filter(|name| !is_session_name(name)) {
        let name = name.escape_debug();
        return Err(invalid(format!("`{name}` is no session name: 1 to 64 of A-Z a-z 0-9 . _ -, not like an id")));
    }
    let agent_name = params.agent.unwrap_or_else(|| "default".into());
    let profile = deps.profiles.get(&agent_name);
    let agent = &known(profile, "agent", &agent_name, deps.profiles.names().iter().map(String::as_str))?.agent;
    let booter = kind(params.booter.unwrap_or_else(|| agent.booter.clone()));
    known(deps.booter(&booter), "booter", &booter, deps.booters.iter().map(|one| one.kind()))?;
    // The profile's own were checked with it.
    check_tools(deps, params.tools.as_deref().unwrap_or_default())?;
    let now = deps.clock.now();
    let workspace = match params.workspace {
        Some(workspace) => given_workspace(&workspace, &deps.configured())?,
        None => deps.own_workspace(id.as_str()).to_string_lossy().into_owned(),
    };
    let session = Session {
        model: model(deps, params.model, agent)?,
        id,
        name: params.name,
        owner: uid,
        agent: agent_name,
        workspace,
        booter,
        booted: false,
        capabilities: None,
        level: params.level.unwrap_or(agent.level),
        tool_mode: params.tool_mode.unwrap_or(agent.tool_mode),
        tools: params.tools.or_else(|| agent.tools.clone()),
        skills: params.skills.or_else(|| agent.skills.clone()),
        state: SessionState::Idle,
        always: Vec::new(),
        parent: None,
        metadata: params.metadata.unwrap_or_default(),
        created_at: now,
        updated_at: now,
        usage: Usage::default(),
        todo: Vec::new(),
    };
    warn_of_host(&session);
    Ok(record(session, lone))
}

fn record(session: Session, lone: bool) -> SessionRecord {
    SessionRecord {
        session,
        tools: Vec::new(),
        revision: 0,
        exact: false,
        closing: false,
        ephemeral: lone,
        computer: String::new(),
        shares: false,
        depth: 0,
        no_exec: false,
        restricted: false,
        policies: Vec::new(),
    }
}

fn warn_of_host(session: &Session) {
    if session.level == Level::Host {
        tracing::warn!(session = %session.id, "its level is host: its commands are not confined");
    }
}

/// Returns the model a session gets; empty where none is configured yet.
fn model(deps: &Deps, asked: Option<String>, agent: &AgentConfig) -> Result<String, RpcError> {
    let models = deps.models();
    let Some(name) = asked.or_else(|| agent.model.clone()) else {
        return Ok(models.default().unwrap_or_default().to_owned());
    };
    known(models.get(&name), "model", &name, models.names())?;
    Ok(name)
}

/// Returns what was found, or the error of a name that is not among `all`.
pub(super) fn known<'a, T>(
    found: Option<T>,
    what: &str,
    name: &str,
    all: impl Iterator<Item = &'a str>,
) -> Result<T, RpcError> {
    found.ok_or_else(|| {
        let all: Vec<&str> = all.collect();
        let there =
            if all.is_empty() { "none is configured".to_owned() } else { format!("there is {}", all.join(", ")) };
        invalid(format!("unknown {what} `{}`; {there}", name.escape_debug()))
    })
}

pub(super) fn check_tools(deps: &Deps, tools: &[String]) -> Result<(), RpcError> {
    let unknown = naming::unknown_names(&deps.named(), tools);
    unknown.first().map_or(Ok(()), |tool| Err(invalid(no_such_tool(&deps.named(), tool))))
}

/// Checks a workspace that came over the wire: absolute, a folder, reachable, and where the config allows it.
fn given_workspace(workspace: &str, configured: &Configured) -> Result<String, RpcError> {
    let roots = &configured.config.daemon.workspaces;
    let path = Path::new(workspace);
    if !path.is_absolute() || workspace.contains('\0') {
        return Err(invalid(format!("the workspace `{}` is not an absolute path", workspace.escape_debug())));
    }
    let real = path.canonicalize().map_err(|why| {
        let hint = "make it, or let the daemon's user reach it (BindPaths= in a service)";
        invalid(format!("the workspace {workspace} cannot be reached: {why}")).hint(hint)
    })?;
    if !real.is_dir() {
        return Err(invalid(format!("the workspace {workspace} is not a folder")));
    }
    rustix::fs::access(&real, Access::READ_OK | Access::EXEC_OK).map_err(|why| {
        let hint = "let the daemon's user read it, or choose another folder";
        invalid(format!("the workspace {workspace} cannot be used: {why}")).hint(hint)
    })?;
    if let Some(why) = bars_workspace(&real, &configured.private.hidden()) {
        return Err(invalid(format!("the workspace {workspace} cannot be used: {why}")).hint("choose another folder"));
    }
    let allowed = |root: &PathBuf| root.canonicalize().is_ok_and(|root| real.starts_with(root));
    if !roots.is_empty() && !roots.iter().any(allowed) {
        return Err(
            invalid(format!("the workspace {workspace} lies outside daemon.workspaces")).hint("add its root there")
        );
    }
    let text = real.to_str().ok_or_else(|| invalid(format!("the workspace {} is not UTF-8", real.display())))?;
    Ok(text.to_owned())
}
