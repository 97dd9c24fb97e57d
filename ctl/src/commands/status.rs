//! `status`: how the daemon is.

use std::collections::BTreeMap;

use nano_protocol::daemon::{Nothing, Status};
use nano_protocol::method::{ApprovalList, DaemonStatus, Method as _};

use crate::client::decode;
use crate::commands::approvals::pending;
use crate::commands::or_dash;
use crate::context::{Context, Start};
use crate::failure::Failure;
use crate::table::fields;

/// Carries out `status`.
pub fn run(context: &Context) -> Result<(), Failure> {
    let mut client = context.connect(Start::Never)?;
    let raw = client.call_raw(DaemonStatus::NAME, &Nothing {})?;
    if context.output.json {
        return Ok(context.output.answer(raw.get())?);
    }
    let waiting = client.call::<ApprovalList>(&pending())?.approvals.len();
    Ok(fields(&context.output, &particulars(&decode(&raw)?, waiting))?)
}

fn particulars(it: &Status, waiting: usize) -> Vec<(&'static str, String)> {
    let mut all = vec![
        ("nanod", format!("{} (pid {})", it.version, it.pid)),
        ("started", format!("{}, {} s ago", it.started_at, it.uptime_ms / 1000)),
        ("sessions", counts(&it.sessions)),
        ("tasks", counts(&it.tasks)),
        ("followups", format!("{} active, next {}", it.followups.active, or_dash(it.followups.next))),
        ("store", format!("{} ({} KiB)", it.store.path, it.store.bytes / 1024)),
        ("memory", format!("{} KiB", it.rss_bytes / 1024)),
    ];
    if waiting > 0 {
        all.push(("approvals", format!("{waiting} wait for you: nanoctl approvals")));
    }
    all
}

fn counts(counts: &BTreeMap<String, u64>) -> String {
    let all: Vec<_> = counts.iter().map(|(state, count)| format!("{count} {state}")).collect();
    if all.is_empty() { "none".into() } else { all.join(", ") }
}
