//! A scripted daemon on a real socket: a closure says what answers each request.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};

use serde_json::{Value, json};
use tempfile::TempDir;

/// What the daemon does about a request, in order.
pub enum Say {
    /// Answers it.
    Result(Value),
    /// Refuses it.
    Error(i32, &'static str, &'static str),
    /// Tells an event.
    Event(Value),
    /// Closes the connection.
    Close,
}

type Script = Box<dyn Fn(&str, &Value) -> Vec<Say> + Send + Sync>;

/// The daemon, gone with its folder when dropped.
pub struct Fake {
    folder: TempDir,
    seen: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    requests: Mutex<Vec<(String, Value)>>,
    more: Condvar,
}

impl Fake {
    /// Starts to listen.
    pub fn start(script: impl Fn(&str, &Value) -> Vec<Say> + Send + Sync + 'static) -> Self {
        let folder = TempDir::new().unwrap();
        let seen = Arc::new(Seen::default());
        listen(&folder.path().join("s"), Arc::new(Box::new(script)), &seen);
        Self { folder, seen }
    }

    /// Returns the socket's path.
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("s")
    }

    /// Returns the parameters of every request for `method` so far.
    pub fn asked(&self, method: &str) -> Vec<Value> {
        let requests = self.seen.requests.lock().unwrap();
        requests.iter().filter(|(name, _)| name == method).map(|(_, params)| params.clone()).collect()
    }

    /// Waits until `method` has been asked for.
    pub fn wait_for(&self, method: &str) {
        let requests = self.seen.requests.lock().unwrap();
        let missing = |requests: &mut Vec<(String, Value)>| !requests.iter().any(|(name, _)| name == method);
        drop(self.seen.more.wait_while(requests, missing).unwrap());
    }
}

fn listen(path: &Path, script: Arc<Script>, seen: &Arc<Seen>) {
    let listener = UnixListener::bind(path).unwrap();
    let seen = Arc::clone(seen);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (script, seen) = (Arc::clone(&script), Arc::clone(&seen));
            std::thread::spawn(move || serve(&stream.unwrap(), &script, &seen));
        }
    });
}

fn serve(stream: &UnixStream, script: &Script, seen: &Seen) {
    for line in BufReader::new(stream).lines() {
        let Ok(line) = line else { return };
        let request: Value = serde_json::from_str(&line).unwrap();
        let method = request["method"].as_str().unwrap().to_owned();
        let says = script(&method, &request["params"]);
        seen.requests.lock().unwrap().push((method, request["params"].clone()));
        seen.more.notify_all();
        for say in says {
            let Some(line) = line_of(say, &request["id"]) else {
                stream.shutdown(std::net::Shutdown::Both).unwrap();
                return;
            };
            // The client may have what it wanted and be gone.
            if writeln!(&*stream, "{line}").is_err() {
                return;
            }
        }
    }
}

fn line_of(say: Say, id: &Value) -> Option<Value> {
    Some(match say {
        Say::Result(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Say::Error(code, kind, message) => {
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message, "data": {"kind": kind, "retryable": false}}})
        }
        Say::Event(event) => {
            json!({"jsonrpc": "2.0", "method": "event", "params": {"subscription": 1, "event": event}})
        }
        Say::Close => return None,
    })
}
