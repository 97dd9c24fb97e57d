//! `task`, `tasks`, `result`, `cancel` and `resume`.

use std::io;

use nano_protocol::id::SessionRef;
use nano_protocol::method::{Method as _, TaskCancel, TaskGet, TaskList, TaskResume};
use nano_protocol::task::{Task, TaskListParams, TaskParams, TaskState};

use crate::client::decode;
use crate::commands::{or_dash, page};
use crate::context::{Context, Start};
use crate::failure::{Failure, Kind};
use crate::output::Output;
use crate::render::has_answer;
use crate::table::Column::{Extra, Text, Whole};
use crate::table::fields;

/// One task.
#[derive(Debug, clap::Args)]
pub struct One {
    /// Its id
    #[arg(value_name = "TASK")]
    task: String,
}

/// Which tasks.
#[derive(Debug, clap::Args)]
pub struct List {
    /// Only those of this session
    #[arg(short, long, value_name = "SESSION")]
    session: Option<String>,
    /// Only those in this state: queued, running, succeeded, failed, cancelled or interrupted
    #[arg(long, value_name = "S")]
    state: Option<TaskState>,
    /// At most so many; 200 unless told
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Those after this page
    #[arg(long, value_name = "NEXT")]
    after: Option<String>,
}

/// Carries out `task`.
pub fn show(context: &Context, args: One) -> Result<(), Failure> {
    context.show::<TaskGet>(&args.into(), |output, task| fields(output, &particulars(&task)))
}

/// Carries out `tasks`.
pub fn list(context: &Context, args: List) -> Result<(), Failure> {
    let List { session, state, limit, after } = args;
    let params = TaskListParams { session: session.map(SessionRef), state, limit, after };
    context.show::<TaskList>(&params, |output, list| {
        let row = |it: &Task| {
            let text = it.content.clone();
            vec![it.id.to_string(), state_of(it), text, it.session.to_string(), it.created_at.to_string()]
        };
        let rows: Vec<_> = list.tasks.iter().map(row).collect();
        let head = [Whole("ID"), Whole("STATE"), Text("TEXT"), Extra("SESSION"), Extra("CREATED")];
        page(output, &head, &rows, list.next.as_ref(), "there is no such task: nanoctl run or submit makes one")
    })
}

fn state_of(task: &Task) -> String {
    let why = task.reason.filter(|_| task.state == TaskState::Failed);
    why.map_or_else(|| task.state.to_string(), |why| format!("failed:{why}"))
}

/// Carries out `result`: the answer of a task that has ended, never a text on the way to it.
pub fn result(context: &Context, args: One) -> Result<(), Failure> {
    let raw = context.connect(Start::Never)?.call_raw(TaskGet::NAME, &TaskParams::from(args))?;
    let task: Task = decode(&raw)?;
    let answer = task.result.as_ref().filter(|_| has_answer(&task));
    let Some(answer) = answer else {
        let why = format!("{} has no answer: it is {}", task.id, task.state);
        let hint = if task.state.is_settled() { "nanoctl task" } else { "nanoctl wait" };
        return Err(Failure::new(Kind::Refused, why, format!("{hint} {}", task.id)));
    };
    let answer = if context.output.json { raw.get() } else { answer };
    Ok(context.output.answer(answer)?)
}

/// Carries out `cancel`.
pub fn cancel(context: &Context, args: One) -> Result<(), Failure> {
    context.show::<TaskCancel>(&args.into(), |output, task| say_state(output, &task))
}

/// Carries out `resume`.
pub fn resume(context: &Context, args: One) -> Result<(), Failure> {
    context.show::<TaskResume>(&args.into(), |output, task| say_state(output, &task))
}

fn say_state(output: &Output, task: &Task) -> io::Result<()> {
    output.answer(&format!("{} {}", task.id, task.state))
}

fn particulars(task: &Task) -> Vec<(&'static str, String)> {
    let usage = &task.usage;
    let mut lines = vec![
        ("task", task.id.to_string()),
        ("session", task.session.to_string()),
        ("origin", task.origin.to_string()),
        ("state", task.state.to_string()),
        ("reason", or_dash(task.reason)),
        ("text", task.content.clone()),
        ("created", task.created_at.to_string()),
        ("started", or_dash(task.started_at)),
        ("finished", or_dash(task.finished_at)),
        ("turns", task.turns.to_string()),
        ("tokens", format!("{} in, {} out", usage.input_tokens, usage.output_tokens)),
    ];
    lines.extend(usage.cost.map(|cost| ("cost", cost.to_string())));
    lines.extend(task.error.as_ref().map(|error| ("error", format!("{}: {}", error.kind, error.message))));
    lines.extend(task.result.as_ref().map(|result| ("result", result.clone())));
    lines
}

impl From<One> for TaskParams {
    fn from(one: One) -> Self {
        Self { task: one.task }
    }
}
