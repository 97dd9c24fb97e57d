//! One connection: a read loop that answers requests by id in any order, and a write loop with a bounded queue.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use interprocess::local_socket::tokio::Stream;
use nano_protocol::error::{ErrorKind, RpcError};
use serde_json::value::RawValue;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::dispatch;
use super::frame::{self, Frame, Lines, Parsed, TooLong};
use super::{Caller, Server};

/// Lines that may wait for a slow reader; then its answers and events wait, and nobody else's.
const OUTGOING: usize = 256;
/// Requests of one connection that may be under way; then its next line waits.
const UNDER_WAY: usize = 1024;
/// How long a line may take from its first byte to its end.
const LINE_TIME: Duration = Duration::from_secs(30);
/// Connections that are held; beyond, the longest idle one goes.
const HELD: usize = 1024;

/// What others need of a connection.
pub(crate) struct Connection {
    out: mpsc::Sender<String>,
    gone: CancellationToken,
    /// Subscriptions by number, with what ends them.
    pub(super) subscriptions: Mutex<HashMap<u64, CancellationToken>>,
    /// Subscriptions whose answer is not written yet.
    pub(super) starting: Mutex<Vec<oneshot::Sender<()>>>,
    under_way: AtomicUsize,
    last: Mutex<Instant>,
}

impl Connection {
    fn new(out: mpsc::Sender<String>) -> Self {
        Self {
            out,
            gone: CancellationToken::new(),
            subscriptions: Mutex::default(),
            starting: Mutex::default(),
            under_way: AtomicUsize::new(0),
            last: Mutex::new(Instant::now()),
        }
    }

    /// Queues an answer, then lets the subscriptions begin that it tells of.
    async fn answer(&self, line: Option<String>) {
        self.touch();
        if let Some(line) = line {
            self.send(line).await;
        }
        for start in Self::lock(&self.starting).drain(..) {
            // A subscription that has ended already does not begin.
            start.send(()).ok();
        }
    }

    /// Queues a line; false: the peer is gone.
    pub(super) async fn send(&self, line: String) -> bool {
        self.out.send(line).await.is_ok()
    }
    /// Queues a line that may be lost.
    pub(super) fn try_send(&self, line: String) {
        // A full queue means a slow reader: what may be lost is lost.
        drop(self.out.try_send(line));
    }
    /// Fires when the peer is gone.
    pub(super) fn gone(&self) -> &CancellationToken {
        &self.gone
    }
    /// Locks a part of the connection.
    pub(super) fn lock<T>(part: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
        part.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn touch(&self) {
        *Self::lock(&self.last) = Instant::now();
    }
    fn idle_since(&self) -> Option<Instant> {
        let busy = self.under_way.load(Ordering::Relaxed) > 0 || !Self::lock(&self.subscriptions).is_empty();
        (!busy).then(|| *Self::lock(&self.last))
    }
}

/// Every open connection.
#[derive(Default)]
pub(super) struct Connections {
    open: Mutex<Vec<Arc<Connection>>>,
}

impl Connections {
    /// Takes a connection in, if need be for the longest idle one; false: all are at work.
    fn admit(&self, one: &Arc<Connection>) -> bool {
        let mut open = Connection::lock(&self.open);
        if open.len() >= HELD {
            let idle = open.iter().enumerate().filter_map(|(at, other)| Some((other.idle_since()?, at))).min();
            let Some((_, at)) = idle else { return false };
            open.swap_remove(at).gone.cancel();
        }
        open.push(one.clone());
        true
    }

