//! The daemon's configuration: the file, the environment and where things are. Nothing else reads the environment.

pub mod agent;
mod around;
mod booters;
pub mod env;
mod file;
mod mcp;
mod model;
pub mod origin;
pub mod places;
mod quantity;
mod reader;
mod sections;
#[cfg(test)]
mod tests;
mod tools;
pub mod web;
pub mod zone;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nano_protocol::MAX_LINE;
use nano_protocol::session::{Level, ToolMode};
pub use nano_protocol::task::Resume;

use around::Around;
pub use around::Secret;
pub use booters::{BootersConfig, BoxliteConfig, NeoConfig, Network, ShipyardConfig};
pub use env::Env;
pub use mcp::{McpConfig, Reach};
pub use places::{Flags, Places};
use reader::Reader;
pub use tools::{Piece, ToolConfig, Word};
pub use web::WebConfig;

/// What is wrong with the configuration: one line for each problem.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .problems.join("\n"))]
pub struct ConfigError {
    /// `FILE:LINE: WHAT`, in order of the file; without a line where there is none.
    pub problems: Vec<String>,
}

impl ConfigError {
    fn new(problem: String) -> Self {
        Self { problems: vec![problem] }
    }
}

/// Reads the config file.
pub fn load(path: &Path, env: &Env) -> Result<Config, ConfigError> {
    let bytes = file::read(path).map_err(|error| unreadable(path, &error))?;
    decode(&bytes, path, env)
}

/// Reads the config file, if there is one; else everything has its default.
pub fn load_if_there(path: &Path, env: &Env) -> Result<Config, ConfigError> {
    match file::read(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => decode(b"", path, env),
        read => decode(&read.map_err(|error| unreadable(path, &error))?, path, env),
    }
}

fn unreadable(path: &Path, why: &std::io::Error) -> ConfigError {
    ConfigError::new(format!("{}: {why}", path.display()))
}

fn decode(bytes: &[u8], path: &Path, env: &Env) -> Result<Config, ConfigError> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let line = 1 + bytes.iter().take(error.valid_up_to()).filter(|byte| **byte == b'\n').count();
        ConfigError::new(format!("{}:{line}: this is not UTF-8", path.display()))
    })?;
    let folder = std::path::absolute(path).map_err(|error| unreadable(path, &error))?;
    let folder = folder.parent().unwrap_or(&folder);
    parse(text, path, &Around { env, folder, secret_files: RefCell::default() })
}

fn parse(text: &str, path: &Path, around: &Around<'_>) -> Result<Config, ConfigError> {
    let reader = Reader::new(path.display().to_string(), text);
    let mut config = Config::default();
    config.daemon.time_zone = zone::system(around.env);
    match toml::de::DeTable::parse(text) {
        Ok(table) => sections::read(&reader.root(table.get_ref(), &sections::TOP), around, &mut config),
        Err(error) => reader.problem(error.span().map_or(0, |span| span.start), error.message()),
    }
    config.secret_files = around.secret_files.take();
    let problems = reader.into_problems();
    if problems.is_empty() { Ok(config) } else { Err(ConfigError { problems }) }
}

/// Everything that was configured, checked, with defaults filled in.
#[derive(Debug, Clone)]
pub struct Config {
    /// `[daemon]`.
    pub daemon: DaemonConfig,
    /// `[models.NAME]`, in the order of the file: the first serves agents that name none.
    pub models: Vec<ModelConfig>,
    /// `[agents.NAME]`; a `default` that is not among them is built in.
    pub agents: BTreeMap<String, AgentConfig>,
    /// `[skills]`.
    pub skills: SkillsConfig,
    /// `[steering]`.
    pub steering: SteeringConfig,
    /// `[booters.*]`.
    pub booters: BootersConfig,
    /// `[web]`, `[web_search]`, `[http_request]`.
    pub web: WebConfig,
    /// `[tools.NAME]`, in the order of the file.
    pub tools: Vec<ToolConfig>,
    /// `[mcp.NAME]`, in the order of the file.
    pub mcp: Vec<McpConfig>,
    /// Files with secrets that the file names.
    pub secret_files: Vec<PathBuf>,
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

/// `[agents.NAME]`.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "they are switches of the file, each by its own name")]
pub struct AgentConfig {
    /// The model's name; the file's first unless told.
    pub model: Option<String>,
    /// The persona.
    pub system_prompt: String,
    /// The kind of computer.
    pub booter: String,
    /// Whether the profile itself says so.
    pub names_booter: bool,
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
    /// Rules on what of its calls is allowed, asked about or denied.
    pub approve: Vec<String>,
    /// How long a call waits for a person's answer.
    pub approve_timeout: Duration,
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

impl Default for Config {
    /// Returns what an empty file means, in UTC.
    fn default() -> Self {
        Self {
            daemon: DaemonConfig::default(),
            models: Vec::new(),
            agents: BTreeMap::new(),
            skills: SkillsConfig { paths: Vec::new(), watch: true, trust: Vec::new() },
            steering: SteeringConfig { enabled: true, file: ".steering.jsonl".to_owned() },
            booters: BootersConfig::default(),
            web: WebConfig::default(),
            tools: Vec::new(),
            mcp: Vec::new(),
            secret_files: Vec::new(),
        }
    }
}

impl Default for DaemonConfig {
    fn default() -> Self {
        Self {
            log: "info".to_owned(),
            max_line: MAX_LINE,
            drain: Duration::from_secs(20),
            workspaces: Vec::new(),
            time_zone: "UTC".to_owned(),
            keep_events: Duration::from_hours(720),
            socket_group: None,
        }
    }
}
