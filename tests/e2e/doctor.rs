//! `doctor`: what is as it should be, and what is not, with the exit status that says so.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use nano_protocol::daemon::{Check, Doctor};
use nano_tests::daemon::{Daemon, Setup};
use nano_tests::model_server::{ModelServer, Turn};

fn set_mode(path: &std::path::Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
}

fn look(daemon: &Daemon, code: i32) -> Vec<Check> {
    let output = daemon.ctl(["doctor", "--json"]).run();
    let doctor: Doctor = serde_json::from_str(&output.expect_code(code)).expect("JSON");
    doctor.checks
}

fn named<'a>(checks: &'a [Check], name: &str) -> &'a Check {
    checks.iter().find(|check| check.name == name).unwrap_or_else(|| panic!("no {name} in {checks:?}"))
}

#[test]
fn a_healthy_daemon_and_what_may_be_wrong_with_it() {
    let server = ModelServer::answering(|_, _| Some(Turn::text("done")));
    let daemon = Daemon::start(&server);
    let config = daemon.root().join("nanod.toml");
    set_mode(&config, 0o600);
    let checks = look(&daemon, 0);
    for name in [
        "store",
        "socket",
        "key files",
        "model addresses",
        "models",
        "booter local",
        "landlock",
        "seccomp",
        "control groups",
        "skills",
        "service manager",
        "time zone",
    ] {
        assert!(named(&checks, name).ok, "{name}: {checks:?}");
    }
    assert!(named(&checks, "socket").detail.contains("0600"), "{checks:?}");
    let told = daemon.ctl(["doctor"]).run().expect_code(0);
    assert_eq!(told.lines().count(), checks.len(), "{told}");
    assert!(told.lines().all(|line| line.starts_with("✓ ") || line.starts_with("~ ")), "{told}");

    set_mode(&config, 0o644);
    let checks = look(&daemon, 1);
    assert!(!named(&checks, "key files").ok && named(&checks, "key files").hint.is_some(), "{checks:?}");
    let output = daemon.ctl(["doctor"]).run();
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(output.stdout.lines().any(|line| line.starts_with("✗ key files: ")), "{output:?}");
    assert!(output.stderr.starts_with("nanoctl: ") && output.stderr.lines().count() == 1, "{output:?}");
    set_mode(&config, 0o600);

    fs::remove_file(daemon.socket()).expect("a socket");
    fs::write(daemon.socket(), "").expect("a file");
    fs::remove_file(daemon.socket()).expect("a file");
}

#[test]
fn a_model_that_is_spoken_to_in_the_clear() {
    let server = ModelServer::answering(|_, _| Some(Turn::text("done")));
    for (key, code) in [("api_key = \"k\"", 1), ("", 0)] {
        let extra = format!("[models.far]\nbase_url = \"http://192.0.2.1/v1\"\nmodel = \"m\"\n{key}");
        let daemon = Daemon::with(&server, Setup { extra, ..Setup::default() });
        set_mode(&daemon.root().join("nanod.toml"), 0o600);
        let checks = look(&daemon, code);
        let check = named(&checks, "model addresses");
        assert_eq!((check.ok, check.detail.contains("far")), (code == 0, true), "{checks:?}");
    }
}
