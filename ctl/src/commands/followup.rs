//! `followup add|list|show|cancel|next`: messages that become tasks later.

mod when;

use std::time::Duration;

use clap::Subcommand;
use jiff::tz::TimeZone;
use nano_protocol::followup::{
    Followup, FollowupListParams, FollowupParams, FollowupState, Missed, NextParams, Overlap, ScheduleParams, Trigger,
};
use nano_protocol::id::SessionRef;
use nano_protocol::method::{FollowupCancel, FollowupGet, FollowupList, FollowupNext, FollowupSchedule};
use nano_protocol::time::Timestamp;

use crate::commands::{or_dash, page};
use crate::context::Context;
use crate::duration::{self, millis};
use crate::failure::Failure;
use crate::table::Column::{Extra, Text, Whole};
use crate::table::{fields, table};
use crate::text;
use when::When;

/// What to do with follow-ups.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Schedule one, print its id
    #[command(after_help = "Examples:
  nanoctl followup add web \"Is it still up?\" --in 90s
  nanoctl followup add web \"Write the report\" --at 2027-01-31T09:00 --tz Europe/Oslo
  nanoctl followup add web \"Look at the mail\" --cron \"0 9 * * 1-5\" --tz Europe/Oslo --until 2027-12-31T00:00:00Z

Durations are 250ms, 90s, 10m, 1h30m or 2d. Times are RFC 3339 (2027-01-31T08:00:00Z) or, without an offset, a clock
time of --tz.")]
    Add(Add),
    /// List them, newest first
    List(List),
    /// Show one
    Show(One),
    /// Cancel one
    Cancel(One),
    /// Compute when it would fire, store nothing
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
    /// While its task before still runs: skip or queue
    #[arg(long, value_name = "HOW")]
    overlap: Option<Overlap>,
    /// Not after this instant, given as for --at
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// How often it fires at most
    #[arg(long, value_name = "N")]
    max_runs: Option<u64>,
    /// A stable delay of up to so long
    #[arg(long, hide = true, value_name = "DUR", value_parser = duration::parse)]
    jitter: Option<Duration>,
}

/// One follow-up.
#[derive(Debug, clap::Args)]
pub struct One {
    /// Its id
    #[arg(value_name = "ID")]
    followup: String,
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
    when: When,
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
        Verb::Add(args) => add(context, args),
        Verb::List(args) => list(context, args),
        Verb::Show(one) => context.show::<FollowupGet>(&one.into(), |output, it| fields(output, &particulars(&it))),
        Verb::Cancel(one) => {
            context.show::<FollowupCancel>(&one.into(), |output, it| output.answer(&format!("{} {}", it.id, it.state)))
        }
        Verb::Next(args) => {
            let zone = args.tz.clone();
            let trigger = Trigger { tz: args.tz, ..args.when.trigger()? };
            let params = NextParams { trigger, from: args.from, count: args.count };
            context.show::<FollowupNext>(&params, |output, times| {
                let row = |at: &Timestamp| vec![at.to_string(), spoken(*at, zone.as_deref())];
                table(output, &[Whole("UTC"), Whole("TIME")], &times.next.iter().map(row).collect::<Vec<_>>())
            })
        }
    }
}

fn add(context: &Context, args: Add) -> Result<(), Failure> {
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
        ..ScheduleParams::default()
    };
    context.show::<FollowupSchedule>(&params, |output, it| {
        output.answer(it.id.as_str())?;
        for at in next(&it) {
            output.note(&format!("next {at}  {}", spoken(*at, it.tz.as_deref())));
        }
        Ok(())
    })
}

fn list(context: &Context, args: List) -> Result<(), Failure> {
    let List { session, state, limit, after } = args;
    let params = FollowupListParams { session: session.map(SessionRef), state, limit, after };
    context.show::<FollowupList>(&params, |output, list| {
        let row = |it: &Followup| {
            let text = it.name.as_ref().map_or_else(|| it.content.clone(), |name| format!("{name}: {}", it.content));
            let (id, state, next) = (it.id.to_string(), it.state.to_string(), or_dash(it.next.first()));
            vec![id, state, next, text, when(&it.trigger), it.session.to_string()]
        };
        let rows: Vec<_> = list.followups.iter().map(row).collect();
        let head = [Whole("ID"), Whole("STATE"), Whole("NEXT"), Text("TEXT"), Extra("WHEN"), Extra("SESSION")];
        page(output, &head, &rows, list.next.as_ref(), "there is no such follow-up: nanoctl followup add makes one")
    })
}

fn particulars(it: &Followup) -> Vec<(&'static str, String)> {
    let last = it.last.as_ref().map(|last| {
        let task = last.task.as_ref().map_or(String::new(), |task| format!(" {task}"));
        format!("{} {}{task}", last.slot, last.state)
    });
    let mut lines = vec![
        ("followup", it.id.to_string()),
        ("session", it.session.to_string()),
        ("name", or_dash(it.name.as_ref())),
        ("state", it.state.to_string()),
        ("when", when(&it.trigger)),
        ("zone", or_dash(it.tz.as_ref())),
        ("text", it.content.clone()),
        ("last", or_dash(last)),
        ("runs", it.runs.to_string()),
        ("missed", format!("{} ({})", it.missed, it.missed_policy)),
        ("overlap", it.overlap.to_string()),
    ];
    lines.extend(next(it).map(|at| ("next", format!("{at}  {}", spoken(*at, it.tz.as_deref())))));
    lines
}

/// Returns a trigger as the wire has it: people know the words, and none is left out.
fn when(trigger: &Trigger) -> String {
    serde_json::to_string(trigger).unwrap_or_default().replace('"', "")
}

/// Returns the slots that will fire: the daemon computes times, whatever number of runs is left.
fn next(it: &Followup) -> impl Iterator<Item = &Timestamp> {
    let left = it.max_runs.map_or(u64::MAX, |most| most.saturating_sub(it.runs));
    it.next.iter().take(usize::try_from(left).unwrap_or(usize::MAX))
}

/// Returns a time as a clock in `zone` shows it, and as the one here does where that differs.
fn spoken(at: Timestamp, zone: Option<&str>) -> String {
    let here = TimeZone::system();
    let theirs = zone.and_then(|zone| TimeZone::get(zone).ok()).unwrap_or_else(|| here.clone());
    let Ok(at) = jiff::Timestamp::from_millisecond(at.0) else { return "-".into() };
    let (theirs, here) = (at.to_zoned(theirs), at.to_zoned(here));
    let clock = |at: &jiff::Zoned| at.strftime("%Y-%m-%d %H:%M:%S %Z").to_string();
    // A clock here that shows UTC has been shown beside it.
    let known = [theirs.offset(), jiff::tz::Offset::UTC].contains(&here.offset());
    if known { clock(&theirs) } else { format!("{}  {}", clock(&theirs), clock(&here)) }
}

impl From<One> for FollowupParams {
    fn from(one: One) -> Self {
        Self { followup: one.followup }
    }
}
