//! Background processes in words.

use std::time::Duration;

use nano_protocol::process::{Process, ProcessState};
use nano_protocol::time::Timestamp;

use super::log::Page;
use crate::sandbox::text::readable;
use crate::store::record::process::ProcessRecord;

/// How long what was told to end is waited for before its helper is.
pub(super) const PATIENCE: Duration = Duration::from_secs(6);
/// So much of a command is told.
const COMMAND: usize = 200;
/// So much of the end of its output is told with its end.
const TAIL: usize = 2 * 1024;

/// Says how one is.
pub(super) fn state(process: &Process, now: Timestamp) -> String {
    let how = match (process.status, &process.signal) {
        (Some(status), _) => format!("exit status {status}"),
        (None, Some(signal)) => format!("ended by {signal}"),
        (None, None) => "ended".into(),
    };
    let how = std::iter::once(how).chain(process.limits.iter().cloned()).collect::<Vec<_>>().join("; ");
    let seconds = |until: Timestamp| {
        let millis = u64::try_from(until.0.saturating_sub(process.started_at.0)).unwrap_or_default();
        // To the millisecond, as it was measured.
        format!("{}.{:03}", millis / 1000, millis % 1000).trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    match process.state {
        ProcessState::Running => format!("running for {} s", seconds(now)),
        ProcessState::Exited => format!("{how} after {} s", seconds(process.ended_at.unwrap_or(now))),
        ProcessState::Killed => format!("killed: {how}"),
        ProcessState::Lost => "lost: the daemon ended while it ran".into(),
    }
}

/// Says in one line which one it is and how.
pub(super) fn line(process: &Process, now: Timestamp) -> String {
    format!("{} [{}] {}", process.id, state(process, now), command(process))
}

fn command(process: &Process) -> String {
    let line = readable(process.command.as_bytes()).replace('\n', " ");
    let end = line.floor_char_boundary(COMMAND);
    if end < line.len() { format!("{} …", &line[..end]) } else { line }
}

/// Says of one that has ended how it did.
pub(super) fn notice(record: &ProcessRecord) -> String {
    let process = &record.process;
    let how = state(process, process.ended_at.unwrap_or(process.started_at));
    let said = format!("Background process {} has ended ({how}). Its command was: {}", process.id, command(process));
    let tail = readable(record.tail.as_bytes());
    let tail = &tail[tail.ceil_char_boundary(tail.len().saturating_sub(TAIL))..];
    let tail = tail.trim_matches('\n');
    match process.state {
        ProcessState::Lost => format!("{said}\nWhat it had printed is in {}", process.output),
        _ if tail.is_empty() => format!("{said}\nIt printed nothing."),
        _ => format!("{said}\nThe end of its output, all of which is in {}:\n\n{tail}", process.output),
    }
}

/// Says which piece of the output this is.
pub(super) fn piece(page: &Page, state: &str) -> String {
    let Page { text, from, next, bytes } = page;
    let text = if text.trim().is_empty() { "(no output)" } else { text.trim_end_matches('\n') };
    let more = if next < bytes { format!("; offset {next} goes on") } else { String::new() };
    format!("{text}\n[bytes {from} to {next} of {bytes}{more}; {state}]")
}

/// Says that one was begun.
pub(super) fn begun(process: &Process, page: &Page) -> String {
    let text = if page.text.trim().is_empty() { "(no output yet)" } else { page.text.trim_end_matches('\n') };
    let Process { id, output, .. } = process;
    format!(
        "{text}\n[running in the background as {id}; its output goes to {output}; it goes on when the task ends, and its \
         end comes as a message]"
    )
}
