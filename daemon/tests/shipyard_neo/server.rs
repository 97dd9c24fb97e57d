//! A Bay of sandboxes that share a folder: it runs shell commands there, and may be told to answer otherwise.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::asked::{Asked, read};
use super::records::{Records, envelope, page, profiles};

pub const TOKEN: &str = "sk-bay-very-secret";

/// What becomes of a request.
#[derive(Debug, Clone)]
pub enum Act {
    /// This status and body.
    Say(u16, String),
    /// This status, and the caller is sent there.
    Send(u16, String),
    /// The connection ends before a reply.
    Hang,
    /// The connection ends in the middle of the reply of a working server.
    Lose,
    /// No reply comes; the connection stays open.
    Hold,
    /// What a working server does.
    Serve,
    /// The same, but Bay says that the command took too long.
    Late,
}

pub fn say(status: u16, body: &Value) -> Act {
    Act::Say(status, body.to_string())
}

type Script = dyn Fn(&Asked) -> Act + Send + Sync;

struct Shared {
    folder: PathBuf,
    asked: Mutex<Vec<Asked>>,
    state: Mutex<State>,
    script: Box<Script>,
}

#[derive(Default)]
struct State {
    made: u64,
    sandboxes: BTreeMap<String, Value>,
    keys: BTreeMap<String, (Value, Value)>,
    python_runs: u64,
    history: Vec<Value>,
    records: Records,
}

/// A listening server; its threads end with the process, its folder goes with this.
pub struct Server {
    pub url: String,
    shared: Arc<Shared>,
    _folder: TempDir,
}

impl Server {
    pub fn start(script: impl Fn(&Asked) -> Act + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let folder = tempfile::tempdir().unwrap();
        let (asked, state, script) = (Mutex::default(), Mutex::default(), Box::new(script));
        let shared = Arc::new(Shared { folder: folder.path().to_owned(), asked, state, script });
        let serving = shared.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let serving = serving.clone();
                std::thread::spawn(move || serving.serve(&stream));
            }
        });
        Self { url, shared, _folder: folder }
    }

    pub fn working() -> Self {
        Self::start(|_| Act::Serve)
    }

    /// Answers requests whose first line holds `part` with this, others as a working server.
    pub fn but(part: &'static str, act: Act) -> Self {
        Self::start(move |asked| if asked.line.contains(part) { act.clone() } else { Act::Serve })
    }

    /// Returns the requests so far whose first lines hold `part`.
    pub fn asked(&self, part: &str) -> Vec<Asked> {
        self.shared.asked.lock().unwrap().iter().filter(|asked| asked.line.contains(part)).cloned().collect()
    }

    /// Returns the place of a file in the sandboxes' folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.shared.folder.join(name)
    }

    pub fn sandboxes(&self) -> usize {
        self.shared.state.lock().unwrap().sandboxes.len()
    }

    /// Changes what is said of every sandbox.
    pub fn set(&self, field: &str, value: &Value) {
        self.shared.state.lock().unwrap().sandboxes.values_mut().for_each(|one| one[field] = value.clone());
    }

    /// Deletes all sandboxes, as their time being over does.
    pub fn expire(&self) {
        self.shared.state.lock().unwrap().sandboxes.clear();
    }

    /// Ends all compute.
    pub fn kill_compute(&self) {
        self.shared.state.lock().unwrap().python_runs = 0;
    }
}

