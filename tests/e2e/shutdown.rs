//! Ending and starting: an orderly stop, one daemon per state folder, and what a bad start says.

use std::process::Stdio;
use std::time::{SystemTime, UNIX_EPOCH};

use nano_protocol::event::EventType;
use nano_protocol::followup::{Followup, FollowupState};
use nano_protocol::message::{Outcome, Role};
use nano_protocol::task::TaskState;
use nano_tests::daemon::{Daemon, Setup};
use nano_tests::model_server::{Gate, ModelServer, Turn};
use nano_tests::{processes, programs, transcript, wait};
use rustix::process::Signal;
use serde_json::{Value, json};

/// Runs `nanod` with further arguments beside a running one, and returns its status and what it said.
fn nanod(daemon: &Daemon, args: &[&str]) -> (Option<i32>, String) {
    let child = daemon.command().args(args).stderr(Stdio::piped()).spawn().expect("nanod starts");
    let output = child.wait_with_output().expect("nanod ends");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn an_idle_daemon_ends_with_0() {
    let server = ModelServer::script(Vec::new());
    let mut daemon = Daemon::start(&server);
    assert_eq!(daemon.terminate().code(), Some(0), "{}", daemon.log());
    assert!(!daemon.socket().exists(), "its own socket is removed");
    assert_eq!(daemon.left(), []);
    daemon.restart();
    daemon.client().get::<Value>("daemon.shutdown", &json!({}));
    assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.log());
}

#[test]
fn a_running_call_may_end_and_the_task_goes_on_later() {
    let server = ModelServer::script(vec![
        Turn::exec("c1", "touch up; while [ ! -e go ]; do sleep 0.02; done; echo once >> marks"),
        Turn::text("done"),
    ]);
    let mut daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let task = client.submit(&session, "p");
    let work = daemon.workspace();
    wait::until("the call", || work.join("up").exists().then_some(()));
    client.get::<Value>("daemon.shutdown", &json!({"grace_ms": 20_000}));
    std::fs::write(work.join("go"), "").expect("a file");
    assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.log());
    daemon.restart();
    let mut client = daemon.client();
    assert_eq!(client.settled(&task.id).state, TaskState::Succeeded);
    let rendered = transcript::render(&transcript::read(&mut client, &session));
    assert!(transcript::fits("U(p) A[c1] T(c1) N? A(done)", &rendered), "{rendered}");
    assert_eq!(std::fs::read_to_string(work.join("marks")).expect("the marks"), "once\n");
}

#[test]
fn a_call_that_does_not_end_is_stopped_at_the_deadline() {
    let server = ModelServer::script(vec![
        Turn::exec("c1", "trap '' TERM; touch up; while :; do sleep 0.05; done"),
        Turn::text("done"),
    ]);
    let mut daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let task = client.submit(&session, "p");
    let up = daemon.workspace().join("up");
    wait::until("the call", || up.exists().then_some(()));
    client.get::<Value>("daemon.shutdown", &json!({"grace_ms": 100}));
    assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.log());
    wait::until("the end of the call", || daemon.left().is_empty().then_some(()));
    daemon.restart();
    let mut client = daemon.client();
    assert_eq!(client.settled(&task.id).state, TaskState::Succeeded);
    transcript::check_pairs(&transcript::read(&mut client, &session), false);
}

#[test]
fn sigterm_does_not_wait_for_the_model() {
    let server = ModelServer::script(vec![Turn { hang: true, ..Turn::default() }, Turn::text("done")]);
    let mut daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let task = client.submit(&session, "p");
    server.wait_requests(1);
    assert_eq!(daemon.terminate().code(), Some(0), "{}", daemon.log());
    daemon.restart();
    assert_eq!(daemon.client().settled(&task.id).state, TaskState::Succeeded);
}

