//! `followup add|list|show|runs|trigger|pause|resume|cancel|next`: messages that become tasks later.

mod when;
mod words;

use std::time::Duration;

use clap::Subcommand;
use nano_protocol::followup::{
    FireParams, Followup, FollowupListParams, FollowupParams, FollowupState, Missed, NextParams, Overlap, RunsParams,
    ScheduleParams, Trigger,
};
use nano_protocol::id::SessionRef;
use nano_protocol::method::{
    FollowupCancel, FollowupGet, FollowupList, FollowupNext, FollowupPause, FollowupResume, FollowupRuns,
    FollowupSchedule, FollowupTrigger, Method,
};
use nano_protocol::time::Timestamp;

use crate::client::decode;
use crate::commands::approvals::warn_of_questions;
use crate::commands::page;
use crate::context::{Context, Start};
use crate::duration::{self, millis};
use crate::failure::Failure;
use crate::link::Link;
use crate::output::Output;
use crate::table::Column::{Extra, Text, Whole};
use crate::table::{fields, table, table_with_lines};
use crate::text;
use when::{Times, When};

/// The columns of a list that no person looks at.
const PIPED: [&str; 10] = ["ID", "STATE", "NEXT", "ZONE", "LAST", "MISSED", "TEXT", "WHEN", "SESSION", "REASON"];

/// What to do with follow-ups.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Schedule one, print its id
    #[command(after_help = "Examples:
  nanoctl followup add web \"Is it still up?\" --in 90s
  nanoctl followup add web \"Write the report\" --at 2027-01-31T09:00 --tz Europe/Oslo
  nanoctl followup add web \"Look at the mail\" --cron \"0 9 * * 1-5\" --tz Europe/Oslo --until 2027-12-31T00:00:00Z
  nanoctl followup add web \"Say why it failed\" --on task.finished --match session=build --match task.state=failed
  nanoctl followup add web \"Sort what has come\" --file \"inbox/*.csv\" --overlap queue
  nanoctl followup add web \"Deploy what was pushed\" --external   # fires by nanoctl followup trigger

Durations are 250ms, 90s, 10m, 1h30m or 2d. Times are RFC 3339 (2027-01-31T08:00:00Z) or, without an offset, a clock
time of --tz.")]
    Add(Box<Add>),
    /// List them, newest first
    List(List),
    /// Show one
    Show(One),
    /// What became of its slots, newest first
    Runs(RunsOf),
    /// Fire one now, print the task's id
    #[command(after_help = "Examples:
  nanoctl followup trigger $id
  curl -s https://example.org/report | nanoctl followup trigger $id
  nanoctl followup trigger $id \"Deploy $commit\" --idempotency-key \"$commit\"

Without a TEXT, and with nothing piped in, the follow-up's own is used.")]
    Trigger(Fire),
    /// Let one fire no more until it is resumed
    Pause(One),
    /// Let a paused one fire again
    Resume(One),
    /// Cancel one
    Cancel(One),
    /// Compute when it would fire, store nothing
    #[command(after_help = "Examples:
  nanoctl followup next --cron \"30 2 * * *\" --tz Europe/Oslo --from 2027-03-27T00:00 --count 5
  nanoctl followup next --every 36h --from 2027-01-01T00:00:00Z")]
    Next(Next),
}

/// What to say, and when.
#[derive(Debug, clap::Args)]
pub struct Add {
    /// The session: id, prefix of the id or name
    #[arg(value_name = "SESSION")]
    session: String,
    /// What to do then; - reads stdin, so does none with a piped stdin
    #[arg(value_name = "TEXT")]
    text: Option<String>,
    #[command(flatten)]
    when: When,
    /// The IANA zone of local times and cron fields
    #[arg(long, value_name = "ZONE")]
    tz: Option<String>,
    /// A name for people
    #[arg(long, value_name = "N")]
    name: Option<String>,
    /// What becomes of slots that passed: skip, latest or all
    #[arg(long, value_name = "HOW")]
    missed: Option<Missed>,
    /// While its task before still runs: skip, queue or replace
    #[arg(long, value_name = "HOW")]
    overlap: Option<Overlap>,
    /// Not after this instant, given as for --at
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// How often it fires at most
    #[arg(long, value_name = "N")]
    max_runs: Option<u64>,
    /// A stable delay of up to so long
    #[arg(long, value_name = "DUR", value_parser = duration::parse)]
    jitter: Option<Duration>,
    /// The same key and options answer the same follow-up
    #[arg(long, value_name = "K")]
    idempotency_key: Option<String>,
}

/// One follow-up.
#[derive(Debug, clap::Args)]
pub struct One {
    /// Its id
    #[arg(value_name = "ID")]
    followup: String,
}

/// One follow-up, and which of its slots.
#[derive(Debug, clap::Args)]
pub struct RunsOf {
    /// Its id
    #[arg(value_name = "ID")]
    followup: String,
    /// At most so many; 200 unless told
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Those after this page
    #[arg(long, value_name = "NEXT")]
    after: Option<String>,
}

/// One follow-up, and what to do this time.
#[derive(Debug, clap::Args)]
pub struct Fire {
    /// Its id
    #[arg(value_name = "ID")]
    followup: String,
    /// What to do this time; - reads stdin, so does none with a piped stdin
    #[arg(value_name = "TEXT")]
    text: Option<String>,
    /// The same key and TEXT answer the same task
    #[arg(long, value_name = "K")]
    idempotency_key: Option<String>,
}

/// Which follow-ups.
#[derive(Debug, clap::Args)]
pub struct List {
    /// Only those of this session
    #[arg(short, long, value_name = "SESSION")]
    session: Option<String>,
    /// Only those in this state: active, paused, done, cancelled or failed
    #[arg(long, value_name = "S")]
    state: Option<FollowupState>,
    /// At most so many; 200 unless told
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Those after this page
    #[arg(long, value_name = "NEXT")]
    after: Option<String>,
}

