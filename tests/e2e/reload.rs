//! Reading the config anew: what changes while the daemon runs, what does not, and that a bad file changes nothing.

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::process::Stdio;
use std::time::Duration;

use nano_protocol::catalog::Agents;
use nano_protocol::event::EventType;
use nano_protocol::task::TaskState;
use nano_tests::client::Client;
use nano_tests::daemon::Daemon;
use nano_tests::model_server::{ModelServer, Turn};
use nano_tests::{processes, wait};
use rustix::process::Signal;
use serde_json::{Value, json};

/// A daemon whose config is written by parts.
struct Bench {
    daemon: Daemon,
    client: Client,
    url: String,
}

impl Bench {
    fn new(server: &ModelServer) -> Self {
        let daemon = Daemon::start(server);
        let client = daemon.client();
        Self { daemon, client, url: server.url() }
    }

    /// Writes the config: lines of `[daemon]`, of `[agents.default]`, and further sections.
    fn write(&self, of_daemon: &str, of_agent: &str, extra: &str) {
        let url = &self.url;
        self.put(&format!(
            "[daemon]\n{of_daemon}\n[models.scripted]\nbase_url = \"{url}\"\nmodel = \"scripted\"\napi_key = \"k\"\n\
             [agents.default]\n{of_agent}\n{extra}\n"
        ));
    }

    /// Replaces the file in one step.
    fn put(&self, text: &str) {
        let (next, file) = (self.daemon.root().join("next"), self.daemon.root().join("nanod.toml"));
        fs::write(&next, text).and_then(|()| fs::rename(next, file)).expect("a config file");
    }

    fn reload(&mut self) {
        let answer: Value = self.client.get("daemon.reload", &json!({}));
        assert_eq!(answer, json!({}));
    }

    fn hang_up(&self) {
        processes::signal(i32::try_from(self.daemon.pid()).expect("a process id"), Signal::HUP);
    }

    fn agent(&mut self) -> Value {
        self.client.get("agent.get", &json!({"name": "default"}))
    }

    fn agents(&mut self) -> Vec<String> {
        self.client.get::<Agents>("agent.list", &json!({})).agents.into_iter().map(|agent| agent.name).collect()
    }
}

fn idle() -> Bench {
    Bench::new(&ModelServer::answering(|_, _| Some(Turn::text("done"))))
}

#[test]
fn what_an_agent_is_changes() {
    let mut bench = idle();
    for (line, member, expected) in [
        ("max_turns = 7", "max_turns", json!(7)),
        ("timeout = \"9s\"", "timeout_ms", json!(9000)),
        ("exec_timeout = \"3s\"", "exec_timeout_ms", json!(3000)),
        ("exec_timeout_max = \"40s\"", "exec_timeout_max_ms", json!(40_000)),
        ("resume = \"ask\"", "resume", json!("ask")),
        ("enable_exec = false", "enable_exec", json!(false)),
        ("enable_followup = true", "enable_followup", json!(true)),
        ("enable_steering = false", "enable_steering", json!(false)),
        ("tools = [\"exec\"]", "tools", json!(["exec"])),
        ("tool_mode = \"all\"", "tool_mode", json!("all")),
        ("booter = \"none\"", "booter", json!("none")),
        ("budget = 1.5", "budget", json!(1.5)),
        ("system_prompt = \"Be brief.\"", "system_prompt", json!("Be brief.")),
    ] {
        bench.write("", line, "[agents.other]");
        bench.reload();
        assert_eq!(bench.agent()[member], expected, "{line}");
        assert_eq!(bench.agents(), ["default", "other"]);
        bench.write("", "", "");
        bench.reload();
        assert_ne!(bench.agent()[member], expected, "{line}");
        assert_eq!(bench.agents(), ["default"]);
    }
}

