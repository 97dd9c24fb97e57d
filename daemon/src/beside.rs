//! What goes on while requests are answered.

use std::sync::Arc;

use tokio::sync::mpsc;

use crate::booters::Booter;
use crate::session;
use crate::session::deps::Deps;
use crate::session::event_log;
use crate::skills::library::Changed;

/// Starts it: taking up changed skills, forgetting old events.
pub fn attend(deps: &Arc<Deps>, changed: mpsc::Receiver<Changed>) {
    let shutdown = &deps.shutdown;
    let told = deps.clone();
    tokio::task::spawn_blocking(move || tell_of_booters(&told.booters));
    shutdown.spawn("skills", session::skills::keep_watch(deps.clone()));
    shutdown.spawn("deleted", session::deletion::remove_folders(deps.clone()));
    shutdown.spawn("computers", session::computer::keep_giving_back(deps.clone()));
    shutdown.spawn("skills-changed", session::skills::announce(deps.clone(), changed));
    let (store, clock, live) = (deps.store.clone(), deps.clock.clone(), deps.live.clone());
    shutdown.spawn("keep-events", event_log::keep_short(store, clock, live, shutdown.stopping().clone()));
}

/// Logs what people should know of each booter that is used here, such as how far it confines commands.
fn tell_of_booters(booters: &[Arc<dyn Booter>]) {
    for booter in booters.iter().filter(|booter| booter.missing().is_none()) {
        if let Some(note) = booter.note() {
            tracing::info!(booter = booter.kind(), "{note}");
        }
    }
}
