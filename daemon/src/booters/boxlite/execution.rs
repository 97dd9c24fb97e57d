//! One execution in a box: what it prints, how it ends, and that it ends.
//!
//! Once it was started, nothing that goes wrong means that it was not: errors say that nobody knows how far it got.

use std::time::Duration;

use serde::Deserialize;
use tokio::time::{Instant, sleep, timeout};

use super::client::{Api, Exec, Fault};
use crate::http::socket::{Frame, Receiving, Sending, Socket};
use crate::sandbox::SandboxError;

/// How long what was asked to end may take: what `run.sh` grants, and some for the way.
const GRACE: Duration = Duration::from_secs(4);
/// How long a killed one may take to say so.
const KILLED: Duration = Duration::from_secs(1);
/// How often a lost connection's execution is looked at.
const LOOK: Duration = Duration::from_millis(250);
/// How long a connection may be silent before somebody looks: servers show signs of life more often.
const SILENT: Duration = if cfg!(test) { Duration::from_millis(100) } else { Duration::from_mins(1) };
/// How often in a row a lost connection is opened anew; a server may take a while to see that the old one is dead, and
/// ends after some minutes what nobody is connected to.
const TRIES: u32 = 20;
/// The same for an execution that has ended, whose output is still told for a while.
const TRIES_AFTER_END: u32 = 2;
/// The longest pause between two tries.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How much of each stream a server keeps, from its end, and tells again to who connects anew.
const KEPT: usize = 256 << 10;
/// What a server says of an execution whose end it failed to wait for.
const UNKNOWN_END: i32 = -1;

/// A started execution.
#[derive(Debug)]
pub struct Execution {
    api: Api,
    of_box: String,
    id: String,
    sending: Option<Sending>,
    receiving: Option<Receiving>,
    broken: Option<String>,
    tries: u32,
    /// How many bytes of each stream were taken.
    taken: [usize; 2],
    /// How many are told again.
    again: [usize; 2],
}

/// What an execution tells.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    /// It printed this.
    Out(Vec<u8>),
    /// It printed this on standard error.
    Err(Vec<u8>),
    /// It ended: its status, or the negative number of a signal.
    Exited(i32),
}

#[derive(Deserialize)]
struct Control {
    r#type: String,
    exit_code: Option<i32>,
    message: Option<String>,
}

impl Execution {
    /// Starts a program; `within` is for a box that has to be started first.
    pub async fn start(api: &Api, of_box: &str, program: &Exec, within: Duration) -> Result<Self, SandboxError> {
        let id = api.exec(of_box, program, within).await.map_err(Fault::of_box)?;
        let (api, of_box) = (api.clone(), of_box.to_owned());
        let (sending, receiving, broken) = (None, None, None);
        let mut this = Self { api, of_box, id, sending, receiving, broken, tries: 0, taken: [0; 2], again: [0; 2] };
        this.attach().await;
        Ok(this)
    }

    /// Returns why not all it printed may have come.
    pub fn broken(&self) -> Option<&str> {
        let whole = self.receiving.is_some() && self.taken.iter().all(|&count| count <= KEPT);
        self.broken.as_deref().filter(|_| !whole)
    }

    /// Waits for what it tells next. Loses nothing when dropped.
    pub async fn next(&mut self) -> Result<Event, SandboxError> {
        loop {
            let Some(receiving) = &mut self.receiving else {
                match self.reattach().await? {
                    Some(code) => return exited(code),
                    None => continue,
                }
            };
            match timeout(SILENT, receiving.next()).await {
                Ok(Ok(Some(Frame::Binary(bytes)))) => {
                    if let Some(event) = self.take(&bytes) {
                        return Ok(event);
                    }
                }
                Ok(Ok(Some(Frame::Text(text)))) => {
                    if let Some(code) = exit(&text) {
                        return exited(code);
                    }
                }
                Ok(Ok(None)) => self.lost("the connection closed early".into()),
                Ok(Err(why)) => self.lost(why.to_string()),
                Err(_) => match self.look().await {
                    Ok(None) => {}
                    Ok(Some(_)) => self.lost("the connection fell silent".into()),
                    Err(why) => return Err(unknown(&why)),
                },
            }
        }
    }

    /// Sends TERM, then KILL to one that does not end; what it still tells goes to `hear`.
    pub async fn end(&mut self, mut hear: impl FnMut(Event)) {
        for (kill, patience) in [(false, GRACE), (true, KILLED)] {
            let asked = if kill {
                self.api.kill(&self.of_box, &self.id).await
            } else {
                self.api.terminate(&self.of_box, &self.id).await
            };
            if let Err(error) = asked {
                tracing::debug!(%error, execution = self.id, "an execution was not ended");
            }
            let until = Instant::now() + patience;
            while let Ok(Ok(event)) = tokio::time::timeout_at(until, self.next()).await {
                let over = matches!(event, Event::Exited(_));
                hear(event);
                if over {
                    return;
                }
            }
        }
    }

