//! A model that follows a script: chat completions over HTTP/1.1 on loopback, streamed.
//!
//! It answers by order of requests or by what a request holds, waits at gates that the test opens, records every
//! request, and checks each as strictly as the strictest server does. When it is dropped, a request that such a server
//! would have refused fails the test.

mod strict;
mod turn;

use std::collections::BTreeSet;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;

use serde_json::Value;

pub use turn::{Call, Gate, Turn};

use crate::http;
use crate::wait::DEADLINE;

type Script = Box<dyn FnMut(&Value, usize) -> Option<Turn> + Send>;

/// A model server on a free port of loopback.
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    script: Script,
    requests: Vec<Value>,
    violations: Vec<String>,
    open: BTreeSet<String>,
    stopped: bool,
}

impl ModelServer {
    /// Starts a server that takes for each request the first turn that is left and fits.
    pub fn script(turns: Vec<Turn>) -> Self {
        let mut left = turns;
        Self::answering(move |request, _| {
            let at = left.iter().position(|turn| turn.fits(request))?;
            Some(if left[at].repeat { left[at].clone() } else { left.remove(at) })
        })
    }

    /// Starts a server that computes each turn from the request and its number, which counts from 1.
    pub fn answering(script: impl FnMut(&Value, usize) -> Option<Turn> + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port of loopback");
        let address = listener.local_addr().expect("the address of the listener");
        let state = State {
            script: Box::new(script),
            requests: Vec::new(),
            violations: Vec::new(),
            open: BTreeSet::new(),
            stopped: false,
        };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let accepting = std::thread::spawn({
            let shared = Arc::clone(&shared);
            move || accept(&listener, &shared)
        });
        Self { address, shared, accepting: Some(accepting) }
    }

    /// Returns what goes into `base_url`.
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Opens a gate for good.
    pub fn open(&self, gate: &str) {
        self.shared.change(|state| {
            state.open.insert(gate.to_owned());
        });
    }

    /// Returns the requests so far.
    pub fn requests(&self) -> Vec<Value> {
        self.shared.lock().requests.clone()
    }

    /// Waits until `count` requests have come.
    pub fn wait_requests(&self, count: usize) {
        let guard = self.shared.lock();
        let waiting = |state: &mut State| state.requests.len() < count;
        let (state, time) =
            self.shared.changed.wait_timeout_while(guard, DEADLINE, waiting).expect("a live model server");
        assert!(!time.timed_out(), "waited in vain for request {count}: {} came", state.requests.len());
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("a live model server")
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    /// Records a request and returns its number and the turn that answers it.
    fn arrive(&self, request: Value) -> (usize, Turn) {
        let mut state = self.lock();
        let number = state.requests.len() + 1;
        let found = strict::violations(&request).into_iter().map(|what| format!("request {number}: {what}"));
        state.violations.extend(found);
        let turn = (state.script)(&request, number).unwrap_or_else(|| {
            state.violations.push(format!("request {number}: the script has no turn for it"));
            Turn { status: Some(400), ..Turn::default() }
        });
        state.requests.push(request);
        drop(state);
        self.changed.notify_all();
        (number, turn)
    }

    /// Waits until the gate is open; false when the server ends first.
    fn pass(&self, gate: &str) -> bool {
        let waiting = |state: &mut State| !state.stopped && !state.open.contains(gate);
        let state = self.changed.wait_while(self.lock(), waiting).expect("a live model server");
        !state.stopped
    }
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
    if request.method == "GET" {
        return http::reply(&mut stream, 200, None, r#"{"object":"list","data":[{"id":"scripted","object":"model"}]}"#);
    }
    let body = serde_json::from_slice(&request.body).unwrap_or(Value::Null);
    let (number, turn) = shared.arrive(body);
    turn.play(&mut stream, number, |gate| shared.pass(gate))
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.shared.change(|state| state.stopped = true);
        drop(TcpStream::connect(self.address)); // Wakes the accepting thread.
        if let Some(thread) = self.accepting.take() {
            drop(thread.join());
        }
        if let (Ok(state), false) = (self.shared.state.lock(), std::thread::panicking()) {
            assert!(state.violations.is_empty(), "requests that a strict server refuses: {:#?}", state.violations);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use serde_json::json;

    use super::{ModelServer, Turn};

    fn post(server: &ModelServer, content: &str) -> TcpStream {
        let message = json!({"role": "user", "content": content});
        let body = json!({"stream": true, "model": "m", "messages": [message]}).to_string();
        let mut stream = TcpStream::connect(server.address).expect("a live server");
        write!(stream, "POST /v1/chat/completions HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}", body.len())
            .expect("a request sent");
        stream
    }

    fn answer(mut stream: TcpStream) -> String {
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("a whole answer");
        text
    }

    #[test]
    fn turns_come_in_order_of_fit() {
        let server = ModelServer::script(vec![
            Turn { when: Some("special".to_owned()), ..Turn::text("for special") },
            Turn { status: Some(429), retry_after: Some(3), ..Turn::default() },
            Turn { repeat: true, ..Turn::exec("c{n}", "echo {n}") },
        ]);
        assert!(answer(post(&server, "p")).starts_with("HTTP/1.1 429 Scripted\r\n"));
        let text = answer(post(&server, "special"));
        assert!(text.contains("\"content\":\"for \"") && text.ends_with("data: [DONE]\n\n"), "{text}");
        let calls = answer(post(&server, "p"));
        assert!(calls.contains("\"id\":\"c3\"") && calls.contains("tool_calls"), "{calls}");
        assert_eq!(server.requests().len(), 3);
    }

    #[test]
    fn a_gate_holds_the_reply() {
        let server = ModelServer::script(vec![Turn::text("done").gated("g")]);
        let stream = post(&server, "p");
        server.wait_requests(1);
        stream.set_nonblocking(true).expect("a socket");
        assert!(stream.peek(&mut [0]).is_err(), "a byte came before the gate was open");
        stream.set_nonblocking(false).expect("a socket");
        server.open("g");
        assert!(answer(stream).contains("done"));
    }

    #[test]
    #[should_panic(expected = "a strict server refuses")]
    fn a_request_beyond_the_script_fails_the_test() {
        let server = ModelServer::script(Vec::new());
        drop(answer(post(&server, "p")));
    }
}
