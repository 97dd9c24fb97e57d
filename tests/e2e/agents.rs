//! Profiles made over RPC: what is taken, what is refused, who wins, and that none is lost.

use nano_protocol::catalog::{AgentInfo, Agents};
use nano_protocol::event::EventType;
use nano_tests::daemon::{Daemon, Setup};
use nano_tests::model_server::{ModelServer, Turn};
use serde_json::{Value, json};

mod at_once;

/// A model that always says `done`.
fn server() -> ModelServer {
    ModelServer::answering(|_, _| Some(Turn::text("done")))
}

fn names(daemon: &Daemon, params: &Value) -> (String, Option<String>) {
    let page: Agents = daemon.client().get("agent.list", params);
    let names: Vec<_> = page.agents.into_iter().map(|agent| agent.name).collect();
    (names.join(" "), page.next)
}

fn agent(daemon: &Daemon, name: &str) -> AgentInfo {
    daemon.client().get("agent.get", &json!({ "name": name }))
}

/// Returns the names of the tools in the model's newest request.
fn offered(server: &ModelServer) -> String {
    let request = server.requests().pop().expect("a request");
    let tools = request["tools"].as_array().cloned().unwrap_or_default();
    let names: Vec<_> = tools.iter().map(|tool| tool["function"]["name"].as_str().expect("a name")).collect();
    names.join(" ")
}

/// Returns the system prompt of the model's newest request.
fn prompt(server: &ModelServer) -> String {
    server.requests().pop().expect("a request")["messages"][0]["content"].as_str().expect("a prompt").to_owned()
}

#[test]
fn a_stored_profile_serves_like_a_configured_one_and_outlives_kill() {
    let server = server();
    let mut daemon = Daemon::start(&server);
    let given = json!({"name": "clerk", "system_prompt": "You are a clerk.", "tools": ["datetime", "read_file"],
        "skills": [], "booter": "sandbox", "level": "read-only", "max_turns": 3, "timeout_ms": 60_000, "budget": 0.5,
        "exec_timeout_ms": 1, "exec_timeout_max_ms": 1, "resume": "ask", "enable_exec": false, "model": "scripted"});
    let made: AgentInfo = daemon.client().get("agent.create", &given);
    daemon.kill9();
    daemon.restart();
    assert_eq!(agent(&daemon, "clerk"), made);
    assert_eq!((made.source.as_str(), made.booter.as_str(), made.note.as_deref()), ("stored", "shipyard_neo", None));
    let shown = serde_json::to_value(&made).expect("JSON");
    for (member, value) in given.as_object().expect("an object").iter().filter(|(member, _)| *member != "booter") {
        assert_eq!(&shown[member], value, "{member}");
    }
    let mut client = daemon.client();
    let session = daemon.session_with(&mut client, json!({"agent": "clerk", "booter": "local"}));
    client.run(&session, "p");
    assert_eq!(offered(&server), "read_file datetime");
    assert!(prompt(&server).starts_with("You are a clerk.\n"), "{}", prompt(&server));
    daemon.kill9();
    daemon.restart();
    daemon.client().run(&session, "q");
    assert_eq!(offered(&server), "read_file datetime");
}