#[test]
fn a_second_sigterm_shortens_the_drain() {
    let server = ModelServer::script(vec![
        Turn::exec("c1", "trap '' TERM; touch up; while :; do sleep 0.05; done"),
        Turn::text("done"),
    ]);
    // The call's own timeout must not end the drain.
    let setup = Setup { agent: "exec_timeout = \"10m\"".to_owned(), ..Setup::default() };
    let mut daemon = Daemon::with(&server, setup);
    daemon.kill9();
    let config = daemon.root().join("nanod.toml");
    let text = std::fs::read_to_string(&config).expect("the config");
    std::fs::write(&config, text.replace("drain = \"5s\"", "drain = \"2h\"")).expect("a config file");
    daemon.restart();
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let task = client.submit(&session, "p");
    let up = daemon.workspace().join("up");
    wait::until("the call", || up.exists().then_some(()));
    processes::signal(i32::try_from(daemon.pid()).expect("a process id"), Signal::TERM);
    wait::until("the beginning of the end", || daemon.log().contains("going down").then_some(()));
    assert!(!daemon.left().is_empty(), "the call may end by itself");
    assert_eq!(daemon.terminate().code(), Some(0), "{}", daemon.log());
    daemon.restart();
    assert_eq!(daemon.client().settled(&task.id).state, TaskState::Succeeded);
}

#[test]
fn a_second_signal_of_either_kind_stops_now_and_loses_nothing() {
    for signals in [[Signal::INT, Signal::TERM], [Signal::TERM, Signal::INT], [Signal::INT, Signal::INT]] {
        let server = ModelServer::script(vec![
            Turn {
                when: Some("first".to_owned()),
                ..Turn::exec("c1", "trap '' TERM; echo x >> up; while :; do sleep 0.05; done")
            },
            Turn { repeat: true, ..Turn::text("done") },
        ]);
        let setup = Setup { agent: "exec_timeout = \"10m\"".to_owned(), ..Setup::default() };
        let mut daemon = Daemon::with(&server, setup);
        let config = daemon.root().join("nanod.toml");
        let text = std::fs::read_to_string(&config).expect("the config");
        std::fs::write(&config, text.replace("drain = \"5s\"", "drain = \"2h\"")).expect("a config file");
        let mut client = daemon.client();
        client.get::<Value>("daemon.reload", &json!({}));
        let session = daemon.session(&mut client);
        let tasks = ["first", "second"].map(|content| client.submit(&session, content).id);
        let up = daemon.workspace().join("up");
        wait::until("the call", || up.exists().then_some(()));
        let steering = json!({"session": session, "content": "and this"});
        client.get::<Value>("session.steer", &steering);
        let pid = i32::try_from(daemon.pid()).expect("a process id");
        processes::signal(pid, signals[0]);
        wait::until("the beginning of the end", || daemon.log().contains("going down").then_some(()));
        processes::signal(pid, signals[1]);
        assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.log());
        daemon.restart();
        let mut client = daemon.client();
        for task in &tasks {
            assert_eq!(client.settled(task).state, TaskState::Succeeded);
        }
        let messages = transcript::read(&mut client, &session);
        transcript::check_pairs(&messages, false);
        let result = messages.iter().find(|message| message.role == Role::Tool).expect("a result");
        assert_eq!(result.outcome, Some(Outcome::Stopped), "{result:?}");
        assert!(result.content.contains("nanod was being shut down"), "{result:?}");
        assert_eq!(messages.iter().filter(|message| message.content == "and this").count(), 1);
        assert_eq!(std::fs::read_to_string(&up).expect("the marks"), "x\n");
    }
}

#[test]
fn a_reply_that_stalls_half_way_is_asked_for_again() {
    let half = Turn { gate: Some(Gate { name: "never".to_owned(), after: 1 }), ..Turn::text("half of it") };
    let server = ModelServer::script(vec![half, Turn::text("all of it")]);
    let mut daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    client.subscribe(&json!({"session": session, "deltas": true}));
    let task = client.submit(&session, "p");
    client.events_until("a piece of the reply", |event| event.kind == EventType::TextDelta);
    assert_eq!(daemon.terminate().code(), Some(0), "{}", daemon.log());
    daemon.restart();
    let mut client = daemon.client();
    assert_eq!(client.settled(&task.id).result.as_deref(), Some("all of it"));
    let requests = server.requests();
    assert_eq!(requests.first().map(|one| &one["messages"]), requests.last().map(|one| &one["messages"]));
}

