//! The tools a session has: before boot, after boot, after a restart, with and without `python3`, as golden files; and
//! that the model is offered the same.

use std::fmt::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use nano_protocol::event::EventType;
use nano_protocol::session::{SessionPrompts, SessionTools};
use nano_tests::client::Client;
use nano_tests::daemon::{Daemon, Setup};
use nano_tests::model_server::{ModelServer, Turn};
use serde_json::{Value, json};
use tempfile::TempDir;

const BEFORE: &str = include_str!("../fixtures/tools/before.txt");
const AFTER: &str = include_str!("../fixtures/tools/after.txt");
const WITHOUT_PYTHON: &str = include_str!("../fixtures/tools/after-without-python.txt");

/// Makes a folder for PATH that holds what shell commands need, and `python3` if told so.
fn path(with_python: bool) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let all = std::env::var_os("PATH").unwrap_or_default();
    for program in ["sh", "bash", "env", "cat", "echo", "sleep", "touch", "ls"] {
        let found = std::env::split_paths(&all).map(|place| place.join(program)).find(|path| path.exists());
        if let Some(found) = found {
            symlink(found, folder.path().join(program)).expect("a link");
        }
    }
    if with_python {
        let python = folder.path().join("python3");
        std::fs::write(&python, "#!/bin/sh\nexit 0\n").expect("a program");
        std::fs::set_permissions(&python, std::fs::Permissions::from_mode(0o755)).expect("a mode");
    }
    folder
}

fn daemon(server: &ModelServer, path: &Path, agent: &str) -> Daemon {
    Daemon::with(server, Setup { agent: agent.to_owned(), path: Some(path.into()), ..Setup::default() })
}

fn tools(client: &mut Client, session: &str) -> SessionTools {
    client.get("session.tools", &json!({ "session": session }))
}

fn names(tools: &SessionTools) -> Vec<&str> {
    tools.tools.iter().map(|tool| tool.name.as_str()).collect()
}

/// Renders a list; of what is withheld, only this booter's tools.
fn render(tools: &SessionTools) -> String {
    let SessionTools { booter, booted, exact, .. } = tools;
    let capabilities = json!(tools.capabilities);
    let mut text = format!("booter {booter}, booted {booted}, exact {exact}, capabilities {capabilities}\n");
    for tool in &tools.tools {
        writeln!(text, "{} {} {}", tool.name, tool.source, json!(tool.requires)).expect("room for text");
    }
    for name in ["read_file", "write_file", "edit_file", "exec", "python", "search", "list_dir", "grep"] {
        if let Some(withheld) = tools.withheld.iter().find(|one| one.name == name) {
            assert!(!withheld.why.is_empty(), "{name} is withheld without a reason");
            writeln!(text, "withheld {name}").expect("room for text");
        }
    }
    text
}

