//! The verbs: one file each, or one for a few that share their arguments.

pub mod agents;
pub mod approvals;
pub mod catalog;
pub mod demo;
pub mod doctor;
pub mod events;
pub mod explain;
pub mod followup;
pub mod reload;
pub mod rpc;
pub mod run;
pub mod sessions;
pub mod shutdown;
pub mod skills;
pub mod status;
pub mod steer;
pub mod submit;
pub mod tasks;
pub mod tools;
pub mod wait;

use std::io;

use crate::cli::{Cli, Verb};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Output;
use crate::table::{Column, table};

/// Carries out a verb.
pub fn dispatch(cli: Cli) -> Result<(), Failure> {
    let context = &Context::new(&cli.global)?;
    match cli.verb {
        Verb::Run(args) => run::run(context, &args),
        Verb::Submit(args) => submit::run(context, &args),
        Verb::Wait(args) => wait::run(context, &args),
        Verb::Result(args) => tasks::result(context, args),
        Verb::Cancel(args) => tasks::cancel(context, args),
        Verb::Resume(args) => tasks::resume(context, args),
        Verb::Task(args) => tasks::show(context, args),
        Verb::Tasks(args) => tasks::list(context, args),
        Verb::Steer(args) => steer::run(context, args),
        Verb::Followup(verb) => followup::run(context, *verb),
        Verb::Tools(args) => tools::tools(context, args),
        Verb::Prompts(args) => tools::prompts(context, args),
        Verb::Sessions(args) => sessions::list(context, args),
        Verb::Session(verb) => sessions::run(context, *verb),
        Verb::Attach(args) => events::attach(context, args),
        Verb::Events(args) => events::run(context, args),
        Verb::Skills(verb) => skills::run(context, *verb),
        Verb::Agents(verb) => agents::run(context, verb),
        Verb::Models => catalog::models(context),
        Verb::Booters => catalog::booters(context),
        Verb::Approvals(args) => approvals::list(context, args),
        Verb::Approve(args) => approvals::approve(context, args),
        Verb::Deny(args) => approvals::deny(context, args),
        Verb::Explain(args) => explain::run(context, args),
        Verb::Status => status::run(context),
        Verb::Doctor => doctor::run(context),
        Verb::Reload => reload::run(context),
        Verb::Shutdown(args) => shutdown::run(context, &args),
        Verb::Rpc(args) => rpc::run(context, &args),
        Verb::Demo(args) => demo::run(context, &args),
    }
}

/// Shows a page of a list; says `none` where it is empty, and how to see the rest where there is one.
fn page(output: &Output, head: &[Column], rows: &[Vec<String>], next: Option<&String>, none: &str) -> io::Result<()> {
    if rows.is_empty() {
        output.note(none);
        return Ok(());
    }
    table(output, head, rows)?;
    if let Some(next) = next {
        output.note(&format!("there are more: --after {next}"));
    }
    Ok(())
}

/// Shows what may be absent.
fn or_dash(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "-".into(), |value| value.to_string())
}
