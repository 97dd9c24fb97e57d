//! `shutdown`: stops the daemon in order and waits until it is gone.

use std::os::fd::OwnedFd;
use std::time::Duration;

use nano_protocol::daemon::{Nothing, ShutdownParams};
use nano_protocol::method::{DaemonShutdown, DaemonStatus, Method as _};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::client::Client;
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
    let process = process(&mut client);
    let raw = client.call_raw(DaemonShutdown::NAME, &ShutdownParams { grace_ms: args.grace.map(millis) })?;
    if context.output.json {
        context.output.answer(raw.get())?;
    }
    client.until_closed()?;
    // Its connections end before it: until then its state is held.
    process.map_or(Ok(()), |process| context.deadline.until_ready(&process))
}

/// Returns what tells of the daemon's end; none where it does not say who it is, or lies out of sight.
fn process(client: &mut Client) -> Option<OwnedFd> {
    let pid = client.call::<DaemonStatus>(&Nothing {}).ok()?.pid;
    pidfd_open(Pid::from_raw(i32::try_from(pid).ok()?)?, PidfdFlags::empty()).ok()
}
