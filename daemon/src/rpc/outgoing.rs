//! What waits to be written to one peer: bounded in lines and in bytes, so a peer that does not read costs little.

use std::sync::Arc;

use interprocess::local_socket::tokio::Stream;
use tokio::io::AsyncWriteExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// Lines that may wait.
const LINES: usize = 256;
/// Bytes that may wait; a longer line waits alone.
const BYTES: u32 = 1024 * 1024;
/// Bytes that are written at once where so many wait.
const AT_ONCE: usize = 64 * 1024;

/// A line with its share of the bytes; none: the end.
type Waiting = Option<(String, OwnedSemaphorePermit)>;

/// The queue's entry.
pub(super) struct Outgoing {
    lines: mpsc::Sender<Waiting>,
    room: Arc<Semaphore>,
}

/// The queue's exit.
pub(super) struct Incoming {
    lines: mpsc::Receiver<Waiting>,
}

/// Makes an empty queue.
pub(super) fn queue() -> (Outgoing, Incoming) {
    let (entry, exit) = mpsc::channel(LINES);
    (Outgoing { lines: entry, room: Arc::new(Semaphore::new(BYTES as usize)) }, Incoming { lines: exit })
}

fn share(line: &str) -> u32 {
    u32::try_from(line.len()).unwrap_or(BYTES).min(BYTES)
}

impl Outgoing {
    /// Queues a line when there is room; false: the peer is gone.
    pub async fn send(&self, line: String) -> bool {
        let gone = self.lines.closed();
        let queued = async {
            let Ok(permit) = self.room.clone().acquire_many_owned(share(&line)).await else { return false };
            self.lines.send(Some((line, permit))).await.is_ok()
        };
        tokio::select! {
            queued = queued => queued,
            () = gone => false,
        }
    }

    /// Queues a line that may be lost: without room it is.
    pub fn try_send(&self, line: String) {
        if let Ok(permit) = self.room.clone().try_acquire_many_owned(share(&line)) {
            self.lines.try_send(Some((line, permit))).ok();
        }
    }

    /// Lets the write loop end behind what waits.
    pub async fn end(&self) {
        self.lines.send(None).await.ok();
    }
}

impl Incoming {
    /// Writes lines until the end, or until the peer no longer takes them; those that wait go out together.
    pub async fn write_to(mut self, mut stream: &Stream) {
        let mut bytes = Vec::new();
        let mut open = true;
        while open && let Some(mut next) = self.lines.recv().await {
            bytes.clear();
            // Held until they are written.
            let mut permits = Vec::new();
            loop {
                let Some((line, permit)) = next else {
                    open = false;
                    break;
                };
                bytes.extend_from_slice(line.as_bytes());
                bytes.push(b'\n');
                permits.push(permit);
                let more = if bytes.len() < AT_ONCE { self.lines.try_recv().ok() } else { None };
                let Some(more) = more else { break };
                next = more;
            }
            if stream.write_all(&bytes).await.is_err() {
                return;
            }
        }
    }
}
