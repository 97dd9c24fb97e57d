//! The real program against a scripted daemon: words, exit codes, and what it asks for.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod agents;
mod autostart;
mod errors;
mod fake;
mod followups;
mod lists;
mod run;
mod shell;
mod skill_edit;
mod skills;
mod terminal;
mod text;
mod validate;
mod wait;
mod wire;