#[test]
fn a_follow_up_that_falls_due_in_the_drain_waits_for_the_next_start() {
    let server = ModelServer::script(vec![
        Turn { when: Some("first".to_owned()), ..Turn::exec("c1", "touch up; while [ ! -e go ]; do sleep 0.02; done") },
        Turn { repeat: true, ..Turn::text("done") },
    ]);
    let mut daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let (session, other) = (daemon.session(&mut client), daemon.session(&mut client));
    client.submit(&session, "first");
    let work = daemon.workspace();
    wait::until("the call", || work.join("up").exists().then_some(()));
    let params = json!({"session": other, "content": "later", "trigger": {"after_ms": 1000}});
    let followup: Followup = client.get("followup.schedule", &params);
    let due = followup.next.first().expect("a slot").0;
    client.get::<Value>("daemon.shutdown", &json!({"grace_ms": 3_600_000}));
    let now = || i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).expect("a date").as_millis()).expect("now");
    wait::until("the slot", || (now() > due + 200).then_some(()));
    let pending: Followup = client.get("followup.get", &json!({"followup": followup.id}));
    assert_eq!((pending.runs, pending.missed, pending.state), (0, 0, FollowupState::Active));
    std::fs::write(work.join("go"), "").expect("a file");
    assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.log());
    daemon.restart();
    let mut client = daemon.client();
    let fired = wait::until("the follow-up", || {
        let now: Followup = client.get("followup.get", &json!({"followup": followup.id}));
        (now.state == FollowupState::Done).then_some(now)
    });
    assert_eq!((fired.runs, fired.missed), (1, 0));
    assert_eq!(client.tasks(&other).len(), 1);
}

#[test]
fn a_second_daemon_ends_at_once_and_names_the_first() {
    let server = ModelServer::script(Vec::new());
    let daemon = Daemon::start(&server);
    let other = daemon.root().join("other.sock").display().to_string();
    for mut command in [daemon.command(), elsewhere(&daemon, &other)] {
        let output = command.stderr(Stdio::piped()).spawn().and_then(std::process::Child::wait_with_output);
        let output = output.expect("a second nanod");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(&daemon.pid().to_string()), "{said}");
        let status: Value = daemon.client().get("daemon.status", &json!({}));
        assert_eq!(status["pid"], daemon.pid(), "the first one goes on");
    }
}

/// Makes the command of a daemon on the same state folder with another socket.
fn elsewhere(daemon: &Daemon, socket: &str) -> std::process::Command {
    let mut command = programs::command("nanod");
    command.env("HOME", daemon.root()).env("NANO_SOCKET", socket).env("NANO_STATE_DIR", daemon.state());
    command.env("NANO_CONFIG", daemon.root().join("nanod.toml")).stdin(Stdio::null()).stdout(Stdio::null());
    command
}

#[test]
fn configs_are_checked() {
    let server = ModelServer::script(Vec::new());
    let daemon = Daemon::start(&server);
    assert_eq!(nanod(&daemon, &["--check-config"]).0, Some(0));
    let config = daemon.root().join("nanod.toml");
    for (text, says) in [
        ("[agents.default]\nmax_turn = 3\n", ["max_turn", "max_turns"]),
        ("[daemon]\n\nlog = 7\n", ["log", "3"]),
        ("[daemon\n", ["nanod.toml", "1"]),
        ("[models.m]\napi = \"openay\"\n", ["openay", "openai"]),
        ("[agents.default]\nbooter = \"cloud\"\n", ["cloud", "local"]),
        ("[agents.default]\nexec_timeout = \"soon\"\n", ["exec_timeout", "2"]),
        ("[agents.default]\nmodel = \"nothing\"\n", ["model", "nothing"]),
        ("[models.m]\napi = \"replay\"\ncassette = \"/no/such/cassette\"\n", ["/no/such/cassette", "nanod.toml"]),
        ("[agents.default]\ntools = [\"read_file\", \"hammer\"]\n", ["hammer", "exec"]),
        ("[agents.other]\ntools = [\"hammer\"]\n", ["other", "hammer"]),
        ("[daemon]\nlog = \"loud\"\n", ["log", "loud"]),
        ("[daemon]\nlog = \"nanod=loud\"\n", ["log", "filter"]),
        ("[daemon]\nsocket_group = \"no-such-group\"\n", ["socket_group", "no-such-group"]),
    ] {
        std::fs::write(&config, text).expect("a config file");
        let (code, said) = nanod(&daemon, &["--check-config"]);
        assert_eq!(code, Some(78), "{text}: {said}");
        for part in says {
            assert!(said.contains(part), "{text}: `{part}` is missing in {said}");
        }
    }
    assert_eq!(nanod(&daemon, &["--no-such-flag"]).0, Some(2));
}
