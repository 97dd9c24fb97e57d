//! The daemon's configuration: the file, the environment and where things are. Nothing else reads the environment.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use nano_protocol::session::{Level, ToolMode};

/// Everything that was configured, checked, with defaults filled in.
#[derive(Debug, Clone)]
pub struct Config {
    /// `[daemon]`.
    pub daemon: DaemonConfig,
    /// `[models.NAME]`, in the order of the file: the first serves agents that name none.
    pub models: Vec<ModelConfig>,
    /// `[agents.NAME]`; `default` is always there.
    pub agents: BTreeMap<String, AgentConfig>,
    /// `[skills]`.
    pub skills: SkillsConfig,
    /// `[steering]`.
    pub steering: SteeringConfig,
}

/// `[daemon]`.
#[derive(Debug, Clone)]
pub struct DaemonConfig {
    /// A filter such as `info` or `nanod=debug`.
    pub log: String,
    /// The longest line in bytes.
    pub max_line: usize,
    /// How long running calls may take to end at shutdown.
    pub drain: Duration,
    /// Where workspaces may lie; empty: anywhere.
    pub workspaces: Vec<PathBuf>,
    /// The IANA zone for times that name none; `system` is resolved when read.
    pub time_zone: String,
    /// How long events are kept.
    pub keep_events: Duration,
    /// The group of the system socket.
    pub socket_group: Option<String>,
}

/// How a model is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    /// Chat completions.
    OpenAi,
    /// A recorded cassette.
    Replay,
}

/// A secret that never prints.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// `[models.NAME]`.
#[derive(Debug, Clone)]
pub struct ModelConfig {
    /// Its name.
    pub name: String,
    /// How it is spoken to.
    pub api: Api,
    /// Where the server is, with `/v1`.
    pub base_url: String,
    /// The model's name at the server.
    pub model: String,
    /// The key, however it was given.
    pub api_key: Option<Secret>,
    /// How many tokens fit.
    pub context_window: Option<u64>,
    /// How many tokens a reply may have.
    pub max_output: Option<u64>,
    /// Whether replies are streamed.
    pub stream: bool,
    /// How long the server may stay silent, before the first byte and between bytes.
    pub idle_timeout: Duration,
    /// Money for a million input tokens.
    pub price_input: Option<f64>,
    /// Money for a million output tokens.
    pub price_output: Option<f64>,
    /// Models to try when this one gives up.
    pub fallback: Vec<String>,
    /// The file to replay.
    pub cassette: Option<PathBuf>,
    /// `config`, or where it was found.
    pub source: String,
}

/// What becomes of a task that ran when the daemon ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resume {
    /// It goes on by itself, twice at most.
    Auto,
    /// It waits for resume or cancel.
    Ask,
    /// It has failed.
    Never,
}

/// `[agents.NAME]`.
#[derive(Debug, Clone)]
pub struct AgentConfig {
    /// The model's name; the file's first unless told.
    pub model: Option<String>,
    /// The persona.
    pub system_prompt: String,
    /// The kind of computer.
    pub booter: String,
    /// How far local tools reach.
    pub level: Level,
    /// The named set of tools.
    pub tool_mode: ToolMode,
    /// The tools by name; none: those of the mode.
    pub tools: Option<Vec<String>>,
    /// The skills by name; none: all.
    pub skills: Option<Vec<String>>,
    /// Model replies per task.
    pub max_turns: u32,
    /// Wall clock per task.
    pub timeout: Option<Duration>,
    /// How long a command may take.
    pub exec_timeout: Duration,
    /// How long a command may ask for.
    pub exec_timeout_max: Duration,
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
    /// Calls that a person must allow.
    pub approve: Vec<String>,
    /// Money per task.
    pub budget: Option<f64>,
}

/// `[skills]`.
#[derive(Debug, Clone)]
pub struct SkillsConfig {
    /// Folders before the usual ones.
    pub paths: Vec<PathBuf>,
    /// Whether changes are taken up while running.
    pub watch: bool,
    /// Workspaces below these may have `always_load` skills.
    pub trust: Vec<PathBuf>,
}

/// `[steering]`.
#[derive(Debug, Clone)]
pub struct SteeringConfig {
    /// Whether steering files are taken.
    pub enabled: bool,
    /// The file's name in a workspace.
    pub file: String,
}

