//! The command line: flags that every verb takes, the verbs, and what clap says turned into our one error line.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::commands::{
    agents, approvals, demo, events, explain, followup, rpc, run, sessions, shutdown, skills, steer, submit, tasks,
    tools, wait,
};
use crate::failure::Failure;

/// Drives nanod: submit tasks, follow them, steer them, schedule follow-ups.
#[derive(Debug, Parser)]
#[command(name = "nanoctl", version, disable_help_subcommand = true, infer_subcommands = false)]
pub struct Cli {
    /// What every verb takes.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What every verb takes, before or after its name.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Global options")]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
pub struct Global {
    /// The daemon's socket: this one and no other
    #[arg(long, global = true, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// Never start a personal daemon
    #[arg(long, global = true)]
    pub no_autostart: bool,
    /// Print the daemon's results as they are, one JSON text a line
    #[arg(long, global = true)]
    pub json: bool,
    /// Say nothing but the answer and errors
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// Say more: causes of errors, problems of skills
    #[arg(short, long, global = true)]
    pub verbose: bool,
    /// No colours (also: `NO_COLOR`)
    #[arg(long, global = true)]
    pub no_color: bool,
    /// Give up after so long, such as 90s or 1h30m; a task goes on
    #[arg(long, global = true, value_name = "DUR", value_parser = crate::duration::parse)]
    pub timeout: Option<Duration>,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Submit a task and follow it to its end
    #[command(after_help = "Examples:
  nanoctl run \"What does this folder hold?\"
  nanoctl run --new web \"Start the app and see whether it answers\"
  nanoctl run -s web - < task.md

Ctrl-C cancels the task, a second one stops waiting for it.")]
    Run(Box<run::Args>),
    /// Submit a task and print its id
    #[command(after_help = "Examples:
  id=$(nanoctl submit \"Tidy up the tests\") && nanoctl wait $id && nanoctl result $id
  nanoctl submit -s web --idempotency-key nightly-$(date +%F) \"Update the dependencies\"")]
    Submit(Box<submit::Args>),
    /// Wait until tasks have ended
    #[command(after_help = "Examples:
  nanoctl wait $id && nanoctl result $id
  nanoctl wait --timeout 10m $one $two

It exits as the first given task that did not succeed: 1 failed, 6 cancelled, 7 the time ran out.")]
    Wait(wait::Args),
    /// Print a task's answer
    Result(tasks::One),
    /// Cancel a task
    Cancel(tasks::One),
    /// Take up an interrupted or failed task
    Resume(tasks::One),
    /// Show a task
    Task(tasks::One),
    /// List tasks, newest first
    Tasks(tasks::List),
    /// Say something to the task that runs
    #[command(after_help = "Examples:
  nanoctl steer web \"Also write down what you changed\"
  nanoctl steer web --interrupt \"Stop: not that file\"

A session that does nothing takes it as a task.")]
    Steer(steer::Args),
    /// Messages that become tasks later
    #[command(subcommand)]
    Followup(Box<followup::Verb>),
    /// List a session's tools
    Tools(tools::Tools),
    /// Show a session's prompts
    Prompts(tools::Prompts),
    /// List sessions, newest first
    Sessions(sessions::List),
    /// One session
    #[command(subcommand)]
    Session(Box<sessions::Verb>),
    /// Follow a session live; the newest open one unless told
    Attach(events::Attach),
    /// List events, or follow them
    Events(events::Args),
    /// Texts that models load when they need them
    #[command(subcommand)]
    Skills(Box<skills::Verb>),
    /// Agent profiles
    #[command(subcommand)]
    Agents(agents::Verb),
    /// List models
    Models,
    /// List kinds of computers
    Booters,
    /// List calls that wait for a person
    Approvals(approvals::List),
    /// Let a call that waits run
    #[command(after_help = "Examples:
  nanoctl approvals
  nanoctl approve apr_01KEFAV8Z3 --always   # and the same call for the rest of its session")]
    Approve(approvals::Allow),
    /// Deny a call that waits; its task goes on without it
    Deny(approvals::Deny),
    /// Say why the calls of a task ran or did not
    Explain(explain::Args),
    /// Show how the daemon is
    Status,
    /// Look for what is missing or wrong; 1 if something is wrong
    Doctor,
    /// Have the daemon read its config anew
    #[command(
        after_help = "A config with a mistake changes nothing: the error names file, line and key. What needs a restart keeps its
old value; the daemon's log and a `warning` event name it."
    )]
    Reload,
    /// Stop the daemon in order
    Shutdown(shutdown::Args),
    /// Call a method of the daemon
    Rpc(rpc::Args),
    /// Watch it all work, offline, in seconds
    Demo(demo::Args),
}

/// What a command line came to.
#[derive(Debug)]
pub enum Parsed {
    /// A verb to carry out.
    Verb {
        /// Its name, such as `session show`.
        what: String,
        /// The command line.
        cli: Box<Cli>,
    },
    /// A help or version text to print.
    Text(String),
}

/// Parses a command line, the program's name first.
pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Parsed, Failure> {
    let args: Vec<_> = args.into_iter().collect();
    let parsed = command().try_get_matches_from(&args).and_then(|matches| {
        let what = verb_name(&matches);
        Cli::from_arg_matches(&matches).map(|cli| Parsed::Verb { what, cli: Box::new(cli) })
    });
    parsed.or_else(|error| match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Ok(Parsed::Text(error.to_string())),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
            Err(Failure::usage("no verb was given", format!("{} --help lists them", named(&args))))
        }
        _ => Err(usage(&error.to_string(), &named(&args))),
    })
}

/// Returns the command line with `--no-autostart` shown by the verbs alone that start a daemon; the others take it too.
fn command() -> clap::Command {
    let command = Cli::command();
    let flag = command.get_arguments().find(|flag| flag.get_id() == "no_autostart").cloned();
    command.mut_subcommands(|verb| match verb.get_name() {
        "run" | "submit" => verb,
        _ => verb.args(flag.clone().map(|flag| flag.hide(true))),
    })
}

fn verb_name(matches: &ArgMatches) -> String {
    let mut names = Vec::new();
    let mut level = matches;
    while let Some((name, below)) = level.subcommand() {
        names.push(name);
        level = below;
    }
    names.join(" ")
}

/// Returns the verb that a wrong command line names, as one types it: clap tells it for right ones alone.
fn named(args: &[OsString]) -> String {
    let mut level = &command();
    let mut name = "nanoctl".to_owned();
    for word in args.iter().skip(1) {
        if let Some(verb) = level.find_subcommand(word) {
            name = format!("{name} {}", verb.get_name());
            level = verb;
        }
    }
    name
}

/// Clap writes a paragraph what is wrong, perhaps a tip, then the usage: we keep one line of it.
fn usage(text: &str, named: &str) -> Failure {
    let wrong = text.split("\n\n").next().unwrap_or(text);
    let wrong: Vec<_> = wrong.trim_start_matches("error: ").lines().map(str::trim).collect();
    let tip = text.lines().find_map(|line| line.trim().strip_prefix("tip: "));
    let usage = text.lines().find_map(|line| line.trim().strip_prefix("Usage: "));
    let hint = tip.map(str::to_owned).or_else(|| usage.map(|usage| format!("usage: {usage}")));
    Failure::usage(wrong.join(" "), hint.unwrap_or_else(|| format!("{named} --help says what it takes")))
}

#[cfg(test)]
mod tests;
