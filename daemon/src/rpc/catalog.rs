//! What there is before any session: `agent.*`, `tool.*`, `booter.list`, `model.list`, `rpc.discover`.

use std::path::Path;

use nano_protocol::catalog::{AgentInfo, Agents, BooterInfo, Booters, Models, NameParams, Tools};
use nano_protocol::daemon::Nothing;
use nano_protocol::error::{ErrorKind, RpcError};
use nano_protocol::method::{self, AgentGet, AgentList, BooterList, Method, ModelList, ToolGet, ToolList};
use nano_protocol::session::ToolMode;
use nano_protocol::tool::Tool;
use serde_json::{Value, json};

use super::dispatch::Serve;
use super::{Caller, Server};
use crate::config::AgentConfig;
use crate::sandbox::Capabilities;
use crate::tools::set;

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
    }
}

fn not_found(what: &str, name: &str) -> RpcError {
    RpcError::new(ErrorKind::NotFound, format!("there is no {what} {name}"))
}

impl Serve for AgentList {
    async fn serve(server: &Server, _: &Caller, _: Nothing) -> Result<Agents, RpcError> {
        let agents = &server.deps().config.agents;
        Ok(Agents { agents: agents.iter().map(|(name, agent)| agent_info(name, agent)).collect() })
    }
}

impl Serve for AgentGet {
    async fn serve(server: &Server, _: &Caller, params: NameParams) -> Result<AgentInfo, RpcError> {
        let agent = server.deps().config.agents.get(&params.name);
        agent.map(|agent| agent_info(&params.name, agent)).ok_or_else(|| not_found("agent", &params.name))
    }
}

impl Serve for ToolList {
    async fn serve(server: &Server, _: &Caller, _: Nothing) -> Result<Tools, RpcError> {
        let mut tools: Vec<Tool> = server.deps().tools.iter().map(|tool| set::wire(tool.spec())).collect();
        tools.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(Tools { tools })
    }
}

impl Serve for ToolGet {
    async fn serve(server: &Server, _: &Caller, params: NameParams) -> Result<Tool, RpcError> {
        let tool = server.deps().tools.iter().find(|tool| tool.spec().name == params.name);
        tool.map(|tool| set::wire(tool.spec())).ok_or_else(|| not_found("tool", &params.name))
    }
}

impl Serve for BooterList {
    async fn serve(server: &Server, _: &Caller, _: Nothing) -> Result<Booters, RpcError> {
        let deps = server.deps();
        let agent = deps.agent("default");
        let mut booters: Vec<BooterInfo> = deps
            .booters
            .iter()
            .map(|booter| {
                let declared = booter.declared(Path::new("."));
                let capabilities = Capabilities::Known(declared.capabilities);
                let lacking = |capability| booter.lacking(capability);
                let (kind, booted) = (booter.kind(), false);
                let machine = set::Machine { kind, booted, capabilities: &capabilities, lacking: &lacking };
                let choice = set::Choice {
                    mode: ToolMode::All,
                    tools: None,
                    enable_exec: agent.enable_exec,
                    enable_followup: agent.enable_followup,
                    skills_offered: false,
                };
                let offered = set::ToolSet::assemble(&deps.tools, machine, choice).wire();
                let tools = offered.into_iter().filter(|tool| tool.source.starts_with("booter:")).collect();
                let (kind, note) = (booter.kind().to_owned(), booter.note());
                BooterInfo { kind, available: true, note, tools, prompts: declared.prompts }
            })
            .collect();
        booters.sort_by(|one, other| one.kind.cmp(&other.kind));
        Ok(Booters { booters })
    }
}

impl Serve for ModelList {
    async fn serve(server: &Server, _: &Caller, _: Nothing) -> Result<Models, RpcError> {
        Ok(Models { models: server.deps().look_for_models().await.list() })
    }
}

fn describe<M: Method<Params: schemars::JsonSchema, Result: schemars::JsonSchema>>() -> Value {
    let schema = |schema: schemars::Schema| schema.to_value();
    let params = schema(schemars::schema_for!(M::Params));
    json!({
        "name": M::NAME,
        "paramStructure": "by-name",
        "params": [{"name": "params", "schema": params}],
        "result": {"name": "result", "schema": schema(schemars::schema_for!(M::Result))},
    })
}

macro_rules! describe_all {
    ($($name:ident, $wire:literal, $params:ty, $result:ty;)+) => {
        /// Returns the `OpenRPC` document of every method.
        pub(super) fn discover() -> Value {
            json!({
                "openrpc": "1.3.2",
                "info": {"title": "nanod", "version": env!("CARGO_PKG_VERSION")},
                "methods": [$(describe::<method::$name>()),+],
            })
        }
    };
}

nano_protocol::methods!(describe_all);
