//! `status`: how the daemon is.

use std::collections::BTreeMap;

use nano_protocol::daemon::{Nothing, Status};
use nano_protocol::method::DaemonStatus;

use crate::commands::or_dash;
use crate::context::Context;
use crate::failure::Failure;
use crate::table::fields;

/// Carries out `status`.
pub fn run(context: &Context) -> Result<(), Failure> {
    context.show::<DaemonStatus>(&Nothing {}, |output, status| fields(output, &particulars(&status)))
}

fn particulars(it: &Status) -> Vec<(&'static str, String)> {
    vec![
        ("nanod", format!("{} (pid {})", it.version, it.pid)),
        ("started", format!("{}, {} s ago", it.started_at, it.uptime_ms / 1000)),
        ("sessions", counts(&it.sessions)),
        ("tasks", counts(&it.tasks)),
        ("followups", format!("{} active, next {}", it.followups.active, or_dash(it.followups.next))),
        ("store", format!("{} ({} KiB)", it.store.path, it.store.bytes / 1024)),
        ("memory", format!("{} KiB", it.rss_bytes / 1024)),
    ]
}

fn counts(counts: &BTreeMap<String, u64>) -> String {
    let all: Vec<_> = counts.iter().map(|(state, count)| format!("{count} {state}")).collect();
    if all.is_empty() { "none".into() } else { all.join(", ") }
}