impl Shared {
    fn serve(&self, stream: &TcpStream) {
        let Some(mut asked) = read(stream) else { return };
        {
            let mut all = self.asked.lock().unwrap();
            asked.before = all.iter().filter(|one| one.line == asked.line).count();
            all.push(asked.clone());
        }
        let (status, extra, body, cut) = match (self.script)(&asked) {
            Act::Hang => return,
            Act::Hold => return drop((&*stream).read(&mut [0])),
            Act::Send(status, to) => (status, format!("location: {to}\r\n"), Vec::new(), 0),
            Act::Say(status, body) => (status, String::new(), body.into_bytes(), 0),
            Act::Late => {
                self.answer(&asked);
                let late = json!({"success": false, "output": "", "error": "Command timed out", "exit_code": -1});
                (200, String::new(), late.to_string().into_bytes(), 0)
            }
            act @ (Act::Lose | Act::Serve) => {
                let (status, body) = self.answer(&asked);
                (status, String::new(), body, usize::from(matches!(act, Act::Lose)))
            }
        };
        let length = body.len() + cut;
        let head = format!("HTTP/1.1 {status} X\r\n{extra}connection: close\r\ncontent-length: {length}\r\n\r\n");
        let mut stream = stream;
        // Who does not wait any more need not be told.
        drop(stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body)));
    }

    fn answer(&self, asked: &Asked) -> (u16, Vec<u8>) {
        let (method, path, query) = asked.parts();
        let parts: Vec<&str> = path.split('/').skip(2).collect();
        let is_open = path == "/v1/profiles";
        if !is_open && asked.headers.get("authorization").map(String::as_str) != Some(&format!("Bearer {TOKEN}")) {
            return text(401, &envelope("unauthorized", "Invalid API key", &json!({})));
        }
        let (status, body) = match (method, parts.as_slice()) {
            ("GET", ["profiles"]) => (200, profiles()),
            ("POST", ["sandboxes"]) => self.make(asked),
            (method, ["sandboxes", id, act @ ..]) => match self.state.lock().unwrap().sandboxes.get(*id).cloned() {
                None => (404, envelope("not_found", &format!("Sandbox not found: {id}"), &json!({}))),
                Some(sandbox) => match (method, act) {
                    ("GET", []) => (200, sandbox),
                    ("GET", ["filesystem", "download"]) => return self.download(query),
                    _ => (0, Value::Null),
                },
            },
            (_, ["skills", rest @ ..]) => self.state.lock().unwrap().records.answer(method, rest, query, &asked.json()),
            _ => (404, json!({"detail": "Not Found"})),
        };
        if status > 0 { text(status, &body) } else { text(200, &self.act(method, &parts[1..], asked)) }
    }

    fn act(&self, method: &str, parts: &[&str], asked: &Asked) -> Value {
        let body = asked.json();
        match (method, parts) {
            (_, [_, "shell", "exec"]) => self.shell(&body),
            (_, [_, "python", "exec"]) => self.python(&body),
            (_, [_, "filesystem", "upload"]) => self.upload(&asked.body),
            ("DELETE", [id]) => {
                self.state.lock().unwrap().sandboxes.remove(*id);
                Value::Null
            }
            (_, [id, "extend_ttl"]) => {
                let mut state = self.state.lock().unwrap();
                let sandbox = state.sandboxes.get_mut(*id).unwrap();
                sandbox["expires_at"] = "2999-01-01T00:00:00".into();
                sandbox.clone()
            }
            ("GET", [_, "history"]) => page(&self.state.lock().unwrap().history, asked.parts().2),
            _ => json!({"status": "ok", "success": true}),
        }
    }

    fn make(&self, asked: &Asked) -> (u16, Value) {
        let (body, mut state) = (asked.json(), self.state.lock().unwrap());
        let key = asked.headers.get("idempotency-key").cloned().unwrap_or_default();
        if let Some((known, reply)) = state.keys.get(&key) {
            let conflict = envelope("conflict", "Idempotency key reused", &json!({"key": key}));
            return if *known == body { (201, reply.clone()) } else { (409, conflict) };
        }
        state.made += 1;
        let id = format!("sandbox-{:012x}", state.made);
        let sandbox = json!({"id": id, "status": "ready", "profile": body["profile"], "expires_at": null,
            "idle_expires_at": null, "capabilities": ["browser", "filesystem", "python", "shell"]});
        state.sandboxes.insert(id, sandbox.clone());
        state.keys.insert(key, (body, sandbox.clone()));
        (201, sandbox)
    }

    fn shell(&self, body: &Value) -> Value {
        let command = body["command"].as_str().unwrap_or("exit 9");
        let ended = Command::new("sh").args(["-c", command]).current_dir(&self.folder).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("strict UTF-8");
        let code = ended.status.code();
        let mut state = self.state.lock().unwrap();
        let id = format!("exec-{}", state.history.len());
        let output = text(ended.stdout);
        let entry = json!({"id": id, "code": command, "success": code == Some(0), "tags": body["tags"],
            "output": output});
        state.history.insert(0, entry);
        let error = Some(text(ended.stderr)).filter(|error| !error.is_empty());
        json!({"success": code == Some(0), "output": output, "error": error, "exit_code": code,
            "execution_id": id, "execution_time_ms": 1, "command": null})
    }

    /// Prints the program; one that begins with `fail` fails.
    fn python(&self, body: &Value) -> Value {
        let code = body["code"].as_str().unwrap_or_default();
        let mut state = self.state.lock().unwrap();
        state.python_runs += 1;
        let error = code.starts_with("fail").then_some("\u{1b}[31mNameError\u{1b}[0m: x");
        let output = json!({"text": code, "images": []});
        json!({"success": error.is_none(), "output": code, "error": error, "execution_id": "exec-2",
            "data": {"execution_count": state.python_runs, "output": output}})
    }

    fn upload(&self, body: &[u8]) -> Value {
        let text = String::from_utf8_lossy(body);
        let field = |name: &str| {
            let at = text.find(&format!("name=\"{name}\"")).unwrap();
            let start = at + text[at..].find("\r\n\r\n").unwrap() + 4;
            text[start..start + text[start..].find("\r\n--").unwrap()].to_owned()
        };
        let path = field("path");
        let place = self.folder.join(&path);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::fs::write(&place, field("file")).unwrap();
        json!({"status": "ok", "path": path, "size": field("file").len()})
    }

    fn download(&self, query: &str) -> (u16, Vec<u8>) {
        let name = query.trim_start_matches("path=").replace("%2F", "/");
        match std::fs::read(self.folder.join(&name)) {
            Ok(bytes) => (200, bytes),
            Err(_) => text(404, &envelope("file_not_found", &format!("File not found: {name}"), &json!({}))),
        }
    }
}

fn text(status: u16, body: &Value) -> (u16, Vec<u8>) {
    (status, if body.is_null() { Vec::new() } else { body.to_string().into_bytes() })
}
