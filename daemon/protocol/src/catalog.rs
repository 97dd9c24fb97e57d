//! What is registered before any session: booters, models, agents, tools.

use crate::session::{Level, ToolMode};
use crate::task::Resume;
use crate::tool::{Prompt, Tool};

wire! {
    /// A kind of computer.
    pub struct BooterInfo {
        /// Its kind.
        pub kind: String,
        /// Whether sessions may use it now.
        pub available: bool,
        /// What is missing, or what to know before using it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub note: Option<String>,
        /// The tools it declares before boot.
        pub tools: Vec<Tool>,
        /// The prompts it declares before boot.
        pub prompts: Vec<Prompt>,
    }

    /// Result of `booter.list`.
    pub struct Booters {
        /// By kind.
        pub booters: Vec<BooterInfo>,
        /// Goes into `after` for the rest.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub next: Option<String>,
    }

    /// A configured or found model.
    pub struct ModelInfo {
        /// Its name in the config.
        pub name: String,
        /// How it is spoken to.
        pub api: String,
        /// The model's name at the server.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub model: Option<String>,
        /// Where the server is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub base_url: Option<String>,
        /// Whether agents that name none get it.
        pub default: bool,
        /// `config`, or where it was found.
        pub source: String,
        /// What is missing or doubtful.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub note: Option<String>,
    }

    /// Result of `model.list`.
    pub struct Models {
        /// By name.
        pub models: Vec<ModelInfo>,
        /// Goes into `after` for the rest.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub next: Option<String>,
    }

    /// An agent profile.
    #[expect(clippy::struct_excessive_bools, reason = "they are switches of the file, each by its own name")]
    pub struct AgentInfo {
        /// Its name.
        pub name: String,
        /// The model's name in the config, if it names one.
        pub model: Option<String>,
        /// Its persona.
        pub system_prompt: String,
        /// Its kind of computer.
        pub booter: String,
        /// How far local tools reach.
        pub level: Level,
        /// The named set of tools.
        pub tool_mode: ToolMode,
        /// The tools by name; null: those of the mode.
        pub tools: Option<Vec<String>>,
        /// The skills by name; null: all.
        pub skills: Option<Vec<String>>,
        /// Model replies per task.
        pub max_turns: u32,
        /// Wall clock per task; null: none.
        pub timeout_ms: Option<u64>,
        /// How long a command may take.
        pub exec_timeout_ms: u64,
        /// How long a command may ask for.
        pub exec_timeout_max_ms: u64,
        /// Whether exec, python and process are offered.
        pub enable_exec: bool,
        /// Whether its sessions can be steered.
        pub enable_steering: bool,
        /// Whether it may schedule follow-ups.
        pub enable_followup: bool,
        /// Whether file tools stay below the workspace.
        pub restrict_to_workspace: bool,
        /// What becomes of a task at a restart.
        pub resume: Resume,
        /// Rules on what of its calls is allowed, asked about or denied.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub approve: Vec<String>,
        /// How long a call waits for a person's answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub approve_timeout_ms: Option<u64>,
        /// Money per task; null: no bound.
        pub budget: Option<f64>,
        /// `config`: of the file, read-only; `stored`: made over RPC; `builtin`: what nobody has said otherwise.
        pub source: String,
        /// What to know about it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub note: Option<String>,
    }

    /// Result of `agent.list`.
    pub struct Agents {
        /// By name.
        pub agents: Vec<AgentInfo>,
        /// Goes into `after` for the rest.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub next: Option<String>,
    }

    /// Result of `tool.list`.
    pub struct Tools {
        /// By name.
        pub tools: Vec<Tool>,
        /// Goes into `after` for the rest.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub next: Option<String>,
    }
}

params! {
    /// Parameters of `agent.list`, `tool.list`, `booter.list` and `model.list`.
    pub struct PageParams {
        /// At most so many; 200 unless told.
        pub limit: Option<usize>,
        /// `next` of the page before.
        pub after: Option<String>,
    }

    /// Parameters of `agent.get` and `tool.get`.
    pub struct NameParams {
        /// Its name.
        pub name: String,
    }

    /// Parameters of `agent.create`: what is absent has its default.
    pub struct AgentCreateParams {
        /// Its name: 1 to 64 of `A-Za-z0-9._-`.
        pub name: String,
        /// The model's name in the config.
        pub model: Option<String>,
        /// Its persona.
        pub system_prompt: Option<String>,
        /// Its kind of computer.
        pub booter: Option<String>,
        /// How far local tools reach.
        pub level: Option<Level>,
        /// The named set of tools.
        pub tool_mode: Option<ToolMode>,
        /// The tools by name; absent: those of the mode.
        pub tools: Option<Vec<String>>,
        /// The skills by name; absent: all.
        pub skills: Option<Vec<String>>,
        /// Model replies per task.
        pub max_turns: Option<u32>,
        /// Wall clock per task.
        pub timeout_ms: Option<u64>,
        /// How long a command may take.
        pub exec_timeout_ms: Option<u64>,
        /// How long a command may ask for.
        pub exec_timeout_max_ms: Option<u64>,
        /// Whether exec, python and process are offered.
        pub enable_exec: Option<bool>,
        /// Whether its sessions can be steered.
        pub enable_steering: Option<bool>,
        /// Whether it may schedule follow-ups.
        pub enable_followup: Option<bool>,
        /// Whether file tools stay below the workspace.
        pub restrict_to_workspace: Option<bool>,
        /// What becomes of a task at a restart.
        pub resume: Option<Resume>,
        /// Rules on what of its calls is allowed, asked about or denied.
        pub approve: Option<Vec<String>>,
        /// How long a call waits for a person's answer.
        pub approve_timeout_ms: Option<u64>,
        /// Money per task.
        pub budget: Option<f64>,
    }

    /// Parameters of `agent.update`: what is absent stays. Sessions have it from their next turn on, but keep the booter,
    /// model, level, mode, tools and skills that they were made with.
    pub struct AgentUpdateParams {
        /// Its name.
        pub name: String,
        /// The model's name in the config.
        pub model: Option<String>,
        /// Its persona.
        pub system_prompt: Option<String>,
        /// Its kind of computer.
        pub booter: Option<String>,
        /// How far local tools reach.
        pub level: Option<Level>,
        /// The named set of tools.
        pub tool_mode: Option<ToolMode>,
        /// The tools by name.
        pub tools: Option<Vec<String>>,
        /// The skills by name.
        pub skills: Option<Vec<String>>,
        /// Model replies per task.
        pub max_turns: Option<u32>,
        /// Wall clock per task.
        pub timeout_ms: Option<u64>,
        /// How long a command may take.
        pub exec_timeout_ms: Option<u64>,
        /// How long a command may ask for.
        pub exec_timeout_max_ms: Option<u64>,
        /// Whether exec, python and process are offered.
        pub enable_exec: Option<bool>,
        /// Whether its sessions can be steered.
        pub enable_steering: Option<bool>,
        /// Whether it may schedule follow-ups.
        pub enable_followup: Option<bool>,
        /// Whether file tools stay below the workspace.
        pub restrict_to_workspace: Option<bool>,
        /// What becomes of a task at a restart.
        pub resume: Option<Resume>,
        /// Rules on what of its calls is allowed, asked about or denied.
        pub approve: Option<Vec<String>>,
        /// How long a call waits for a person's answer.
        pub approve_timeout_ms: Option<u64>,
        /// Money per task.
        pub budget: Option<f64>,
        /// Members that get their default again, such as `tools`.
        pub reset: Option<Vec<String>>,
    }
}