#[test]
fn what_is_wrong_is_refused_with_what_there_is() {
    let server = server();
    let daemon = Daemon::with(&server, Setup { extra: "[agents.filed]\n".into(), ..Setup::default() });
    let mut client = daemon.client();
    client.get::<Value>("agent.create", &json!({"name": "taken"}));
    for (params, code, says) in [
        (json!({}), -32602, "missing field `name`"),
        (json!({"name": "a", "prompt": "x"}), -32602, "unknown field `prompt`"),
        (json!({"name": ""}), -32602, "1 to 64 of A-Z a-z 0-9 . _ -"),
        (json!({"name": "a b"}), -32602, "`a b` is no profile name"),
        (json!({"name": "a/b"}), -32602, "`a/b` is no profile name"),
        (json!({"name": "é"}), -32602, "is no profile name"),
        (json!({"name": "x".repeat(65)}), -32602, "is no profile name"),
        (json!({"name": "taken"}), -32002, "there is an agent taken already"),
        (json!({"name": "filed"}), -32002, "there is an agent filed already"),
        (json!({"name": "default"}), -32002, "there is an agent default already"),
        (json!({"name": "a", "model": "gpt"}), -32602, "unknown model `gpt`; there is scripted"),
        (json!({"name": "a", "model": ""}), -32602, "unknown model ``; there is scripted"),
        (json!({"name": "a", "booter": "lokal"}), -32602, "unknown booter `lokal`; there is local, none, shipyard"),
        (json!({"name": "a", "level": "root"}), -32602, "`read-only`, `workspace-write`, `host`"),
        (json!({"name": "a", "tool_mode": "most"}), -32602, "`core`, `readonly`, `all`"),
        (
            json!({"name": "a", "tools": ["read_file", "bash"]}),
            -32602,
            "unknown tool `bash`; there is load_skill, datetime, ",
        ),
        (json!({"name": "a", "tools": ["mcp__x__*", "*"]}), -32602, "tools names \"*\""),
        (json!({"name": "a", "skills": ["git", " "]}), -32602, "skills holds an empty name"),
        (json!({"name": "a", "max_turns": 0}), -32602, "max_turns must be more than 0"),
        (json!({"name": "a", "max_turns": -1}), -32602, "invalid value"),
        (json!({"name": "a", "timeout_ms": 0}), -32602, "timeout must be more than 0"),
        (json!({"name": "a", "exec_timeout_ms": 0}), -32602, "exec_timeout must be more than 0"),
        (json!({"name": "a", "exec_timeout_ms": 600_001}), -32602, "exec_timeout is above exec_timeout_max"),
        (json!({"name": "a", "exec_timeout_max_ms": 1}), -32602, "exec_timeout is above exec_timeout_max"),
        (json!({"name": "a", "budget": 0}), -32602, "budget must be more than 0"),
        (json!({"name": "a", "budget": -0.1}), -32602, "budget must be more than 0"),
        (json!({"name": "a", "resume": "maybe"}), -32602, "`auto`, `ask`, `never`"),
        (json!({"name": "a", "system_prompt": "x".repeat(1024 * 1024 + 1)}), -32008, "system_prompt has 1048577 bytes"),
        (json!({"name": "a", "skills": ["x".repeat(1024 * 1024 + 1)]}), -32008, "skills has 1048577 bytes"),
    ] {
        let error = client.call("agent.create", &params).expect_err("a refusal");
        assert!(error.code == code && error.message.contains(says), "{says}: {error:?}");
    }
    assert_eq!(names(&daemon, &json!({})).0, "default filed taken");
    for name in ["a", "A.b_c-9", &"x".repeat(64)] {
        client.get::<Value>("agent.create", &json!({"name": name, "tools": ["mcp__git__*"], "skills": ["any at all"]}));
    }
    client.get::<Value>("agent.create", &json!({"name": "long", "system_prompt": "x".repeat(1024 * 1024)}));
}

#[test]
fn what_is_not_stored_cannot_be_changed() {
    let server = server();
    let daemon = Daemon::with(&server, Setup { extra: "[agents.filed]\n".into(), ..Setup::default() });
    for (name, code, says, try_) in [
        ("filed", -32003, "[agents.filed] of the config file", "nanoctl reload"),
        ("default", -32003, "[agents.default] of the config file", "nanoctl reload"),
        ("nobody", -32001, "there is no agent nobody", "agents list"),
    ] {
        for method in ["agent.update", "agent.delete"] {
            let error = daemon.client().call(method, &json!({ "name": name })).expect_err("a refusal");
            let hint = error.data.hint.clone().unwrap_or_default();
            let fits = error.code == code && error.message.contains(says) && hint.contains(try_);
            assert!(fits, "{method} {name}: {error:?}");
        }
    }
}

#[test]
fn an_update_merges_resets_and_serves_from_the_next_turn() {
    let server = server();
    let daemon = Daemon::start(&server);
    let mut client = daemon.client();
    client.get::<Value>(
        "agent.create",
        &json!({"name": "w", "system_prompt": "One.", "tools": ["exec", "datetime"], "skills": [], "max_turns": 7, "budget": 2}),
    );
    let session = daemon.session_with(&mut client, json!({"agent": "w"}));
    client.run(&session, "p");
    assert!(offered(&server) == "exec datetime" && prompt(&server).starts_with("One."));
    client.subscribe(&json!({"session": session}));
    let change = json!({"name": "w", "system_prompt": "Two.", "tools": ["exec"], "enable_exec": false});
    let changed: AgentInfo = client.get("agent.update", &change);
    let members = (changed.max_turns, changed.budget, changed.tools.as_deref().map(<[String]>::len));
    assert_eq!((members, changed.system_prompt.as_str()), ((7, Some(2.0), Some(1)), "Two."));
    client.run(&session, "q");
    assert!(offered(&server) == "datetime" && prompt(&server).starts_with("Two."), "its own tools, the new rules");
    let events = client.events_until("the new list", |event| event.kind == EventType::SessionToolsChanged);
    assert_eq!(events.last().expect("an event").data["removed"], json!(["exec"]));
    let reset: AgentInfo = client.get("agent.update", &json!({"name": "w", "reset": ["tools", "budget", "max_turns"]}));
    let members = (reset.tools, reset.budget, reset.max_turns, reset.enable_exec, reset.system_prompt.as_str());
    assert_eq!(members, (None, None, 20, false, "Two."));
    for (change, says) in [
        (json!({"name": "w", "reset": ["tool"]}), "`tool` cannot be reset; what can is model, system_prompt, booter"),
        (json!({"name": "w", "reset": ["name"]}), "`name` cannot be reset"),
        (json!({"name": "w", "reset": ["skills"], "skills": []}), "skills is both given and reset"),
        (json!({"name": "w", "max_turns": 1, "exec_timeout_max_ms": 1}), "exec_timeout is above"),
    ] {
        let error = client.call("agent.update", &change).expect_err("a refusal");
        assert!(error.code == -32602 && error.message.contains(says), "{error:?}");
    }
    assert_eq!(agent(&daemon, "w").max_turns, 20, "a refused change changes nothing");
}

