//! `agent.*`: profiles; those of the config file are read-only.

use nano_protocol::catalog::{AgentCreateParams, AgentInfo, AgentUpdateParams, Agents, NameParams, PageParams};
use nano_protocol::error::{ErrorKind, RpcError};
use nano_protocol::method::{AgentCreate, AgentDelete, AgentGet, AgentList, AgentUpdate};

use super::catalog::{not_found, page};
use super::dispatch::Serve;
use super::{Caller, Server};
use crate::config::AgentConfig;

fn millis(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn agent_info(name: &str, agent: &AgentConfig) -> AgentInfo {
    AgentInfo {
        name: name.to_owned(),
        model: agent.model.clone(),
        system_prompt: agent.system_prompt.clone(),
        booter: agent.booter.clone(),
        level: agent.level,
        tool_mode: agent.tool_mode,
        tools: agent.tools.clone(),
        skills: agent.skills.clone(),
        max_turns: agent.max_turns,
        timeout_ms: agent.timeout.map(millis),
        exec_timeout_ms: millis(agent.exec_timeout),
        exec_timeout_max_ms: millis(agent.exec_timeout_max),
        enable_exec: agent.enable_exec,
        enable_steering: agent.enable_steering,
        enable_followup: agent.enable_followup,
        restrict_to_workspace: agent.restrict_to_workspace,
        resume: agent.resume,
        budget: agent.budget,
        source: "config".into(),
        note: None,
    }
}

impl Serve for AgentList {
    async fn serve(server: &Server, _: &Caller, params: PageParams) -> Result<Agents, RpcError> {
        let agents = server.deps().config.agents.iter().map(|(name, agent)| agent_info(name, agent)).collect();
        let (agents, next) = page(agents, |agent: &AgentInfo| &agent.name, &params);
        Ok(Agents { agents, next })
    }
}

impl Serve for AgentGet {
    async fn serve(server: &Server, _: &Caller, params: NameParams) -> Result<AgentInfo, RpcError> {
        let agent = server.deps().config.agents.get(&params.name);
        agent.map(|agent| agent_info(&params.name, agent)).ok_or_else(|| not_found("agent", &params.name))
    }
}

impl Serve for AgentCreate {
    async fn serve(_: &Server, _: &Caller, _: AgentCreateParams) -> Result<AgentInfo, RpcError> {
        Err(RpcError::new(ErrorKind::Internal, "not yet"))
    }
}

impl Serve for AgentUpdate {
    async fn serve(_: &Server, _: &Caller, _: AgentUpdateParams) -> Result<AgentInfo, RpcError> {
        Err(RpcError::new(ErrorKind::Internal, "not yet"))
    }
}

impl Serve for AgentDelete {
    async fn serve(_: &Server, _: &Caller, _: NameParams) -> Result<AgentInfo, RpcError> {
        Err(RpcError::new(ErrorKind::Internal, "not yet"))
    }
}
