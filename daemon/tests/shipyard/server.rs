//! An old Shipyard of one ship a session: it runs shell commands in a folder, and may be told to answer otherwise.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tempfile::TempDir;

pub const TOKEN: &str = "tok-very-secret";

/// A request as it came.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    pub line: String,
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
}

impl Asked {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    pub fn session(&self) -> String {
        self.headers.get("x-session-id").cloned().unwrap_or_default()
    }
}

/// What becomes of a request.
#[derive(Debug, Clone)]
pub enum Act {
    /// This status and body.
    Say(u16, String),
    /// This status, and the caller is sent there.
    Send(u16, String),
    /// Nothing is said before the connection ends.
    Hang,
    /// What a working server does.
    Serve,
    /// The same, but who waits in a ship waits not nearly as long.
    Hurry,
    /// The same, but the caller is told that it took too long.
    GiveUp,
    /// The same, but the reply is lost.
    Lose,
}

pub fn say(status: u16, body: &Value) -> Act {
    Act::Say(status, body.to_string())
}

type Script = dyn Fn(&Asked) -> Act + Send + Sync;

struct Shared {
    folder: PathBuf,
    asked: Mutex<Vec<Asked>>,
    ships: Mutex<Vec<(String, i64)>>,
    script: Box<Script>,
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
        let shared = Arc::new(Shared {
            folder: folder.path().to_owned(),
            asked: Mutex::default(),
            ships: Mutex::default(),
            script: Box::new(script),
        });
        let serving = shared.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let serving = serving.clone();
                std::thread::spawn(move || serving.serve(stream));
            }
        });
        Self { url, shared, _folder: folder }
    }

    pub fn working() -> Self {
        Self::start(|_| Act::Serve)
    }

    /// Returns the first lines of the requests so far that hold `part`.
    pub fn asked(&self, part: &str) -> Vec<Asked> {
        self.shared.asked.lock().unwrap().iter().filter(|asked| asked.line.contains(part)).cloned().collect()
    }

    /// Returns the place of a file in the workspace of the ships.
    pub fn path(&self, name: &str) -> PathBuf {
        self.shared.folder.join(name)
    }

    /// Stops a ship, or lets it run again.
    pub fn set(&self, session: &str, status: i64) {
        let mut ships = self.shared.ships.lock().unwrap();
        ships.iter_mut().filter(|(own, _)| own == session).for_each(|ship| ship.1 = status);
    }

    pub fn ships(&self) -> usize {
        self.shared.ships.lock().unwrap().len()
    }
}

