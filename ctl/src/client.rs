//! One connection: a request line out, its answer back, events on the way kept in order.

use std::collections::VecDeque;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::time::Duration;

use interprocess::local_socket::prelude::*;
use interprocess::os::unix::uds_local_socket::Stream;
use nano_protocol::event::Event;
use nano_protocol::jsonrpc::{Incoming, OutgoingRequest};
use nano_protocol::method::Method;
use rustix::event::{PollFd, PollFlags, poll};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::duration::Deadline;
use crate::failure::Failure;

/// A result or an event exactly as the daemon wrote it.
pub type Raw = Box<RawValue>;

/// A connection to the daemon.
pub struct Client {
    stream: Stream,
    inbox: Vec<u8>,
    /// How much of `inbox` is known to hold no line feed.
    searched: usize,
    last_id: u64,
    events: VecDeque<Raw>,
    deadline: Deadline,
}

#[derive(Deserialize)]
struct Notification {
    event: Raw,
}

impl Client {
    /// Takes over a fresh connection.
    pub fn new(stream: Stream, deadline: Deadline) -> Self {
        Self { stream, inbox: Vec::new(), searched: 0, last_id: 0, events: VecDeque::new(), deadline }
    }

    /// Calls a method and decodes its result.
    pub fn call<M: Method>(&mut self, params: &M::Params) -> Result<M::Result, Failure> {
        decode(&self.call_raw(M::NAME, params)?)
    }

    /// Calls the method named `method` and returns its result as it came.
    pub fn call_raw<P: Serialize>(&mut self, method: &str, params: &P) -> Result<Raw, Failure> {
        self.last_id += 1;
        let request = OutgoingRequest { jsonrpc: "2.0", id: self.last_id, method, params };
        let mut line = serde_json::to_vec(&request).map_err(|error| Failure::misread(&error))?;
        line.push(b'\n');
        self.send(&line)?;
        loop {
            while let Some(incoming) = self.take()? {
                if let Some(answer) = self.sort(incoming) {
                    return answer;
                }
            }
            self.fill(None)?;
        }
    }

    /// Returns the next event as it came; none where `patience` ran out or a signal came first.
    pub fn next_event(&mut self, patience: Option<Duration>) -> Result<Option<Raw>, Failure> {
        loop {
            while let Some(incoming) = self.take()? {
                // Only a refusal of the whole connection can come without a request.
                if let Some(answer) = self.sort(incoming) {
                    answer?;
                }
            }
            if let Some(event) = self.events.pop_front() {
                return Ok(Some(event));
            }
            if !self.fill(patience)? {
                return Ok(None);
            }
        }
    }

    /// Waits until the daemon closes the connection.
    pub fn until_closed(&mut self) -> Result<(), Failure> {
        loop {
            match self.next_event(None) {
                Ok(_) => {}
                Err(failure) if failure.is_broken() => return Ok(()),
                Err(failure) => return Err(failure),
            }
        }
    }

    /// Keeps an event for later; returns the answer to the last request.
    fn sort(&mut self, incoming: Incoming) -> Option<Result<Raw, Failure>> {
        if incoming.method.is_some() {
            let event = incoming.params.and_then(|params| serde_json::from_str::<Notification>(params.get()).ok());
            self.events.extend(event.map(|notification| notification.event));
            return None;
        }
        match (incoming.id, incoming.error) {
            // An error without an id is about the line or the connection, so about us.
            (None, Some(error)) => Some(Err(error.into())),
            (Some(id), Some(error)) if id == self.last_id => Some(Err(error.into())),
            (Some(id), None) if id == self.last_id => {
                Some(Ok(incoming.result.unwrap_or_else(|| RawValue::NULL.to_owned())))
            }
            _ => None,
        }
    }

    fn take(&mut self) -> Result<Option<Incoming>, Failure> {
        let unseen = self.inbox.get(self.searched..).unwrap_or_default();
        let Some(at) = unseen.iter().position(|byte| *byte == b'\n') else {
            self.searched = self.inbox.len();
            return Ok(None);
        };
        let rest = self.inbox.split_off(self.searched + at + 1);
        let line = std::mem::replace(&mut self.inbox, rest);
        self.searched = 0;
        serde_json::from_slice(&line).map(Some).map_err(|error| Failure::misread(&error))
    }

    /// Reads what is there; false where nothing came within `patience` or a signal came.
    fn fill(&mut self, patience: Option<Duration>) -> Result<bool, Failure> {
        let limit = self.deadline.clip(patience)?.and_then(|limit| limit.try_into().ok());
        let fd = self.stream.as_fd();
        match poll(&mut [PollFd::new(&fd, PollFlags::IN)], limit.as_ref()) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(false),
            Ok(_) => {}
            Err(error) => return Err(Failure::lost(&error.into())),
        }
        let mut chunk = vec![0; 64 * 1024];
        match (&self.stream).read(&mut chunk) {
            Ok(0) => Err(Failure::lost(&io::ErrorKind::UnexpectedEof.into())),
            Ok(count) => {
                self.inbox.extend(chunk.iter().take(count));
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(false),
            Err(error) => Err(Failure::lost(&error)),
        }
    }

    fn send(&self, line: &[u8]) -> Result<(), Failure> {
        let limit = self.deadline.clip(None)?;
        let sent = self.stream.set_send_timeout(limit).and_then(|()| (&self.stream).write_all(line));
        sent.map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Failure::timed_out(),
            _ => Failure::lost(&error),
        })
    }
}

/// Decodes a result.
pub fn decode<T: serde::de::DeserializeOwned>(raw: &RawValue) -> Result<T, Failure> {
    serde_json::from_str(raw.get()).map_err(|error| Failure::misread(&error))
}

/// Decodes an event; none where it is of a type that a newer daemon knows.
pub fn event(raw: &RawValue) -> Option<Event> {
    serde_json::from_str(raw.get()).ok()
}
