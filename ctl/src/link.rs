//! A connection that outlives the daemon's restarts: what broke is tried again for a few seconds.
//!
//! Only requests that may be sent twice go through here: reads, subscriptions, and submissions with a key.

use std::time::{Duration, Instant};

use crate::client::Client;
use crate::context::{Context, Start};
use crate::failure::Failure;

/// How long a daemon may be away: a service manager restarts it well within.
const PATIENCE: Duration = Duration::from_secs(10);

/// A connection that is made anew where it breaks.
pub struct Link<'a> {
    context: &'a Context,
    start: Start,
    client: Client,
}

impl<'a> Link<'a> {
    /// Connects; a daemon that is not there at first is a failure at once.
    pub fn new(context: &'a Context, start: Start) -> Result<Self, Failure> {
        Ok(Self { context, start, client: context.connect(start)? })
    }

    /// Makes `attempt` until it comes to an end that is not a broken connection.
    pub fn persist<T>(&mut self, mut attempt: impl FnMut(&mut Client) -> Result<T, Failure>) -> Result<T, Failure> {
        let mut broken_since = None;
        loop {
            let began = Instant::now();
            let failure = match attempt(&mut self.client) {
                Err(failure) if failure.is_broken() => failure,
                other => return other,
            };
            if began.elapsed() > PATIENCE {
                // It worked for a while: this is another outage.
                broken_since = None;
            }
            let since = *broken_since.get_or_insert_with(Instant::now);
            self.reconnect(since, failure)?;
        }
    }

    fn reconnect(&mut self, since: Instant, mut failure: Failure) -> Result<(), Failure> {
        while since.elapsed() < PATIENCE {
            self.context.pause()?;
            match self.context.connect(self.start) {
                Ok(client) => {
                    self.client = client;
                    return Ok(());
                }
                Err(again) if again.is_broken() => failure = again,
                Err(other) => return Err(other),
            }
        }
        Err(failure)
    }
}
