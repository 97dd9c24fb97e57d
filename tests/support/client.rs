//! A tiny blocking client of the daemon's socket, which trusts nothing and hides nothing.

use std::collections::{HashMap, VecDeque};
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use nano_protocol::error::RpcError;
use nano_protocol::event::Event;
use nano_protocol::id::TaskId;
use nano_protocol::task::{Task, TaskState, Tasks};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::wait::DEADLINE;

/// A connection to the daemon.
pub struct Client {
    reader: BufReader<UnixStream>,
    writer: UnixStream,
    last_id: u64,
    answers: HashMap<u64, Result<Value, RpcError>>,
    events: VecDeque<Event>,
}

impl Client {
    /// Connects to the socket at `path`.
    pub fn connect(path: &Path) -> std::io::Result<Self> {
        let writer = UnixStream::connect(path)?;
        writer.set_read_timeout(Some(DEADLINE))?;
        let reader = BufReader::new(writer.try_clone()?);
        Ok(Self { reader, writer, last_id: 0, answers: HashMap::new(), events: VecDeque::new() })
    }

    /// Sends a request and waits for its answer; `None` when the daemon went away before it came.
    pub fn try_call(&mut self, method: &str, params: &Value) -> Option<Result<Value, RpcError>> {
        let id = self.begin(method, params)?;
        self.finish(id)
    }

    /// Sends a request and waits for its answer.
    pub fn call(&mut self, method: &str, params: &Value) -> Result<Value, RpcError> {
        self.try_call(method, params).unwrap_or_else(|| panic!("the daemon went away during {method}"))
    }

    /// Sends a request that must succeed and returns its result.
    pub fn get<T: DeserializeOwned>(&mut self, method: &str, params: &Value) -> T {
        let result = self.call(method, params).unwrap_or_else(|error| panic!("{method} {params}: {error:?}"));
        serde_json::from_value(result.clone()).unwrap_or_else(|error| panic!("{method}: {error} in {result}"))
    }

    /// Sends a request that must fail and returns the error's code.
    pub fn refused(&mut self, method: &str, params: &Value) -> i32 {
        match self.call(method, params) {
            Ok(result) => panic!("{method} {params} should have been refused but answered {result}"),
            Err(error) => error.code,
        }
    }

    /// Sends a request without waiting and returns its number; `None` when the daemon is gone.
    pub fn begin(&mut self, method: &str, params: &Value) -> Option<u64> {
        self.last_id += 1;
        let line = json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params}).to_string();
        self.send(format!("{line}\n").as_bytes()).ok()?;
        Some(self.last_id)
    }

    /// Waits for the answer to the request with this number; `None` when the daemon is gone.
    pub fn finish(&mut self, id: u64) -> Option<Result<Value, RpcError>> {
        loop {
            if let Some(answer) = self.answers.remove(&id) {
                return Some(answer);
            }
            let line = self.read_line()?;
            self.sort(&line);
        }
    }

    /// Submits a task to a session.
    pub fn submit(&mut self, session: &str, content: &str) -> Task {
        self.get("task.submit", &json!({"session": session, "content": content}))
    }

    /// Waits until nothing more happens to a task by itself.
    pub fn settled(&mut self, task: &TaskId) -> Task {
        self.get("task.wait", &json!({ "task": task }))
    }

    /// Submits a task and waits until it has succeeded.
    pub fn run(&mut self, session: &str, content: &str) -> Task {
        let task = self.submit(session, content);
        let task = self.settled(&task.id);
        assert_eq!(task.state, TaskState::Succeeded, "{task:?}");
        task
    }

    /// Returns all of a session's tasks, oldest first.
    pub fn tasks(&mut self, session: &str) -> Vec<Task> {
        let mut all = Vec::new();
        let mut after = None;
        loop {
            let page: Tasks = self.get("task.list", &json!({"session": session, "after": after}));
            all.extend(page.tasks);
            after = page.next;
            if after.is_none() {
                all.reverse();
                return all;
            }
        }
    }

    /// Subscribes to events and returns the newest number there is.
    pub fn subscribe(&mut self, params: &Value) -> u64 {
        self.get::<Value>("events.subscribe", params)["head_seq"].as_u64().expect("a head_seq")
    }

    /// Returns the next event; `None` when the daemon is gone.
    pub fn next_event(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(event);
            }
            let line = self.read_line()?;
            self.sort(&line);
        }
    }

    /// Reads events until one fits, and returns all that came, that one the last.
    pub fn events_until(&mut self, what: &str, mut fits: impl FnMut(&Event) -> bool) -> Vec<Event> {
        let mut seen = Vec::new();
        loop {
            let event = self.next_event().unwrap_or_else(|| panic!("the daemon went away before {what}"));
            let found = fits(&event);
            seen.push(event);
            if found {
                return seen;
            }
        }
    }

    /// Sends raw bytes.
    pub fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.writer.write_all(bytes)
    }

    /// Makes sending fail, rather than wait, once the daemon takes nothing more.
    pub fn stop_when_full(&self) {
        self.writer.set_write_timeout(Some(Duration::from_millis(500))).expect("an open connection");
    }

    /// Says that nothing more will be sent.
    pub fn half_close(&self) {
        self.writer.shutdown(Shutdown::Write).expect("an open connection");
    }

    /// Reads one raw line; `None` when the daemon closed the connection.
    pub fn read_line(&mut self) -> Option<String> {
        let mut line = String::new();
        match self.reader.read_line(&mut line) {
            Ok(0) => None,
            Ok(_) => Some(line.trim_end_matches('\n').to_owned()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => panic!("no line came within {DEADLINE:?}"),
            Err(_) => None,
        }
    }

    fn sort(&mut self, line: &str) {
        let message: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line}"));
        assert_eq!(message["jsonrpc"], "2.0", "{line}");
        if message["method"] == "event" {
            let event = serde_json::from_value(message["params"]["event"].clone());
            return self.events.push_back(event.unwrap_or_else(|error| panic!("{error} in {line}")));
        }
        let id = message["id"].as_u64().unwrap_or_else(|| panic!("an answer to nothing: {line}"));
        let answer = match message.get("error") {
            Some(error) => Err(serde_json::from_value(error.clone()).unwrap_or_else(|bad| panic!("{bad} in {line}"))),
            None => Ok(message["result"].clone()),
        };
        assert!(self.answers.insert(id, answer).is_none(), "a second answer to request {id}: {line}");
    }
}
