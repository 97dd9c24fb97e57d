//! `sessions` and `session create|show|boot|messages|close|delete`.

use std::io;

use clap::Subcommand;
use nano_protocol::id::SessionRef;
use nano_protocol::message::{Message, NotRun, Outcome};
use nano_protocol::method::{
    ProcessList, SessionBoot, SessionClose, SessionCreate, SessionDelete, SessionGet, SessionList, SessionMessages,
};
use nano_protocol::process::{Process, ProcessListParams, ProcessState};
use nano_protocol::session::{Level, ListParams, MessagesParams, Session, SessionParams, SessionState};

use crate::commands::submit::Fresh;
use crate::commands::{or_dash, page};
use crate::context::{Context, Start};
use crate::failure::Failure;
use crate::output::Output;
use crate::summary::label;
use crate::table::Column::{Extra, Text, Whole};
use crate::table::fields;

/// What to do with one session.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Make one and print its id
    Create(Create),
    /// Show it
    Show(One),
    /// Boot its computer now
    Boot(One),
    /// Print its transcript
    Messages(Messages),
    /// End its task, free its computer, take nothing more
    Close(One),
    /// Remove it and all that belongs to it
    Delete(One),
}

/// What the session is like.
#[derive(Debug, clap::Args)]
pub struct Create {
    /// Its name, unique among open sessions
    #[arg(long, visible_alias = "new", value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    fresh: Fresh,
}

/// One session.
#[derive(Debug, clap::Args)]
pub struct One {
    /// Its id, a prefix of the id or its name
    #[arg(value_name = "SESSION")]
    session: String,
}

/// Which messages.
#[derive(Debug, clap::Args)]
pub struct Messages {
    /// Its id, a prefix of the id or its name
    #[arg(value_name = "SESSION")]
    session: String,
    /// Those after this number
    #[arg(long, value_name = "SEQ")]
    after: Option<u64>,
    /// At most so many; all unless told (with --json: 200)
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
}

/// Which sessions.
#[derive(Debug, clap::Args)]
pub struct List {
    /// Only those in this state: idle, running, interrupted or closed
    #[arg(long, value_name = "S")]
    state: Option<SessionState>,
    /// At most so many; 200 unless told
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Those after this page
    #[arg(long, value_name = "NEXT")]
    after: Option<String>,
}

/// Carries out `session`.
pub fn run(context: &Context, verb: Verb) -> Result<(), Failure> {
    match verb {
        Verb::Create(args) => {
            let params = args.fresh.params(args.name.as_ref())?;
            context.show::<SessionCreate>(&params, |output, session| output.answer(session.id.as_str()))
        }
        Verb::Show(one) => show(context, &one.into()),
        Verb::Boot(one) => context.show::<SessionBoot>(&one.into(), |output, it| {
            output.answer(&format!("{} booted: {}", it.id, or_dash(it.capabilities.map(|can| can.join(",")))))
        }),
        Verb::Messages(args) => messages(context, args),
        Verb::Close(one) => {
            context.show::<SessionClose>(&one.into(), |output, it| output.answer(&format!("{} closed", it.id)))
        }
        Verb::Delete(one) => {
            context.show::<SessionDelete>(&one.into(), |output, it| output.answer(&format!("{} deleted", it.id)))
        }
    }
}

/// Carries out `sessions`.
pub fn list(context: &Context, args: List) -> Result<(), Failure> {
    let params = ListParams { state: args.state, limit: args.limit, after: args.after };
    context.show::<SessionList>(&params, |output, list| {
        let row = |it: &Session| {
            let name = or_dash(it.name.as_ref());
            vec![
                it.id.to_string(),
                it.state.to_string(),
                name,
                it.agent.clone(),
                it.workspace.clone(),
                it.updated_at.to_string(),
            ]
        };
        let rows: Vec<_> = list.sessions.iter().map(row).collect();
        let head = [Whole("ID"), Whole("STATE"), Whole("NAME"), Whole("AGENT"), Text("WORKSPACE"), Extra("UPDATED")];
        page(
            output,
            &head,
            &rows,
            list.next.as_ref(),
            "there is no such session: nanoctl run or session create makes one",
        )
    })
}

