//! The real `nanod` in a temporary folder, which can be killed and started again.
//!
//! When it is dropped the daemon is killed, and a process that it leaves behind fails the test.

use std::ffi::OsString;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use nano_protocol::event::Event;
use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::Client;
use crate::ctl::Ctl;
use crate::model_server::ModelServer;
use crate::{processes, programs, wait};

/// What differs from one test's daemon to another's.
#[derive(Debug, Clone, Default)]
pub struct Setup {
    /// Further lines of `[daemon]`.
    pub daemon: String,
    /// Lines of `[agents.default]`.
    pub agent: String,
    /// Lines of `[models.scripted]`.
    pub model: String,
    /// Further sections.
    pub extra: String,
    /// The PATH, where it is not this test's own.
    pub path: Option<OsString>,
    /// Where its folder is made, where that is not the usual place for temporary ones.
    pub below: Option<PathBuf>,
}

/// A running daemon and its folder.
pub struct Daemon {
    root: TempDir,
    child: Option<Child>,
    path: OsString,
    /// What the next starts have in their environment beside the usual.
    env: Vec<(&'static str, String)>,
    wrapper: Vec<OsString>,
}

impl Daemon {
    /// Starts a daemon whose only model is `server`.
    pub fn start(server: &ModelServer) -> Self {
        Self::with(server, Setup::default())
    }

    /// Starts a daemon that is set up in its own way.
    pub fn with(server: &ModelServer, setup: Setup) -> Self {
        let mut daemon = Self::prepare(server, setup);
        daemon.restart();
        daemon
    }

    /// Makes the folder of a daemon, which is not started yet.
    pub fn prepare(server: &ModelServer, setup: Setup) -> Self {
        let Setup { daemon, agent, model, extra, path, below } = setup;
        let below = below.unwrap_or_else(std::env::temp_dir);
        let root = tempfile::Builder::new().prefix("nano-").tempdir_in(below).expect("a temporary folder");
        fs::create_dir(root.path().join("work")).expect("a workspace");
        let url = server.url();
        let config = format!(
            "[daemon]\ndrain = \"5s\"\n{daemon}\n\n[models.scripted]\napi = \"openai\"\nbase_url = \"{url}\"\nmodel = \"scripted\"\n\
             api_key = \"test-key\"\n{model}\n\n[agents.default]\n{agent}\n\n{extra}\n"
        );
        fs::write(root.path().join("nanod.toml"), config).expect("a config file");
        let path = path.or_else(|| std::env::var_os("PATH")).unwrap_or_default();
        Self { root, child: None, path, env: Vec::new(), wrapper: Vec::new() }
    }

