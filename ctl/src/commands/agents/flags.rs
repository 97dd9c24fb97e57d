//! What a profile is like, said by flags.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use nano_protocol::MAX_CONTENT;
use nano_protocol::catalog::{AgentCreateParams, AgentUpdateParams};
use nano_protocol::session::{Level, ToolMode};
use nano_protocol::task::Resume;

use super::file;
use crate::duration::{millis, parse};
use crate::failure::Failure;

/// Names with commas between them; none where the text is empty.
#[derive(Debug, Clone)]
pub struct Names(Vec<String>);

impl FromStr for Names {
    type Err = Infallible;
    fn from_str(text: &str) -> Result<Self, Infallible> {
        let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
        Ok(Self(names.map(str::to_owned).collect()))
    }
}

/// A profile to make.
#[derive(Debug, clap::Args)]
pub struct Create {
    /// Its name: 1 to 64 of A-Z a-z 0-9 . _ -
    #[arg(value_name = "NAME")]
    name: String,
    /// What it is like.
    #[command(flatten)]
    profile: Profile,
}

/// A profile to change.
#[derive(Debug, clap::Args)]
pub struct Edit {
    /// Its name
    #[arg(value_name = "NAME")]
    name: String,
    /// What it is like.
    #[command(flatten)]
    profile: Profile,
    /// Give a member its default again, such as tools; may be given again
    #[arg(long, value_name = "MEMBER")]
    reset: Vec<String>,
}

/// What a profile is like.
#[derive(Debug, clap::Args)]
struct Profile {
    /// Its model; the first that there is unless told
    #[arg(long, value_name = "M")]
    model: Option<String>,
    /// Its kind of computer
    #[arg(long, value_name = "B")]
    booter: Option<String>,
    /// Its system prompt; - reads stdin
    #[arg(long, value_name = "TEXT", conflicts_with = "prompt_file")]
    prompt: Option<String>,
    /// The file that holds its system prompt
    #[arg(long, value_name = "PATH")]
    prompt_file: Option<PathBuf>,
    /// How far local tools reach: read-only, workspace-write or host
    #[arg(long, value_name = "L")]
    level: Option<Level>,
    /// Its set of tools: core, readonly or all
    #[arg(long, value_name = "MODE")]
    mode: Option<ToolMode>,
    /// Exactly these tools, with commas between; '' for none; those of the mode unless told
    #[arg(long, value_name = "NAMES")]
    tools: Option<Names>,
    /// Exactly these skills, with commas between; '' for none; all unless told
    #[arg(long, value_name = "NAMES")]
    skills: Option<Names>,
    /// Model replies per task
    #[arg(long, value_name = "N")]
    max_turns: Option<u32>,
    /// Wall clock per task
    #[arg(long, value_name = "DUR", value_parser = parse)]
    task_timeout: Option<Duration>,
    /// How long a command may take
    #[arg(long, value_name = "DUR", value_parser = parse)]
    exec_timeout: Option<Duration>,
    /// How long a command may ask for
    #[arg(long, value_name = "DUR", value_parser = parse)]
    exec_timeout_max: Option<Duration>,
    /// Money per task
    #[arg(long, value_name = "SUM")]
    budget: Option<f64>,
    /// What becomes of a task at a restart: auto, ask or never
    #[arg(long, value_name = "R")]
    resume: Option<Resume>,
    /// A rule on what of its calls is allowed, asked about or denied, such as "exec git push *: ask"; may be given again
    #[arg(long, value_name = "RULE")]
    approve: Vec<String>,
    /// How long a call waits for a person's answer
    #[arg(long, value_name = "DUR", value_parser = parse)]
    approve_timeout: Option<Duration>,
    /// Whether exec, python and process are offered: true or false
    #[arg(long, value_name = "BOOL")]
    enable_exec: Option<bool>,
    /// Whether its sessions can be steered: true or false
    #[arg(long, value_name = "BOOL")]
    enable_steering: Option<bool>,
    /// Whether it may schedule follow-ups: true or false
    #[arg(long, value_name = "BOOL")]
    enable_followup: Option<bool>,
    /// Whether file tools stay below the workspace: true or false
    #[arg(long, value_name = "BOOL")]
    restrict_to_workspace: Option<bool>,
}

