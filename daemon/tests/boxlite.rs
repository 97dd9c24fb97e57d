//! The booter `boxlite` against a stand-in for its server, in which programs really run.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "boxlite/booting.rs"]
mod booting;
#[path = "boxlite/command.rs"]
mod command;
#[path = "boxlite/kit.rs"]
mod kit;
#[path = "boxlite/running.rs"]
mod running;
mod support;
#[path = "boxlite/tools.rs"]
mod tools;