    /// Sets what the next starts have in their environment beside the usual.
    pub fn set_env(&mut self, env: Vec<(&'static str, String)>) {
        self.env = env;
    }

    /// Returns the folder that holds everything of this daemon; it serves as HOME too.
    pub fn root(&self) -> &Path {
        self.root.path()
    }

    /// Returns the folder that sessions of a test work in.
    pub fn workspace(&self) -> PathBuf {
        self.root().join("work")
    }

    /// Returns the path of the socket.
    pub fn socket(&self) -> PathBuf {
        self.root().join("nanod.sock")
    }

    /// Returns the state folder.
    pub fn state(&self) -> PathBuf {
        self.root().join("state")
    }

    /// Returns the daemon's process id.
    pub fn pid(&self) -> u32 {
        self.child.as_ref().expect("a running daemon").id()
    }

    /// Returns what every start of the daemon has logged.
    pub fn log(&self) -> String {
        fs::read_to_string(self.root().join("nanod.log")).unwrap_or_default()
    }

    /// Connects to the daemon.
    pub fn client(&self) -> Client {
        Client::connect(&self.socket()).unwrap_or_else(|error| panic!("no connection: {error}\n{}", self.log()))
    }

    /// Makes a session in the workspace and returns its id.
    pub fn session(&self, client: &mut Client) -> String {
        self.session_with(client, json!({}))
    }

    /// Makes a session in the workspace with further parameters and returns its id.
    pub fn session_with(&self, client: &mut Client, mut params: Value) -> String {
        params["workspace"] = json!(self.workspace());
        let session: Value = client.get("session.create", &params);
        session["id"].as_str().expect("a session id").to_owned()
    }

    /// Returns every durable event up to the newest there is now.
    pub fn history(&self) -> Vec<Event> {
        let head = self.client().subscribe(&json!({}));
        let mut client = self.client();
        client.subscribe(&json!({"since_seq": 0}));
        client.events_until("the newest event", |event| event.seq >= Some(head))
    }

    /// Puts a call of `nanoctl` to this daemon together.
    pub fn ctl<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Ctl {
        Ctl::new(self.root()).folder(&self.workspace()).env("NANO_SOCKET", self.socket()).args(args)
    }

    /// Makes the command that starts this daemon, in this daemon's environment.
    pub fn command(&self) -> Command {
        let mut command = programs::command("nanod");
        if let Some((program, args)) = self.wrapper.split_first() {
            let nanod = command.get_program().to_owned();
            command = Command::new(program);
            command.env_clear().args(args).arg(nanod);
        }
        command.arg("--socket").arg(self.socket()).arg("--state-dir").arg(self.state());
        command.arg("--config").arg(self.root().join("nanod.toml"));
        command.env("PATH", &self.path).env("HOME", self.root()).current_dir(self.root());
        command.envs(self.env.iter().cloned());
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command
    }

    /// Has every later start go through a program that becomes the daemon, such as `strace -D`; none for an empty list.
    pub fn run_under(&mut self, wrapper: impl IntoIterator<Item = impl Into<OsString>>) {
        self.wrapper = wrapper.into_iter().map(Into::into).collect();
    }

    /// Starts the daemon, which must not run, and waits until it answers.
    pub fn restart(&mut self) {
        if let Err(status) = self.try_start() {
            panic!("nanod ended at its start with {status}:\n{}", self.log());
        }
    }

    /// Starts the daemon, which must not run, and waits until it answers, or ends.
    pub fn try_start(&mut self) -> Result<(), ExitStatus> {
        assert!(self.child.is_none(), "the daemon runs already");
        let log = fs::OpenOptions::new().append(true).create(true).open(self.root().join("nanod.log"));
        let mut command = self.command();
        command.stderr(log.expect("a log file")).process_group(0);
        self.child = Some(command.spawn().expect("nanod starts"));
        wait::until("an answer of the daemon", || {
            if let Some(status) = self.ended() {
                return Some(Err(status));
            }
            let mut client = Client::connect(&self.socket()).ok()?;
            client.try_call("daemon.status", &json!({}))?.ok().map(|_| Ok(()))
        })
    }

    /// Returns how the daemon ended, if it did so by itself.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        let status = self.child.as_mut()?.try_wait().expect("the state of nanod")?;
        self.child = None;
        Some(status)
    }

    /// Kills the daemon at once and waits until nothing of it is left.
    pub fn kill9(&mut self) {
        self.kill9_beside(&[]);
    }

    /// Kills the daemon at once and waits until nothing of it is left; `clients` live on.
    pub fn kill9_beside(&mut self, clients: &[u32]) {
        let mut below = Vec::new();
        if let Some(mut child) = self.child.take() {
            below = processes::below(child.id());
            drop(child.kill());
            child.wait().expect("the end of nanod");
        }
        let is_client = |pid: i32| clients.iter().any(|client| i64::from(*client) == i64::from(pid));
        wait::until("the end of everything that the daemon had started", || {
            let is_over = below.iter().all(|process| is_client(process.0) || processes::has_ended(*process));
            (is_over && self.left().iter().all(|process| is_client(process.pid))).then_some(())
        });
    }

    /// Asks the daemon to end, as systemd does, and waits for its exit status.
    #[must_use]
    pub fn terminate(&mut self) -> ExitStatus {
        let pid = i32::try_from(self.pid()).expect("a process id");
        processes::signal(pid, Signal::TERM);
        self.wait()
    }

    /// Waits until the daemon ends by itself.
    #[must_use]
    pub fn wait(&mut self) -> ExitStatus {
        let mut child = self.child.take().expect("a running daemon");
        wait::until("the end of the daemon", || child.try_wait().expect("the state of nanod"))
    }

    /// Returns the living processes that belong to this daemon, itself included.
    pub fn left(&self) -> Vec<processes::Process> {
        processes::of(self.root())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("log of the daemon:\n{}", self.log());
            self.left().iter().for_each(processes::kill);
            if let Some(mut child) = self.child.take() {
                drop(child.wait());
            }
            return;
        }
        self.kill9();
    }
}
