//! The systemd units: accepted by systemd itself, confined as far as tools allow, and true to the contract's places.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::path::{Path, PathBuf};
use std::process::Command;

/// Exposure times ten: what is left is what ordinary tools need, and control groups for their commands.
const MOST_EXPOSED: &str = "--threshold=28";

fn unit(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../systemd").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Writes a copy whose program exists on every machine.
fn runnable(folder: &Path, name: &str) -> PathBuf {
    let path = folder.join("nanod.service");
    let program =
        |line: &str| if line.starts_with("ExecStart=") { "ExecStart=/bin/true".into() } else { line.to_owned() };
    let lines: Vec<String> = unit(name).lines().map(program).collect();
    std::fs::write(&path, lines.join("\n") + "\n").unwrap();
    path
}

/// Runs `systemd-analyze`; none where there is no such program.
fn analyze(folder: &Path, arguments: &[&str], unit: &Path) -> Option<(bool, String)> {
    let output = Command::new("systemd-analyze").args(arguments).arg(unit).env("XDG_RUNTIME_DIR", folder).output();
    let Ok(output) = output else {
        eprintln!("SKIPPED: systemd-analyze is not installed, {} was not checked", unit.display());
        return None;
    };
    // Warnings come with a good status, so the text decides.
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    Some((output.status.success(), text))
}

#[test]
fn systemd_accepts_the_units() {
    for (name, arguments) in
        [("nanod.service", &["verify", "--man=no"][..]), ("user/nanod.service", &["--user", "verify", "--man=no"])]
    {
        let folder = tempfile::tempdir().unwrap();
        let outcome = analyze(folder.path(), arguments, &runnable(folder.path(), name));
        assert!(outcome.is_none() || outcome == Some((true, String::new())), "{name}: {outcome:?}");
    }
}

#[test]
fn systemd_accepts_the_examples() {
    let folder = tempfile::tempdir().unwrap();
    let path = |kind: &str| folder.path().join(format!("nano-report@fix.{kind}"));
    for kind in ["service", "timer"] {
        std::fs::write(path(kind), unit(&format!("examples/nano-report@.{kind}"))).unwrap();
    }
    for kind in ["service", "timer"] {
        let outcome = analyze(folder.path(), &["--user", "verify", "--man=no"], &path(kind));
        assert!(outcome.is_none() || outcome == Some((true, String::new())), "{kind}: {outcome:?}");
    }
}

#[test]
fn the_service_is_confined() {
    let folder = tempfile::tempdir().unwrap();
    let unit = runnable(folder.path(), "nanod.service");
    let outcome = analyze(folder.path(), &["security", "--offline=true", "--no-pager", MOST_EXPOSED], &unit);
    assert!(outcome.as_ref().is_none_or(|(fits, _)| *fits), "{outcome:?}");
}

#[test]
fn units_say_what_the_contract_says() {
    let service = unit("nanod.service");
    for line in [
        "Type=notify",
        "ExecReload=kill -HUP $MAINPID",
        "User=nanod",
        "Environment=NANO_SOCKET=/run/nanod/nanod.sock",
        "Environment=NANO_STATE_DIR=/var/lib/nanod",
        "Environment=NANO_CONFIG=/etc/nanod/nanod.toml",
        "RuntimeDirectory=nanod",
        "StateDirectory=nanod",
        "ConfigurationDirectory=nanod",
        "KillMode=mixed",
        "Restart=on-failure",
        "RestartPreventExitStatus=78 65",
        "LimitCORE=0",
    ] {
        assert!(service.lines().any(|one| one == line), "{line}");
    }
    let user = unit("user/nanod.service");
    assert!(!user.contains("NANO_") && !user.contains("Directory="), "a person's own places are found, not set");
    for text in [service, user] {
        let stop = text.lines().find_map(|line| line.strip_prefix("TimeoutStopSec=")?.parse::<u64>().ok());
        assert!(stop > Some(nanod::config::Config::default().daemon.drain.as_secs()), "{stop:?}");
        // Control groups of commands are made below the daemon's own.
        assert!(text.lines().any(|line| line == "Delegate=yes") && !text.contains("ProtectControlGroups=yes"));
        // Newer keys would be ignored with a warning by the systemd of Debian 12.
        assert!(!text.contains("notify-reload") && !text.contains("RestartSteps"));
    }
}
