//! Running what a sandbox is asked to run, in a folder of its own, and ending all of it.
//!
//! A sandbox has no room of its own on this machine, so the paths that it shows are put in place of the real ones in
//! what comes out, and the other way round in what goes in.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use super::python::{Cell, Python};
use crate::processes;

type Interpreter = Arc<Mutex<Option<Python>>>;

/// What a command came to.
#[derive(Debug, Clone, Default)]
pub struct Ended {
    /// Its exit code, -1 when its time was up.
    pub code: i32,
    /// What it said.
    pub stdout: String,
    /// What it complained of.
    pub stderr: String,
    /// Whether its time was up.
    pub timed_out: bool,
}

/// The computer behind one sandbox, or behind one user of it.
pub struct Runtime {
    root: PathBuf,
    shown: String,
    pythons: Mutex<BTreeMap<String, Interpreter>>,
    ended: Mutex<bool>,
}

impl Runtime {
    /// Makes one with its files below `root`, which calls its workspace `shown`.
    pub fn new(root: PathBuf, shown: &str) -> Self {
        let new = Self { root, shown: shown.to_owned(), pythons: Mutex::default(), ended: Mutex::new(false) };
        for folder in [new.workspace(), new.root.join("tmp")] {
            fs::create_dir_all(folder).expect("a folder of the fake");
        }
        new
    }

    /// Returns the real folder of the workspace.
    pub fn workspace(&self) -> PathBuf {
        self.root.join("workspace")
    }

    /// Returns what the sandbox calls its workspace.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// Runs a command to its end, or to the end of its time.
    pub fn shell(&self, command: &str, cwd: &Path, timeout: Option<Duration>) -> Ended {
        let mut process = self.command("/bin/sh", cwd);
        process.arg("-c").arg(self.inward(command)).stdout(Stdio::piped()).stderr(Stdio::piped());
        match self.spawn(&mut process).and_then(|child| wait(child, timeout)) {
            Ok(Some(output)) => Ended {
                code: output.status.code().or(output.status.signal().map(|signal| -signal)).unwrap_or(-1),
                stdout: self.outward(&output.stdout),
                stderr: self.outward(&output.stderr),
                timed_out: false,
            },
            Ok(None) => Ended { code: -1, timed_out: true, ..Ended::default() },
            Err(error) => Ended { code: -1, stderr: error.to_string(), ..Ended::default() },
        }
    }

    /// Starts a command and returns its process id.
    pub fn background(&self, command: &str, cwd: &Path) -> io::Result<u32> {
        let mut process = self.command("/bin/sh", cwd);
        process.arg("-c").arg(self.inward(command)).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = self.spawn(&mut process)?;
        let pid = child.id();
        std::thread::spawn(move || child.wait());
        Ok(pid)
    }

    /// Runs code in the interpreter called `kernel`, which is started where none runs; nothing when its time was up.
    pub fn python(&self, kernel: &str, code: &str, timeout: Duration) -> Option<Cell> {
        let interpreter = Arc::clone(self.pythons.lock().expect("a live fake").entry(kernel.to_owned()).or_default());
        let mut place = interpreter.lock().expect("a live fake");
        if place.is_none() {
            let mut command = Python::command();
            self.dress(&mut command, &self.workspace());
            *place = self.spawn(&mut command).ok().map(Python::over);
        }
        let cell = place.as_mut()?.run(&self.inward(code), timeout);
        if cell.is_none() {
            *place = None;
        }
        let outward = |text: String| self.outward(text.as_bytes());
        cell.map(|cell| Cell { text: outward(cell.text), error: cell.error.map(outward), ..cell })
    }

    /// Ends every process and forgets all but the files of the workspace.
    pub fn kill(&self) {
        self.kill_all();
        self.pythons.lock().expect("a live fake").clear();
        let tmp = self.root.join("tmp");
        fs::remove_dir_all(&tmp).and_then(|()| fs::create_dir_all(&tmp)).ok();
    }

    /// Ends every process, lets none start any more, and removes the files.
    pub fn end(&self) {
        *self.ended.lock().expect("a live fake") = true;
        self.kill_all();
        fs::remove_dir_all(&self.root).ok();
    }

    fn kill_all(&self) {
        // Each carries the folder in its environment. One that forks meanwhile is found in the next round.
        for _ in 0..1000 {
            let found = processes::of(&self.root);
            if found.is_empty() {
                return;
            }
            found.iter().for_each(processes::kill);
            std::thread::park_timeout(Duration::from_millis(2));
        }
    }

    fn command(&self, program: &str, cwd: &Path) -> Command {
        let mut command = Command::new(program);
        command.stdin(Stdio::null());
        self.dress(&mut command, cwd);
        command
    }

    fn dress(&self, command: &mut Command, cwd: &Path) {
        let path = std::env::var_os("PATH").unwrap_or_default();
        command.env_clear().env("PATH", path).env("LANG", "C.UTF-8").env("HOME", self.workspace());
        command.env("TMPDIR", self.root.join("tmp")).env("PYTHONDONTWRITEBYTECODE", "1");
        command.current_dir(cwd).process_group(0);
    }

    fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        let ended = self.ended.lock().expect("a live fake");
        if *ended { Err(io::Error::other("the sandbox is gone")) } else { command.spawn() }
    }

    fn places(&self) -> [(&str, PathBuf); 2] {
        [("/tmp", self.root.join("tmp")), (&self.shown, self.workspace())]
    }

    fn inward(&self, text: &str) -> String {
        let places = self.places();
        places.iter().fold(text.to_owned(), |text, (shown, real)| put(&text, shown, &real.to_string_lossy()))
    }

    fn outward(&self, bytes: &[u8]) -> String {
        let text = String::from_utf8_lossy(bytes).into_owned();
        self.places().iter().fold(text, |text, (shown, real)| text.replace(&*real.to_string_lossy(), shown))
    }
}

/// Waits for the end of a process and of whatever holds its output; nothing when the time was up, after which the
/// whole group is killed.
fn wait(child: Child, timeout: Option<Duration>) -> io::Result<Option<Output>> {
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let (sender, receiver) = channel();
    std::thread::spawn(move || sender.send(child.wait_with_output()));
    let Some(timeout) = timeout else { return receiver.recv().map_err(io::Error::other)?.map(Some) };
    if let Ok(output) = receiver.recv_timeout(timeout) {
        return output.map(Some);
    }
    if let Some(group) = group {
        kill_process_group(group, Signal::KILL).ok();
    }
    Ok(None)
}

/// Puts `new` in place of the path `old` where it stands as a path of its own.
fn put(text: &str, old: &str, new: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(old) {
        let (before, after) = (&rest[..at], &rest[at + old.len()..]);
        let joined = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
        out.push_str(before);
        let inner = out.ends_with(|c| joined(c) || c == '/') || after.starts_with(|c| joined(c) && c != '.');
        out.push_str(if inner { old } else { new });
        rest = after;
    }
    out + rest
}
