//! Reading the config anew, by signal and over RPC: a bad file changes nothing, a good one everything at once.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use nano_protocol::catalog::Agents;
use nano_tests::client::Client;
use nano_tests::daemon::Daemon;
use nano_tests::model_server::{ModelServer, Turn};
use nano_tests::{processes, wait};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
use rustix::process::Signal;
use serde_json::{Value, json};

mod endless;

use endless::with_endless;

/// Opening a pipe fails while nobody reads it.
const NONBLOCK: i32 = OFlags::NONBLOCK.bits().cast_signed();

/// A daemon whose config is written by parts.
pub struct Bench {
    pub daemon: Daemon,
    pub client: Client,
    pub url: String,
}

impl Bench {
    pub fn new(server: &ModelServer) -> Self {
        let daemon = Daemon::start(server);
        let client = daemon.client();
        Self { daemon, client, url: server.url() }
    }

    /// Writes the config: lines of `[daemon]`, of `[agents.default]`, and further sections.
    pub fn write(&self, of_daemon: &str, of_agent: &str, extra: &str) {
        let url = &self.url;
        self.put(&format!(
            "[daemon]\n{of_daemon}\n[models.scripted]\nbase_url = \"{url}\"\nmodel = \"scripted\"\napi_key = \"k\"\n\
             [agents.default]\n{of_agent}\n{extra}\n"
        ));
    }

    /// Replaces the file in one step.
    pub fn put(&self, text: &str) {
        let (next, file) = (self.daemon.root().join("next"), self.daemon.root().join("nanod.toml"));
        fs::write(&next, text).and_then(|()| fs::rename(next, file)).expect("a config file");
    }

    pub fn reload(&mut self) {
        let answer: Value = self.client.get("daemon.reload", &json!({}));
        assert_eq!(answer, json!({}));
    }

    pub fn hang_up(&self) {
        processes::signal(i32::try_from(self.daemon.pid()).expect("a process id"), Signal::HUP);
    }

    pub fn agent(&mut self) -> Value {
        self.client.get("agent.get", &json!({"name": "default"}))
    }

    pub fn agents(&mut self) -> Vec<String> {
        self.client.get::<Agents>("agent.list", &json!({})).agents.into_iter().map(|agent| agent.name).collect()
    }
}

pub fn idle() -> Bench {
    Bench::new(&ModelServer::answering(|_, _| Some(Turn::text("done"))))
}

#[test]
fn a_bad_config_changes_nothing_and_says_where() {
    let mut bench = idle();
    bench.write("", "max_turns = 7", "");
    bench.reload();
    let mut watcher = bench.daemon.client();
    watcher.subscribe(&json!({"types": ["warning"]}));
    for (text, says) in [
        ("[agents.default]\nmax_turn = 3\n[agents.other]\n", ["nanod.toml:2:", "max_turn"]),
        ("[agents.other]\n\n[daemon]\nlog = 7\n", ["nanod.toml:4:", "log must be"]),
        ("[agents.other]\n[daemon\n", ["nanod.toml:2:", ""]),
        ("[agents.default]\nmodel = \"nothing\"\n", ["nanod.toml:2:", "nothing"]),
        (
            "[models.m]\napi = \"replay\"\ncassette = \"/no/such/cassette\"\n[agents.other]\n",
            ["nanod.toml: models.m", "/no/such"],
        ),
        ("[agents.other]\ntools = [\"hammer\"]\n", ["nanod.toml: agents.other", "hammer"]),
        ("[daemon]\nlog = \"loud\"\n[agents.other]\n", ["nanod.toml: daemon.log", "loud"]),
        ("[daemon]\nsocket_group = \"no-such-group\"\n", ["nanod.toml: daemon.socket_group", "no-such-group"]),
        ("[agents.other]\nmax_turns = 0\n[agents.third]\nmax_turn = 1\n", ["nanod.toml:2:", "nanod.toml:4:"]),
    ] {
        bench.put(text);
        let before = bench.daemon.log().len();
        let error = bench.client.call("daemon.reload", &json!({})).expect_err(text);
        assert_eq!(error.code, -32602, "{error:?}");
        assert_eq!(error.message.lines().count(), 1, "{error:?}");
        bench.hang_up();
        let warning = watcher.events_until("the warning", |_| true).remove(0);
        let told = warning.data["message"].as_str().expect("a message").to_owned();
        let log = bench.daemon.log()[before..].to_owned();
        for says in says {
            for text in [&error.message, &told, &log] {
                assert!(text.contains(says), "`{says}` is missing in {text}");
            }
        }
        assert_eq!(
            (bench.agent()["max_turns"].as_u64(), bench.agents()),
            (Some(7), vec!["default".to_owned()]),
            "{text}"
        );
    }
    bench.put("");
    fs::remove_file(bench.daemon.root().join("nanod.toml")).expect("a config file");
    let error = bench.client.call("daemon.reload", &json!({})).expect_err("the named file is not there");
    assert!(error.message.contains("nanod.toml"), "{error:?}");
    assert_eq!(bench.agent()["max_turns"], 7);
    // A mended one serves again.
    bench.write("", "max_turns = 8", "");
    bench.reload();
    assert_eq!(bench.agent()["max_turns"], 8);
}

#[test]
fn a_signal_reloads_and_does_not_end_the_daemon() {
    let mut bench = idle();
    let pid = bench.daemon.pid();
    bench.write("", "max_turns = 9", "");
    bench.hang_up();
    wait::until("the new config", || (bench.agent()["max_turns"] == 9).then_some(()));
    assert_eq!(bench.client.get::<Value>("daemon.status", &json!({}))["pid"], pid);
}