    /// Returns the direction to the program's input, once.
    pub fn take_sending(&mut self) -> Option<Sending> {
        self.sending.take()
    }

    /// Takes what was printed, if it was not told before.
    fn take(&mut self, frame: &[u8]) -> Option<Event> {
        let (make, at): (fn(Vec<u8>) -> Event, _) = match frame.first()? {
            1 => (Event::Out, 0),
            2 => (Event::Err, 1),
            _ => return None,
        };
        let bytes = &frame[1..];
        let old = bytes.len().min(self.again[at]);
        self.again[at] -= old;
        if old == bytes.len() {
            return None;
        }
        self.taken[at] += bytes.len() - old;
        self.tries = 0;
        Some(make(bytes[old..].to_vec()))
    }

    fn lost(&mut self, why: String) {
        // Both halves keep a connection open, and there can be only one.
        (self.sending, self.receiving) = (None, None);
        self.broken = Some(why);
    }

    async fn attach(&mut self) {
        match self.api.attach(&self.of_box, &self.id).await {
            Ok(Socket { sending, receiving }) => {
                (self.sending, self.receiving) = (Some(sending), Some(receiving));
                self.again = self.taken;
            }
            Err(why) => self.lost(why.to_string()),
        }
    }

    /// Opens a lost connection anew, or returns how the execution ended where that does not help.
    async fn reattach(&mut self) -> Result<Option<i32>, SandboxError> {
        let ended = match self.look().await {
            Err(Fault::Broken(_)) if self.tries < TRIES => None,
            looked => looked.map_err(|why| unknown(&why))?,
        };
        if ended.is_some() && self.tries >= TRIES_AFTER_END {
            return Ok(ended);
        }
        if self.tries > 0 {
            sleep((LOOK * self.tries).min(LONGEST_PAUSE)).await;
        }
        if self.tries < TRIES {
            self.tries += 1;
            self.attach().await;
        }
        Ok(None)
    }

    /// Returns how it ended, if it has.
    async fn look(&self) -> Result<Option<i32>, Fault> {
        let status = self.api.status(&self.of_box, &self.id).await?;
        match status.exit_code {
            None if status.status != "running" => Err(Fault::Missing(format!("the program is {}", status.status))),
            code => Ok(code),
        }
    }
}

fn unknown(why: &Fault) -> SandboxError {
    SandboxError::Failed(format!("it is unknown how far the program got, and how it ended: {why}"))
}

fn exited(code: i32) -> Result<Event, SandboxError> {
    if code != UNKNOWN_END {
        return Ok(Event::Exited(code));
    }
    Err(SandboxError::Failed("it is unknown how the program ended: BoxLite could not wait for it".into()))
}

fn exit(text: &str) -> Option<i32> {
    let Ok(Control { r#type, exit_code, message }) = serde_json::from_str(text) else { return None };
    if let Some(message) = message {
        tracing::debug!(%message, "BoxLite told of an error");
    }
    exit_code.filter(|_| r#type == "exit")
}

/// Runs a short program to its end and returns its status and what it printed, which may have `most` bytes.
pub async fn collect(
    api: &Api,
    of_box: &str,
    program: &Exec,
    within: Duration,
    most: usize,
) -> Result<(i32, Vec<u8>, Vec<u8>), SandboxError> {
    let mut execution = Execution::start(api, of_box, program, within).await?;
    let late = || SandboxError::Failed("the sandbox did not answer in time".into());
    timeout(within, gather(&mut execution, most)).await.map_err(|_| late())?
}

/// Reads an execution to its end.
pub async fn gather(execution: &mut Execution, most: usize) -> Result<(i32, Vec<u8>, Vec<u8>), SandboxError> {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    loop {
        match execution.next().await? {
            Event::Out(bytes) => out.extend(bytes),
            Event::Err(bytes) => err.extend(bytes),
            Event::Exited(code) => return Ok((code, out, err)),
        }
        if out.len() + err.len() > most {
            return Err(SandboxError::Failed("the sandbox printed more than it should".into()));
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use std::time::Duration;

    use nano_tests::boxlite::Boxlite;

    use super::super::client::Api;
    use super::super::sandbox::script;
    use super::Execution;
    use crate::config::BoxliteConfig;
    use crate::sandbox::SandboxError;

    #[tokio::test]
    async fn what_was_started_and_vanished_was_started_all_the_same() {
        for cut in [false, true] {
            let server = Boxlite::start();
            let api = Api { base: server.url(), key: None };
            let made = api.create("b", &BoxliteConfig::default()).await.unwrap();
            let within = Duration::from_mins(1);
            let mut execution =
                Execution::start(&api, &made.box_id, &script("exec sleep 1000", &[]), within).await.unwrap();
            server.forget();
            if cut {
                server.cut();
            }
            let error = execution.next().await.unwrap_err();
            let expected = "it is unknown how far the program got";
            assert!(matches!(&error, SandboxError::Failed(why) if why.contains(expected)), "{cut}: {error:?}");
        }
    }
}
