//! A command of an agent does not reach the daemon that runs it, whatever way it goes about it; everybody else does.

use std::fs;
use std::path::{Path, PathBuf};

use nano_protocol::message::Role;
use nano_tests::daemon::{Daemon, Setup};
use nano_tests::model_server::{ModelServer, Turn};
use nano_tests::{programs, transcript, wait};
use serde_json::{Value, json};

/// Says hello, sends a request of its own, and prints what it hears: `python3 ask.py SOCKET METHOD`.
const ASK: &str = r#"
import json, socket, sys
peer = socket.socket(socket.AF_UNIX)
peer.connect(sys.argv[1])
try:
    peer.sendall((json.dumps({"jsonrpc": "2.0", "id": 1, "method": sys.argv[2], "params": {}}) + "\n").encode())
except OSError as error:
    print("not sent", error)
print(peer.makefile().readline().strip(), flush=True)
"#;

/// The daemon, whose model does as told, in a place where a command finds `nanoctl`, `ask.py`, and the socket.
struct Scene {
    server: ModelServer,
    daemon: Daemon,
}

impl Scene {
    /// Has commands run one after the other in a session of this level, each with what it must leave in a file.
    fn new(commands: Vec<String>) -> Self {
        let mut turns: Vec<Turn> =
            commands.into_iter().enumerate().map(|(n, command)| Turn::exec(format!("c{n}"), command)).collect();
        turns.push(Turn::text("done"));
        let server = ModelServer::script(turns);
        let daemon = Daemon::with(&server, Setup { agent: "max_turns = 60".into(), ..Setup::default() });
        fs::write(daemon.workspace().join("ask.py"), ASK).expect("a script");
        Self { server, daemon }
    }

    /// Runs them all and returns what the model was told of each.
    fn run(&self, level: &str) -> Vec<String> {
        let mut client = self.daemon.client();
        let session = self.daemon.session_with(&mut client, json!({ "level": level }));
        client.run(&session, "p");
        assert!(self.server.requests().len() > 1, "the model was asked");
        let messages = transcript::read(&mut client, &session);
        messages.into_iter().filter(|message| message.role == Role::Tool).map(|message| message.content).collect()
    }
}

fn nanoctl() -> String {
    programs::program("nanoctl").display().to_string()
}

/// Spellings of a way to the socket: `S` stands for its path, `CTL` for nanoctl, `ASK` for the script.
const WAYS: [&str; 16] = [
    "CTL --socket S status",
    "NANO_SOCKET=S CTL submit 'do more'",
    "CTL --socket S rpc approval.answer '{\"id\": \"apr_1\", \"answer\": \"allow\"}'",
    "CTL --socket S rpc daemon.shutdown",
    "CTL --socket S run --no-autostart 'do more'",
    "ASK",
    "setsid --wait ASK",
    "(setsid ASK > out 2>&1 &); wait_for out; cat out",
    // Twice forked, and the parents are gone before it connects.
    "(setsid sh -c '(sleep 0.3; exec ASK) > out 2>&1 &') ; wait_for out; cat out",
    "env -i ASK",
    "env -i setsid --wait ASK",
    "env -i NANO_COMMAND_OF= ASK",
    "NANO_COMMAND_OF= setsid --wait CTL --socket S status",
    "nohup ASK 2>&1 & wait",
    "python3 -c 'import os,sys; os.execvp(sys.argv[1], sys.argv[1:])' ASK",
    "cp CTL ./renamed && exec -a bash ./renamed --socket S status",
];

fn spelt(way: &str, socket: &Path) -> String {
    let socket = socket.display().to_string();
    let ask = format!("python3 ask.py {socket} daemon.status");
    let wait = "wait_for() { while ! grep -qE 'Error:|-32003|uptime' \"$1\" 2>/dev/null; do sleep 0.02; done; }; ";
    let way = way.replace("ASK", &ask).replace("CTL", &nanoctl()).replace(" S ", &format!(" {socket} "));
    format!("{wait}rm -f out; {}", way.replace("=S ", &format!("={socket} ")))
}

#[test]
fn no_command_reaches_its_daemon() {
    for level in ["workspace-write", "host"] {
        let path = PathBuf::from("../nanod.sock");
        let scene = Scene::new(WAYS.iter().map(|way| spelt(way, &path)).collect());
        let results = scene.run(level);
        assert_eq!(results.len(), WAYS.len());
        for (way, result) in WAYS.iter().zip(&results) {
            // Below `host` the file system may have hidden it already.
            let hidden =
                level != "host" && ["Permission", "No such file", "refused"].iter().any(|w| result.contains(w));
            let denied = result.contains("may not use the daemon");
            assert!(denied || hidden, "{level}: {way}: {result}\n{}", scene.daemon.log());
            assert!(!result.contains("uptime_ms"), "{level}: {way}: {result}");
        }
        let tasks: Value = scene.daemon.client().get("task.list", &json!({}));
        assert_eq!(tasks["tasks"].as_array().map(Vec::len), Some(1), "{tasks}");
    }
}

