//! The booter `boxlite` against a stand-in for its server, in which programs really run.
#![expect(clippy::unwrap_used, clippy::panic, clippy::expect_used, reason = "tests")]

#[path = "boxlite/booting.rs"]
mod booting;
#[path = "../../tests/support/boxlite.rs"]
mod boxlite;
#[path = "boxlite/command.rs"]
mod command;
#[path = "boxlite/kit.rs"]
mod kit;
#[path = "../../tests/support/processes.rs"]
mod processes;
#[path = "boxlite/running.rs"]
mod running;
#[path = "../../tests/support/wait.rs"]
mod wait;