#[test]
fn the_next_turn_has_the_new_persona_and_limits_and_an_open_session_goes_on() {
    let server = ModelServer::answering(|_, n| {
        Some(if n == 1 { Turn::exec("c1", "echo x").gated("g") } else { Turn::text("done") })
    });
    let mut bench = Bench::new(&server);
    let session = bench.daemon.session(&mut bench.client);
    let task = bench.client.submit(&session, "p");
    server.wait_requests(1);
    bench.write("", "system_prompt = \"You are the new one.\"", "");
    bench.reload();
    server.open("g");
    assert_eq!(bench.client.settled(&task.id).state, TaskState::Succeeded);
    let requests = server.requests();
    let personas: Vec<bool> =
        requests.iter().map(|request| request["messages"][0].to_string().contains("You are the new one.")).collect();
    assert_eq!(personas, [false, true]);
}

#[test]
fn a_running_call_keeps_its_model_and_the_next_one_has_the_new() {
    let old = ModelServer::script(vec![Turn::text("old").gated("g")]);
    let new = ModelServer::script(vec![Turn::text("new")]);
    let mut bench = Bench::new(&old);
    let session = bench.daemon.session(&mut bench.client);
    let first = bench.client.submit(&session, "p");
    old.wait_requests(1);
    bench.url = new.url();
    bench.write("", "", "");
    bench.reload();
    old.open("g");
    let first = bench.client.settled(&first.id);
    let second = bench.client.run(&session, "q");
    assert_eq!((first.result.as_deref(), second.result.as_deref()), (Some("old"), Some("new")));
}

#[test]
fn what_the_daemon_itself_is_told_changes() {
    let mut bench = idle();
    let session = bench.daemon.session(&mut bench.client);
    // Time zone.
    bench.write("time_zone = \"Asia/Tokyo\"", "", "");
    bench.reload();
    let params = json!({"session": session, "content": "c", "trigger": {"cron": "0 9 * * *"}});
    assert_eq!(bench.client.get::<Value>("followup.schedule", &params)["tz"], "Asia/Tokyo");
    // Roots of workspaces.
    let elsewhere = tempfile::tempdir().expect("a folder");
    let create = json!({"workspace": elsewhere.path()});
    bench.client.get::<Value>("session.create", &create);
    bench.write(&format!("workspaces = [{:?}]", bench.daemon.workspace()), "", "");
    bench.reload();
    assert_eq!(bench.client.refused("session.create", &create), -32602);
    // The longest line, for who connects from now on.
    bench.write("max_line = \"4KiB\"", "", "");
    bench.reload();
    let mut fresh = bench.daemon.client();
    fresh.begin("session.get", &json!({"session": "x".repeat(5000)})).expect("sent");
    let answer = fresh.read_line().expect("an answer");
    assert!(answer.contains("-32008") && answer.contains("4096"), "{answer}");
    // The log.
    bench.write("log = \"error\"", "", "");
    bench.reload();
    let before = bench.daemon.log();
    bench.reload();
    assert_eq!(bench.daemon.log(), before, "at `error` nothing is told of a good reload");
    bench.write("log = \"trace\"", "", "");
    bench.reload();
    assert!(bench.daemon.log().contains("reloaded"), "{}", bench.daemon.log());
}

#[test]
fn old_events_go_as_soon_as_fewer_are_kept() {
    let mut bench = idle();
    bench.daemon.session(&mut bench.client);
    let has_old = |daemon: &Daemon| {
        let mut reader = daemon.client();
        reader.subscribe(&json!({"since_seq": 0}));
        reader.next_event().is_some_and(|event| event.kind == EventType::SessionCreated)
    };
    assert!(has_old(&bench.daemon));
    bench.write("keep_events = \"1ms\"", "", "");
    bench.reload();
    // Memory still has them; a daemon that starts has what the store has.
    wait::until("the end of old events", || bench.daemon.log().contains("old events were removed").then_some(()));
    let status = bench.daemon.terminate();
    assert_eq!(status.code(), Some(0));
    bench.daemon.restart();
    bench.client = bench.daemon.client();
    bench.daemon.session(&mut bench.client);
    let mut reader = bench.daemon.client();
    reader.subscribe(&json!({"since_seq": 0}));
    let first = reader.next_event().expect("an event");
    assert_eq!((first.kind, first.data["from"].as_u64()), (EventType::Gap, Some(1)), "{first:?}");
}

