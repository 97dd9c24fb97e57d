//! `followup add|list|show|cancel|next`: messages that become tasks later.

use std::time::Duration;

use clap::Subcommand;
use nano_protocol::followup::{
    Followup, FollowupListParams, FollowupParams, FollowupState, Missed, NextParams, On, Overlap, ScheduleParams,
    Trigger,
};
use nano_protocol::id::SessionRef;
use nano_protocol::method::{FollowupCancel, FollowupGet, FollowupList, FollowupNext, FollowupSchedule};
use nano_protocol::time::Timestamp;

use crate::commands::{mention_rest, or_dash};
use crate::context::Context;
use crate::duration::{self, millis};
use crate::failure::Failure;
use crate::table::{fields, table};
use crate::text;

/// What to do with follow-ups.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Schedule one, print its id
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
    /// While its task before still runs: skip, queue or replace
    #[arg(long, value_name = "HOW")]
    overlap: Option<Overlap>,
    /// Not after this instant
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// How often it fires at most
    #[arg(long, value_name = "N")]
    max_runs: Option<u64>,
    /// A stable delay of up to so long
    #[arg(long, value_name = "DUR", value_parser = duration::parse)]
    jitter: Option<Duration>,
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct When {
    /// Once, after so long
    #[arg(long = "in", value_name = "DUR", value_parser = duration::parse)]
    after_time: Option<Duration>,
    /// Once, at this instant
    #[arg(long, value_name = "TIME")]
    at: Option<String>,
    /// Again and again, every so long
    #[arg(long, value_name = "DUR", value_parser = duration::parse)]
    every: Option<Duration>,
    /// By a cron expression of 5 or 6 fields
    #[arg(long, value_name = "EXPR")]
    cron: Option<String>,
    /// When this task has ended
    #[arg(long, value_name = "TASK")]
    after: Option<String>,
    /// When an event of this type comes
    #[arg(long, value_name = "EVENT")]
    on: Option<String>,
    /// When a file that fits appears below the workspace
    #[arg(long, value_name = "GLOB")]
    file: Option<String>,
    /// Only when it is triggered from outside
    #[arg(long)]
    external: bool,
}

impl When {
    fn trigger(self) -> Trigger {
        let on = On { task: self.after, event: self.on, file: self.file, ..On::default() };
        Trigger {
            after_ms: self.after_time.map(millis),
            at: self.at,
            every_ms: self.every.map(millis),
            cron: self.cron,
            on: (on != On::default()).then_some(on),
            external: self.external.then_some(true),
            ..Trigger::default()
        }
    }
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
    /// Only those in this state
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
    /// From this instant on; now unless told
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
            let trigger = Trigger { tz: args.tz, ..args.when.trigger() };
            let params = NextParams { trigger, from: args.from, count: args.count };
            context.show::<FollowupNext>(&params, |output, times| {
                let row = |at: &Timestamp| vec![at.to_string(), local(*at)];
                table(output, &["UTC", "LOCAL"], &times.next.iter().map(row).collect::<Vec<_>>())
            })
        }
    }
}

fn add(context: &Context, args: Add) -> Result<(), Failure> {
    let params = ScheduleParams {
        session: SessionRef(args.session),
        content: text::resolve(args.text.as_deref(), &context.output)?,
        trigger: args.when.trigger(),
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
        for at in &it.next {
            output.note(&format!("next {at}  {}", local(*at)));
        }
        Ok(())
    })
}

fn list(context: &Context, args: List) -> Result<(), Failure> {
    let List { session, state, limit, after } = args;
    let params = FollowupListParams { session: session.map(SessionRef), state, limit, after };
    context.show::<FollowupList>(&params, |output, list| {
        let row = |it: &Followup| {
            let next = or_dash(it.next.first());
            vec![
                it.id.to_string(),
                it.state.to_string(),
                next,
                when(&it.trigger),
                it.session.to_string(),
                it.content.clone(),
            ]
        };
        let rows: Vec<_> = list.followups.iter().map(row).collect();
        mention_rest(output, list.next.as_ref());
        table(output, &["FOLLOWUP", "STATE", "NEXT", "WHEN", "SESSION", "TEXT"], &rows)
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
    lines.extend(it.next.iter().map(|at| ("next", format!("{at}  {}", local(*at)))));
    lines
}

/// Returns a trigger as the wire has it: people know the words, and none is left out.
fn when(trigger: &Trigger) -> String {
    serde_json::to_string(trigger).unwrap_or_default().replace('"', "")
}

fn local(at: Timestamp) -> String {
    let at = jiff::Timestamp::from_millisecond(at.0).map(|at| at.to_zoned(jiff::tz::TimeZone::system()));
    at.map_or_else(|_| "-".into(), |at| at.strftime("%Y-%m-%d %H:%M:%S %Z").to_string())
}

impl From<One> for FollowupParams {
    fn from(one: One) -> Self {
        Self { followup: one.followup }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::When;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        when: When,
    }

    #[test]
    fn every_option_has_its_trigger() {
        for (args, trigger) in [
            (&["--in", "1h30m"][..], r#"{"after_ms":5400000}"#),
            (&["--at", "2027-01-31T08:00:00"], r#"{"at":"2027-01-31T08:00:00"}"#),
            (&["--every", "90s"], r#"{"every_ms":90000}"#),
            (&["--cron", "0 9 * * 1-5"], r#"{"cron":"0 9 * * 1-5"}"#),
            (&["--after", "tsk_1"], r#"{"on":{"task":"tsk_1"}}"#),
            (&["--on", "task.finished"], r#"{"on":{"event":"task.finished"}}"#),
            (&["--file", "*.csv"], r#"{"on":{"file":"*.csv"}}"#),
            (&["--external"], r#"{"external":true}"#),
        ] {
            let line = Line::try_parse_from(["x"].iter().chain(args));
            let text = line.map(|line| serde_json::to_string(&line.when.trigger()).unwrap_or_default());
            assert_eq!(text.unwrap_or_default(), trigger, "{args:?}");
        }
    }
}
