//! What goes on while requests are answered.

use std::sync::Arc;

use tokio::sync::mpsc;

use crate::session::deps::Deps;
use crate::session::event_log;
use crate::skills::library::Changed;
use crate::{booters, session};

/// Starts it: taking up changed skills, forgetting old events.
pub fn attend(deps: &Arc<Deps>, changed: mpsc::Receiver<Changed>) {
    let shutdown = &deps.shutdown;
    let told = deps.clone();
    tokio::task::spawn_blocking(move || booters::tell(&told.booters));
    let few = deps.clone();
    shutdown.spawn("mcp", async move { few.mcp.keep_few(few.shutdown.stopping()).await });
    shutdown.spawn("skills", session::skills::keep_watch(deps.clone()));
    shutdown.spawn("deleted", session::deletion::remove_folders(deps.clone()));
    shutdown.spawn("computers", session::computer::keep_giving_back(deps.clone()));
    shutdown.spawn("skills-changed", session::skills::announce(deps.clone(), changed));
    let (store, clock, live) = (deps.store.clone(), deps.clock.clone(), deps.live.clone());
    shutdown.spawn("keep-events", event_log::keep_short(store, clock, live, shutdown.stopping().clone()));
}
