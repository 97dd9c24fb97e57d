//! The demo's private daemon, folder and command lines; gone when it is over, however it ends.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nano_protocol::method::Method;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::PAUSE;
use crate::client::Client;
use crate::context::Context;
use crate::failure::{Failure, Kind};
use crate::place::Place;
use crate::start;

/// A step that takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(30);
/// A daemon that takes longer to end is ended.
const GRACE: Duration = Duration::from_secs(5);

/// Where the demo plays.
pub struct Stage<'a> {
    context: &'a Context,
    /// The folder that the session works in.
    pub workspace: PathBuf,
    socket: PathBuf,
    log: PathBuf,
    daemon: Child,
    interrupted: Arc<AtomicBool>,
    /// Removed last, when the daemon has ended.
    _folder: TempDir,
}

impl<'a> Stage<'a> {
    /// Makes the folder, starts the daemon and waits until it accepts.
    pub fn set(context: &'a Context) -> Result<Self, Failure> {
        let folder = TempDir::with_prefix("nano-demo-").map_err(broken("a temporary folder cannot be made"))?;
        let interrupted = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            // Ctrl-C reaches the daemon and the verb that runs, too: the demo only has to clear up.
            signal_hook::flag::register(signal, Arc::clone(&interrupted))
                .map_err(broken("signals cannot be watched"))?;
        }
        let root = folder.path();
        props(root).map_err(broken("the demo's files cannot be written"))?;
        let paths = ["nanod.sock", "state", "nanod.toml"].map(|name| root.join(name));
        let log = root.join("nanod.log");
        let [socket, state, config] = &paths;
        let mut words = vec!["--socket".into(), socket.clone().into_os_string()];
        words.extend(["--state-dir".into(), state.into(), "--config".into(), config.into()]);
        let shown: Vec<_> = words.iter().map(|word| quoted(&word.to_string_lossy())).collect();
        show(context, &format!("$ nanod {} &\n", shown.join(" ")))?;
        show(context, &format!("$ export NANO_SOCKET={}\n", quoted(&socket.to_string_lossy())))?;
        let err = std::fs::File::create(&log).map_err(broken("the demo's log cannot be written"))?;
        let daemon =
            Command::new(start::program()).args(&words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(err).spawn();
        let daemon = daemon.map_err(|error| {
            Failure::new(
                Kind::Unreachable,
                format!("nanod cannot be started ({error})"),
                "put it beside nanoctl or on PATH",
            )
        })?;
        let (workspace, socket) = (root.join("app"), socket.clone());
        let mut stage = Self { context, workspace, socket, log, daemon, interrupted, _folder: folder };
        stage.wait_for_daemon()?;
        Ok(stage)
    }

    /// Writes a line of the play.
    pub fn say(&self, text: &str) -> Result<(), Failure> {
        show(self.context, &format!("{text}\n"))
    }

    /// Writes a file of the workspace.
    pub fn write(&self, name: &str, text: &str) -> Result<(), Failure> {
        std::fs::write(self.workspace.join(name), text).map_err(broken("the workspace cannot be written"))
    }

    /// Shows a command line, runs it, shows what it says; returns its stdout.
    pub fn nanoctl(&self, args: &[&str]) -> Result<String, Failure> {
        let shown: Vec<_> = args.iter().map(|arg| quoted(arg)).collect();
        self.say(&format!("$ nanoctl {}", shown.join(" ")))?;
        let me = std::env::current_exe().map_err(broken("nanoctl cannot be found"))?;
        let mut command = Command::new(me);
        command.args(args).args(["--timeout", "30s"]).env("NANO_SOCKET", &self.socket).stdin(Stdio::null());
        let said = command.output().map_err(broken("nanoctl cannot be started"))?;
        let stdout = String::from_utf8_lossy(&said.stdout).into_owned();
        show(self.context, &String::from_utf8_lossy(&said.stderr))?;
        show(self.context, &stdout)?;
        if !said.status.success() {
            let why = format!("nanoctl {} ended with {}", args.first().unwrap_or(&""), said.status);
            return Err(Failure::new(
                Kind::Failed,
                why,
                format!("its daemon last said: {}", start::last_line(&self.log)),
            ));
        }
        Ok(stdout.trim_end().to_owned())
    }

    /// Calls a method to check what was shown.
    pub fn call<M: Method>(&self, params: &M::Params) -> Result<M::Result, Failure> {
        let stream = Place::Named(self.socket.clone()).connect(self.context.deadline)?;
        Client::new(stream, self.context.deadline).call::<M>(params)
    }

