//! An agent profile that vanished from the config: its sessions get nothing in its place.

use nano_protocol::session::SessionTools;
use nano_protocol::task::TaskState;
use nano_tests::daemon::{Daemon, Setup};
use nano_tests::model_server::{ModelServer, Turn};
use serde_json::{Value, json};

fn tools(daemon: &Daemon, session: &str) -> Vec<String> {
    let tools: SessionTools = daemon.client().get("session.tools", &json!({ "session": session }));
    tools.tools.into_iter().map(|tool| tool.name).collect()
}

/// Takes the profile `special` away from a session, idle or in the midst of a task, and gives it back.
fn check(profile: &str, had: &[&str], midst: bool) {
    let server = ModelServer::answering(move |_, n| {
        Some(if n == 1 && midst { Turn { hang: true, ..Turn::default() } } else { Turn::text("done") })
    });
    let extra = format!("[agents.special]\n{profile}\n");
    let mut daemon = Daemon::with(&server, Setup { extra: extra.clone(), ..Setup::default() });
    let mut client = daemon.client();
    let session = daemon.session_with(&mut client, json!({"agent": "special"}));
    assert_eq!(tools(&daemon, &session), had);
    let mut tasks = vec![client.submit(&session, "p")];
    server.wait_requests(1);
    if !midst {
        assert_eq!(client.settled(&tasks.remove(0).id).state, TaskState::Succeeded);
    }
    daemon.kill9();
    let config = daemon.root().join("nanod.toml");
    let full = std::fs::read_to_string(&config).expect("the config");
    std::fs::write(&config, full.replace(&extra, "")).expect("a config file");
    daemon.restart();
    let mut client = daemon.client();
    assert!(tools(&daemon, &session).is_empty(), "{:?}", tools(&daemon, &session));
    tasks.push(client.submit(&session, "q"));
    for task in tasks {
        let task = client.settled(&task.id);
        let said = task.error.as_ref().map(|error| error.message.clone()).unwrap_or_default();
        assert!(task.state == TaskState::Failed && said.contains("special"), "{task:?}");
    }
    assert_eq!(server.requests().len(), 1, "no model is asked in the name of a profile that is gone");
    let other = daemon.session(&mut client);
    client.run(&other, "r");
    daemon.kill9();
    std::fs::write(&config, full).expect("a config file");
    daemon.restart();
    assert_eq!(tools(&daemon, &session), had);
    let task = daemon.client().run(&session, "s");
    let offered = server.requests().pop().map(|request| request["tools"].clone());
    let offered = offered.as_ref().and_then(Value::as_array).map_or(0, Vec::len);
    assert_eq!(offered, had.len(), "{task:?}");
}

#[test]
fn one_with_fewer_tools_than_the_default() {
    check("tools = [\"read_file\"]", &["load_skill", "read_file"], false);
    check("tools = [\"read_file\"]\nskills = []", &["read_file"], true);
    check("enable_exec = false", &["load_skill", "read_file", "write_file", "edit_file"], false);
    check("tools = []", &["load_skill"], true);
    check("tools = []\nskills = []", &[], true);
}