#[test]
fn who_kills_the_keepers_gets_nowhere() {
    // The shell outlives keeper and helper, with an empty environment, and then asks.
    let escape = "setsid env -i PATH=\"$PATH\" sh -c '\
        keeper=$(awk \"{print \\$4}\" /proc/$PPID/stat 2>/dev/null); \
        for pid in $(cat pids); do kill -9 $pid; done; sleep 0.2; \
        python3 ask.py ../nanod.sock daemon.status > out 2>&1; touch ended' & \
        sleep 100";
    let pids = "helper=$PPID; keeper=$(cut -d' ' -f4 /proc/$helper/stat); echo $keeper $helper > pids; ";
    let scene = Scene::new(vec![format!("{pids}{escape}")]);
    let results = scene.run("host");
    assert!(results[0].contains("SIGKILL"), "{results:?}");
    let heard = fs::read_to_string(scene.daemon.workspace().join("out")).unwrap_or_default();
    assert!(!heard.contains("uptime_ms"), "{heard}");
    let pid = i32::try_from(scene.daemon.pid()).expect("a process id");
    wait::until("the end of what had escaped", || {
        scene.daemon.left().iter().all(|process| process.pid == pid).then_some(())
    });
    assert!(scene.daemon.log().contains("had escaped"), "{}", scene.daemon.log());
    scene.daemon.ctl(["status"]).run().expect_code(0);
}

#[test]
fn a_process_left_in_the_background_is_refused_too() {
    let command = "(sh -c 'while ! test -e go; do sleep 0.02; done; python3 ask.py ../nanod.sock daemon.status > said.new; \
                   mv said.new said; sleep 100' &) ; echo on";
    let server = ModelServer::script(vec![Turn::exec("c1", command), Turn::text("done").gated("end")]);
    let daemon = Daemon::start(&server);
    fs::write(daemon.workspace().join("ask.py"), ASK).expect("a script");
    let mut client = daemon.client();
    let session = daemon.session_with(&mut client, json!({"level": "host"}));
    let task = client.submit(&session, "p");
    server.wait_requests(2);
    fs::write(daemon.workspace().join("go"), "").expect("a file");
    let said = daemon.workspace().join("said");
    let said = wait::until("what it was told", || fs::read_to_string(&said).ok());
    assert!(said.contains("-32003") && said.contains(r#""kind":"denied""#), "{said}");
    server.open("end");
    client.settled(&task.id);
}

#[test]
fn everybody_else_is_served() {
    let server = ModelServer::answering(|_, _| Some(Turn::text("done")));
    let daemon = Daemon::start(&server);
    daemon.ctl(["status"]).run().expect_code(0);
    let (socket, root) = (daemon.socket(), daemon.root());
    let (ctl, socket) = (nanoctl(), socket.display().to_string());
    // As cron and shells with jobs in the background start things: forked twice, parents gone, no environment.
    for (n, way) in [
        format!("{ctl} --socket {socket} status --json > FILE.new; mv FILE.new FILE"),
        format!("(setsid sh -c 'sleep 0.2; {ctl} --socket {socket} status --json > FILE.new; mv FILE.new FILE' &)"),
        format!("(env -i sh -c '{ctl} --socket {socket} status --json > FILE.new; /bin/mv FILE.new FILE' &)"),
    ]
    .into_iter()
    .enumerate()
    {
        let file = root.join(format!("answer-{n}"));
        let way = way.replace("FILE", &file.display().to_string());
        let status = std::process::Command::new("/bin/sh").args(["-c", &way]).status().expect("a shell");
        assert!(status.success(), "{way}");
        let answer = wait::until("an answer", || fs::read_to_string(&file).ok());
        assert!(answer.contains("uptime_ms"), "{way}: {answer}");
    }
}

#[test]
fn a_daemon_that_a_script_became_serves_what_the_script_had_started() {
    let server = ModelServer::script(vec![
        Turn::exec("c1", "NANO=1 python3 ask.py ../nanod.sock daemon.status"),
        Turn::text("done"),
    ]);
    let mut daemon = Daemon::prepare(&server, Setup::default());
    fs::write(daemon.workspace().join("ask.py"), ASK).expect("a script");
    let (ctl, socket) = (nanoctl(), daemon.socket().display().to_string());
    let file = daemon.root().join("answer");
    let told = file.display();
    let script = format!(
        "(while ! {ctl} --socket {socket} status --json > {told}.new 2>/dev/null; do sleep 0.05; done; mv {told}.new {told}) & \
         exec \"$@\""
    );
    daemon.run_under(["/bin/sh", "-c", &script, "script"]);
    daemon.restart();
    let answer = wait::until("an answer", || fs::read_to_string(&file).ok());
    assert!(answer.contains("uptime_ms"), "{answer}");
    let mut client = daemon.client();
    let session = daemon.session_with(&mut client, json!({"level": "host"}));
    client.run(&session, "p");
    let messages = transcript::read(&mut client, &session);
    assert!(messages.iter().any(|message| message.content.contains("-32003")), "{messages:?}");
}
