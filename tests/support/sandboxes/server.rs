//! The part that both fakes share: connections, the record of requests, faults with their gates, and the clock.

use std::collections::BTreeSet;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use super::clock::Clock;
use super::faults::Fault;
use super::wire::{self, Reply};
use crate::http::{self, Request};
use crate::wait::DEADLINE;

/// What a fake does with a request.
pub trait Api: Send + Sync + 'static {
    /// Does what is asked and answers.
    fn answer(&self, request: &Request) -> Reply;
}

impl<F: Fn(&Request) -> Reply + Send + Sync + 'static> Api for F {
    fn answer(&self, request: &Request) -> Reply {
        self(request)
    }
}

/// A server on a free port of loopback.
pub struct Server {
    address: SocketAddr,
    clock: Arc<Clock>,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

struct Shared {
    api: Arc<dyn Api>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    requests: Vec<Request>,
    faults: Vec<Fault>,
    open: BTreeSet<String>,
    stopped: bool,
}

impl Server {
    /// Starts to serve `api`, whose time is `clock`.
    pub fn start(api: Arc<dyn Api>, clock: Arc<Clock>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port of loopback");
        let address = listener.local_addr().expect("the address of the listener");
        let shared = Arc::new(Shared { api, state: Mutex::default(), changed: Condvar::new() });
        let accepting = std::thread::spawn({
            let shared = Arc::clone(&shared);
            move || accept(&listener, &shared)
        });
        Self { address, clock, shared, accepting: Some(accepting) }
    }

    /// Starts a server of another kind, which answers by a function.
    pub fn answering(answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        Self::start(Arc::new(answer), Arc::default())
    }

    /// Returns what goes into `endpoint`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the requests so far, in the order they came.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.lock().requests.clone()
    }

    /// Returns the requests so far of this method whose path ends so, both as in a [`Fault`].
    pub fn requests_to(&self, method: &str, suffix: &str) -> Vec<Request> {
        self.requests().into_iter().filter(|request| wire::is_to(request, method, suffix)).collect()
    }

    /// Waits until `count` requests of this method whose path ends so have come, and returns them.
    pub fn wait_requests(&self, method: &str, suffix: &str, count: usize) -> Vec<Request> {
        let too_few = |state: &mut State| {
            state.requests.iter().filter(|request| wire::is_to(request, method, suffix)).count() < count
        };
        let waited = self.shared.changed.wait_timeout_while(self.shared.lock(), DEADLINE, too_few);
        let (state, time) = waited.expect("a live fake");
        assert!(!time.timed_out(), "waited in vain for {count} times {method} …{suffix}: {:?}", seen(&state.requests));
        state.requests.iter().filter(|request| wire::is_to(request, method, suffix)).cloned().collect()
    }

    /// Orders a fault; of several that fit a request the earliest strikes.
    pub fn fault(&self, fault: Fault) {
        self.shared.lock().faults.push(fault);
    }

    /// Takes all faults back; replies that are held stay so.
    pub fn clear_faults(&self) {
        self.shared.lock().faults.clear();
    }

    /// Opens a gate for good.
    pub fn open(&self, gate: &str) {
        self.shared.lock().open.insert(gate.to_owned());
        self.shared.changed.notify_all();
    }

    /// Pushes the server's time forward.
    pub fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    /// Takes no more requests and opens nothing that is held.
    pub fn stop(&mut self) {
        let Some(thread) = self.accepting.take() else { return };
        self.shared.lock().stopped = true;
        self.shared.changed.notify_all();
        drop(TcpStream::connect(self.address)); // Wakes the accepting thread.
        drop(thread.join());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("a live fake")
    }

    /// Records a request and returns the fault that strikes it.
    fn arrive(&self, request: &Request) -> Option<Fault> {
        let mut state = self.lock();
        state.requests.push(request.clone());
        // All are asked until one strikes, since each counts what it lets pass.
        let struck = state.faults.iter_mut().find_map(|fault| fault.strikes(request).then(|| fault.clone()));
        drop(state);
        self.changed.notify_all();
        struck
    }

    /// Waits until the gate is open; false when the server ends first.
    fn pass(&self, gate: &str) -> bool {
        let waiting = |state: &mut State| !state.stopped && !state.open.contains(gate);
        !self.changed.wait_while(self.lock(), waiting).expect("a live fake").stopped
    }
}

fn seen(requests: &[Request]) -> Vec<String> {
    requests.iter().map(|request| format!("{} {}", request.method, request.path)).collect()
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming().flatten() {
        if shared.lock().stopped {
            return;
        }
        let shared = Arc::clone(shared);
        std::thread::spawn(move || drop(serve(&stream, &shared)));
    }
}

/// Answers one request; an error means that the caller left, which is its right.
fn serve(mut stream: &TcpStream, shared: &Shared) -> std::io::Result<()> {
    let request = http::read(stream)?;
    if shared.lock().stopped {
        return Ok(());
    }
    let effect = || shared.api.answer(&request);
    match shared.arrive(&request) {
        Some(fault) => fault.play(stream, &request, effect, |gate| shared.pass(gate)),
        None => effect().send(&mut stream),
    }
}
