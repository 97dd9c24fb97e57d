//! What commands cannot do at a level, with all that this machine has for it and without mount namespaces.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod support;

#[path = "confine/calls.rs"]
mod calls;
#[path = "confine/hidden.rs"]
mod hidden;
#[path = "confine/levels.rs"]
mod levels;
#[path = "confine/moved.rs"]
mod moved;
#[path = "confine/protected.rs"]
mod protected;
#[path = "confine/spellings.rs"]
mod spellings;
#[path = "confine/uid.rs"]
mod uid;

use nano_protocol::session::Level;
use nanod::booters::local::LocalBooter;
use nanod::sandbox::confine::force::Force;
use nanod::sandbox::reach::Reach;
use nanod::tools::ToolOutcome;
use serde_json::json;
use support::Fixture;

/// Returns what this machine can do.
fn force() -> Force {
    let force = Force::of_this_machine(env!("CARGO_BIN_EXE_nanod").as_ref());
    assert!(force.landlock.is_some(), "these tests need a kernel with Landlock");
    force
}

/// Returns the booter as it is here, and as it is where no mount namespace can be had.
fn both() -> Vec<(LocalBooter, bool)> {
    let force = force();
    let without = (support::local().with_force(Force { mounts: false, ..force }), false);
    if force.mounts {
        return vec![(support::local(), true), without];
    }
    eprintln!("SKIPPED in part: no mount namespace can be had here");
    vec![without]
}

/// Returns the booter as it is here, where it can have mount namespaces.
fn with_mounts() -> Option<LocalBooter> {
    both().into_iter().find(|(_, mounts)| *mounts).map(|(booter, _)| booter)
}

async fn at(booter: LocalBooter, level: Level) -> Fixture {
    Fixture::within(booter, |reach| Reach { level, ..reach }).await
}

/// Runs a command; returns whether it succeeded, and what is told of it.
async fn run(fixture: &Fixture, command: &str) -> (bool, String) {
    match fixture.call("exec", json!({"command": command})).await {
        ToolOutcome::Done(text) => (true, text),
        ToolOutcome::Failed(text) => (false, text),
        other => panic!("{command}: {other:?}"),
    }
}
