//! Servers that others publish, two from npm and two from `PyPI`, installed into a temporary folder: skipped loudly where
//! that cannot be done.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use nano_tests::daemon::{Daemon, Setup};
use nano_tests::model_server::{ModelServer, Turn};
use nano_tests::{skip, wait};
use serde_json::{Value, json};

use crate::mcp::{shown, tools, turn};

/// How long an installation may take.
const PATIENCE: Duration = Duration::from_mins(3);

/// Runs a program to its end; false, said aloud, where it is missing, fails or takes too long.
fn run(folder: &Path, program: &str, args: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(args).current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(mut child) = command.spawn() else {
        skip::say(&format!("real MCP servers: {program} is missing"));
        return false;
    };
    let end = std::time::Instant::now() + PATIENCE;
    let status = wait::within(PATIENCE * 2, "an installation", || {
        if std::time::Instant::now() > end {
            drop(child.kill());
        }
        child.try_wait().expect("its state")
    });
    if !status.success() {
        skip::say(&format!("real MCP servers: {program} {} did not work here", args.join(" ")));
    }
    status.success()
}

/// Has a session list a server's tools and call one.
fn check(section: &str, expected: &[&str], tool: &str, arguments: Value, says: &str) {
    let name = tool.to_owned();
    let server = ModelServer::answering(move |_, n| {
        Some(if n == 1 { turn(&name, arguments.clone()) } else { Turn::text("done") })
    });
    let daemon = Daemon::with(&server, Setup { extra: section.to_owned(), ..Setup::default() });
    std::fs::write(daemon.workspace().join("note"), "a note\n").expect("a file");
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    client.run(&session, "p");
    let list = shown(&tools(&mut client, &session));
    for name in expected {
        assert!(list.split(' ').any(|one| one == *name), "{name}: {list}");
    }
    let told = server.requests()[1]["messages"].to_string();
    assert!(told.contains(says), "{told}");
    let _: Value = client.get("session.close", &json!({"session": session}));
    wait::until("the end of the server", || (daemon.left().len() == 1).then_some(()));
}

#[test]
fn two_from_npm() {
    let folder = tempfile::tempdir().expect("a folder");
    let packages = ["@modelcontextprotocol/server-everything", "@modelcontextprotocol/server-filesystem"];
    let install =
        [&["install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", "."], packages.as_slice()].concat();
    if !run(folder.path(), "npm", &install) {
        return;
    }
    let bin = |name: &str| folder.path().join("node_modules/.bin").join(name).display().to_string();
    let everything = format!("[mcp.all]\ncommand = {:?}\n", bin("mcp-server-everything"));
    check(&everything, &["mcp__all__echo"], "mcp__all__echo", json!({"message": "hello there"}), "hello there");
    let files = format!("[mcp.fs]\ncommand = {:?}\nargs = [\"{{workspace}}\"]\n", bin("mcp-server-filesystem"));
    check(&files, &["mcp__fs__read_text_file"], "mcp__fs__list_directory", json!({"path": "."}), "[FILE] note");
}

#[test]
fn two_from_pypi() {
    let folder = tempfile::tempdir().expect("a folder");
    if !run(folder.path(), "python3", &["-m", "venv", "v"])
        || !run(folder.path(), "v/bin/pip", &["install", "-q", "mcp-server-time", "mcp-server-fetch"])
    {
        return;
    }
    let bin = |name: &str| folder.path().join("v/bin").join(name).display().to_string();
    let time = format!("[mcp.time]\ncommand = {:?}\n", bin("mcp-server-time"));
    let zone = json!({"timezone": "Europe/Berlin"});
    check(&time, &["mcp__time__convert_time"], "mcp__time__get_current_time", zone, "Europe/Berlin");
    let fetch = format!("[mcp.web]\ncommand = {:?}\n", bin("mcp-server-fetch"));
    check(&fetch, &["mcp__web__fetch"], "mcp__web__fetch", json!({"url": "http://127.0.0.1:9/"}), "mcp__web__fetch");
}
