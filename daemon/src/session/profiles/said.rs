//! What was said of a profile: the rules it obeys, what it comes to with the defaults, and how a change alters it.

use std::sync::Arc;
use std::time::Duration;

use nano_protocol::MAX_CONTENT;
use nano_protocol::catalog::{AgentCreateParams, AgentUpdateParams};
use nano_protocol::error::{ErrorKind, RpcError};

use super::invalid;
use crate::config::AgentConfig;
use crate::config::agent::{BOOTERS, kind, problems};
use crate::policy::Policy;
use crate::session::deps::Deps;
use crate::session::opening::known;
use crate::tools::{Tool, naming};

/// Checks a profile against the rules and against what there is.
pub(super) fn check(deps: &Deps, agent: &AgentConfig) -> Result<(), RpcError> {
    if let Some((member, size)) = sizes(agent).into_iter().find(|(_, size)| *size > MAX_CONTENT) {
        let message = format!("{member} has {size} bytes; at most {MAX_CONTENT} are taken");
        return Err(RpcError::new(ErrorKind::TooLarge, message).hint("put the long text into a skill"));
    }
    known(BOOTERS.contains(&agent.booter.as_str()).then_some(()), "booter", &agent.booter, BOOTERS.into_iter())?;
    Policy::parse(&agent.approve).map_err(|why| invalid(format!("approve: {why}")))?;
    if let Some((member, why)) = problems(agent).into_iter().next() {
        return Err(invalid(format!("{member} {why}")));
    }
    let models = deps.models();
    if let Some(model) = &agent.model {
        known(models.get(model).map(drop), "model", model, models.names())?;
    }
    check_tools(&deps.tools(), agent).map_err(invalid)
}

/// Checks that the profile names tools that there are; a server's are asked for when a session begins.
pub fn check_tools(all: &[Arc<dyn Tool>], agent: &AgentConfig) -> Result<(), String> {
    let unknown = naming::unknown_names(all, agent.tools.as_deref().unwrap_or_default());
    check_rules(all, agent)?;
    let built_in = unknown.iter().find(|tool| !tool.starts_with("mcp__"));
    built_in.map_or(Ok(()), |tool| Err(no_such_tool(all, tool)))
}

/// Checks that rules name tools that there are: a rule with a slip in the name would mean nothing.
fn check_rules(all: &[Arc<dyn Tool>], agent: &AgentConfig) -> Result<(), String> {
    let policy = Policy::parse(&agent.approve).map_err(|why| format!("approve: {why}"))?;
    let known = |tool: &str| tool.starts_with("mcp__") || all.iter().any(|one| one.spec().name == *tool);
    let unknown = policy.rules().iter().find(|rule| rule.tool().is_some_and(|tool| !known(tool)));
    unknown.map_or(Ok(()), |rule| {
        let no_such = no_such_tool(all, rule.tool().unwrap_or_default());
        Err(format!("approve: the rule \"{}\" names an {no_such}", rule.text.escape_debug()))
    })
}

/// Returns what is said of a tool that there is not.
pub fn no_such_tool(all: &[Arc<dyn Tool>], name: &str) -> String {
    let mut names: Vec<&str> = Vec::new();
    for tool in all.iter().map(|tool| &*tool.spec().name) {
        // Several kinds of computer have one of the same name.
        if !names.contains(&tool) {
            names.push(tool);
        }
    }
    format!("unknown tool `{}`; there is {}", name.escape_debug(), names.join(", "))
}

/// Returns how many bytes the members have that may be long.
pub(super) fn sizes(agent: &AgentConfig) -> [(&'static str, usize); 4] {
    let names = |list: &Option<Vec<String>>| list.iter().flatten().map(String::len).sum();
    [
        ("system_prompt", agent.system_prompt.len()),
        ("tools", names(&agent.tools)),
        ("skills", names(&agent.skills)),
        ("approve", agent.approve.iter().map(String::len).sum()),
    ]
}

/// Fills what was not said with the defaults.
pub(super) fn agent(said: &AgentCreateParams) -> AgentConfig {
    let usual = AgentConfig::default();
    let time = |ms: Option<u64>, usual: Duration| ms.map_or(usual, Duration::from_millis);
    AgentConfig {
        model: said.model.clone(),
        system_prompt: said.system_prompt.clone().unwrap_or(usual.system_prompt),
        booter: said.booter.clone().map_or(usual.booter, kind),
        names_booter: said.booter.is_some(),
        level: said.level.unwrap_or(usual.level),
        tool_mode: said.tool_mode.unwrap_or(usual.tool_mode),
        tools: said.tools.clone(),
        skills: said.skills.clone(),
        max_turns: said.max_turns.unwrap_or(usual.max_turns),
        timeout: said.timeout_ms.map(Duration::from_millis),
        exec_timeout: time(said.exec_timeout_ms, usual.exec_timeout),
        exec_timeout_max: time(said.exec_timeout_max_ms, usual.exec_timeout_max),
        enable_exec: said.enable_exec.unwrap_or(usual.enable_exec),
        enable_steering: said.enable_steering.unwrap_or(usual.enable_steering),
        enable_followup: said.enable_followup.unwrap_or(usual.enable_followup),
        restrict_to_workspace: said.restrict_to_workspace.unwrap_or(usual.restrict_to_workspace),
        resume: said.resume.unwrap_or(usual.resume),
        approve: said.approve.clone().unwrap_or_default(),
        approve_timeout: time(said.approve_timeout_ms, usual.approve_timeout),
        budget: said.budget,
    }
}

macro_rules! members {
    ($($member:ident)+) => {
        /// Takes what the change says.
        pub(super) fn merge(said: &mut AgentCreateParams, change: AgentUpdateParams) {
            $(said.$member = change.$member.or(said.$member.take());)+
        }

        /// Takes back what was said of a member.
        pub(super) fn reset(said: &mut AgentCreateParams, change: &AgentUpdateParams, member: &str) -> Result<(), RpcError> {
            let given = match member {
                $(stringify!($member) => { said.$member = None; change.$member.is_some() })+
                _ => {
                    let all = [$(stringify!($member)),+].join(", ");
                    return Err(invalid(format!("`{}` cannot be reset; what can is {all}", member.escape_debug())));
                }
            };
            if given { Err(invalid(format!("{member} is both given and reset"))) } else { Ok(()) }
        }
    };
}

members! {
    model system_prompt booter level tool_mode tools skills max_turns timeout_ms exec_timeout_ms exec_timeout_max_ms
    enable_exec enable_steering enable_followup restrict_to_workspace resume approve approve_timeout_ms budget
}
