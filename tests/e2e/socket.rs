//! The socket file: taken over when it is stale, removed when it is ours, closed to others.

use std::fs::{self, File};
use std::os::unix::net::UnixListener;
use std::process::Stdio;

use nano_tests::client::Client;
use nano_tests::daemon::Daemon;
use nano_tests::model_server::ModelServer;
use nano_tests::wait;
use rustix::fs::{FlockOperation, flock};
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
    fs::rename(daemon.socket(), daemon.root().join("away")).expect("another name");
    let _others = UnixListener::bind(daemon.socket()).expect("another socket");
    assert_eq!(daemon.terminate().code(), Some(0));
    assert!(daemon.socket().exists(), "it is somebody else's");
    fs::remove_file(daemon.socket()).expect("its end");
    daemon.restart();
}

#[test]
fn daemons_that_find_a_stale_socket_take_turns() {
    let server = ModelServer::script(Vec::new());
    let mut daemon = Daemon::start(&server);
    daemon.kill9();
    assert!(daemon.socket().exists(), "a stale one");
    // This test is the other daemon: it has its turn, and has not replaced the socket yet.
    let folder = File::open(daemon.root()).expect("the folder");
    flock(&folder, FlockOperation::LockExclusive).expect("the lock");
    let child = daemon.command().stderr(Stdio::piped()).spawn().expect("nanod starts");
    let waits = format!("-> FLOCK  ADVISORY  WRITE {} ", child.id());
    wait::until("a daemon that waits for its turn", || {
        assert!(Client::connect(&daemon.socket()).is_err(), "it did not wait");
        fs::read_to_string("/proc/locks").expect("the locks").contains(&waits).then_some(())
    });
    fs::remove_file(daemon.socket()).expect("a stale socket");
    let _ours = UnixListener::bind(daemon.socket()).expect("a socket");
    flock(&folder, FlockOperation::Unlock).expect("the lock");
    let output = child.wait_with_output().expect("its end");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("another daemon listens"), "{said}");
    Client::connect(&daemon.socket()).expect("the first one's socket");
    fs::remove_file(daemon.socket()).expect("its end");
    daemon.restart();
}

#[test]
fn only_its_owner_can_reach_the_socket() {
    use std::os::unix::fs::PermissionsExt;
    let server = ModelServer::script(Vec::new());
    let daemon = Daemon::start(&server);
    let mode = fs::metadata(daemon.socket()).expect("the socket").permissions().mode() & 0o777;
    assert_eq!(mode & 0o007, 0, "{mode:o}");
}
