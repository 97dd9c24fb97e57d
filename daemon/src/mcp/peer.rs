//! JSON-RPC with one server over its input and output: requests answered by id, at any time, in any order.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::OwnedReadHalf;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::{Fault, Limits, METHOD_NOT_FOUND};

/// The longest message that is taken.
const LONGEST: u64 = 16 << 20;
/// How many messages may wait for a server that does not read.
const MOST_UNREAD: usize = 64;
/// After so many lines that are no messages it is no server.
const MOST_GARBAGE: usize = 100;

/// One server.
pub struct Peer {
    shared: Arc<Shared>,
    out: mpsc::Sender<Vec<u8>>,
}

#[derive(Default)]
struct Shared {
    next: AtomicU64,
    waiting: Mutex<HashMap<u64, Waiting>>,
    /// Whether it said that its tools are others now.
    changed: AtomicBool,
    ended: CancellationToken,
    why: Mutex<String>,
}

struct Waiting {
    answer: oneshot::Sender<Result<Value, Fault>>,
    progress: Arc<Notify>,
}

/// Takes a request back when nobody waits for its answer any more.
struct Slot<'a>(&'a Shared, u64);

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        lock(&self.0.waiting).remove(&self.1);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Peer {
    /// Speaks over `stream` until it closes, or the peer is dropped.
    pub fn new(stream: UnixStream) -> Self {
        let (read, mut write) = stream.into_split();
        let (out, mut lines) = mpsc::channel::<Vec<u8>>(MOST_UNREAD);
        let shared = Arc::<Shared>::default();
        tokio::spawn(async move {
            // Its input closes once nobody can write any more.
            while let Some(line) = lines.recv().await {
                if write.write_all(&line).await.is_err() {
                    break;
                }
            }
        });
        tokio::spawn(listen(read, Arc::clone(&shared), out.downgrade()));
        Self { shared, out }
    }

    /// Fires once it can answer no more.
    pub fn ended(&self) -> &CancellationToken {
        &self.shared.ended
    }

    /// Returns why it was dropped, if its own words were the reason.
    pub fn why(&self) -> String {
        lock(&self.shared.why).clone()
    }

    /// Tells, once, whether it has said that its tools are others now.
    pub fn take_changed(&self) -> bool {
        self.shared.changed.swap(false, Ordering::Relaxed)
    }

    /// Tells it something.
    pub fn notify(&self, method: &str, params: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    fn send(&self, message: &Value) {
        // Who is gone is noticed by the reader; who reads nothing is as good as gone.
        if matches!(self.out.try_send(line(message)), Err(mpsc::error::TrySendError::Full(_))) {
            "it does not read what it is sent".clone_into(&mut lock(&self.shared.why));
            self.shared.ended.cancel();
        }
    }

    /// Asks it for something.
    pub async fn request(
        &self,
        method: &str,
        mut params: Value,
        limits: Limits,
        cancel: &CancellationToken,
    ) -> Result<Value, Fault> {
        let id = self.shared.next.fetch_add(1, Ordering::Relaxed);
        let (answer, mut answered) = oneshot::channel();
        let progress = Arc::<Notify>::default();
        lock(&self.shared.waiting).insert(id, Waiting { answer, progress: Arc::clone(&progress) });
        let _slot = Slot(&self.shared, id);
        if limits.progress {
            set_meta(&mut params, "progressToken", id.into());
        }
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        let most = Instant::now() + limits.most;
        let mut silent = Instant::now() + limits.silent;
        let fault = loop {
            tokio::select! {
                biased;
                answer = &mut answered => return answer.unwrap_or(Err(Fault::Gone)),
                () = self.shared.ended.cancelled() => return Err(Fault::Gone),
                () = cancel.cancelled() => break Fault::Cancelled,
                () = progress.notified() => silent = Instant::now() + limits.silent,
                () = sleep_until(silent.min(most)) => break Fault::Late(if silent < most { limits.silent } else { limits.most }),
            }
        };
        if limits.progress {
            let reason = if matches!(fault, Fault::Cancelled) { "cancelled" } else { "it took too long" };
            self.notify("notifications/cancelled", &json!({"requestId": id, "reason": reason}));
        }
        Err(fault)
    }
}

/// Sets a member of a request's `_meta`.
pub fn set_meta(params: &mut Value, name: &str, value: Value) {
    if let Some(params) = params.as_object_mut()
        && let Some(meta) = params.entry("_meta").or_insert_with(|| json!({})).as_object_mut()
    {
        meta.insert(name.to_owned(), value);
    }
}

/// Answers what a server asks: it is there, and offers nothing.
pub fn reply_to(method: &str, id: &Value) -> Value {
    if method == "ping" {
        return json!({"jsonrpc": "2.0", "id": id, "result": {}});
    }
    let error = json!({"code": METHOD_NOT_FOUND, "message": "not offered by this client"});
    json!({"jsonrpc": "2.0", "id": id, "error": error})
}

fn line(message: &Value) -> Vec<u8> {
    let mut line = message.to_string().into_bytes();
    line.push(b'\n');
    line
}

/// Takes what comes until it ends or is no server's talk.
async fn listen(read: OwnedReadHalf, shared: Arc<Shared>, out: mpsc::WeakSender<Vec<u8>>) {
    let mut reader = BufReader::new(read);
    let mut garbage = 0;
    let why = loop {
        match next(&mut reader).await {
            Ok(None) => break String::new(),
            Err(why) => break why,
            Ok(Some(line)) if line.trim_ascii().is_empty() => {}
            Ok(Some(line)) => match serde_json::from_slice::<Value>(&line) {
                Ok(message) if message.is_object() => shared.take(message, &out),
                Ok(Value::Array(batch)) => batch.into_iter().for_each(|message| shared.take(message, &out)),
                _ => garbage += 1,
            },
        }
        if garbage > MOST_GARBAGE {
            break "its output is no talk of a server: it must print nothing but messages".into();
        }
    };
    if lock(&shared.why).is_empty() {
        *lock(&shared.why) = why;
    }
    shared.ended.cancel();
    lock(&shared.waiting).clear();
}

async fn next(reader: &mut (impl AsyncBufRead + Unpin)) -> Result<Option<Vec<u8>>, String> {
    let mut line = Vec::new();
    let count = reader.take(LONGEST).read_until(b'\n', &mut line).await.map_err(|why| why.to_string())?;
    match count {
        0 => Ok(None),
        _ if line.ends_with(b"\n") => Ok(Some(line)),
        _ if count as u64 == LONGEST => Err(format!("it sent a message of more than {LONGEST} bytes")),
        _ => Ok(Some(line)),
    }
}

impl Shared {
    fn take(&self, mut message: Value, out: &mpsc::WeakSender<Vec<u8>>) {
        let method = message.get("method").and_then(Value::as_str).map(str::to_owned);
        let id = message.get("id").cloned();
        match (method, id) {
            (Some(method), Some(id)) => {
                // Nobody may be there to send it, and who asks without reading gets no answer.
                drop(out.upgrade().map(|out| out.try_send(line(&reply_to(&method, &id)))));
            }
            (Some(method), None) => self.hear(&method, &message),
            (None, Some(id)) => {
                // The first answer counts, and a late one nobody waits for.
                let Some(waiting) = id.as_u64().and_then(|id| lock(&self.waiting).remove(&id)) else { return };
                waiting.answer.send(super::answer(&mut message)).ok();
            }
            (None, None) => {}
        }
    }

    fn hear(&self, method: &str, message: &Value) {
        match method {
            "notifications/tools/list_changed" => self.changed.store(true, Ordering::Relaxed),
            "notifications/progress" => {
                let token = message.pointer("/params/progressToken").and_then(Value::as_u64);
                let waiting = lock(&self.waiting);
                if let Some(waiting) = token.and_then(|token| waiting.get(&token)) {
                    waiting.progress.notify_one();
                }
            }
            _ => {}
        }
    }
}

/// How long an answer may take.
impl Limits {
    /// Limits of a request that is not followed: it is answered within `most`.
    pub const fn within(most: Duration) -> Self {
        Self { silent: most, most, progress: false }
    }
}
