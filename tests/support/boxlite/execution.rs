//! One program that runs in a box's folder.

use std::io::{Read, Result, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use rustix::process::Signal;
use serde_json::Value;

use crate::processes;
use crate::wait::DEADLINE;

/// A program, what it printed so far, and how it ended.
pub struct Execution {
    /// In which box.
    pub of_box: String,
    pid: i32,
    stdin: Mutex<Option<ChildStdin>>,
    told: Mutex<Told>,
    changed: Condvar,
    claimed: AtomicBool,
}

#[derive(Default)]
struct Told {
    frames: Vec<Vec<u8>>,
    exit: Option<i32>,
}

/// What comes next.
pub enum Next {
    /// A binary frame.
    Frame(Vec<u8>),
    /// The end.
    Exit(i32),
}

impl Execution {
    /// Starts what `wish` asks for; the box's root is `folder`.
    pub fn start(of_box: &str, folder: &Path, wish: &Value) -> Result<Arc<Self>> {
        let root = folder.display().to_string();
        // The box's own /tmp.
        let inside =
            |value: &Value| value.as_str().unwrap_or_default().replace("/tmp/nano", &format!("{root}/tmp/nano"));
        let mut command = Command::new(wish["command"].as_str().unwrap_or_default());
        command.args(wish["args"].as_array().into_iter().flatten().map(inside));
        let cwd = wish["working_dir"].as_str().unwrap_or_default().trim_start_matches('/');
        command.current_dir(folder.join(cwd)).env("NANO_STAND_IN", folder).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let mut stdin = child.stdin.take();
        if let (Some(text), Some(mut open)) = (wish["stdin"].as_str(), stdin.take_if(|_| wish["stdin"].is_string())) {
            // One that does not read its input is no failure.
            open.write_all(text.as_bytes()).ok();
        }
        let pid = child.id().cast_signed();
        let (told, changed, claimed) = Default::default();
        let stdin = Mutex::new(stdin);
        let this = Arc::new(Self { of_box: of_box.to_owned(), pid, stdin, told, changed, claimed });
        let watched = Arc::clone(&this);
        std::thread::spawn(move || watched.watch(child, &root));
        Ok(this)
    }

    /// As the real one does, tells of the end once everybody has closed the output.
    fn watch(self: Arc<Self>, mut child: Child, root: &str) {
        let pipes: [(u8, Option<Box<dyn Read + Send>>); 2] = [
            (1, child.stdout.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>)),
            (2, child.stderr.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>)),
        ];
        let pumps = pipes.map(|(channel, pipe)| {
            let (this, root) = (Arc::clone(&self), root.to_owned());
            std::thread::spawn(move || pipe.map(|pipe| this.pump(channel, pipe, &root)))
        });
        let status = child.wait().expect("a child");
        for pump in pumps {
            drop(pump.join());
        }
        let code = status.code().unwrap_or_else(|| -status.signal().unwrap_or_default());
        self.told().exit = Some(code);
        self.changed.notify_all();
    }

    fn pump(&self, channel: u8, mut pipe: Box<dyn Read + Send>, root: &str) {
        let mut buffer = vec![0; 32 << 10];
        while let Ok(count @ 1..) = pipe.read(&mut buffer) {
            // Text alone comes through, as from the real one; the box does not know where its root lies.
            let text = String::from_utf8_lossy(&buffer[..count]).replace(&format!("{root}/"), "/");
            self.told().frames.push([&[channel], text.as_bytes()].concat());
            self.changed.notify_all();
        }
    }

    /// Waits for what comes after `seen` frames.
    pub fn next(&self, seen: usize) -> Option<Next> {
        let waiting = |told: &mut Told| told.frames.len() <= seen && told.exit.is_none();
        let (told, _) = self.changed.wait_timeout_while(self.told(), DEADLINE, waiting).expect("a live stand-in");
        let frame = told.frames.get(seen).cloned().map(Next::Frame);
        frame.or_else(|| told.exit.map(Next::Exit))
    }

    /// Returns how it ended, once it has.
    pub fn exit(&self) -> Option<i32> {
        self.told().exit
    }

    /// Takes the one place of who sees its output, if it is free.
    pub fn claim(&self) -> bool {
        !self.claimed.swap(true, Ordering::SeqCst)
    }

    /// Gives that place free.
    pub fn release(&self) {
        self.claimed.store(false, Ordering::SeqCst);
    }

    /// Gives it input; none: that was all.
    pub fn input(&self, bytes: Option<&[u8]>) {
        let mut stdin = self.stdin.lock().expect("a live stand-in");
        match (bytes, stdin.as_mut()) {
            (Some(bytes), Some(open)) => drop(open.write_all(bytes)),
            _ => *stdin = None,
        }
    }

    /// Sends a signal to the program, and to nobody that it started.
    pub fn signal(&self, signal: Signal) {
        if self.exit().is_none() {
            processes::signal(self.pid, signal);
        }
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().expect("a live stand-in")
    }
}