#[test]
fn one_in_use_is_not_deleted() {
    let server = server();
    let mut daemon = Daemon::start(&server);
    let mut client = daemon.client();
    client.get::<Value>("agent.create", &json!({"name": "w"}));
    let session = daemon.session_with(&mut client, json!({"agent": "w"}));
    let second = daemon.session_with(&mut client, json!({"agent": "w"}));
    let refused = |daemon: &Daemon, says: &str| {
        let error = daemon.client().call("agent.delete", &json!({"name": "w"})).expect_err("a refusal");
        assert!(error.code == -32002 && error.message.contains(says), "{error:?}");
    };
    refused(&daemon, "2 open sessions use agent w");
    client.get::<Value>("session.close", &json!({ "session": second }));
    refused(&daemon, "1 open session uses agent w");
    daemon.kill9();
    daemon.restart();
    refused(&daemon, "1 open session uses agent w");
    let mut client = daemon.client();
    client.get::<Value>("session.delete", &json!({ "session": session }));
    let deleted: AgentInfo = client.get("agent.delete", &json!({"name": "w"}));
    assert_eq!(deleted.name, "w");
    assert_eq!(client.refused("agent.get", &json!({"name": "w"})), -32001);
    assert_eq!(client.refused("session.create", &json!({"agent": "w"})), -32602);
    daemon.kill9();
    daemon.restart();
    assert_eq!(names(&daemon, &json!({})).0, "default");
}

#[test]
fn the_file_wins_and_the_built_in_default_yields() {
    let server = server();
    let mut daemon = Daemon::start(&server);
    let config = daemon.root().join("nanod.toml");
    let written = std::fs::read_to_string(&config).expect("the config");
    let start = |daemon: &mut Daemon, text: &str| {
        daemon.kill9();
        std::fs::write(&config, text).expect("a config file");
        daemon.restart();
    };
    let bare = written.replace("[agents.default]\n", "");
    start(&mut daemon, &bare);
    assert_eq!(agent(&daemon, "default").source, "builtin");
    assert_eq!(daemon.client().refused("agent.delete", &json!({"name": "default"})), -32003);
    assert_eq!(daemon.client().refused("agent.update", &json!({"name": "default"})), -32003);
    for name in ["default", "w"] {
        daemon.client().get::<Value>("agent.create", &json!({"name": name, "system_prompt": "Stored."}));
    }
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    client.run(&session, "p");
    assert!(prompt(&server).starts_with("Stored."));
    start(&mut daemon, &format!("{bare}\n[agents.default]\nsystem_prompt = \"Filed.\"\n[agents.w]\n"));
    for name in ["default", "w"] {
        let shown = agent(&daemon, name);
        let note = shown.note.as_deref();
        assert_eq!((shown.source.as_str(), note), ("config", Some("hides a stored profile of the same name")));
        let log = daemon.log();
        let warned = log.lines().any(|line| line.contains("hides a stored one") && line.contains(name));
        assert!(warned, "{log}");
    }
    daemon.client().run(&session, "q");
    assert!(prompt(&server).starts_with("Filed."));
    start(&mut daemon, &bare);
    assert_eq!(agent(&daemon, "default").source, "stored");
    let mut client = daemon.client();
    client.get::<Value>("session.close", &json!({ "session": session }));
    client.get::<Value>("agent.delete", &json!({"name": "default"}));
    assert_eq!(agent(&daemon, "default").source, "builtin");
}

#[test]
fn the_list_is_paged_by_name_over_all() {
    let server = server();
    let daemon = Daemon::with(&server, Setup { extra: "[agents.b]\n[agents.z]\n".into(), ..Setup::default() });
    for name in ["y", "a", "c"] {
        daemon.client().get::<Value>("agent.create", &json!({ "name": name }));
    }
    assert_eq!(names(&daemon, &json!({})), ("a b c default y z".into(), None));
    assert_eq!(names(&daemon, &json!({"limit": 3})), ("a b c".into(), Some("c".into())));
    assert_eq!(names(&daemon, &json!({"limit": 2, "after": "c"})), ("default y".into(), Some("y".into())));
    for name in ["m1", "m2", "m3"] {
        let long = "\u{1}".repeat(1024 * 1024);
        daemon.client().get::<Value>("agent.create", &json!({"name": name, "system_prompt": long}));
    }
    let (mut seen, mut after) = (String::new(), None);
    loop {
        let (some, next) = names(&daemon, &json!({ "after": after }));
        seen = format!("{seen} {some}");
        after = next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(seen, " a b c default m1 m2 m3 y z", "long ones take several pages, each of which fits into a line");
}
