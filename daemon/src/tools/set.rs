//! Which tools a session is offered, and why not the others. Pure, and the only source of tool lists, before boot and
//! after it, for main agents and delegates alike.

use std::sync::Arc;

use nano_protocol::session::ToolMode;
use nano_protocol::tool::{Tool as Offered, Withheld};

use super::exec::LOCAL;
use super::naming::names;
use super::{Tool, ToolSpec};
use crate::sandbox::{Capabilities, Capability};

/// The modes `core` and `readonly`.
const CORE: [&str; 5] = ["read_file", "write_file", "edit_file", "exec", "python"];
const READONLY: [&str; 4] = ["read_file", "search", "list_dir", "grep"];
/// What is offered in the mode `all` only, in order.
const REST: [&str; 8] =
    ["web_search", "web_fetch", "http_request", "datetime", "todo", "process", "delegate", "schedule_followup"];
/// What `enable_exec` is about.
const EXEC: [&str; 3] = ["exec", "python", "process"];

/// The computer as far as it is known.
#[derive(Clone, Copy)]
pub struct Machine<'a> {
    /// The booter's kind.
    pub kind: &'a str,
    /// Whether it runs.
    pub booted: bool,
    /// What it can do: before boot, what the booter declares.
    pub capabilities: &'a Capabilities,
    /// Whether every computer of the kind can do exactly what is declared.
    pub fixed: bool,
    /// Says in a clause why it has not a certain one.
    pub lacking: &'a dyn Fn(Capability) -> String,
}

/// What the agent and the session chose.
#[derive(Debug, Clone, Copy)]
pub struct Choice<'a> {
    /// The named set.
    pub mode: ToolMode,
    /// Names instead of the mode.
    pub tools: Option<&'a [String]>,
    /// Whether programs may be run.
    pub enable_exec: bool,
    /// Whether follow-ups may be scheduled.
    pub enable_followup: bool,
    /// Why no work can be delegated, if so.
    pub delegate_barred: Option<&'a str>,
    /// Whether there is a skill to load.
    pub skills_offered: bool,
}

/// The tools of a session.
#[derive(Clone)]
pub struct ToolSet {
    /// Those offered, in the order the model sees.
    pub tools: Vec<Arc<dyn Tool>>,
    /// The other registered ones.
    pub withheld: Vec<Withheld>,
    /// Whether this is what the computer can really do.
    pub exact: bool,
}

impl ToolSet {
    /// Decides for every one of `all`.
    pub fn assemble(all: &[Arc<dyn Tool>], machine: Machine<'_>, choice: Choice<'_>) -> Self {
        let mut ordered = all.to_vec();
        ordered.sort_by_cached_key(|tool| rank(tool.spec()));
        let said = machine.fixed || matches!(machine.capabilities, Capabilities::Known(_));
        let exact = machine.kind == "none" || (machine.booted && said);
        let mut set = Self { tools: Vec::new(), withheld: Vec::new(), exact };
        let own = |name: &str| all.iter().any(|tool| tool.spec().name == name && !is_foreign(tool.spec(), machine));
        for tool in ordered {
            let (spec, foreign) = (tool.spec(), is_foreign(tool.spec(), machine));
            let why = match foreign {
                // Each name is told of once: by this computer's own tool, or by the first of the others.
                true if own(&spec.name) || set.withheld.iter().any(|one| one.name == spec.name) => continue,
                true => Some(foreign_text(all, &spec.name, machine)),
                false => refusal(spec, machine, choice).or_else(|| tool.barred()),
            };
            match why {
                None => set.tools.push(tool),
                Some(why) => set.withheld.push(Withheld { name: spec.name.to_string(), why }),
            }
        }
        set
    }

    /// Returns the tools as they go over the wire.
    pub fn wire(&self) -> Vec<Offered> {
        self.tools.iter().map(|tool| wire(tool.as_ref())).collect()
    }

    /// Returns the offered tool of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.tools.iter().find(|tool| tool.spec().name == name)
    }
}

