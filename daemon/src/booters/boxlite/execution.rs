//! One execution in a box: what it prints, how it ends, and that it ends.

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
const SILENT: Duration = Duration::from_mins(1);

/// A started execution.
#[derive(Debug)]
pub struct Execution {
    api: Api,
    of_box: String,
    id: String,
    sending: Option<Sending>,
    receiving: Option<Receiving>,
    broken: Option<String>,
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
        let (sending, receiving, broken) = match api.attach(of_box, &id).await {
            Ok(Socket { sending, receiving }) => (Some(sending), Some(receiving), None),
            Err(why) => (None, None, Some(why.to_string())),
        };
        Ok(Self { api: api.clone(), of_box: of_box.to_owned(), id, sending, receiving, broken })
    }

    /// Returns why not all it printed may have come.
    pub fn broken(&self) -> Option<&str> {
        self.broken.as_deref()
    }

    /// Waits for what it tells next. Loses nothing when dropped.
    pub async fn next(&mut self) -> Result<Event, SandboxError> {
        loop {
            let Some(receiving) = &mut self.receiving else { return self.watch().await };
            match timeout(SILENT, receiving.next()).await {
                Ok(Ok(Some(Frame::Binary(bytes)))) => match bytes.split_first() {
                    Some((1, rest)) => return Ok(Event::Out(rest.to_vec())),
                    Some((2, rest)) => return Ok(Event::Err(rest.to_vec())),
                    _ => {}
                },
                Ok(Ok(Some(Frame::Text(text)))) => {
                    if let Some(code) = exit(&text) {
                        return Ok(Event::Exited(code));
                    }
                }
                Ok(Ok(None)) => self.lost("the connection closed early".into()),
                Ok(Err(why)) => self.lost(why.to_string()),
                Err(_) => self.look().await?,
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

    fn lost(&mut self, why: String) {
        self.receiving = None;
        self.broken = Some(why);
    }

    async fn look(&mut self) -> Result<(), SandboxError> {
        let status = self.api.status(&self.of_box, &self.id).await.map_err(Fault::of_box)?;
        if status.exit_code.is_some() {
            self.lost("the connection fell silent".into());
        }
        Ok(())
    }

    async fn watch(&self) -> Result<Event, SandboxError> {
        loop {
            let status = match self.api.status(&self.of_box, &self.id).await {
                Ok(status) => status,
                Err(why) => {
                    let words = format!("the connection broke, and nobody knows how the program ended: {why}");
                    return Err(SandboxError::Failed(words));
                }
            };
            match status.exit_code {
                Some(code) => return Ok(Event::Exited(code)),
                None if status.status != "running" => {
                    let words = format!("the program is {}, and nobody knows how it ended", status.status);
                    return Err(SandboxError::Failed(words));
                }
                None => sleep(LOOK).await,
            }
        }
    }
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
