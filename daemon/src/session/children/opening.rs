//! Opening a child: what it has from its parent, from a profile, and from the order.

use std::sync::Arc;

use nano_protocol::error::{ErrorKind, RpcError};
use nano_protocol::id::{SessionId, TaskId};
use nano_protocol::session::{CreateParams, Session, SessionState};
use nano_protocol::task::{Limits, Origin};

use tokio_util::sync::CancellationToken;

use super::{ROUNDS, barred, chain};
use crate::config::{AgentConfig, McpConfig};
use crate::crash;
use crate::session::actor::Command;
use crate::session::admission::{self, Submission};
use crate::session::deps::Deps;
use crate::session::offered::offered;
use crate::session::opening::{check_tools, invalid, known, new_record};
use crate::session::reading;
use crate::session::registry::Registry;
use crate::session::servers::wanted;
use crate::session::skills;
use crate::store::record::{ChildRecord, SessionRecord};
use crate::store::{Change, Key};
use crate::tools::delegate::Order;
use crate::tools::naming;
use crate::tools::set::ToolSet;
use crate::tools::{Tool, ToolContext};

/// As much of a call as opening a child needs.
pub(super) struct Call {
    pub session: SessionId,
    task: TaskId,
    id: String,
    pub cancel: CancellationToken,
}

impl Call {
    pub(super) fn of(context: &ToolContext) -> Self {
        let ToolContext { session, task, call, cancel, .. } = context;
        Self { session: session.clone(), task: task.clone(), id: call.clone(), cancel: cancel.clone() }
    }
}

/// Opens a child with its task: both are there with the parent's record of them, or nothing is.
pub(super) async fn open(registry: &Registry, call: &Call, order: Order) -> Result<ChildRecord, RpcError> {
    let deps = registry.deps();
    admission::content_fits(&order.content)?;
    registry.is_open()?;
    let parent = reading::record(deps, &call.session)?;
    if let Some(why) = barred(deps, &parent) {
        return Err(RpcError::new(ErrorKind::Limit, why));
    }
    let (made_by, rounds) = chain(deps, &call.task);
    if order.wait == Some(false) && rounds >= ROUNDS {
        let why = format!("wait = false: this task ends a chain of {rounds} that were begun by results of such work");
        return Err(RpcError::new(ErrorKind::Limit, why).hint("wait for this one, or do it yourself"));
    }
    let profile_stays = deps.profiles.hold().await;
    let id = SessionId::from_ulid(&deps.clock.ulid());
    let record = narrowed(deps, record(deps, &parent, id.clone(), &order)?, order.tools).await?;
    let record = SessionRecord { depth: parent.depth + 1, ..record };
    let task = TaskId::from_ulid(&deps.clock.ulid());
    let child = ChildRecord {
        session: id.clone(),
        task: task.clone(),
        parent_task: call.task.clone(),
        call: call.id.clone(),
        wait: order.wait.unwrap_or(true),
        stopped: false,
    };
    let submission = Submission { made_by, rounds, ..first_task(task, &parent.session.id, order.content) };
    let (task, _) = admission::task_record(submission, &record.session, record.session.created_at);
    let known = Change::put(Key::child(&parent.session.id, &id), &child);
    if call.cancel.is_cancelled() {
        return Err(RpcError::new(ErrorKind::Conflict, "the call was stopped before it opened a session"));
    }
    crash::point("child.create.before");
    registry.create(record, vec![Change::Queued(Box::new(task)), known]).await?;
    crash::point("child.create.after");
    drop(profile_stays);
    // It is on record: a daemon that goes down now leaves it to the next one.
    if let Err(error) = registry.send(&id, Command::Wake(None)).await {
        tracing::info!(session = %id, %error, "its task waits for the next start");
    }
    Ok(child)
}

fn first_task(id: TaskId, parent: &SessionId, content: String) -> Submission {
    Submission {
        id,
        origin: Origin::Subagent,
        source: Some(format!("session {parent}")),
        content,
        metadata: nano_protocol::Object::new(),
        limits: Limits::default(),
        keyed: None,
        with: Vec::new(),
        made_by: None,
        rounds: 0,
    }
}