    /// Waits until `holds`.
    pub fn until(&self, what: &str, holds: impl Fn() -> Result<bool, Failure>) -> Result<(), Failure> {
        let began = Instant::now();
        while !holds()? {
            self.still_wanted(what, began)?;
            self.context.deadline.pause(PAUSE)?;
        }
        Ok(())
    }

    /// Stops the daemon by the verb and waits until it is gone.
    pub fn clear(&mut self) -> Result<(), Failure> {
        self.nanoctl(&["shutdown"])?;
        let began = Instant::now();
        while self.daemon.try_wait().map_err(broken("the daemon cannot be waited for"))?.is_none() {
            self.still_wanted("the daemon to end", began)?;
            self.context.deadline.pause(PAUSE)?;
        }
        Ok(())
    }

    /// Returns the failure of a demo that a person stopped: whatever else went wrong came from that.
    pub fn stopped(&self) -> Option<Failure> {
        let stopped = self.interrupted.load(Ordering::SeqCst);
        stopped.then(|| Failure::new(Kind::Stopped, "it was interrupted", "try again"))
    }

    fn wait_for_daemon(&mut self) -> Result<(), Failure> {
        let place = Place::Named(self.socket.clone());
        let began = Instant::now();
        while place.connect(self.context.deadline).is_err() {
            self.still_wanted("the daemon to accept", began)?;
            if let Ok(Some(status)) = self.daemon.try_wait() {
                let why = format!("nanod ended with {status}: {}", start::last_line(&self.log));
                return Err(Failure::new(Kind::Unreachable, why, "run nanod by hand to see more"));
            }
            self.context.deadline.pause(PAUSE)?;
        }
        Ok(())
    }

    fn still_wanted(&self, what: &str, began: Instant) -> Result<(), Failure> {
        if let Some(stopped) = self.stopped() {
            return Err(stopped);
        }
        if began.elapsed() > PATIENCE {
            let hint = format!("its daemon last said: {}", start::last_line(&self.log));
            return Err(Failure::new(Kind::Failed, format!("waited too long for {what}"), hint));
        }
        Ok(())
    }
}

impl Drop for Stage<'_> {
    fn drop(&mut self) {
        // In order, if it can: it ends what its calls started. One that has ended already needs neither.
        let began = Instant::now();
        let alive = |daemon: &mut Child| matches!(daemon.try_wait(), Ok(None));
        if alive(&mut self.daemon) {
            kill_process(Pid::from_child(&self.daemon), Signal::TERM).ok();
        }
        while alive(&mut self.daemon) && began.elapsed() < GRACE {
            std::thread::sleep(PAUSE);
        }
        drop(self.daemon.kill());
        drop(self.daemon.wait());
    }
}

/// Shows a part of the play, unless quiet.
fn show(context: &Context, text: &str) -> Result<(), Failure> {
    if context.output.quiet { Ok(()) } else { Ok(context.output.piece(text)?) }
}

fn props(root: &Path) -> std::io::Result<()> {
    let app = root.join("app");
    std::fs::create_dir(&app)?;
    std::fs::write(app.join("app.log"), include_str!("app.log"))?;
    std::fs::write(app.join("app.conf"), include_str!("app.conf"))?;
    std::fs::write(app.join("check.sh"), include_str!("check.sh"))?;
    let cassette = root.join("cassette.jsonl");
    std::fs::write(&cassette, include_str!("cassette.jsonl"))?;
    let mut config = std::fs::File::create(root.join("nanod.toml"))?;
    // JSON's strings are TOML's basic strings.
    let path = serde_json::to_string(&cassette)?;
    writeln!(config, "[models.recorded]\napi = \"replay\"\ncassette = {path}")
}

/// Returns a word as a person would type it into a shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

fn broken(what: &'static str) -> impl Fn(std::io::Error) -> Failure {
    move |error| Failure::new(Kind::Failed, format!("{what} ({error})"), "set TMPDIR to a folder that can be written")
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn words_can_be_typed() {
        for (word, typed) in
            [("--in", "--in"), ("/tmp/a.b", "/tmp/a.b"), ("it's", r"'it'\''s'"), ("", "''"), ("$x", "'$x'")]
        {
            assert_eq!(quoted(word), typed);
        }
    }

    #[test]
    fn the_cassette_is_json_lines() {
        let lines = include_str!("cassette.jsonl").lines();
        let turns: Vec<serde_json::Value> = lines.filter_map(|line| serde_json::from_str(line).ok()).collect();
        assert_eq!(turns.len(), 6);
        assert!(turns.iter().all(|turn| turn["text"].is_string()));
    }
}
