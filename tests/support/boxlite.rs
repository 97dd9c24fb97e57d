//! A stand-in for `boxlite serve`: its API over a folder for each box, in which programs really run.
//!
//! A box's `/tmp` lies in its folder; beside that a program sees this machine. What was sent is recorded, and faults
//! come on demand. It can run in the test, or as a program of its own that a daemon starts.

mod execution;
mod routes;
mod wire;

use std::collections::BTreeMap;
use std::fs;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;

use serde_json::Value;
use tempfile::TempDir;

use crate::processes;
use execution::Execution;
pub use routes::Fault;

/// The arguments with which a script of [`program`] runs the test.
const ARGUMENTS: &str = "STAND_IN_ARGUMENTS";

/// A server on a free port of loopback.
pub struct Boxlite {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
    root: TempDir,
}

/// A request as it came.
#[derive(Debug, Clone)]
pub struct Seen {
    /// Method and path.
    pub what: String,
    /// The header `authorization`.
    pub authorization: Option<String>,
    /// The body.
    pub body: Value,
}

struct Shared {
    root: PathBuf,
    key: Option<String>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    fault: Option<Fault>,
    seen: Vec<Seen>,
    executions: BTreeMap<String, Arc<Execution>>,
    /// Connections that show output, whether they are still open or not.
    attached: Vec<TcpStream>,
    made: usize,
    stopped: bool,
}

impl Boxlite {
    /// Starts a server that wants no key.
    pub fn start() -> Self {
        let root = tempfile::Builder::new().prefix("nano-boxes-").tempdir().expect("a temporary folder");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port of loopback");
        let address = listener.local_addr().expect("the address of the listener");
        let shared = Arc::new(Shared { root: root.path().to_owned(), key: None, state: Mutex::default() });
        let accepting = std::thread::spawn({
            let shared = Arc::clone(&shared);
            move || accept(&listener, &shared)
        });
        Self { address, shared, accepting: Some(accepting), root }
    }

    /// Returns what goes into `endpoint`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// From now on does what a bad server does, or no more.
    pub fn fault(&self, fault: Option<Fault>) {
        self.shared.lock().fault = fault;
    }

    /// Returns the requests so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.shared.lock().seen.clone()
    }

    /// Returns name and status of every box.
    pub fn boxes(&self) -> Vec<(String, String)> {
        let text = |value: &Value, key| value[key].as_str().unwrap_or_default().to_owned();
        self.shared.boxes().iter().map(|(_, found)| (text(found, "name"), text(found, "status"))).collect()
    }

    /// Lets every box vanish, as if somebody had deleted it.
    pub fn lose(&self) {
        for (id, _) in self.shared.boxes() {
            self.shared.remove(&id);
        }
    }

    /// Knows nothing of any execution any more; what runs runs on.
    pub fn forget(&self) {
        self.shared.lock().executions.clear();
    }

    /// Breaks every connection that shows output.
    pub fn cut(&self) {
        for stream in self.shared.lock().attached.drain(..) {
            // It may be closed already.
            stream.shutdown(Shutdown::Both).ok();
        }
    }

    /// Stops every box, as after a restart of its machine.
    pub fn stop(&self) {
        for (id, _) in self.shared.boxes() {
            self.shared.set_status(&id, "stopped");
        }
    }

    /// Returns the folder of the only box.
    pub fn folder(&self) -> PathBuf {
        let boxes = self.shared.boxes();
        assert_eq!(boxes.len(), 1, "there is one box");
        self.shared.folder(&boxes[0].0)
    }

    /// Returns the command lines of all that runs in boxes.
    pub fn running(&self) -> Vec<String> {
        processes::of(self.root.path()).into_iter().map(|process| process.command).collect()
    }
}

impl Drop for Boxlite {
    fn drop(&mut self) {
        self.shared.lock().stopped = true;
        drop(TcpStream::connect(self.address));
        if let Some(accepting) = self.accepting.take() {
            drop(accepting.join());
        }
        processes::of(self.root.path()).iter().for_each(processes::kill);
    }
}

/// Writes a program `boxlite` into `folder` that serves when the test `name`, which calls [`serve_if_asked`], is run in
/// this same executable.
pub fn program(folder: &Path, name: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let path = folder.join("boxlite");
    let test = std::env::current_exe().expect("this executable");
    let text = format!(
        "#!/bin/sh\n[ \"$1\" = --version ] && echo 'boxlite 0.10.8' && exit\n{ARGUMENTS}=\"$*\" exec '{}' --exact {name} \
         --nocapture >&2\n",
        test.display()
    );
    fs::write(&path, text).expect("a script");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a script that runs");
    path
}

/// Serves as the program of [`program`] until it is ended, or returns at once where this is a mere test.
pub fn serve_if_asked() {
    let Ok(arguments) = std::env::var(ARGUMENTS) else { return };
    let words: Vec<&str> = arguments.split(' ').collect();
    let of = |flag| words.iter().position(|word| *word == flag).and_then(|at| words.get(at + 1)).expect("the flag");
    assert_eq!((words[0], *of("--host")), ("serve", "127.0.0.1"), "{arguments}");
    let listener = TcpListener::bind(("127.0.0.1", of("--port").parse().expect("a port"))).expect("the port");
    let root = PathBuf::from(std::env::var("HOME").expect("a HOME")).join(".boxlite");
    fs::create_dir_all(&root).expect("a folder for boxes");
    let key = std::env::var("BOXLITE_SERVE_API_KEY").ok();
    eprintln!("listening with {key:?}");
    let shared = Arc::new(Shared { root, key, state: Mutex::default() });
    for (id, _) in shared.boxes() {
        shared.set_status(&id, "stopped");
    }
    accept(&listener, &shared);
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        if shared.lock().stopped {
            return;
        }
        let (Ok(stream), shared) = (stream, Arc::clone(shared)) else { continue };
        // A caller that leaves early is no failure of the server.
        std::thread::spawn(move || drop(routes::serve(stream, &shared)));
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("a live stand-in")
    }

    fn folder(&self, id: &str) -> PathBuf {
        self.root.join(id)
    }

    fn boxes(&self) -> Vec<(String, Value)> {
        let entries = fs::read_dir(&self.root).expect("the folder of boxes").flatten();
        let read = |entry: fs::DirEntry| {
            let id = entry.file_name().into_string().ok()?;
            Some((id.clone(), self.read(&id)?))
        };
        entries.filter_map(read).collect()
    }

    fn read(&self, id: &str) -> Option<Value> {
        serde_json::from_slice(&fs::read(self.root.join(id).join(".box.json")).ok()?).ok()
    }

    fn write(&self, id: &str, found: &Value) {
        let folder = self.folder(id);
        fs::create_dir_all(folder.join("tmp")).expect("a folder for a box");
        fs::write(folder.join(".new.json"), found.to_string()).expect("a note of a box");
        fs::rename(folder.join(".new.json"), folder.join(".box.json")).expect("a note of a box");
    }

    fn set_status(&self, id: &str, status: &str) {
        if let Some(mut found) = self.read(id) {
            found["status"] = status.into();
            self.write(id, &found);
        }
        if status != "running" {
            processes::of(&self.folder(id)).iter().for_each(processes::kill);
        }
    }

    fn remove(&self, id: &str) {
        processes::of(&self.folder(id)).iter().for_each(processes::kill);
        fs::remove_dir_all(self.folder(id)).expect("a box to delete");
    }
}