    fn leave(&self, one: &Arc<Connection>) {
        Connection::lock(&self.open).retain(|other| !Arc::ptr_eq(other, one));
    }
}

/// Serves one peer until it leaves or `closing`.
pub(super) async fn serve(
    stream: Stream,
    uid: u32,
    server: Arc<Server>,
    connections: Arc<Connections>,
    closing: CancellationToken,
) {
    let (out, lines) = mpsc::channel(OUTGOING);
    let connection = Arc::new(Connection::new(out));
    let caller = Caller { uid, connection: connection.clone() };
    if connections.admit(&connection) {
        let reading = async {
            read(&stream, &server, &caller, &closing).await;
            connection.send(END.to_owned()).await;
            std::future::pending::<()>().await;
        };
        tokio::select! {
            biased;
            () = connection.gone.cancelled() => {}
            () = write(&stream, lines) => {}
            () = reading => {}
        }
    } else {
        let error = RpcError::new(ErrorKind::Limit, format!("{HELD} connections are at work")).hint("try again later");
        let line = frame::answer(RawValue::NULL, &Err(error)) + "\n";
        // A peer that does not read its refusal misses nothing else.
        drop((&stream).write_all(line.as_bytes()).await);
    }
    connections.leave(&connection);
    connection.gone.cancel();
    for (_, subscription) in Connection::lock(&connection.subscriptions).drain() {
        subscription.cancel();
    }
}

/// The line behind the last one.
const END: &str = "";

/// Writes lines until the last one, or until the peer no longer takes them; those that wait go out together.
async fn write(stream: &Stream, mut lines: mpsc::Receiver<String>) {
    let mut stream = stream;
    let mut bytes = Vec::new();
    let mut last = false;
    while !last && let Some(mut line) = lines.recv().await {
        bytes.clear();
        loop {
            last = line == END;
            if !last {
                bytes.extend_from_slice(line.as_bytes());
                bytes.push(b'\n');
            }
            if last || bytes.len() > 64 * 1024 {
                break;
            }
            let Ok(more) = lines.try_recv() else { break };
            line = more;
        }
        if stream.write_all(&bytes).await.is_err() {
            return;
        }
    }
}

/// Reads lines until the peer stops writing, makes no sense, or `closing`; what is under way then is still answered.
async fn read(stream: &Stream, server: &Server, caller: &Caller, closing: &CancellationToken) {
    let mut stream = stream;
    let mut lines = Lines::new(server.deps().config.daemon.max_line);
    let mut under_way = FuturesUnordered::new();
    let mut open = true;
    let mut begun: Option<Instant> = None;
    let connection = &caller.connection;
    while open || !under_way.is_empty() {
        connection.under_way.store(under_way.len(), Ordering::Relaxed);
        let buffer = lines.buffer();
        buffer.reserve(8 * 1024);
        let line_ends = begun.map_or_else(Instant::now, |begun| begun + LINE_TIME);
        // Answers first: they make room.
        tokio::select! {
            biased;
            Some(answer) = under_way.next(), if !under_way.is_empty() => {
                connection.answer(answer).await;
                continue;
            }
            () = closing.cancelled(), if open => open = false,
            got = stream.read_buf(buffer), if open && under_way.len() < UNDER_WAY => open = matches!(got, Ok(1..)),
            () = tokio::time::sleep_until(line_ends), if open && begun.is_some() => open = false,
        }
        connection.touch();
        while let Some(line) = next_line(&mut lines, open) {
            begun = None;
            let Ok(line) = line else {
                connection.answer(Some(too_long(server))).await;
                return;
            };
            if frame::is_http(&line) {
                // Whatever follows is no JSON either.
                (open, _) = (false, lines.rest());
            }
            let mut serving = Box::pin(respond(server, caller, frame::parse(&line)));
            // Polled once here and now: requests of one connection take effect in the order they were sent.
            match futures_util::poll!(&mut serving) {
                Poll::Ready(answer) => connection.answer(answer).await,
                Poll::Pending => under_way.push(serving),
            }
        }
        begun = lines.is_partial().then(|| begun.unwrap_or_else(Instant::now));
    }
}

/// Returns the next line; at the end also one without a line end.
fn next_line(lines: &mut Lines, open: bool) -> Option<Result<Vec<u8>, TooLong>> {
    match lines.next() {
        Ok(None) if !open && lines.is_partial() => Some(Ok(lines.rest())),
        other => other.transpose(),
    }
}

fn too_long(server: &Server) -> String {
    let max = server.deps().config.daemon.max_line;
    let error = RpcError::new(ErrorKind::TooLarge, format!("a line has at most {max} bytes")).hint("send less at once");
    frame::answer(RawValue::NULL, &Err(error))
}

/// Serves a line; none: it wants no answer.
async fn respond(server: &Server, caller: &Caller, frame: Frame) -> Option<String> {
    match frame {
        Frame::Blank => None,
        Frame::One(parsed) => one(server, caller, parsed).await,
        Frame::Batch(batch) => {
            let mut answers = Vec::new();
            for parsed in batch {
                answers.extend(one(server, caller, parsed).await);
            }
            (!answers.is_empty()).then(|| format!("[{}]", answers.join(",")))
        }
    }
}

async fn one(server: &Server, caller: &Caller, parsed: Parsed) -> Option<String> {
    let result = match parsed.call {
        Ok(call) => dispatch::call(server, caller, &call.method, call.params.as_deref()).await,
        Err(error) => Err(error),
    };
    parsed.id.map(|id| frame::answer(&id, &result))
}