impl Shared {
    fn serve(&self, stream: TcpStream) {
        let Some(asked) = read(&stream) else { return };
        self.asked.lock().unwrap().push(asked.clone());
        let act = (self.script)(&asked);
        let mut asked = asked;
        if matches!(act, Act::Hurry | Act::GiveUp) {
            let text = String::from_utf8(asked.body).unwrap();
            let hurried = |text: String, wait| text.replace(&format!("look {wait} "), "look 1 ");
            asked.body = [200, 100, 50, 25, 12].iter().fold(text, hurried).into_bytes();
        }
        let (status, extra, body) = match act {
            Act::Hang => return,
            Act::Lose => return drop(self.answer(&asked)),
            Act::Send(status, to) => (status, format!("location: {to}\r\n"), Vec::new()),
            Act::Say(status, body) => (status, String::new(), body.into_bytes()),
            Act::GiveUp => {
                self.answer(&asked);
                (400, String::new(), br#"{"detail":"Request timeout"}"#.to_vec())
            }
            Act::Serve | Act::Hurry => {
                let (status, body) = self.answer(&asked);
                (status, String::new(), body)
            }
        };
        let head = format!("HTTP/1.1 {status} X\r\n{extra}connection: close\r\ncontent-length: {}\r\n\r\n", body.len());
        let mut stream = stream;
        // Who does not wait any more need not be told.
        drop(stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body)));
    }

    fn answer(&self, asked: &Asked) -> (u16, Vec<u8>) {
        if asked.headers.get("authorization").map(String::as_str) != Some(&format!("Bearer {TOKEN}")) {
            return (401, json!({"detail": "Invalid access token"}).to_string().into_bytes());
        }
        let mut words = asked.line.split(' ');
        let (method, path) = (words.next().unwrap(), words.next().unwrap());
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let parts: Vec<&str> = path.split('/').skip(1).collect();
        let (status, body) = match (method, parts.as_slice()) {
            ("POST", ["ship"]) => (201, self.make(&asked.session())),
            (method, ["ship", id, act @ ..]) => {
                let Some(ship) = self.find(id) else { return (404, br#"{"detail":"Ship not found"}"#.to_vec()) };
                match (method, act) {
                    ("DELETE", []) => {
                        self.ships.lock().unwrap().retain(|(session, _)| *session != ship.0);
                        (204, Value::Null)
                    }
                    ("POST", ["exec"]) => self.exec(&ship, &asked.json()),
                    ("POST", ["upload"]) => (200, self.upload(&asked.body)),
                    ("GET", ["download"]) => return self.download(query),
                    _ => (200, told(&ship)),
                }
            }
            _ => (404, json!({"detail": "Not Found"})),
        };
        (status, if body.is_null() { Vec::new() } else { body.to_string().into_bytes() })
    }

    fn make(&self, session: &str) -> Value {
        let mut ships = self.ships.lock().unwrap();
        ships.retain(|(own, _)| own != session);
        ships.push((session.to_owned(), 1));
        told(&(session.to_owned(), 1))
    }

    fn find(&self, id: &str) -> Option<(String, i64)> {
        self.ships.lock().unwrap().iter().find(|ship| told(ship)["id"] == id).cloned()
    }

    fn exec(&self, ship: &(String, i64), body: &Value) -> (u16, Value) {
        if ship.1 != 1 {
            return (400, json!({"detail": "Ship not found or not running"}));
        }
        let command = body["payload"]["command"].as_str().unwrap_or("exit 9");
        let ended = Command::new("sh").args(["-c", command]).current_dir(&self.folder).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("strict UTF-8").trim().to_owned();
        let (code, stdout, stderr) = (ended.status.code(), text(ended.stdout), text(ended.stderr));
        let data = json!({"success": code == Some(0), "return_code": code, "stdout": stdout, "stderr": stderr,
            "pid": null, "error": null});
        (200, json!({"success": true, "data": data, "error": null}))
    }

    fn upload(&self, body: &[u8]) -> Value {
        let text = String::from_utf8_lossy(body);
        let field = |name: &str| {
            let at = text.find(&format!("name=\"{name}\"")).unwrap();
            let start = at + text[at..].find("\r\n\r\n").unwrap() + 4;
            text[start..start + text[start..].find("\r\n--").unwrap()].to_owned()
        };
        let place = self.folder.join(field("file_path"));
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::fs::write(&place, field("file")).unwrap();
        json!({"success": true, "message": "ok", "file_path": place, "error": null})
    }

    fn download(&self, query: &str) -> (u16, Vec<u8>) {
        let name = query.trim_start_matches("file_path=").replace("%2F", "/");
        match std::fs::read(self.folder.join(&name)) {
            _ if name.starts_with('/') => (403, br#"{"detail":"Access denied"}"#.to_vec()),
            Ok(bytes) => (200, bytes),
            Err(_) => (404, br#"{"detail":"File not found"}"#.to_vec()),
        }
    }
}

fn told((session, status): &(String, i64)) -> Value {
    json!({"id": format!("ship-{}", &session[..8]), "status": status, "ttl": 60, "max_session_num": 1,
        "current_session_num": 1})
}

fn read(stream: &TcpStream) -> Option<Asked> {
    let mut reader = BufReader::new(stream);
    let mut asked = Asked::default();
    reader.read_line(&mut asked.line).ok()?;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        asked.headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    let length = asked.headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    asked.body.resize(length, 0);
    reader.read_exact(&mut asked.body).ok()?;
    (!asked.line.is_empty()).then_some(asked)
}