#[test]
fn folders_of_skills_come_and_go() {
    let mut bench = idle();
    for name in ["one", "two"] {
        let folder = bench.daemon.root().join(format!("skills-{name}")).join(name);
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("SKILL.md"), format!("---\nname: {name}\ndescription: d\n---\nbody\n")).expect("a skill");
    }
    for (named, expected) in [
        (&["one"][..], [true, false]),
        (&["one", "two"], [true, true]),
        (&["two"], [false, true]),
        (&[], [false, false]),
    ] {
        let paths: Vec<_> = named.iter().map(|name| bench.daemon.root().join(format!("skills-{name}"))).collect();
        bench.write("", "", &format!("[skills]\npaths = {paths:?}"));
        bench.reload();
        let listed: Value = bench.client.get("skill.list", &json!({}));
        let has = |name: &str| listed["skills"].as_array().is_some_and(|all| all.iter().any(|one| one["name"] == name));
        assert_eq!([has("one"), has("two")], expected, "{named:?}");
    }
}

#[test]
fn the_steering_file_is_named_anew_for_the_next_task() {
    let server =
        ModelServer::answering(|_, n| Some(if n % 2 == 1 { Turn::text("one").gated("g") } else { Turn::text("two") }));
    let mut bench = Bench::new(&server);
    bench.write("", "", "[steering]\nfile = \"told.jsonl\"");
    bench.reload();
    let session = bench.daemon.session(&mut bench.client);
    let task = bench.client.submit(&session, "p");
    server.wait_requests(1);
    let mut watcher = bench.daemon.client();
    watcher.subscribe(&json!({"session": session, "since_seq": 0}));
    fs::write(bench.daemon.workspace().join("told.jsonl"), "{\"content\": \"listen\"}\n").expect("a steering file");
    watcher.events_until("the steering", |event| event.kind == EventType::SteeringQueued);
    server.open("g");
    assert_eq!(bench.client.settled(&task.id).state, TaskState::Succeeded);
}

#[test]
fn a_shorter_drain_counts_at_once() {
    let server = ModelServer::script(vec![
        Turn::exec("c1", "trap '' TERM; touch up; while :; do sleep 0.05; done"),
        Turn::text("done"),
    ]);
    let mut bench = Bench::new(&server);
    bench.write("drain = \"2h\"", "exec_timeout = \"10m\"", "");
    bench.reload();
    let session = bench.daemon.session(&mut bench.client);
    let task = bench.client.submit(&session, "p");
    let up = bench.daemon.workspace().join("up");
    wait::until("the call", || up.exists().then_some(()));
    bench.write("drain = \"100ms\"", "exec_timeout = \"10m\"", "");
    bench.reload();
    assert_eq!(bench.daemon.terminate().code(), Some(0), "{}", bench.daemon.log());
    bench.daemon.restart();
    assert_eq!(bench.daemon.client().settled(&task.id).state, TaskState::Succeeded);
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
fn what_needs_a_restart_is_named_and_the_rest_serves() {
    let mut bench = idle();
    let mut watcher = bench.daemon.client();
    watcher.subscribe(&json!({"types": ["warning"]}));
    for (of_daemon, extra, keys) in [
        ("socket_group = \"root\"", "", &["daemon.socket_group"][..]),
        ("", "[booters.shipyard]\nendpoint = \"http://127.0.0.1:9\"\naccess_token = \"t\"", &["booters.shipyard"]),
        ("", "[booters.shipyard]\nendpoint = \"http://127.0.0.1:9\"\naccess_token = \"u\"", &["booters.shipyard"]),
        (
            "",
            "[booters.boxlite]\nendpoint = \"http://127.0.0.1:9\"\n[skills]\nwatch = false",
            &["skills.watch", "booters.boxlite"],
        ),
    ] {
        bench.write(of_daemon, "max_turns = 9", extra);
        bench.reload();
        let warning = watcher.events_until("the warning", |_| true).remove(0);
        assert_eq!(warning.data["needs_restart"], json!(keys), "{warning:?}");
        let message = format!("{}: needs a restart", keys.join(", "));
        assert!(bench.daemon.log().contains(&message), "{}", bench.daemon.log());
        assert_eq!(bench.agent()["max_turns"], 9);
        bench.write("", "", "");
        bench.reload();
        assert_eq!(bench.agent()["max_turns"], 20);
    }
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
