//! The socket file: taken over when it is stale, removed when it is ours, closed to others.

use std::process::Stdio;

use nano_tests::client::Client;
use nano_tests::daemon::Daemon;
use nano_tests::model_server::ModelServer;
use nano_tests::{processes, programs, wait};
use rustix::process::Signal;
use serde_json::{Value, json};

#[test]
fn a_left_socket_is_no_hindrance() {
    let server = ModelServer::script(Vec::new());
    let mut daemon = Daemon::start(&server);
    daemon.kill9();
    assert!(daemon.socket().exists(), "a killed daemon leaves its socket");
    assert!(Client::connect(&daemon.socket()).is_err());
    daemon.restart();
    daemon.client().get::<Value>("daemon.status", &json!({}));
}

#[test]
fn only_its_own_socket_is_removed() {
    let server = ModelServer::script(Vec::new());
    let mut daemon = Daemon::start(&server);
    std::fs::rename(daemon.socket(), daemon.root().join("away")).expect("another name");
    let _others = std::os::unix::net::UnixListener::bind(daemon.socket()).expect("another socket");
    assert_eq!(daemon.terminate().code(), Some(0));
    assert!(daemon.socket().exists(), "it is somebody else's");
    std::fs::remove_file(daemon.socket()).expect("its end");
    daemon.restart();
}

#[test]
fn of_many_daemons_that_find_a_stale_socket_one_gets_it() {
    let server = ModelServer::script(Vec::new());
    let mut daemon = Daemon::start(&server);
    for round in 0..5 {
        daemon.kill9();
        assert!(daemon.socket().exists(), "a stale one");
        let start = |number: usize| {
            let mut command = programs::command("nanod");
            command.env("HOME", daemon.root()).env("NANO_SOCKET", daemon.socket());
            command.env("NANO_STATE_DIR", daemon.root().join(format!("state-{round}-{number}")));
            command.env("NANO_CONFIG", daemon.root().join("nanod.toml")).stdin(Stdio::null()).stderr(Stdio::null());
            command.spawn()
        };
        let mut all: Vec<_> = (0..4).map(|number| start(number).expect("nanod starts")).collect();
        let mut one_is_left = || {
            let ended = all.iter_mut().filter_map(|child| child.try_wait().expect("its state"));
            (ended.filter(|status| status.code() == Some(1)).count() == 3).then_some(())
        };
        wait::until("the end of all but one", &mut one_is_left);
        let status: Value = daemon.client().get("daemon.status", &json!({}));
        let mut winner = all.into_iter().find(|child| status["pid"] == child.id()).expect("one of them answers");
        processes::signal(i32::try_from(winner.id()).expect("a process id"), Signal::TERM);
        assert_eq!(winner.wait().expect("its end").code(), Some(0));
        daemon.restart();
    }
}

#[test]
fn only_its_owner_can_reach_the_socket() {
    use std::os::unix::fs::PermissionsExt;
    let server = ModelServer::script(Vec::new());
    let daemon = Daemon::start(&server);
    let mode = std::fs::metadata(daemon.socket()).expect("the socket").permissions().mode() & 0o777;
    assert_eq!(mode & 0o007, 0, "{mode:o}");
}
