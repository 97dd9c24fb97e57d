//! Processes that are nobody's command.

use super::*;

/// A process that is nobody's.
struct Stranger(Child);

impl Stranger {
    fn lives(&mut self) -> bool {
        self.0.try_wait().expect("its state").is_none()
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        self.0.kill().and_then(|()| self.0.wait()).expect("its end");
    }
}

/// Starts a process that is nobody's, with this mark.
fn stranger(mark: &str) -> Stranger {
    let mut command = Command::new("/bin/sleep");
    command.arg("1000").env_clear().env(MARK, mark).stdin(Stdio::null()).process_group(0);
    Stranger(command.spawn().expect("a stranger"))
}

#[test]
fn strangers_live() {
    let server = ModelServer::script(vec![
        Turn::exec("c1", format!("printf %s \"${MARK}\" > mark; touch up; sleep 1000")),
        Turn::text("done"),
    ]);
    let mut daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    client.submit(&session, "p");
    wait_for(&daemon, &["up"]);
    let mark = fs::read_to_string(daemon.workspace().join("mark")).expect("a mark");
    assert!(!mark.is_empty());
    let copied = daemon.root().join("copy");
    fs::create_dir(&copied).expect("a folder");
    fs::copy(daemon.state().join("instance"), copied.join("instance")).expect("a copy");
    let mut strangers: Vec<Stranger> =
        ["", "other-1-2", &mark[..mark.len() - 1], &format!("{mark}0"), &mark.to_lowercase()].map(stranger).into();
    let left = kill_all_at_once(&mut daemon);
    daemon.restart();
    assert_eq!(left.iter().filter(|pid| is_alive(**pid)).count(), 0, "{}", daemon.log());
    for stranger in &mut strangers {
        assert!(stranger.lives());
    }
    // The other daemon, on a copy of the state, is another one.
    let mut ours = stranger(&mark);
    let mut command = programs::command("nanod");
    command.arg("--socket").arg(copied.join("sock")).arg("--state-dir").arg(&copied);
    command.env("HOME", daemon.root()).stdin(Stdio::null()).stderr(Stdio::null());
    let mut other = command.arg("--config").arg(daemon.root().join("nanod.toml")).spawn().expect("nanod starts");
    wait::until("the other daemon", || Client::connect(&copied.join("sock")).ok());
    assert!(ours.lives());
    drop(ours);
    processes::signal(i32::try_from(other.id()).expect("a process id"), Signal::TERM);
    assert_eq!(other.wait().expect("its end").code(), Some(0));
}

#[test]
fn a_daemon_that_a_command_started_is_nobodys_command() {
    let nanod = programs::program("nanod").display().to_string();
    let start = format!(
        "setsid {nanod} --socket ../inner.sock --state-dir ../inner --config ../nanod.toml >/dev/null 2>../inner.log & \
         echo $! > inner.pid; sleep 1000"
    );
    let server = ModelServer::answering(move |request, _| {
        let has = |text: &str| request["messages"].to_string().contains(text);
        Some(match () {
            () if has("inner task") => Turn::exec("c1", "echo $$ > shell.pid; sleep 1000"),
            () if request["messages"].as_array().is_some_and(|all| all.iter().any(|one| one["role"] == "tool")) => {
                Turn::text("done")
            }
            () => Turn::exec("c1", start.clone()),
        })
    });
    let mut daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session = daemon.session_with(&mut client, serde_json::json!({"level": "host"}));
    let outer = client.submit(&session, "p");
    let socket = daemon.root().join("inner.sock");
    let mut inner = wait::until("the inner daemon", || Client::connect(&socket).ok());
    let inside = inner.get::<serde_json::Value>("session.create", &json!({"workspace": daemon.workspace()}));
    inner.submit(inside["id"].as_str().expect("an id"), "inner task");
    let shell = number(&daemon.workspace().join("shell.pid"));
    let inner_pid = number(&daemon.workspace().join("inner.pid"));
    let status: serde_json::Value = inner.get("daemon.status", &json!({}));
    assert_eq!(status["pid"], inner_pid, "it is the process that was started");
    let may_look = rustix::process::geteuid().is_root();
    assert!(
        !may_look || environment(inner_pid).split(|byte| *byte == 0).any(|one| one == format!("{MARK}=").as_bytes())
    );
    kill_all_at_once(&mut daemon);
    daemon.restart();
    assert!(daemon.log().contains("processes that an earlier run left were ended"), "{}", daemon.log());
    assert_eq!(daemon.client().settled(&outer.id).state, TaskState::Succeeded);
    // Where commands have groups of their own, it ends with its group.
    if is_alive(inner_pid) {
        assert!(is_alive(shell), "the inner daemon and its command live");
        inner.get::<serde_json::Value>("daemon.shutdown", &json!({"grace_ms": 0}));
    }
    wait::until("the end of the inner daemon", || (!is_alive(inner_pid) && !is_alive(shell)).then_some(()));
}
