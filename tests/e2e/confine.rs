//! The level of a session as it is in force: for its commands, for its delegates', in its prompt, and for people.

use std::fs;

use nano_protocol::message::Role;
use nano_protocol::session::SessionPrompts;
use nano_tests::client::Client;
use nano_tests::daemon::{Daemon, Setup};
use nano_tests::model_server::{Call, ModelServer, Turn};
use nano_tests::transcript;
use serde_json::{Value, json};

/// A model that runs what it is told, and hands on what follows `delegate AGENT`.
pub fn shell() -> ModelServer {
    ModelServer::answering(|request, n| {
        let last = request["messages"].as_array().and_then(|all| all.last()).expect("a message");
        let text = last["content"].as_str().unwrap_or_default();
        let order = text.strip_prefix("delegate ").and_then(|order| order.split_once(' '));
        Some(match (last["role"].as_str(), order) {
            (Some("tool"), _) => Turn::text(text),
            (_, Some((agent, content))) => {
                let arguments = json!({"agent": agent, "content": content});
                let call = Call { id: format!("c{n}"), name: "delegate".into(), arguments };
                Turn { calls: vec![call], ..Turn::default() }
            }
            _ => Turn::exec(format!("c{n}"), text),
        })
    })
}

/// Runs a command in the session and returns what the model was told of it.
fn run(client: &mut Client, session: &str, command: &str) -> String {
    client.run(session, command);
    let told = transcript::read(client, session).into_iter().rfind(|message| message.role == Role::Tool);
    told.expect("a result").content
}

fn daemon(server: &ModelServer) -> Daemon {
    let agent = "tool_mode = \"all\"".to_owned();
    let extra = "[agents.reader]\nlevel = \"read-only\"\ntool_mode = \"all\"\n".to_owned();
    let daemon = Daemon::with(server, Setup { agent, extra, ..Setup::default() });
    fs::write(daemon.root().join("victim"), "as it was\n").expect("a file");
    daemon
}

#[test]
fn the_daemons_own_files_are_out_of_reach() {
    let server = shell();
    let daemon = daemon(&server);
    let mut client = daemon.client();
    let other: Value = client.call("session.create", &json!({})).expect("a session");
    let other = other["id"].as_str().expect("an id").to_owned();
    assert_eq!(run(&mut client, &other, "echo s3cret > notes; cat notes"), "s3cret");
    let session = daemon.session(&mut client);
    let root = daemon.root().display();
    for command in [
        format!("cat {root}/nanod.toml"),
        format!("cat {root}/state/workspaces/{other}/notes"),
        format!("cat {root}/state/store/* {root}/state/store/*/*"),
        format!("cp -r {root} copy; cat copy/nanod.toml copy/state/workspaces/*/notes"),
        "cat /proc/[0-9]*/environ | tr '\\0' '\\n' | grep -c NANO_".to_owned(),
        format!("grep -ra -e test-key -e s3cret {root} --exclude-dir=spill"),
    ] {
        let told = run(&mut client, &session, &command);
        assert!(!told.contains("test-key") && !told.contains("s3cret"), "{command}: {told}");
    }
    let pid = daemon.pid();
    run(&mut client, &session, &format!("kill -9 {pid} $PPID; pkill -9 nanod; echo x > {root}/victim"));
    assert_eq!(daemon.pid(), pid);
    assert_eq!(fs::read_to_string(daemon.root().join("victim")).expect("a file"), "as it was\n");
    assert_eq!(run(&mut client, &session, "echo mine > a; cat a"), "mine");
}

#[test]
fn each_session_has_its_own_level_and_says_so() {
    let server = shell();
    let daemon = daemon(&server);
    let mut client = daemon.client();
    let note = daemon.ctl(["booters"]).run().expect_code(0);
    assert!(note.contains("confined by the operating system below the level host"), "{note}");
    for (level, inside, outside) in
        [("read-only", false, false), ("workspace-write", true, false), ("host", true, true)]
    {
        let session = daemon.session_with(&mut client, json!({"level": level}));
        let prompts: SessionPrompts = client.get("session.prompts", &json!({"session": session}));
        assert!(prompts.assembled.contains(&format!("The level of this session is {level}.")), "{prompts:?}");
        for (path, expected) in [("here", inside), ("../there", outside)] {
            let told = run(&mut client, &session, &format!("echo x > {path} && echo written && rm {path}"));
            assert_eq!(told.contains("written"), expected, "{level} {path}: {told}");
            let refused = format!("[the sandbox (level {level}) may have refused this: ");
            assert!(expected || told.contains(&refused) || told.contains("denied"), "{level} {path}: {told}");
        }
        let shown = daemon.ctl(["session", "show", &session]).run().expect_code(0);
        assert_eq!(shown.contains("host (commands are not confined)"), level == "host", "{shown}");
    }
    assert!(daemon.log().contains("its level is host"), "{}", daemon.log());
}

#[test]
fn a_delegate_has_its_own_level_and_not_a_wider_one() {
    let server = shell();
    let daemon = daemon(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let told = run(&mut client, &session, "delegate default echo x > from-default && echo written");
    assert!(told.contains("written"), "{told}");
    let told = run(&mut client, &session, "delegate reader echo x > from-reader && echo written");
    assert!(told.contains("(level read-only)") && !told.contains("written\n"), "{told}");
    assert!(daemon.workspace().join("from-default").exists() && !daemon.workspace().join("from-reader").exists());
    let narrow = daemon.session_with(&mut client, json!({"level": "read-only"}));
    run(&mut client, &narrow, "delegate default echo x > from-below && echo written");
    assert!(!daemon.workspace().join("from-below").exists());
}

#[test]
fn temporary_files_go_with_the_session() {
    let server = shell();
    let daemon = daemon(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    assert_eq!(run(&mut client, &session, "echo x > $TMPDIR/a && cat $TMPDIR/a"), "x");
    let folder = daemon.state().join("tmp").join(&session);
    assert!(folder.join("a").exists());
    client.get::<Value>("session.delete", &json!({"session": session}));
    assert!(!folder.exists());
}
