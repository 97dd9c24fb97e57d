//! `agents list|show`.

use clap::Subcommand;
use nano_protocol::catalog::{AgentInfo, NameParams, PageParams};
use nano_protocol::method::{AgentGet, AgentList};

use crate::commands::or_dash;
use crate::context::Context;
use crate::failure::Failure;
use crate::table::Column::{Text, Whole};
use crate::table::{fields, table};

/// What to do with agent profiles.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// List them by name
    List,
    /// Show one
    Show(One),
}

/// One agent.
#[derive(Debug, clap::Args)]
pub struct One {
    /// Its name
    #[arg(value_name = "NAME")]
    name: String,
}

/// Carries out `agents`.
pub fn run(context: &Context, verb: Verb) -> Result<(), Failure> {
    match verb {
        Verb::List => context.show::<AgentList>(&PageParams::default(), |output, list| {
            let row = |it: &AgentInfo| vec![it.name.clone(), or_dash(it.model.as_ref()), it.booter.clone(), tools(it)];
            let head = [Whole("AGENT"), Whole("MODEL"), Whole("BOOTER"), Text("TOOLS")];
            table(output, &head, &list.agents.iter().map(row).collect::<Vec<_>>())
        }),
        Verb::Show(one) => {
            context.show::<AgentGet>(&NameParams { name: one.name }, |output, it| fields(output, &particulars(&it)))
        }
    }
}

fn particulars(it: &AgentInfo) -> Vec<(&'static str, String)> {
    vec![
        ("agent", it.name.clone()),
        ("model", or_dash(it.model.as_ref())),
        ("booter", it.booter.clone()),
        ("level", it.level.to_string()),
        ("tools", tools(it)),
        ("skills", it.skills.as_ref().map_or_else(|| "all".into(), |skills| skills.join(","))),
        ("turns", it.max_turns.to_string()),
        ("prompt", it.system_prompt.clone()),
    ]
}

fn tools(it: &AgentInfo) -> String {
    it.tools.as_ref().map_or_else(|| it.tool_mode.to_string(), |tools| tools.join(","))
}
