//! Without file watches, as on a machine where none are left: changes are noticed all the same, and that is said.

use std::process::{Child, Command, Stdio};

use nano_protocol::event::EventType;
use nano_tests::client::Client;
use serde_json::json;

use super::{Ground, done, put, text};

/// A daemon in a user namespace that gives it no watches.
struct Unwatched(Child);

impl Drop for Unwatched {
    fn drop(&mut self) {
        // It may have ended by itself; the test has failed then for another reason.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

const NO_WATCHES: &str = "echo 0 >/proc/sys/user/max_inotify_instances && exec \"$0\" \"$@\"";

/// Wraps a command so that the kernel gives it no watches.
fn without_watches(inner: &Command) -> Command {
    let mut command = Command::new("unshare");
    command.args(["-Ur", "sh", "-c", NO_WATCHES]).arg(inner.get_program()).args(inner.get_args());
    for (name, value) in inner.get_envs() {
        value.map(|value| command.env(name, value));
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

#[test]
fn it_looks_now_and_then_and_says_so() {
    let can = without_watches(&Command::new("true")).status().is_ok_and(|status| status.success());
    if !can {
        eprintln!("NOT TESTED: no user namespace can be had here, so file watches cannot be taken away");
        return;
    }
    let ground = Ground::new();
    put(&ground.paths(), "one", &text("one", "Is one.", "ONE"));
    let server = done();
    let mut daemon = ground.daemon(&server, "", "");
    daemon.kill9();
    let held = Unwatched(without_watches(&daemon.command()).spawn().expect("unshare"));
    let mut client: Client = nano_tests::wait::until("the socket", || Client::connect(&daemon.socket()).ok());
    client.subscribe(&json!({"since_seq": 0}));
    let seen = client.events_until("the warning", |event| event.kind == EventType::Warning);
    let said = seen.last().expect("an event").data["message"].as_str().expect("a message").to_owned();
    assert!(said.contains("no file watches are left"), "{said}");
    put(&ground.paths(), "one", &text("one", "Is another.", "TWO"));
    let seen = client.events_until("the change", |event| event.kind == EventType::SkillChanged);
    assert_eq!(seen.last().expect("an event").data["skills"][0]["became"], "changed");
    drop(held);
    daemon.restart();
}
