//! One run of a scene: clients that ask again after every death, with the same keys.

use std::collections::VecDeque;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Instant;

use nano_protocol::error::{ErrorKind, RpcError};
use nano_protocol::event::Event;
use nano_protocol::session::{Session, Sessions};
use nano_protocol::task::{Task, TaskState};
use nano_tests::client::Client;
use nano_tests::daemon::{Daemon, Setup};
use nano_tests::model_server::{ModelServer, Turn};
use nano_tests::wait;
use rustix::process::Signal;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::scene::Scene;

/// The size that the store takes its disk to be of: its segments are as small as they get.
const DISK: &str = "1048576";

/// A scene under way.
pub struct Run {
    pub daemon: Daemon,
    pub server: ModelServer,
    /// The session that the scene works in.
    pub session: String,
    /// What was asked with a key and answered.
    pub asked: Vec<(String, Value, Value)>,
    /// Sessions that were deleted.
    pub gone: Vec<String>,
    /// How often the daemon has ended before the end.
    pub deaths: usize,
    /// How many of these were at a point of the plan.
    pub kills: usize,
    /// What the observer was told, over all restarts.
    pub told: Arc<Mutex<Vec<Event>>>,
    scene: &'static Scene,
    client: Option<Client>,
    observer: Option<JoinHandle<()>>,
    /// The point at which each of the next daemons dies.
    plan: VecDeque<u64>,
    starts: usize,
}

impl Run {
    /// Sets the scene and starts its first daemon.
    pub fn start(scene: &'static Scene, plan: &[u64]) -> Self {
        let model = scene.model;
        let server = ModelServer::answering(move |request, number| {
            let turn = model(request, number);
            // By this a reply is known again in a transcript.
            Some(Turn { text: format!("r{number} {}", turn.text), ..turn })
        });
        let setup = Setup { agent: scene.agent.into(), below: memory(), ..Setup::default() };
        let daemon = Daemon::prepare(&server, setup);
        for (name, content, mode) in scene.files {
            let path = daemon.workspace().join(name);
            fs::write(&path, content).expect("a file of the scene");
            fs::set_permissions(&path, fs::Permissions::from_mode(*mode)).expect("its mode");
        }
        let plan = plan.iter().copied().collect();
        let mut run = Self {
            daemon,
            server,
            session: String::new(),
            asked: Vec::new(),
            gone: Vec::new(),
            deaths: 0,
            kills: 0,
            told: Arc::default(),
            scene,
            client: None,
            observer: None,
            plan,
            starts: 0,
        };
        run.revive();
        run
    }

    /// Asks for something that must be granted, again after each death.
    pub fn ask<T: DeserializeOwned>(&mut self, method: &str, params: &Value) -> T {
        let answer = self.try_ask(method, params).unwrap_or_else(|error| panic!("{method} {params}: {error:?}"));
        serde_json::from_value(answer.clone()).unwrap_or_else(|error| panic!("{method}: {error} in {answer}"))
    }

    /// Asks for something, again after each death.
    pub fn try_ask(&mut self, method: &str, params: &Value) -> Result<Value, RpcError> {
        loop {
            let client = self.client.as_mut().expect("a connection");
            match client.try_call(method, params) {
                None => self.buried(),
                Some(Err(error)) if error.data.kind == ErrorKind::ShuttingDown => self.buried(),
                Some(answer) => {
                    if let (Ok(answer), true) = (&answer, params.get("idempotency_key").is_some()) {
                        self.asked.push((method.into(), params.clone(), answer.clone()));
                    }
                    return answer;
                }
            }
        }
    }

    /// Waits for something outside, also over deaths.
    pub fn until<T>(&mut self, what: &str, mut probe: impl FnMut(&mut Self) -> Option<T>) -> T {
        let end = Instant::now() + wait::DEADLINE;
        loop {
            if let Some(status) = self.daemon.ended() {
                self.died(status);
                self.revive();
            }
            if let Some(found) = probe(self) {
                return found;
            }
            assert!(Instant::now() < end, "waited in vain for {what}");
            std::thread::park_timeout(std::time::Duration::from_millis(2));
        }
    }

    /// Makes the scene's session.
    pub fn open(&mut self) {
        let params = json!({"workspace": self.daemon.workspace(), "skills": [], "idempotency_key": "open"});
        self.session = self.ask::<Session>("session.create", &params).id.0;
    }

    /// Submits a task to the scene's session; how its content begins is its key.
    pub fn submit(&mut self, content: &str) -> Task {
        let key: String = content.chars().take(20).collect();
        let params = json!({"session": self.session, "content": content, "idempotency_key": key});
        self.ask("task.submit", &params)
    }

