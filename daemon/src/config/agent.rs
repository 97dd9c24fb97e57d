//! `[agents.NAME]`, and the rules that every profile obeys, wherever it comes from.

use std::time::Duration;

use nano_protocol::session::{Level, ToolMode};

use super::reader::{Section, nearest};
use super::sections::{set, words};
use super::{AgentConfig, Resume};
use crate::policy::rules::Rule;

/// How long a call may wait for a person at most.
const LONGEST_WAIT: Duration = Duration::from_hours(168);

const KEYS: &str = "model system_prompt booter level tool_mode tools skills max_turns timeout exec_timeout \
                    exec_timeout_max enable_exec enable_steering enable_followup restrict_to_workspace resume approve \
                    approve_timeout budget";
/// Every kind of booter that an agent may name; `sandbox` is another word for `shipyard_neo`.
pub const BOOTERS: [&str; 6] = ["local", "none", "shipyard", "shipyard_neo", "boxlite", "sandbox"];

/// The persona of an agent that was given none.
const PERSONA: &str = "You are a careful assistant with a workspace of your own. Use the tools you have instead of \
                       guessing, look at their results, and say plainly what you did and what is still open.";

/// Reads one profile: what is absent has the built-in default, not that of `[agents.default]`.
pub fn agent(section: &Section<'_>) -> AgentConfig {
    section.check(&words(KEYS));
    let mut agent = AgentConfig {
        model: section.filled("model"),
        tools: section.list("tools"),
        skills: section.list("skills"),
        timeout: section.duration("timeout"),
        budget: section.number("budget"),
        ..AgentConfig::default()
    };
    set(&mut agent.system_prompt, section.text("system_prompt"));
    let booter = booter(section);
    agent.names_booter = booter.is_some();
    set(&mut agent.booter, booter);
    set(&mut agent.level, section.word("level"));
    set(&mut agent.tool_mode, section.word("tool_mode"));
    set(&mut agent.max_turns, section.count("max_turns", 1..1 + u64::from(u32::MAX)).and_then(|n| n.try_into().ok()));
    set(&mut agent.exec_timeout, section.duration("exec_timeout"));
    set(&mut agent.exec_timeout_max, section.duration("exec_timeout_max"));
    set(&mut agent.enable_exec, section.flag("enable_exec"));
    set(&mut agent.enable_steering, section.flag("enable_steering"));
    set(&mut agent.enable_followup, section.flag("enable_followup"));
    set(&mut agent.restrict_to_workspace, section.flag("restrict_to_workspace"));
    set(&mut agent.resume, section.word("resume"));
    set(&mut agent.approve, section.list("approve"));
    set(&mut agent.approve_timeout, section.duration("approve_timeout"));
    for (at, rule) in agent.approve.iter().enumerate() {
        if let Err(why) = Rule::parse(rule) {
            section.wrong_item("approve", at, &why);
        }
    }
    for (key, what) in problems(&agent) {
        section.wrong_key(key, &what);
    }
    agent
}

/// Returns what is wrong with a profile whose booter is known, by the key that has to change.
pub fn problems(agent: &AgentConfig) -> Vec<(&'static str, String)> {
    let more = || "must be more than 0".to_owned();
    let mut found = Vec::new();
    let mut check = |wrong: bool, key, why: String| found.extend(wrong.then_some((key, why)));
    check(agent.max_turns == 0, "max_turns", more());
    check(agent.timeout.is_some_and(|time| time.is_zero()), "timeout", more());
    check(agent.exec_timeout.is_zero(), "exec_timeout", more());
    let above = agent.exec_timeout > agent.exec_timeout_max;
    check(above, "exec_timeout", "is above exec_timeout_max; raise that too".into());
    let wait = agent.approve_timeout;
    check(wait.is_zero() || wait > LONGEST_WAIT, "approve_timeout", "must be more than 0 and at most 168h".into());
    check(agent.budget.is_some_and(|sum| !sum.is_finite() || sum <= 0.0), "budget", more());
    if let Some(name) = agent.tools.iter().flatten().find(|name| !is_tool_name(name)) {
        let name = name.escape_debug();
        check(true, "tools", format!("names \"{name}\"; a tool's name is 1 to 64 of A-Z a-z 0-9 _ -"));
    }
    let nameless = agent.skills.iter().flatten().any(|name| name.trim().is_empty());
    check(nameless, "skills", "holds an empty name".into());
    found
}

/// Tells whether a profile or a model may be named so.
pub fn is_name(name: &str) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
    (1..=64).contains(&name.len()) && name.bytes().all(fits)
}

/// Returns the kind of booter that a word means.
pub fn kind(word: String) -> String {
    if word == "sandbox" { "shipyard_neo".to_owned() } else { word }
}

fn is_tool_name(name: &str) -> bool {
    // Only the tools of a whole MCP server can be named at once.
    let name = name.strip_suffix("__*").filter(|server| server.starts_with("mcp__")).unwrap_or(name);
    (1..=64).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

fn booter(section: &Section<'_>) -> Option<String> {
    let kind = section.text("booter")?;
    if !BOOTERS.contains(&kind.as_str()) {
        let hint = nearest(&kind, &BOOTERS);
        section.wrong_key("booter", &format!("\"{}\" is unknown; {hint}", kind.escape_debug()));
    }
    Some(self::kind(kind))
}

impl Default for AgentConfig {
    fn default() -> Self {
        Self {
            model: None,
            system_prompt: PERSONA.to_owned(),
            booter: "local".to_owned(),
            names_booter: false,
            level: Level::WorkspaceWrite,
            tool_mode: ToolMode::Core,
            tools: None,
            skills: None,
            max_turns: 20,
            timeout: None,
            exec_timeout: Duration::from_secs(30),
            exec_timeout_max: Duration::from_mins(10),
            enable_exec: true,
            enable_steering: true,
            enable_followup: false,
            restrict_to_workspace: true,
            resume: Resume::Auto,
            approve: Vec::new(),
            approve_timeout: Duration::from_mins(10),
            budget: None,
        }
    }
}
