//! `session.*`.

use std::path::Path;

use nano_protocol::error::{ErrorKind, RpcError};
use nano_protocol::id::{SessionId, SessionRef, is_session_name};
use nano_protocol::method::{
    SessionBoot, SessionClose, SessionCreate, SessionDelete, SessionGet, SessionList, SessionMessages, SessionPrompts,
    SessionQueue, SessionSteer, SessionTools, SessionWithdraw,
};
use nano_protocol::session::{
    self, CreateParams, Delivery, ListParams, Messages, MessagesParams, Queue, Session, SessionParams, SessionState,
    Sessions, SteerParams, Steered, Waiting, WaitingKind, WithdrawParams,
};
use nano_protocol::task::{TaskState, Usage};
use nano_protocol::{MAX_CONTENT, id};
use serde_json::json;

use super::dispatch::Serve;
use super::idempotency::Known;
use super::{Caller, Server};
use crate::config::AgentConfig;
use crate::session::actor::Command;
use crate::session::admission::{self, Keyed, SteerRequest};
use crate::session::deps::unavailable;
use crate::session::view;
use crate::store::Key;
use crate::store::record::{SessionRecord, SteeringRecord, TaskRecord};
use crate::tools::set;

const PAGE: usize = 200;

pub(super) fn invalid(why: impl Into<String>) -> RpcError {
    RpcError::new(ErrorKind::InvalidParams, why)
}

impl Server {
    /// Returns a session's record as it is stored.
    pub(super) fn record(&self, id: &SessionId) -> Result<SessionRecord, RpcError> {
        let found = self.deps().store.get(&Key::session(id)).map_err(|error| unavailable(&error))?;
        found.ok_or_else(|| RpcError::new(ErrorKind::NotFound, format!("there is no session {id}")))
    }

    fn found(&self, caller: &Caller, session: &SessionRef) -> Result<SessionRecord, RpcError> {
        self.record(&self.registry.find(caller.uid, session)?)
    }

    /// Makes a session; `lone`: for one task, so its computer is given back when that has ended.
    pub(super) async fn create(
        &self,
        caller: &Caller,
        params: CreateParams,
        lone: bool,
        keyed: Option<Keyed>,
    ) -> Result<Session, RpcError> {
        let id = SessionId::from_ulid(&self.deps().clock.ulid());
        let record = self.new_record(caller, id, params, lone)?;
        let with = keyed.map(|keyed| keyed.record(json!(record.session.id), record.session.created_at));
        Ok(self.registry.create(record, with.into_iter().collect()).await?.session)
    }

    fn new_record(&self, caller: &Caller, id: SessionId, params: CreateParams, lone: bool) -> Result<SessionRecord, RpcError> {
        let deps = self.deps();
        if let Some(name) = params.name.as_ref().filter(|name| !is_session_name(name)) {
            return Err(invalid(format!("`{name}` is no session name: 1 to 64 of A-Z a-z 0-9 . _ -, not like an id")));
        }
        let agent_name = params.agent.unwrap_or_else(|| "default".into());
        let agents = &deps.config.agents;
        let agent = known(agents.get(&agent_name), "agent", &agent_name, agents.keys().map(String::as_str))?;
        let booter = params.booter.unwrap_or_else(|| agent.booter.clone());
        let booter = if booter == "sandbox" { "shipyard_neo".into() } else { booter };
        known(deps.booter(&booter), "booter", &booter, deps.booters.iter().map(|one| one.kind()))?;
        let tools = params.tools.or_else(|| agent.tools.clone());
        check_tools(deps, tools.as_deref())?;
        let now = deps.clock.now();
        let workspace = match params.workspace {
            Some(workspace) => given_workspace(&workspace, &deps.config.daemon.workspaces)?,
            None => deps.own_workspace(id.as_str()).to_string_lossy().into_owned(),
        };
        let session = Session {
            model: self.model(params.model, agent)?,
            id,
            name: params.name,
            owner: caller.uid,
            agent: agent_name,
            workspace,
            booter,
            booted: false,
            capabilities: None,
            level: params.level.unwrap_or(agent.level),
            tool_mode: params.tool_mode.unwrap_or(agent.tool_mode),
            tools,
            skills: params.skills.or_else(|| agent.skills.clone()),
            state: SessionState::Idle,
            parent: None,
            metadata: params.metadata.unwrap_or_default(),
            created_at: now,
            updated_at: now,
            usage: Usage::default(),
        };
        Ok(SessionRecord { session, tools: Vec::new(), revision: 0, exact: false, ephemeral: lone })
    }

    /// Returns the model a session gets; empty where none is configured yet.
    fn model(&self, asked: Option<String>, agent: &AgentConfig) -> Result<String, RpcError> {
        let models = self.deps().models();
        let Some(name) = asked.or_else(|| agent.model.clone()) else {
            return Ok(models.default().unwrap_or_default().to_owned());
        };
        known(models.get(&name), "model", &name, models.names())?;
        Ok(name)
    }
}

