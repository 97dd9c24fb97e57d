//! `agent.*`: profiles; those of the config file are read-only.

use nano_protocol::catalog::{AgentCreateParams, AgentInfo, AgentUpdateParams, Agents, NameParams, PageParams};
use nano_protocol::error::RpcError;
use nano_protocol::method::{AgentCreate, AgentDelete, AgentGet, AgentList, AgentUpdate};

use super::catalog::{not_found, page};
use super::dispatch::Serve;
use super::{Caller, Server};
use crate::session::profiles::{self, Profile, Source};

/// A page of profiles ends behind so many bytes: an answer must fit into a line, escaped too.
const PAGE_BYTES: usize = 1024 * 1024;

fn millis(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn agent_info(name: String, Profile { agent, source, hides }: Profile) -> AgentInfo {
    let source = match source {
        Source::Config => "config",
        Source::Stored => "stored",
        Source::Builtin => "builtin",
    };
    AgentInfo {
        name,
        model: agent.model,
        system_prompt: agent.system_prompt,
        booter: agent.booter,
        level: agent.level,
        tool_mode: agent.tool_mode,
        tools: agent.tools,
        skills: agent.skills,
        max_turns: agent.max_turns,
        timeout_ms: agent.timeout.map(millis),
        exec_timeout_ms: millis(agent.exec_timeout),
        exec_timeout_max_ms: millis(agent.exec_timeout_max),
        enable_exec: agent.enable_exec,
        enable_steering: agent.enable_steering,
        enable_followup: agent.enable_followup,
        restrict_to_workspace: agent.restrict_to_workspace,
        resume: agent.resume,
        approve: agent.approve,
        approve_timeout_ms: Some(millis(agent.approve_timeout)),
        budget: agent.budget,
        source: source.into(),
        note: hides.then(|| "hides a stored profile of the same name".into()),
    }
}

impl Serve for AgentList {
    async fn serve(server: &Server, _: &Caller, params: PageParams) -> Result<Agents, RpcError> {
        let (profiles, mut next) = page(server.deps().profiles.all(), |(name, _)| name.clone(), &params);
        let (mut agents, mut bytes) = (Vec::new(), 0);
        for (name, profile) in profiles {
            if bytes > PAGE_BYTES {
                next = agents.last().map(|last: &AgentInfo| last.name.clone());
                break;
            }
            bytes += profile.bytes();
            agents.push(agent_info(name, profile));
        }
        Ok(Agents { agents, next })
    }
}

impl Serve for AgentGet {
    async fn serve(server: &Server, _: &Caller, params: NameParams) -> Result<AgentInfo, RpcError> {
        let profile = server.deps().profiles.get(&params.name).ok_or_else(|| not_found("agent", &params.name))?;
        Ok(agent_info(params.name, profile))
    }
}

impl Serve for AgentCreate {
    async fn serve(server: &Server, caller: &Caller, params: AgentCreateParams) -> Result<AgentInfo, RpcError> {
        let name = params.name.clone();
        Ok(agent_info(name, profiles::create(&server.registry, caller.uid, params).await?))
    }
}

impl Serve for AgentUpdate {
    async fn serve(server: &Server, caller: &Caller, params: AgentUpdateParams) -> Result<AgentInfo, RpcError> {
        let name = params.name.clone();
        Ok(agent_info(name, profiles::update(&server.registry, caller.uid, params).await?))
    }
}

impl Serve for AgentDelete {
    async fn serve(server: &Server, caller: &Caller, params: NameParams) -> Result<AgentInfo, RpcError> {
        let profile = profiles::delete(&server.registry, caller.uid, &params.name).await?;
        Ok(agent_info(params.name, profile))
    }
}
