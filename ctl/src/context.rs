//! What a verb works with: the flags, the output, the time it may take and the way to the daemon.

use std::time::Duration;

use nano_protocol::method::Method;

use crate::cli::Global;
use crate::client::{Client, decode};
use crate::duration::Deadline;
use crate::failure::{Failure, Kind};
use crate::output::Output;
use crate::place::Place;
use crate::start;

/// Whether a verb may start a personal daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// Where none is reached.
    Allowed,
    /// Never.
    Never,
}

/// What a verb works with.
pub struct Context {
    /// Where words go.
    pub output: Output,
    /// When to give up.
    pub deadline: Deadline,
    place: Place,
    autostart: bool,
}

impl Context {
    /// Reads the flags and the environment.
    pub fn new(global: &Global) -> Result<Self, Failure> {
        Ok(Self {
            output: Output::new(global),
            deadline: Deadline::after(global.timeout),
            place: Place::find(global.socket.as_deref())?,
            autostart: !global.no_autostart,
        })
    }

    /// Connects to the daemon, starting a personal one where that is allowed and needed.
    pub fn connect(&self, start: Start) -> Result<Client, Failure> {
        let stream = match self.place.connect(self.deadline) {
            Err(failure) if failure.kind == Kind::Unreachable && self.may_start(start) => {
                start::personal(&self.place, self.deadline)?
            }
            other => other?,
        };
        Ok(Client::new(stream, self.deadline))
    }

    /// Calls one method, then passes its result on or shows it.
    pub fn show<M: Method>(
        &self,
        params: &M::Params,
        show: impl FnOnce(&Output, M::Result) -> std::io::Result<()>,
    ) -> Result<(), Failure> {
        let raw = self.connect(Start::Never)?.call_raw(M::NAME, params)?;
        if self.output.json {
            return Ok(self.output.answer(raw.get())?);
        }
        Ok(show(&self.output, decode(&raw)?)?)
    }

    /// Rests a moment before the next try.
    pub fn pause(&self) -> Result<(), Failure> {
        self.deadline.pause(Duration::from_millis(100))
    }

    fn may_start(&self, start: Start) -> bool {
        start == Start::Allowed && self.autostart && matches!(self.place, Place::Usual(Some(_)))
    }
}