    /// Waits until no task is left that goes on by itself.
    pub fn settle(&mut self) {
        while let Some(task) = self.tasks().into_iter().find(|task| !task.state.is_settled()) {
            let ended: Task = self.ask("task.wait", &json!({"task": task.id, "timeout_ms": 30_000}));
            assert!(ended.state.is_settled(), "it does not come to an end: {ended:?}");
        }
        let held: Vec<Task> = self.tasks().into_iter().filter(|task| task.state == TaskState::Interrupted).collect();
        assert!(held.is_empty(), "these do not go on by themselves: {held:#?}");
    }

    /// Returns what was answered to the first request of this method that had a key.
    pub fn asked_for(&self, method: &str) -> Value {
        let asked = self.asked.iter().find(|(asked, ..)| asked == method);
        asked.expect("an answered request").2.clone()
    }

    /// Notes that the scene's session was deleted: nothing that was answered of it needs to be there.
    pub fn is_gone(&mut self) {
        let of_it = |value: &Value| [&value["id"], &value["session"]].iter().any(|id| **id == self.session.as_str());
        self.asked.retain(|(_, params, answer)| !of_it(params) && !of_it(answer));
        self.gone.push(self.session.clone());
    }

    /// Returns every session.
    pub fn sessions(&mut self) -> Vec<Session> {
        self.ask::<Sessions>("session.list", &json!({"limit": 1000})).sessions
    }

    /// Returns every task, oldest first.
    pub fn tasks(&mut self) -> Vec<Task> {
        let all: nano_protocol::task::Tasks = self.ask("task.list", &json!({"limit": 1000}));
        all.tasks.into_iter().rev().collect()
    }

    /// Returns the connection of the last daemon, which dies no more.
    pub fn client(&mut self) -> &mut Client {
        self.client.as_mut().expect("a connection")
    }

    /// Returns the names of the points that the daemon of this start met, counted from 0.
    pub fn points(&self, start: usize) -> Vec<String> {
        let log = fs::read_to_string(self.log(start)).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }

    /// Kills the daemon and starts one that meets no point of death: what is looked at is what it finds on the disk.
    pub fn last_start(&mut self) {
        self.plan.clear();
        self.client = None;
        self.daemon.kill9();
        self.deaf();
        self.revive();
    }

    fn log(&self, start: usize) -> PathBuf {
        self.daemon.root().join(format!("points.{start}"))
    }

    /// Waits for the end of a daemon that a client has lost, and starts the next one.
    fn buried(&mut self) {
        let status = self.daemon.wait();
        self.died(status);
        self.revive();
    }

    fn died(&mut self, status: ExitStatus) {
        let orderly = self.scene.ends && status.success();
        assert!(orderly || status.signal() == Some(Signal::KILL.as_raw()), "nanod ended by itself: {status}");
        self.client = None;
        self.deaths += 1;
        self.kills += usize::from(!orderly);
        self.deaf();
        wait::until("the end of all that a dead daemon had started", || self.daemon.left().is_empty().then_some(()));
        (self.scene.dead)(self);
    }

    /// Waits until the observer has seen the end of its connection.
    fn deaf(&mut self) {
        if let Some(observer) = self.observer.take() {
            observer.join().expect("an observer who is told what makes sense");
        }
    }

    /// Starts daemons until one answers.
    fn revive(&mut self) {
        loop {
            let mut env = vec![("NANO_CRASH_LOG", self.log(self.starts).display().to_string())];
            env.push(("NANO_DISK_SIZE", DISK.into()));
            env.extend(self.plan.pop_front().map(|at| ("NANO_CRASH_AT", at.to_string())));
            self.daemon.set_env(env);
            self.starts += 1;
            match self.daemon.try_start() {
                Err(status) => self.died(status),
                Ok(()) if self.connect().is_some() => return,
                Ok(()) => {
                    let status = self.daemon.wait();
                    self.died(status);
                }
            }
        }
    }

    /// Connects the client and the observer, who goes on where the last one was cut off.
    fn connect(&mut self) -> Option<()> {
        self.client = Some(Client::connect(&self.daemon.socket()).ok()?);
        let mut eye = Client::connect(&self.daemon.socket()).ok()?;
        let last = self.told.lock().expect("events").iter().rev().find_map(|event| event.seq).unwrap_or(0);
        eye.try_call("events.subscribe", &json!({"since_seq": last}))?.expect("a subscription");
        let told = self.told.clone();
        self.observer = Some(std::thread::spawn(move || {
            while let Some(event) = eye.next_event() {
                told.lock().expect("events").push(event);
            }
        }));
        Some(())
    }
}

/// Returns a place in memory, where a sync costs nothing.
fn memory() -> Option<PathBuf> {
    let place = Path::new("/dev/shm");
    let room =
        std::env::var_os("TMPDIR").is_none() && place.metadata().is_ok_and(|of| of.permissions().mode() & 2 != 0);
    room.then(|| place.to_owned())
}