fn known<'a, T>(found: Option<T>, what: &str, name: &str, all: impl Iterator<Item = &'a str>) -> Result<T, RpcError> {
    found.ok_or_else(|| {
        let all: Vec<&str> = all.collect();
        let there = if all.is_empty() { "none is configured".to_owned() } else { format!("there is {}", all.join(", ")) };
        invalid(format!("unknown {what} `{name}`; {there}"))
    })
}

fn check_tools(deps: &crate::session::deps::Deps, tools: Option<&[String]>) -> Result<(), RpcError> {
    let unknown = set::unknown_names(&deps.tools, tools.unwrap_or_default());
    if unknown.is_empty() {
        return Ok(());
    }
    let all: Vec<&str> = deps.tools.iter().map(|tool| tool.spec().name).collect();
    Err(invalid(format!("unknown tool `{}`; there is {}", unknown.join("`, `"), all.join(", "))))
}

/// Checks a workspace that came over the wire: absolute, a folder, reachable, and where the config allows it.
fn given_workspace(workspace: &str, roots: &[std::path::PathBuf]) -> Result<String, RpcError> {
    let path = Path::new(workspace);
    if !path.is_absolute() || workspace.contains('\0') {
        return Err(invalid(format!("the workspace `{}` is not an absolute path", workspace.escape_debug())));
    }
    let real = path.canonicalize().map_err(|why| {
        invalid(format!("the workspace {workspace} cannot be reached: {why}")).hint("make it, or let the daemon's user reach it")
    })?;
    if !real.is_dir() {
        return Err(invalid(format!("the workspace {workspace} is not a folder")));
    }
    let allowed = |root: &std::path::PathBuf| root.canonicalize().is_ok_and(|root| real.starts_with(root));
    if !roots.is_empty() && !roots.iter().any(allowed) {
        return Err(invalid(format!("the workspace {workspace} lies outside daemon.workspaces")).hint("add its root there"));
    }
    Ok(real.to_string_lossy().into_owned())
}

impl Serve for SessionCreate {
    async fn serve(server: &Server, caller: &Caller, params: CreateParams) -> Result<Session, RpcError> {
        let key = params.idempotency_key.clone();
        let store = &server.deps().store;
        match server.keys.look_up(store, caller.uid, "session.create", key.as_deref(), &params).await? {
            Known::Fresh(keyed, _guard) => server.create(caller, params, false, keyed).await,
            Known::Before(id) => Ok(server.record(&SessionId(id.as_str().unwrap_or_default().to_owned()))?.session),
        }
    }
}

impl Serve for SessionGet {
    async fn serve(server: &Server, caller: &Caller, params: SessionParams) -> Result<Session, RpcError> {
        Ok(server.found(caller, &params.session)?.session)
    }
}

impl Serve for SessionList {
    async fn serve(server: &Server, caller: &Caller, params: ListParams) -> Result<Sessions, RpcError> {
        let store = &server.deps().store;
        let before = params.after.map(|after| Key::session(&SessionId(after)));
        let limit = params.limit.unwrap_or(PAGE).clamp(1, 1000);
        let mut sessions = Vec::new();
        for id in store.ids_backwards(&Key::all(b's'), before.as_ref()) {
            let id = SessionId(id);
            if !server.registry.sees(caller.uid, &id) {
                continue;
            }
            let session = server.record(&id)?.session;
            if params.state.is_none_or(|state| session.state == state) {
                if sessions.len() == limit {
                    let next = sessions.last().map(|last: &Session| last.id.0.clone());
                    return Ok(Sessions { sessions, next });
                }
                sessions.push(session);
            }
        }
        Ok(Sessions { sessions, next: None })
    }
}

impl Serve for SessionClose {
    async fn serve(server: &Server, caller: &Caller, params: SessionParams) -> Result<Session, RpcError> {
        let id = server.registry.find(caller.uid, &params.session)?;
        server.scheduler.pause_all(&id).await?;
        server.registry.ask(&id, Command::Close).await
    }
}

impl Serve for SessionDelete {
    async fn serve(server: &Server, caller: &Caller, params: SessionParams) -> Result<Session, RpcError> {
        let id = server.registry.find(caller.uid, &params.session)?;
        server.scheduler.forget_all(&id).await?;
        let session = server.registry.ask(&id, Command::Close).await?;
        server.registry.delete(&id).await?;
        let left = [server.deps().spill(&id), server.deps().own_workspace(id.as_str())];
        for folder in left.iter().filter(|folder| folder.exists()) {
            if let Err(error) = std::fs::remove_dir_all(folder) {
                tracing::warn!(folder = %folder.display(), %error, "a deleted session's folder could not be removed");
            }
        }
        Ok(session)
    }
}

