//! What follow-ups look like: as rows, one by one, and what they wait for.

use jiff::tz::TimeZone;
use nano_protocol::followup::{Followup, Last, On, Trigger};
use nano_protocol::time::Timestamp;

use crate::commands::or_dash;

/// Returns the lines that tell what will make it fire.
pub fn outlook(it: &Followup) -> Vec<String> {
    let On { task, event, file, matches } = it.trigger.on.clone().unwrap_or_default();
    let matches = matches.map(|matches| format!(" with {}", plain(&matches))).unwrap_or_default();
    let waits = task
        .map(|task| format!("the end of task {task}"))
        .or_else(|| event.map(|event| format!("events {event}{matches}")))
        .or_else(|| file.map(|file| format!("files below the workspace that fit {file}")))
        .or_else(|| it.trigger.external.map(|_| format!("nanoctl followup trigger {}", it.id)));
    let waits = waits.map(|what| format!("waits for {what}"));
    waits.into_iter().chain(it.next.iter().map(|at| format!("next {at}  {}", spoken(*at, it.tz.as_deref())))).collect()
}

/// Returns a trigger as the wire has it: people know the words, and none is left out.
pub fn when(trigger: &Trigger) -> String {
    plain(trigger)
}

/// Returns the cells of a list that no terminal limits.
pub fn row(it: &Followup) -> Vec<String> {
    let last = it.last.as_ref().map(|last| format!("{}:{}", last.state, last.slot));
    let mut cells = brief(it);
    let more = [or_dash(it.tz.as_ref()), or_dash(last), it.missed.to_string()];
    // What may hold spaces stands behind what does not.
    cells.splice(3..3, more);
    cells.extend([when(&it.trigger), it.session.to_string(), or_dash(it.reason.as_ref())]);
    cells
}

/// Returns the cells of a list for people.
pub fn brief(it: &Followup) -> Vec<String> {
    let text = it.name.as_ref().map_or_else(|| it.content.clone(), |name| format!("{name}: {}", it.content));
    vec![it.id.to_string(), it.state.to_string(), or_dash(it.next.first()), text]
}

/// Returns what stands below a row for people.
pub fn below(it: &Followup) -> String {
    let zone = it.tz.as_ref().map(|zone| format!(" {zone}")).unwrap_or_default();
    let last = it.last.as_ref().map(|last| format!(", last {} {}", last.state, spoken(last.slot, it.tz.as_deref())));
    let reason = it.reason.as_ref().map(|reason| format!(", {reason}"));
    let (last, reason) = (last.unwrap_or_default(), reason.unwrap_or_default());
    format!("{}{zone}{last}, {} missed{reason}", when(&it.trigger), it.missed)
}

/// Returns all that is known of one.
pub fn particulars(it: &Followup) -> Vec<(&'static str, String)> {
    let last = it.last.as_ref().map(|last| {
        let task = last.task.as_ref().map_or(String::new(), |task| format!(" {task}"));
        format!("{} {}{task}", last.slot, last.state)
    });
    let lines = vec![
        ("followup", it.id.to_string()),
        ("session", it.session.to_string()),
        ("name", or_dash(it.name.as_ref())),
        ("state", it.state.to_string()),
        ("reason", or_dash(it.reason.as_ref())),
        ("when", when(&it.trigger)),
        ("zone", or_dash(it.tz.as_ref())),
        ("text", it.content.clone()),
        ("last", or_dash(last)),
        ("runs", it.runs.to_string()),
        ("missed", format!("{} ({}, grace {})", it.missed, it.missed_policy, span(it.grace_ms))),
        ("overlap", it.overlap.to_string()),
        ("max runs", or_dash(it.max_runs)),
        ("until", or_dash(it.until.as_ref())),
        ("jitter", or_dash(it.jitter_ms.map(span))),
    ];
    let times = it.next.iter().map(|at| ("next", format!("{at}  {}", spoken(*at, it.tz.as_deref()))));
    lines.into_iter().filter(|(name, value)| !(OPTIONAL.contains(name) && value == "-")).chain(times).collect()
}

/// What is not shown where there is none.
const OPTIONAL: [&str; 4] = ["reason", "max runs", "until", "jitter"];

/// Returns the cells of a run.
pub fn run(run: &Last) -> Vec<String> {
    vec![run.slot.to_string(), run.state.to_string(), or_dash(run.task.as_ref()), spoken(run.slot, None)]
}

/// Returns a time as a clock in `zone` shows it, and as the one here does where that differs.
pub fn spoken(at: Timestamp, zone: Option<&str>) -> String {
    let here = TimeZone::system();
    let theirs = zone.and_then(|zone| TimeZone::get(zone).ok()).unwrap_or_else(|| here.clone());
    let Ok(at) = jiff::Timestamp::from_millisecond(at.0) else { return "-".into() };
    let (theirs, here) = (at.to_zoned(theirs), at.to_zoned(here));
    let clock = |at: &jiff::Zoned| at.strftime("%Y-%m-%d %H:%M:%S %Z").to_string();
    // A clock here that shows UTC has been shown beside it.
    let known = [theirs.offset(), jiff::tz::Offset::UTC].contains(&here.offset());
    if known { clock(&theirs) } else { format!("{}  {}", clock(&theirs), clock(&here)) }
}

fn span(ms: u64) -> String {
    if ms.is_multiple_of(1000) { format!("{} s", ms / 1000) } else { format!("{ms} ms") }
}

fn plain(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default().replace('"', "")
}