/// Returns a tool as it goes over the wire.
pub fn wire(tool: &dyn Tool) -> Offered {
    let spec = tool.spec();
    Offered {
        name: spec.name.to_string(),
        description: spec.description.to_string(),
        input_schema: spec.input_schema.clone(),
        output_schema: tool.output_schema().cloned(),
        source: spec.source.to_string(),
        requires: spec.requires.iter().map(|one| one.as_str().into()).collect(),
    }
}

/// First `load_skill`, then the booter's, the mode's (both as documented), configured ones, MCP by server and name.
fn rank(spec: &ToolSpec) -> (usize, usize, String) {
    let class = match spec.source.as_ref() {
        "skill" => 0,
        "core" => 2,
        "config" => 3,
        source if source.starts_with("booter:") => 1,
        _ => 4,
    };
    let documented = || CORE.iter().chain(&READONLY).chain(&REST);
    // A remote booter's stand as it brings them.
    if class == 1 && spec.source != LOCAL {
        return (class, 0, String::new());
    }
    let place = if class == 4 { Some(0) } else { documented().position(|name| *name == spec.name) };
    (class, place.unwrap_or(usize::MAX), spec.name.to_string())
}

/// Tells whether a tool is of another kind of computer.
fn is_foreign(spec: &ToolSpec, machine: Machine<'_>) -> bool {
    spec.source.strip_prefix("booter:").is_some_and(|kind| kind != machine.kind)
}

fn foreign_text(all: &[Arc<dyn Tool>], name: &str, machine: Machine<'_>) -> String {
    let named = all.iter().filter(|tool| tool.spec().name == name);
    let kinds: Vec<_> = named.filter_map(|tool| tool.spec().source.strip_prefix("booter:")).collect();
    match (machine.kind, kinds.as_slice()) {
        ("none", _) => "needs a computer; booter none has none".into(),
        (own, [kind]) => format!("belongs to the booter {kind}; this session has {own}"),
        (own, kinds) => format!("belongs to the booters {}; this session has {own}", kinds.join(", ")),
    }
}

/// Returns why a tool is not offered, the reason that is hardest to change first.
fn refusal(spec: &ToolSpec, machine: Machine<'_>, choice: Choice<'_>) -> Option<String> {
    if spec.source == "skill" {
        return (!choice.skills_offered).then(|| "no skill is offered".into());
    }
    unchosen(spec, choice).or_else(|| disabled(spec, choice)).or_else(|| unable(spec, machine))
}

fn unchosen(spec: &ToolSpec, choice: Choice<'_>) -> Option<String> {
    if let Some(list) = choice.tools {
        let listed = list.iter().any(|pattern| names(pattern, &spec.name));
        return (!listed).then(|| "not in the agent's tools list".into());
    }
    let documented = [CORE.as_slice(), &READONLY, &REST].iter().any(|mode| mode.contains(&&*spec.name));
    let in_mode = match choice.mode {
        ToolMode::All => true,
        // A remote booter brings its whole list; what a person configured is meant to be used.
        _ if spec.source.starts_with("booter:") && spec.source != LOCAL => true,
        ToolMode::Core => CORE.contains(&&*spec.name) || !documented,
        ToolMode::ReadOnly => READONLY.contains(&&*spec.name) || (!documented && spec.read_only),
    };
    (!in_mode).then(|| format!("not in mode {}", choice.mode))
}

fn disabled(spec: &ToolSpec, choice: Choice<'_>) -> Option<String> {
    match &*spec.name {
        name if (EXEC.contains(&name) || spec.source == "config") && !choice.enable_exec => {
            Some("enable_exec is off".into())
        }
        "delegate" => choice.delegate_barred.map(str::to_owned),
        "schedule_followup" if !choice.enable_followup => Some("enable_followup is off".into()),
        _ => None,
    }
}

fn unable(spec: &ToolSpec, machine: Machine<'_>) -> Option<String> {
    let Capabilities::Known(known) = machine.capabilities else { return None };
    spec.requires.iter().find(|one| !known.contains(one)).map(|one| (machine.lacking)(*one))
}