impl Serve for SessionBoot {
    async fn serve(server: &Server, caller: &Caller, params: SessionParams) -> Result<Session, RpcError> {
        let id = server.registry.find(caller.uid, &params.session)?;
        if server.record(&id)?.session.state == SessionState::Closed {
            return Err(RpcError::new(ErrorKind::Conflict, format!("session {id} is closed")));
        }
        server.registry.ask(&id, Command::Boot).await
    }
}

impl Serve for SessionTools {
    async fn serve(server: &Server, caller: &Caller, params: SessionParams) -> Result<session::SessionTools, RpcError> {
        Ok(view::tools(server.deps(), &server.found(caller, &params.session)?))
    }
}

impl Serve for SessionPrompts {
    async fn serve(server: &Server, caller: &Caller, params: SessionParams) -> Result<session::SessionPrompts, RpcError> {
        Ok(view::prompts(server.deps(), &server.found(caller, &params.session)?))
    }
}

impl Serve for SessionMessages {
    async fn serve(server: &Server, caller: &Caller, params: MessagesParams) -> Result<Messages, RpcError> {
        let id = server.registry.find(caller.uid, &params.session)?;
        let limit = params.limit.unwrap_or(PAGE);
        if !(1..=1000).contains(&limit) {
            return Err(invalid("limit is 1 to 1000"));
        }
        let read = server.deps().store.messages(&id, params.after_seq.unwrap_or(0), limit + 1);
        let mut messages = read.map_err(|error| unavailable(&error))?;
        let more = messages.len() > limit;
        messages.truncate(limit);
        let next_after_seq = messages.last().filter(|_| more).map(|last| last.seq);
        Ok(Messages { messages, next_after_seq })
    }
}

impl Serve for SessionSteer {
    async fn serve(server: &Server, caller: &Caller, params: SteerParams) -> Result<Steered, RpcError> {
        let id = server.registry.find(caller.uid, &params.session)?;
        admission::content_fits(&params.content)?;
        let (key, store) = (params.idempotency_key.clone(), &server.deps().store);
        let known = server.keys.look_up(store, caller.uid, "session.steer", key.as_deref(), &params).await?;
        let (keyed, _guard) = match known {
            Known::Fresh(keyed, guard) => (keyed, guard),
            Known::Before(answer) => {
                return serde_json::from_value(answer).map_err(|why| RpcError::new(ErrorKind::Internal, why.to_string()));
            }
        };
        let request = SteerRequest {
            id: id::MessageId::from_ulid(&server.deps().clock.ulid()),
            content: params.content,
            delivery: params.delivery.unwrap_or(Delivery::Note),
            source: None,
            metadata: params.metadata,
            keyed,
            with: Vec::new(),
        };
        server.registry.ask(&id, |reply| Command::Steer(Box::new(request), reply)).await
    }
}

impl Serve for SessionQueue {
    async fn serve(server: &Server, caller: &Caller, params: SessionParams) -> Result<Queue, RpcError> {
        server.queue(&server.registry.find(caller.uid, &params.session)?)
    }
}

impl Serve for SessionWithdraw {
    async fn serve(server: &Server, caller: &Caller, params: WithdrawParams) -> Result<Queue, RpcError> {
        let id = server.registry.find(caller.uid, &params.session)?;
        server.registry.ask(&id, |reply| Command::Withdraw(params.id, reply)).await?;
        server.queue(&id)
    }
}

impl Server {
    fn queue(&self, id: &SessionId) -> Result<Queue, RpcError> {
        let store = &self.deps().store;
        let steering: Vec<SteeringRecord> =
            store.scan(&Key::below(b'w', &id.0), None, MAX_CONTENT).map_err(|error| unavailable(&error))?;
        let mut waiting: Vec<Waiting> = steering
            .into_iter()
            .map(|one| Waiting {
                id: one.id.0,
                kind: WaitingKind::Steering,
                delivery: Some(one.delivery),
                content: one.content,
                at: one.at,
            })
            .collect();
        let mut tasks = Vec::new();
        for task in store.ids_backwards(&Key::below(b'o', &id.0), None) {
            let record = store.get::<TaskRecord>(&Key::task(&id::TaskId(task))).map_err(|error| unavailable(&error))?;
            tasks.extend(record.map(|record| record.task).filter(|task| task.state == TaskState::Queued));
        }
        tasks.sort_by_key(|task| task.seq);
        waiting.extend(tasks.into_iter().map(|task| Waiting {
            id: task.id.0,
            kind: WaitingKind::Task,
            delivery: None,
            content: task.content,
            at: task.created_at,
        }));
        Ok(Queue { waiting })
    }
}
