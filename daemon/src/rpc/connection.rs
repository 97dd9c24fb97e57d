//! One connection: a read loop that answers requests by id in any order, and a write loop behind a bounded queue.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use interprocess::local_socket::tokio::Stream;
use nano_protocol::error::{ErrorKind, RpcError};
use rustix::event::{PollFd, PollFlags, poll};
use serde_json::value::RawValue;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::dispatch;
use super::frame::{self, Frame, Lines, Parsed, TooLong};
use super::outgoing::{self, Outgoing};
use super::{Caller, Server};
use crate::crash;

/// Requests of one connection that may be under way; then its next line waits.
const UNDER_WAY: u32 = 1024;
/// How often a peer that has stopped writing is looked at: it may be gone.
const LOOK: Duration = Duration::from_secs(2);
/// How long a line may take from its first byte to its end.
const LINE_TIME: Duration = Duration::from_secs(30);
/// Connections that are held; beyond, the longest idle one goes.
const HELD: usize = 1024;

/// What others need of a connection.
pub(crate) struct Connection {
    out: Outgoing,
    gone: CancellationToken,
    /// Subscriptions by number, with what ends them.
    pub(super) subscriptions: Mutex<HashMap<u64, CancellationToken>>,
    /// Subscriptions whose answer is not written yet.
    pub(super) starting: Mutex<Vec<oneshot::Sender<()>>>,
    /// Has room for so many more requests.
    under_way: Arc<Semaphore>,
    last: Mutex<Instant>,
}

impl Connection {
    fn new(out: Outgoing) -> Self {
        Self {
            out,
            gone: CancellationToken::new(),
            subscriptions: Mutex::default(),
            starting: Mutex::default(),
            under_way: Arc::new(Semaphore::new(UNDER_WAY as usize)),
            last: Mutex::new(Instant::now()),
        }
    }

    /// Queues an answer, then lets the subscriptions begin that it tells of.
    async fn answer(&self, line: Option<String>) {
        self.touch();
        if let Some(line) = line {
            crash::point("rpc.answer.before");
            self.send(line).await;
            crash::point("rpc.answer.after");
        }
        for start in Self::lock(&self.starting).drain(..) {
            // A subscription that has ended already does not begin.
            start.send(()).ok();
        }
    }

    /// Queues a line; false: the peer is gone.
    pub(super) async fn send(&self, line: String) -> bool {
        self.out.send(line).await
    }
    /// Queues a line that may be lost.
    pub(super) fn try_send(&self, line: String) {
        self.out.try_send(line);
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
        let busy =
            self.under_way.available_permits() < UNDER_WAY as usize || !Self::lock(&self.subscriptions).is_empty();
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
    let (out, lines) = outgoing::queue();
    let connection = Arc::new(Connection::new(out));
    let caller = Arc::new(Caller { uid, connection: connection.clone() });
    if connections.admit(&connection) {
        let reading = async {
            read(&stream, &server, &caller, &closing).await;
            connection.out.end().await;
            std::future::pending::<()>().await;
        };
        tokio::select! {
            biased;
            () = connection.gone.cancelled() => {}
            () = lines.write_to(&stream) => {}
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

/// Reads lines until the peer stops writing, makes no sense, or `closing`; what is under way then is still answered.
async fn read(stream: &Stream, server: &Arc<Server>, caller: &Arc<Caller>, closing: &CancellationToken) {
    let mut stream_in = stream;
    let mut lines = Lines::new(server.deps().configured().config.daemon.max_line);
    let mut open = true;
    let mut begun: Option<Instant> = None;
    let connection = &caller.connection;
    while open {
        let buffer = lines.buffer();
        buffer.reserve(8 * 1024);
        let line_ends = begun.map_or_else(Instant::now, |begun| begun + LINE_TIME);
        tokio::select! {
            biased;
            () = closing.cancelled() => open = false,
            got = stream_in.read_buf(buffer) => open = matches!(got, Ok(1..)),
            () = tokio::time::sleep_until(line_ends), if begun.is_some() => open = false,
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
            serve_line(server, caller, &line).await;
        }
        begun = lines.is_partial().then(|| begun.unwrap_or_else(Instant::now));
    }
    let all_answered = connection.under_way.acquire_many(UNDER_WAY);
    tokio::select! {
        _ = all_answered => {}
        () = hung_up(stream) => {}
    }
}

/// Serves a line beside the read loop. Once begun it goes on to its end, whatever becomes of the connection: what it
/// commits and what follows from that must not be torn apart, and a peer that does not read must not hold its locks.
async fn serve_line(server: &Arc<Server>, caller: &Arc<Caller>, line: &[u8]) {
    let connection = caller.connection.clone();
    let Ok(permit) = connection.under_way.clone().acquire_owned().await else { return };
    let mut serving = Box::pin(respond(server.clone(), caller.clone(), frame::parse(line)));
    // Polled once here and now: requests of one connection take effect in the order they were sent.
    match futures_util::poll!(&mut serving) {
        Poll::Ready(answer) => connection.answer(answer).await,
        Poll::Pending => {
            tokio::spawn(async move {
                let answer = serving.await;
                connection.answer(answer).await;
                drop(permit);
            });
        }
    }
}

/// Returns once the peer has not only stopped writing but is gone.
async fn hung_up(stream: &Stream) {
    let Stream::UdSocket(socket) = stream;
    let gone = || {
        let mut look = [PollFd::new(socket, PollFlags::empty())];
        let seen = poll(&mut look, Some(&rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok();
        seen && look.iter().any(|look| look.revents().contains(PollFlags::HUP))
    };
    while !gone() {
        tokio::time::sleep(LOOK).await;
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
    let max = server.deps().configured().config.daemon.max_line;
    let error = RpcError::new(ErrorKind::TooLarge, format!("a line has at most {max} bytes")).hint("send less at once");
    frame::answer(RawValue::NULL, &Err(error))
}

/// Serves a line; none: it wants no answer.
async fn respond(server: Arc<Server>, caller: Arc<Caller>, frame: Frame) -> Option<String> {
    match frame {
        Frame::Blank => None,
        Frame::One(parsed) => one(&server, &caller, parsed).await,
        Frame::Batch(batch) => {
            let mut answers = Vec::new();
            for parsed in batch {
                answers.extend(one(&server, &caller, parsed).await);
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