/// What to compute.
#[derive(Debug, clap::Args)]
pub struct Next {
    #[command(flatten)]
    times: Times,
    /// The IANA zone of local times and cron fields
    #[arg(long, value_name = "ZONE")]
    tz: Option<String>,
    /// From this instant on, given as for --at; now unless told
    #[arg(long, value_name = "T")]
    from: Option<String>,
    /// How many; 3 unless told
    #[arg(long, value_name = "N")]
    count: Option<usize>,
}

/// Carries out `followup`.
pub fn run(context: &Context, verb: Verb) -> Result<(), Failure> {
    match verb {
        Verb::Add(args) => add(context, *args),
        Verb::List(args) => list(context, args),
        Verb::Show(one) => {
            context.show::<FollowupGet>(&one.into(), |output, it| fields(output, &words::particulars(&it)))
        }
        Verb::Runs(args) => runs(context, args),
        Verb::Trigger(args) => trigger(context, args),
        Verb::Pause(one) => change::<FollowupPause>(context, one),
        Verb::Resume(one) => change::<FollowupResume>(context, one),
        Verb::Cancel(one) => change::<FollowupCancel>(context, one),
        Verb::Next(args) => next(context, args),
    }
}

fn add(context: &Context, args: Add) -> Result<(), Failure> {
    let session = SessionRef(args.session.clone());
    let params = ScheduleParams {
        session: SessionRef(args.session),
        trigger: args.when.trigger()?,
        content: text::resolve(args.text.as_deref(), &context.output)?,
        name: args.name,
        tz: args.tz,
        missed: args.missed,
        overlap: args.overlap,
        max_runs: args.max_runs,
        until: args.until,
        jitter_ms: args.jitter.map(millis),
        idempotency_key: Some(args.idempotency_key.unwrap_or_else(fresh_key)),
        ..ScheduleParams::default()
    };
    once::<FollowupSchedule>(context, &params, |output, it| {
        output.answer(it.id.as_str())?;
        for line in words::outlook(&it) {
            output.note(&line);
        }
        Ok(())
    })?;
    // It is scheduled, whatever can be said about its session.
    drop(warn_of_questions(context, session));
    Ok(())
}

fn trigger(context: &Context, args: Fire) -> Result<(), Failure> {
    let content = text::resolve_optional(args.text.as_deref(), &context.output)?;
    let idempotency_key = Some(args.idempotency_key.unwrap_or_else(fresh_key));
    let params = FireParams { followup: args.followup, content, idempotency_key };
    once::<FollowupTrigger>(context, &params, |output, task| output.answer(task.id.as_str()))
}

fn fresh_key() -> String {
    ulid::Ulid::generate().to_string()
}

/// Calls a method whose parameters have a key, again where the connection breaks, and shows its result.
fn once<M: Method>(
    context: &Context,
    params: &M::Params,
    show: impl FnOnce(&Output, M::Result) -> std::io::Result<()>,
) -> Result<(), Failure> {
    let raw = Link::new(context, Start::Never)?.persist(|client| client.call_raw(M::NAME, params))?;
    if context.output.json {
        return Ok(context.output.answer(raw.get())?);
    }
    Ok(show(&context.output, decode(&raw)?)?)
}

fn change<M: Method<Params = FollowupParams, Result = Followup>>(context: &Context, one: One) -> Result<(), Failure> {
    context.show::<M>(&one.into(), |output, it| output.answer(&format!("{} {}", it.id, it.state)))
}

fn list(context: &Context, args: List) -> Result<(), Failure> {
    let List { session, state, limit, after } = args;
    let params = FollowupListParams { session: session.map(SessionRef), state, limit, after };
    context.show::<FollowupList>(&params, |output, list| {
        let all = &list.followups;
        if all.is_empty() || !output.terminal {
            let rows: Vec<_> = all.iter().map(words::row).collect();
            let none = "there is no such follow-up: nanoctl followup add makes one";
            return page(output, &PIPED.map(Whole), &rows, list.next.as_ref(), none);
        }
        let (rows, below): (Vec<_>, Vec<_>) = all.iter().map(|it| (words::brief(it), vec![words::below(it)])).unzip();
        table_with_lines(output, &[Whole("ID"), Whole("STATE"), Whole("NEXT"), Text("TEXT")], &rows, &below)?;
        if let Some(next) = &list.next {
            output.note(&format!("there are more: --after {next}"));
        }
        Ok(())
    })
}

fn runs(context: &Context, args: RunsOf) -> Result<(), Failure> {
    let RunsOf { followup, limit, after } = args;
    context.show::<FollowupRuns>(&RunsParams { followup, limit, after }, |output, list| {
        let rows: Vec<_> = list.runs.iter().map(words::run).collect();
        let head = [Whole("SLOT"), Whole("STATE"), Whole("TASK"), Extra("TIME")];
        page(output, &head, &rows, list.next.as_ref(), "no slot of it has been due yet")
    })
}

fn next(context: &Context, args: Next) -> Result<(), Failure> {
    let zone = args.tz.clone();
    let trigger = Trigger { tz: args.tz, ..args.times.trigger()? };
    let params = NextParams { trigger, from: args.from, count: args.count };
    context.show::<FollowupNext>(&params, |output, times| {
        let row = |at: &Timestamp| vec![at.to_string(), words::spoken(*at, zone.as_deref())];
        table(output, &[Whole("UTC"), Whole("TIME")], &times.next.iter().map(row).collect::<Vec<_>>())
    })
}

impl From<One> for FollowupParams {
    fn from(one: One) -> Self {
        Self { followup: one.followup }
    }
}
