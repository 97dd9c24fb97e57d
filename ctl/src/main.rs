//! `nanoctl`: drives `nanod` from the shell, from cron and by hand.
//!
//! One thread, no async runtime. A verb is one file below `commands`; `place` says where the daemon is, `start` starts
//! a personal one, `client` speaks to it, `link` keeps speaking to it over restarts, `output`, `table`,
//! `summary` and `render` show what it says, and `failure` is the only way to an error line and an exit code.

mod cli;
mod client;
mod commands;
mod context;
mod detach;
mod duration;
mod failure;
mod interrupts;
mod link;
mod output;
mod place;
mod render;
mod start;
mod summary;
mod table;
mod text;
mod visible;

use std::io::Write as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    match cli::parse(std::env::args_os()) {
        Ok(cli::Parsed::Verb { what, cli }) => {
            let verbose = cli.global.verbose;
            commands::dispatch(*cli).map_or_else(|failure| failure.report(&what, verbose), |()| ExitCode::SUCCESS)
        }
        Ok(cli::Parsed::Text(text)) => {
            let written = std::io::stdout().write_all(text.as_bytes());
            written.map_or_else(|error| failure::Failure::from(error).report("help", false), |()| ExitCode::SUCCESS)
        }
        Err(failure) => failure.report("usage", false),
    }
}