/// Flags whose members on the wire have another name.
const RENAMED: [(&str, &str); 6] = [
    ("prompt", "system_prompt"),
    ("mode", "tool_mode"),
    ("task_timeout", "timeout_ms"),
    ("exec_timeout", "exec_timeout_ms"),
    ("approve_timeout", "approve_timeout_ms"),
    ("exec_timeout_max", "exec_timeout_max_ms"),
];

impl Create {
    /// Returns the profile to make.
    pub fn params(&self) -> Result<AgentCreateParams, Failure> {
        self.profile.said(&self.name)
    }
}

impl Edit {
    /// Returns the change to make.
    pub fn params(&self) -> Result<AgentUpdateParams, Failure> {
        let said = self.profile.said(&self.name)?;
        if self.reset.is_empty() && said == (AgentCreateParams { name: self.name.clone(), ..Default::default() }) {
            let hint = format!("such as nanoctl agents edit {} --max-turns 40, or --reset tools", self.name);
            return Err(Failure::usage("nothing to change was given", hint));
        }
        Ok(AgentUpdateParams {
            name: said.name,
            model: said.model,
            system_prompt: said.system_prompt,
            booter: said.booter,
            level: said.level,
            tool_mode: said.tool_mode,
            tools: said.tools,
            skills: said.skills,
            max_turns: said.max_turns,
            timeout_ms: said.timeout_ms,
            exec_timeout_ms: said.exec_timeout_ms,
            exec_timeout_max_ms: said.exec_timeout_max_ms,
            enable_exec: said.enable_exec,
            enable_steering: said.enable_steering,
            enable_followup: said.enable_followup,
            restrict_to_workspace: said.restrict_to_workspace,
            resume: said.resume,
            approve: said.approve,
            approve_timeout_ms: said.approve_timeout_ms,
            budget: said.budget,
            reset: Some(self.reset.iter().map(|flag| member(flag)).collect()).filter(|all: &Vec<_>| !all.is_empty()),
        })
    }
}

/// Returns the member that a flag sets; the name of a member stays.
fn member(flag: &str) -> String {
    let name = flag.replace('-', "_");
    RENAMED.iter().find(|(flag, _)| *flag == name).map_or(name.clone(), |(_, member)| (*member).to_owned())
}

impl Profile {
    fn said(&self, name: &str) -> Result<AgentCreateParams, Failure> {
        let names = |list: &Option<Names>| list.as_ref().map(|names| names.0.clone());
        Ok(AgentCreateParams {
            name: name.to_owned(),
            model: self.model.clone(),
            system_prompt: self.prompt()?,
            booter: self.booter.clone(),
            level: self.level,
            tool_mode: self.mode,
            tools: names(&self.tools),
            skills: names(&self.skills),
            max_turns: self.max_turns,
            timeout_ms: self.task_timeout.map(millis),
            exec_timeout_ms: self.exec_timeout.map(millis),
            exec_timeout_max_ms: self.exec_timeout_max.map(millis),
            enable_exec: self.enable_exec,
            enable_steering: self.enable_steering,
            enable_followup: self.enable_followup,
            restrict_to_workspace: self.restrict_to_workspace,
            resume: self.resume,
            approve: Some(self.approve.clone()).filter(|rules| !rules.is_empty()),
            approve_timeout_ms: self.approve_timeout.map(millis),
            budget: self.budget,
        })
    }

    /// Returns the system prompt; one final line end of a file is not part of it.
    fn prompt(&self) -> Result<Option<String>, Failure> {
        let path = match (self.prompt.as_deref(), &self.prompt_file) {
            (Some("-"), _) => Path::new("-"),
            (Some(text), _) => return Ok(Some(text.to_owned())),
            (None, Some(path)) => path,
            (None, None) => return Ok(None),
        };
        let text = file::read(path, MAX_CONTENT + 2)?;
        let line = text.strip_suffix('\n').unwrap_or(&text);
        Ok(Some(line.strip_suffix('\r').unwrap_or(line).to_owned()))
    }
}