fn offered(request: &Value) -> Vec<&str> {
    let tools = request["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    tools.iter().filter_map(|tool| tool["function"]["name"].as_str()).collect()
}

/// Checks the list before boot, after the boot that a call brings, and after a restart, against the golden files.
fn check(with_python: bool, after: &str) {
    let server = ModelServer::script(vec![Turn::exec("c1", "echo hi"), Turn::text("done"), Turn::text("again")]);
    let path = path(with_python);
    let mut daemon = daemon(&server, path.path(), "skills = []");
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let before = tools(&mut client, &session);
    assert_eq!(render(&before), BEFORE);
    client.run(&session, "p");
    let booted = tools(&mut client, &session);
    assert_eq!(render(&booted), after);
    assert!(names(&before) == names(&booted) || booted.revision > before.revision, "a change is a revision");
    let requests = server.requests();
    assert_eq!(offered(&requests[0]), names(&before));
    assert_eq!(offered(&requests[1]), names(&booted));
    daemon.kill9();
    daemon.restart();
    let mut client = daemon.client();
    assert_eq!(tools(&mut client, &session), booted);
    client.run(&session, "q");
    assert_eq!(offered(&server.requests()[2]), names(&booted));
    assert_eq!(boots(&daemon), 1, "a restart does not boot again");
}

fn boots(daemon: &Daemon) -> usize {
    daemon.history().iter().filter(|event| event.kind == EventType::SessionBooted).count()
}

#[test]
fn with_python() {
    check(true, AFTER);
}

#[test]
fn without_python() {
    check(false, WITHOUT_PYTHON);
}

/// Takes `python3` away while the daemon is down, from a session that is idle or in the midst of a task.
fn check_loss_of_python(midst: bool) {
    let server = ModelServer::answering(move |_, n| {
        Some(match n {
            1 => Turn::exec("c1", "echo hi"),
            2 if midst => Turn { hang: true, ..Turn::default() },
            _ => Turn::text("done"),
        })
    });
    let path = path(true);
    let mut daemon = daemon(&server, path.path(), "skills = []");
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let task = client.submit(&session, "p");
    server.wait_requests(2);
    if !midst {
        client.settled(&task.id);
    }
    let with = tools(&mut client, &session);
    assert!(names(&with).contains(&"python"), "{with:?}");
    daemon.kill9();
    std::fs::remove_file(path.path().join("python3")).expect("the program");
    daemon.restart();
    let mut client = daemon.client();
    if !midst {
        client.submit(&session, "q");
    }
    server.wait_requests(3);
    let without = tools(&mut client, &session);
    assert_eq!(render(&without), WITHOUT_PYTHON);
    assert!(without.revision > with.revision, "a change is a revision");
    assert_eq!(offered(&server.requests()[2]), names(&without), "the next request has the new list");
    let all = daemon.history();
    let changed: Vec<_> = all.iter().filter(|event| event.kind == EventType::SessionToolsChanged).collect();
    let last = changed.last().expect("session.tools_changed");
    assert_eq!((&last.data["removed"], &last.data["added"]), (&json!(["python"]), &json!([])), "{changed:#?}");
    assert_eq!(boots(&daemon), 1, "a restart does not boot again");
}

#[test]
fn python_that_went_away_in_the_midst_of_a_task() {
    check_loss_of_python(true);
}

#[test]
fn python_that_went_away_from_an_idle_session() {
    check_loss_of_python(false);
}

#[test]
fn a_missing_python_is_named() {
    let server = ModelServer::script(Vec::new());
    let path = path(false);
    let daemon = daemon(&server, path.path(), "skills = []");
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    client.get::<Value>("session.boot", &json!({ "session": session }));
    client.get::<Value>("session.boot", &json!({ "session": session }));
    assert_eq!(boots(&daemon), 1, "a session boots once");
    let tools = tools(&mut client, &session);
    let python = tools.withheld.iter().find(|one| one.name == "python").expect("python is withheld");
    assert!(python.why.contains("python3"), "{python:?}");
}

#[test]
fn without_a_computer_there_are_no_computer_tools() {
    let server = ModelServer::script(vec![Turn::text("done")]);
    let daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session = daemon.session_with(&mut client, json!({"booter": "none", "skills": []}));
    assert!(tools(&mut client, &session).tools.is_empty());
    client.get::<Value>("session.boot", &json!({ "session": session }));
    let found = tools(&mut client, &session);
    assert_eq!((found.exact, found.capabilities.clone()), (true, Some(Vec::new())), "{found:?}");
    assert!(found.tools.is_empty(), "{:?}", names(&found));
    client.run(&session, "p");
    assert_eq!(server.requests()[0].get("tools"), None);
}

#[test]
fn what_an_agent_names_is_what_it_gets() {
    let server = ModelServer::script(Vec::new());
    let daemon = Daemon::start(&server);
    let mut client = daemon.client();
    for (params, expected) in [
        (json!({"tools": ["exec"]}), vec!["exec"]),
        (json!({"tools": ["grep", "exec"]}), vec!["exec", "grep"]),
        (json!({"tools": []}), vec![]),
        (json!({"tool_mode": "readonly"}), vec!["read_file", "search", "list_dir", "grep"]),
        (json!({"tool_mode": "readonly", "tools": ["exec"]}), vec!["exec"]),
    ] {
        let mut create = params.clone();
        create["skills"] = json!([]);
        let session = daemon.session_with(&mut client, create);
        assert_eq!(names(&tools(&mut client, &session)), expected, "{params}");
    }
}

#[test]
fn exec_can_be_taken_away() {
    let server = ModelServer::script(vec![Turn::exec("c1", "touch x"), Turn::text("done")]);
    let daemon =
        Daemon::with(&server, Setup { agent: "skills = []\nenable_exec = false".to_owned(), ..Setup::default() });
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    assert_eq!(names(&tools(&mut client, &session)), ["read_file", "write_file", "edit_file"]);
    client.run(&session, "p");
    assert!(!daemon.workspace().join("x").exists(), "a withheld tool ran");
}

#[test]
fn the_prompt_that_is_shown_is_the_one_that_is_sent() {
    let server =
        ModelServer::answering(|_, n| Some(if n == 1 { Turn::exec("c1", "true") } else { Turn::text("done") }));
    let daemon = Daemon::with(&server, Setup { agent: "system_prompt = \"Be brief.\"".to_owned(), ..Setup::default() });
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let prompts = |client: &mut Client| client.get::<SessionPrompts>("session.prompts", &json!({ "session": session }));
    let before = prompts(&mut client);
    client.run(&session, "p");
    let after = prompts(&mut client);
    client.run(&session, "q");
    let system: Vec<String> =
        server.requests().iter().map(|request| request["messages"][0]["content"].to_string()).collect();
    let shown = |prompts: &SessionPrompts| json!(prompts.assembled).to_string();
    assert_eq!(system, [shown(&before), shown(&after), shown(&after)]);
    assert!(before.assembled.starts_with("Be brief."), "{}", before.assembled);
    assert_eq!((before.booted, after.booted), (false, true));
}
