//! Those that run in this daemon: their output, their input, and the way to end them.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use nano_protocol::id::ProcessId;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe::Sender;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::log::Printed;
use crate::sandbox::output::Output;
use crate::sandbox::process::Process;

/// How long a full pipe may take to be read from.
const WRITING: Duration = Duration::from_secs(2);
/// How long one that was told to end may take: TERM, two seconds, KILL, and what a slow disk adds.
const ENDING: Duration = Duration::from_secs(10);

/// The background processes that run.
#[derive(Default)]
pub struct Processes(Mutex<HashMap<ProcessId, Arc<Live>>>);

impl Processes {
    pub(super) fn get(&self, id: &ProcessId) -> Option<Arc<Live>> {
        self.lock().get(id).cloned()
    }

    pub(super) fn add(&self, id: &ProcessId, live: Arc<Live>) {
        self.lock().insert(id.clone(), live);
    }

    pub(super) fn remove(&self, id: &ProcessId) {
        self.lock().remove(id);
    }

    /// Waits for all to end, which the daemon's own end has told them.
    pub async fn ended(&self) {
        let all: Vec<Arc<Live>> = self.lock().values().cloned().collect();
        join_all(all.iter().map(|live| live.over())).await;
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ProcessId, Arc<Live>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One that runs.
pub struct Live {
    output: Arc<Mutex<Output>>,
    input: tokio::sync::Mutex<Option<Sender>>,
    /// Ends it.
    pub(super) stop: CancellationToken,
    /// Fires when nothing of it runs any more and that is on record.
    pub(super) ended: CancellationToken,
}

impl Live {
    pub(super) fn new(process: &mut Process) -> Self {
        let sender = |input: OwnedFd| Sender::from_owned_fd(input).ok();
        let input = tokio::sync::Mutex::new(process.take_input().and_then(sender));
        let (stop, ended) = (CancellationToken::new(), CancellationToken::new());
        Self { output: process.shared_output(), input, stop, ended }
    }

    /// Returns what it has printed so far.
    pub(super) fn printed(&self, file: &str) -> Printed {
        let (bytes, head, tail) = self.output.lock().unwrap_or_else(PoisonError::into_inner).ends();
        Printed { file: file.into(), bytes, head, tail, is_over: false }
    }

    /// Ends it and waits for that; false: it has not ended yet.
    pub(super) async fn end(&self) -> bool {
        self.stop.cancel();
        self.over().await
    }

    async fn over(&self) -> bool {
        timeout(ENDING, self.ended.cancelled()).await.is_ok()
    }

    /// Writes to its input, and closes that if told; says what went wrong.
    pub(super) async fn write(&self, text: &str, end: bool) -> Result<(), String> {
        let mut input = self.input.lock().await;
        let Some(sender) = input.as_mut() else { return Err("its input is closed".into()) };
        let (until, mut rest) = (Instant::now() + WRITING, text.as_bytes());
        while !rest.is_empty() {
            match timeout_at(until, sender.write(rest)).await {
                Ok(Ok(count)) => rest = rest.get(count..).unwrap_or_default(),
                Ok(Err(why)) if why.kind() == ErrorKind::BrokenPipe => {
                    *input = None;
                    return Err("nothing of it reads any more".into());
                }
                Ok(Err(why)) => return Err(why.to_string()),
                Err(_) => {
                    let (taken, all) = (text.len() - rest.len(), text.len());
                    return Err(format!(
                        "it took {taken} of {all} bytes, and then none for {} s: it does not read; try the rest later",
                        WRITING.as_secs()
                    ));
                }
            }
        }
        if end {
            *input = None;
        }
        Ok(())
    }
}