/// Makes the child's record: as its parent, or as a profile that was named; on the parent's computer, unless that
/// profile names another kind; never at a weaker level.
fn record(deps: &Deps, parent: &SessionRecord, id: SessionId, order: &Order) -> Result<SessionRecord, RpcError> {
    let above = &parent.session;
    let named = order.agent.as_ref().map(|name| {
        let found = deps.profiles.get(name).map(|profile| profile.agent);
        known(found, "agent", name, deps.profiles.names().iter().map(String::as_str))
    });
    let made = Made::from(above, named.transpose()?);
    let (tool_mode, skills) = (made.tool_mode, made.skills);
    let params = CreateParams {
        agent: Some(order.agent.clone().unwrap_or_else(|| above.agent.clone())),
        model: made.model.filter(|model| !model.is_empty()),
        booter: Some(made.booter),
        level: Some(made.level),
        ..CreateParams::default()
    };
    let mut record = new_record(deps, above.owner, id, params, false)?;
    let session = Session {
        workspace: above.workspace.clone(),
        parent: Some(above.id.clone()),
        state: SessionState::Running,
        tools: made.tools,
        tool_mode,
        skills,
        ..record.session
    };
    // A computer that works at another level is another one, where levels mean something.
    let remote = deps.booter(&session.booter).is_some_and(|booter| booter.is_remote());
    record.shares = session.booter == above.booter && (remote || session.level == above.level);
    record.ephemeral = !record.shares;
    // Whatever a profile allows: what is forbidden above is forbidden below.
    let agent = deps.agent(&above.agent);
    record.no_exec = parent.no_exec || !agent.enable_exec;
    record.restricted = parent.restricted || agent.restrict_to_workspace;
    record.policies = [std::slice::from_ref(&agent.approve), &parent.policies].concat();
    record.depth = parent.depth;
    Ok(SessionRecord { session, ..record })
}

/// Gives the child only the tools that were ordered, of those that it would have without.
async fn narrowed(
    deps: &Deps,
    mut record: SessionRecord,
    tools: Option<Vec<String>>,
) -> Result<SessionRecord, RpcError> {
    let Some(tools) = tools else { return Ok(record) };
    check_tools(deps, &tools)?;
    let skills = skills::offer(deps, &record.session).await;
    let there = offered(deps, &record, &skills);
    let wanted = wanted(deps, &record, &skills);
    if let Some(tool) = tools.iter().find(|tool| !holds(deps, &there, &wanted, tool)) {
        return Err(invalid(there.not_found_text(tool)));
    }
    record.session.tools = Some(tools);
    Ok(record)
}

/// Tells whether all that an entry of a tools list means is offered.
fn holds(deps: &Deps, there: &ToolSet, wanted: &[McpConfig], entry: &String) -> bool {
    if let Some(server) = entry.strip_prefix("mcp__").and_then(|rest| rest.split("__").next()) {
        return wanted.iter().any(|config| config.name == server);
    }
    let (offered, others): (Vec<_>, Vec<_>) =
        deps.tools().into_iter().partition(|tool| there.get(&tool.spec().name).is_some());
    let means = |tools: &[Arc<dyn Tool>]| naming::unknown_names(tools, std::slice::from_ref(entry)).is_empty();
    means(&offered) && !means(&others)
}

/// What a child gets, before its order says otherwise.
#[derive(Debug, PartialEq, Eq)]
struct Made {
    model: Option<String>,
    booter: String,
    level: nano_protocol::session::Level,
    tool_mode: nano_protocol::session::ToolMode,
    tools: Option<Vec<String>>,
    skills: Option<Vec<String>>,
}

impl Made {
    fn from(above: &Session, named: Option<AgentConfig>) -> Self {
        let (model, booter, level) = (Some(above.model.clone()), above.booter.clone(), above.level);
        let Some(agent) = named else {
            let (tool_mode, tools, skills) = (above.tool_mode, above.tools.clone(), above.skills.clone());
            return Self { model, booter, level, tool_mode, tools, skills };
        };
        Self {
            model: agent.model.or(model),
            booter: if agent.names_booter { agent.booter } else { booter },
            level: level.min(agent.level),
            tool_mode: agent.tool_mode,
            tools: agent.tools,
            skills: agent.skills,
        }
    }
}

#[cfg(test)]
mod tests;