fn show(context: &Context, params: &SessionParams) -> Result<(), Failure> {
    if context.output.json {
        return context.show::<SessionGet>(params, |_, _| Ok(()));
    }
    let mut client = context.connect(Start::Never)?;
    let it = client.call::<SessionGet>(params)?;
    let (session, state) = (Some(SessionRef::from(&it.id)), Some(ProcessState::Running));
    let running = client.call::<ProcessList>(&ProcessListParams { session, state, limit: None, after: None })?;
    let mut lines = particulars(&it);
    let line = |one: Process| ("process", format!("{} since {}: {}", one.id, one.started_at, one.command));
    lines.extend(running.processes.into_iter().map(line));
    Ok(fields(&context.output, &lines)?)
}

fn messages(context: &Context, args: Messages) -> Result<(), Failure> {
    let Messages { session, after, limit } = args;
    let mut params = MessagesParams { session: SessionRef(session), after_seq: after, limit };
    if context.output.json {
        return context.show::<SessionMessages>(&params, |_, _| Ok(()));
    }
    let mut client = context.connect(Start::Never)?;
    loop {
        let page = client.call::<SessionMessages>(&params)?;
        for message in &page.messages {
            print(&context.output, message)?;
        }
        params.after_seq = page.next_after_seq;
        if params.after_seq.is_none() || limit.is_some() {
            return Ok(());
        }
    }
}

fn print(output: &Output, message: &Message) -> io::Result<()> {
    let mut head = format!("[{}] {}", message.seq, message.role);
    head.extend(message.source.iter().map(|source| format!(" from {source}")));
    head.extend(message.tool_name.iter().map(|name| format!(" {name}")));
    let words = [message.not_run.map(NotRun::as_str), message.outcome.map(Outcome::as_str)];
    head.extend(words.into_iter().flatten().map(|word| format!(" ({word})")));
    if message.ok == Some(false) && words == [None, None] {
        head.push_str(" (failed)");
    }
    output.answer(&format!("{head}  {}", message.at))?;
    if !message.content.is_empty() {
        output.answer(&message.content)?;
    }
    for call in &message.tool_calls {
        output.answer(&format!("-> {}", label(&call.name, Some(&call.arguments))))?;
    }
    Ok(())
}

/// Returns a level, and plainly what the one means that confines nothing.
pub fn level(level: Level) -> String {
    if level == Level::Host { format!("{level} (commands are not confined)") } else { level.to_string() }
}

fn particulars(it: &Session) -> Vec<(&'static str, String)> {
    let names = |list: &Option<Vec<String>>, none: &str| list.as_ref().map_or_else(|| none.into(), |all| all.join(","));
    let todo = it.todo.iter().map(|one| ("todo", format!("{}: {}", one.state, one.text)));
    let all = vec![
        ("session", it.id.to_string()),
        ("name", or_dash(it.name.as_ref())),
        ("state", it.state.to_string()),
        ("agent", it.agent.clone()),
        ("model", it.model.clone()),
        ("workspace", it.workspace.clone()),
        ("booter", format!("{} ({})", it.booter, if it.booted { "booted" } else { "not booted" })),
        ("capabilities", names(&it.capabilities, "-")),
        ("level", level(it.level)),
        ("tools", names(&it.tools, it.tool_mode.as_str())),
        ("skills", names(&it.skills, "all")),
        ("always", if it.always.is_empty() { "-".into() } else { it.always.join(" | ") }),
        ("parent", or_dash(it.parent.as_ref())),
        ("owner", it.owner.to_string()),
        ("created", it.created_at.to_string()),
        ("updated", it.updated_at.to_string()),
        ("tokens", format!("{} in, {} out", it.usage.input_tokens, it.usage.output_tokens)),
    ];
    all.into_iter().chain(todo).collect()
}

impl From<One> for SessionParams {
    fn from(one: One) -> Self {
        Self { session: SessionRef(one.session) }
    }
}
