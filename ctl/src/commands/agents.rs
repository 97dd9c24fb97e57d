//! `agents list|show|create|edit|delete|import`.

mod file;
mod flags;
mod import;
mod mao;

use clap::Subcommand;
use nano_protocol::catalog::{AgentInfo, NameParams, PageParams};
use nano_protocol::method::{AgentCreate, AgentDelete, AgentGet, AgentList, AgentUpdate};

use crate::commands::{or_dash, page};
use crate::context::Context;
use crate::failure::Failure;
use crate::table::Column::{Extra, Text, Whole};
use crate::table::fields;

/// What to do with agent profiles.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// List them by name
    List(List),
    /// Show one
    Show(One),
    /// Make one and print its name
    #[command(after_help = "Examples:
  nanoctl agents create reviewer --mode readonly --prompt-file reviewer.md
  nanoctl agents create clerk --tools read_file,datetime --skills git-workflow && nanoctl run --agent clerk \"Go\"")]
    Create(Box<flags::Create>),
    /// Change one that was made here
    #[command(after_help = "Examples:
  nanoctl agents edit reviewer --max-turns 40 --reset tools

Sessions have the change from their next turn on, but keep the booter, model, level, mode, tools and skills that they
were made with.")]
    Edit(Box<flags::Edit>),
    /// Delete one that was made here and that no open session uses
    Delete(One),
    /// Make those of a MAO export and print their names
    #[command(
        after_help = "FILE holds JSON: a profile, a list of them, or {\"agents\": […]}. skillIds and toolIds become
tools, skillNames skills, an empty list all of them. What has no counterpart is named on stderr."
    )]
    Import(import::Args),
}

/// One agent.
#[derive(Debug, clap::Args)]
pub struct One {
    /// Its name
    #[arg(value_name = "NAME")]
    name: String,
}

/// Which agents.
#[derive(Debug, clap::Args)]
pub struct List {
    /// At most so many; 200 unless told
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Those after this page
    #[arg(long, value_name = "NEXT")]
    after: Option<String>,
}

/// Carries out `agents`.
pub fn run(context: &Context, verb: Verb) -> Result<(), Failure> {
    match verb {
        Verb::List(List { limit, after }) => list(context, &PageParams { limit, after }),
        Verb::Show(one) => context.show::<AgentGet>(&one.into(), |output, it| fields(output, &particulars(&it))),
        Verb::Create(args) => context.show::<AgentCreate>(&args.params()?, |output, it| output.answer(&it.name)),
        Verb::Edit(args) => {
            context.show::<AgentUpdate>(&args.params()?, |output, it| output.answer(&format!("{} changed", it.name)))
        }
        Verb::Delete(one) => {
            context.show::<AgentDelete>(&one.into(), |output, it| output.answer(&format!("{} deleted", it.name)))
        }
        Verb::Import(args) => import::run(context, &args),
    }
}

fn list(context: &Context, params: &PageParams) -> Result<(), Failure> {
    context.show::<AgentList>(params, |output, list| {
        let row = |it: &AgentInfo| {
            vec![it.name.clone(), or_dash(it.model.as_ref()), it.booter.clone(), tools(it), it.source.clone()]
        };
        let rows: Vec<_> = list.agents.iter().map(row).collect();
        let head = [Whole("AGENT"), Whole("MODEL"), Whole("BOOTER"), Text("TOOLS"), Extra("SOURCE")];
        page(output, &head, &rows, list.next.as_ref(), "there is no such agent: nanoctl agents create makes one")
    })
}

fn particulars(it: &AgentInfo) -> Vec<(&'static str, String)> {
    let time = |ms: u64| if ms.is_multiple_of(1000) { format!("{}s", ms / 1000) } else { format!("{ms}ms") };
    vec![
        ("agent", it.name.clone()),
        ("source", it.source.clone()),
        ("note", or_dash(it.note.as_ref())),
        ("model", or_dash(it.model.as_ref())),
        ("booter", it.booter.clone()),
        ("level", super::sessions::level(it.level)),
        ("mode", it.tool_mode.to_string()),
        ("tools", tools(it)),
        ("skills", names(it.skills.as_ref(), "all")),
        ("turns", it.max_turns.to_string()),
        ("timeout", or_dash(it.timeout_ms.map(time))),
        ("exec timeout", time(it.exec_timeout_ms)),
        ("exec timeout max", time(it.exec_timeout_max_ms)),
        ("exec", on(it.enable_exec)),
        ("steering", on(it.enable_steering)),
        ("follow-ups", on(it.enable_followup)),
        ("workspace only", on(it.restrict_to_workspace)),
        ("resume", it.resume.to_string()),
        ("approve", if it.approve.is_empty() { "-".into() } else { it.approve.join(" | ") }),
        ("approve timeout", or_dash(it.approve_timeout_ms.map(time))),
        ("budget", or_dash(it.budget)),
        ("prompt", it.system_prompt.clone()),
    ]
}

fn on(flag: bool) -> String {
    if flag { "on".into() } else { "off".into() }
}

fn tools(it: &AgentInfo) -> String {
    names(it.tools.as_ref(), it.tool_mode.as_str())
}

fn names(list: Option<&Vec<String>>, absent: &str) -> String {
    match list {
        None => absent.to_owned(),
        Some(none) if none.is_empty() => "none".into(),
        Some(names) => names.join(","),
    }
}

impl From<One> for NameParams {
    fn from(one: One) -> Self {
        Self { name: one.name }
    }
}
