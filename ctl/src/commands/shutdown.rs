//! `shutdown`: stops the daemon in order and waits until it is gone.

use std::time::Duration;

use nano_protocol::daemon::ShutdownParams;
use nano_protocol::method::{DaemonShutdown, Method as _};

use crate::context::{Context, Start};
use crate::duration::{self, millis};
use crate::failure::Failure;

/// How to stop.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// How long running calls may take to end
    #[arg(long, value_name = "DUR", value_parser = duration::parse)]
    grace: Option<Duration>,
}

/// Carries out `shutdown`.
pub fn run(context: &Context, args: &Args) -> Result<(), Failure> {
    let mut client = context.connect(Start::Never)?;
    let raw = client.call_raw(DaemonShutdown::NAME, &ShutdownParams { grace_ms: args.grace.map(millis) })?;
    if context.output.json {
        context.output.answer(raw.get())?;
    }
    client.until_closed()
}