#[test]
fn reloads_at_once_take_turns() {
    let mut bench = idle();
    let mut clients: Vec<Client> = (0..8).map(|_| bench.daemon.client()).collect();
    for turns in 1..=20 {
        bench.write("", &format!("max_turns = {turns}"), &format!("[agents.a{turns}]"));
        let ids: Vec<_> =
            clients.iter_mut().map(|client| client.begin("daemon.reload", &json!({})).expect("sent")).collect();
        bench.hang_up();
        // None is half of one file and half of another.
        let (agent, names) = (bench.agent(), bench.agents());
        assert!(agent["max_turns"].is_u64() && names.len() == 2 || turns == 1, "{agent} {names:?}");
        for (client, id) in clients.iter_mut().zip(ids) {
            assert_eq!(client.finish(id), Some(Ok(json!({}))));
        }
        assert_eq!(bench.agent()["max_turns"], turns);
        assert_eq!(bench.agents(), [format!("a{turns}"), "default".to_owned()]);
    }
}

#[test]
fn none_is_taken_while_the_daemon_goes_down() {
    let server = ModelServer::script(vec![
        Turn::exec("c1", "touch up; while [ ! -e go ]; do sleep 0.02; done"),
        Turn::text("done"),
    ]);
    let mut bench = Bench::new(&server);
    let session = bench.daemon.session(&mut bench.client);
    bench.client.submit(&session, "p");
    let work = bench.daemon.workspace();
    wait::until("the call", || work.join("up").exists().then_some(()));
    bench.client.get::<Value>("daemon.shutdown", &json!({"grace_ms": 3_600_000}));
    assert_eq!(bench.client.refused("daemon.reload", &json!({})), -32007);
    bench.hang_up();
    fs::write(work.join("go"), "").expect("a file");
    assert_eq!(bench.daemon.wait().code(), Some(0), "{}", bench.daemon.log());
}

#[test]
fn a_signal_that_comes_early_is_not_lost() {
    let mut bench = idle();
    bench.daemon.kill9();
    with_endless(&bench);
    let cassette = bench.daemon.root().join("cassette");
    let mut child = bench.daemon.command().stderr(Stdio::null()).spawn().expect("nanod starts");
    let pid = i32::try_from(child.id()).expect("a process id");
    // Who can open it for writing knows that it is being read: the config was.
    let writer = || OpenOptions::new().write(true).custom_flags(NONBLOCK).open(&cassette).ok();
    let first = wait::until("a start that reads the cassette", writer);
    bench.write("", "max_turns = 9", "");
    processes::signal(pid, Signal::HUP);
    let again = bench.daemon.root().join("again");
    fs::write(&again, "").and_then(|()| fs::rename(&again, &cassette)).expect("an end of the cassette");
    drop(first);
    let mut client = wait::until("the daemon", || Client::connect(&bench.daemon.socket()).ok());
    wait::until("the new config", || {
        let agent: Value = client.get("agent.get", &json!({"name": "default"}));
        (agent["max_turns"] == 9).then_some(())
    });
    processes::signal(pid, Signal::TERM);
    assert_eq!(child.wait().expect("its end").code(), Some(0));
}

#[test]
fn nanoctl_reloads() {
    let mut bench = idle();
    bench.write("", "max_turns = 9", "");
    assert_eq!(bench.daemon.ctl(["reload"]).run().expect_code(0), "");
    assert_eq!(bench.agent()["max_turns"], 9);
    assert_eq!(bench.daemon.ctl(["reload", "--json"]).run().expect_code(0), "{}");
    bench.put("[agents.default]\nmax_turn = 3\n");
    let error = bench.daemon.ctl(["reload"]).run().expect_error(5);
    assert!(error.contains("nanod.toml:2:") && error.contains("max_turns"), "{error}");
    bench.daemon.kill9();
    bench.daemon.ctl(["reload"]).run().expect_error(3);
    bench.write("", "", "");
    bench.daemon.restart();
}

#[test]
fn systemd_is_told() {
    let mut bench = idle();
    bench.daemon.kill9();
    let path = bench.daemon.root().join("notify");
    let socket = UnixDatagram::bind(&path).expect("a socket");
    socket.set_read_timeout(Some(wait::DEADLINE)).expect("a socket");
    let mut buffer = [0; 4096];
    let mut told = || {
        let length = socket.recv(&mut buffer).expect("a word of the daemon");
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    };
    let mut command = bench.daemon.command();
    let mut child = command.env("NOTIFY_SOCKET", &path).stderr(Stdio::null()).spawn().expect("nanod starts");
    let pid = i32::try_from(child.id()).expect("a process id");
    assert_eq!(told().trim_end(), "READY=1");
    for text in ["[daemon]\n", "[deamon]\n"] {
        bench.put(text);
        let before = monotonic();
        processes::signal(pid, Signal::HUP);
        let reloading = told();
        let at: Vec<&str> = reloading.trim_end().split("\nMONOTONIC_USEC=").collect();
        let at = match at.as_slice() {
            ["RELOADING=1", at] => Duration::from_micros(at.parse().expect("a number")),
            other => panic!("{other:?}"),
        };
        assert!(before <= at && at <= monotonic(), "{before:?} {at:?}");
        assert_eq!(told().trim_end(), "READY=1");
    }
    processes::signal(pid, Signal::TERM);
    assert_eq!(told().trim_end(), "STOPPING=1");
    assert_eq!(child.wait().expect("its end").code(), Some(0));
}

fn monotonic() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0))
}
