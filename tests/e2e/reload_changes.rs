//! What a reload changes in a running daemon, and what needs a restart.

use std::fs;

use nano_protocol::event::EventType;
use nano_protocol::task::TaskState;
use nano_tests::daemon::Daemon;
use nano_tests::model_server::{Call, ModelServer, Turn};
use nano_tests::{transcript, wait};
use serde_json::{Value, json};

use super::reload::{Bench, idle};

#[test]
fn what_an_agent_is_changes() {
    let mut bench = idle();
    for (line, member, expected) in [
        ("max_turns = 7", "max_turns", json!(7)),
        ("timeout = \"9s\"", "timeout_ms", json!(9000)),
        ("exec_timeout = \"3s\"", "exec_timeout_ms", json!(3000)),
        ("exec_timeout_max = \"40s\"", "exec_timeout_max_ms", json!(40_000)),
        ("resume = \"ask\"", "resume", json!("ask")),
        ("enable_exec = false", "enable_exec", json!(false)),
        ("enable_followup = true", "enable_followup", json!(true)),
        ("enable_steering = false", "enable_steering", json!(false)),
        ("tools = [\"exec\"]", "tools", json!(["exec"])),
        ("tool_mode = \"all\"", "tool_mode", json!("all")),
        ("booter = \"none\"", "booter", json!("none")),
        ("budget = 1.5", "budget", json!(1.5)),
        ("system_prompt = \"Be brief.\"", "system_prompt", json!("Be brief.")),
    ] {
        bench.write("", line, "[agents.other]");
        bench.reload();
        assert_eq!(bench.agent()[member], expected, "{line}");
        assert_eq!(bench.agents(), ["default", "other"]);
        bench.write("", "", "");
        bench.reload();
        assert_ne!(bench.agent()[member], expected, "{line}");
        assert_eq!(bench.agents(), ["default"]);
    }
}

#[test]
fn the_next_turn_has_the_new_persona_and_limits_and_an_open_session_goes_on() {
    let server = ModelServer::answering(|_, n| {
        Some(if n == 1 { Turn::exec("c1", "echo x").gated("g") } else { Turn::text("done") })
    });
    let mut bench = Bench::new(&server);
    let session = bench.daemon.session(&mut bench.client);
    let task = bench.client.submit(&session, "p");
    server.wait_requests(1);
    bench.write("", "system_prompt = \"You are the new one.\"", "");
    bench.reload();
    server.open("g");
    assert_eq!(bench.client.settled(&task.id).state, TaskState::Succeeded);
    let requests = server.requests();
    let personas: Vec<bool> =
        requests.iter().map(|request| request["messages"][0].to_string().contains("You are the new one.")).collect();
    assert_eq!(personas, [false, true]);
}

#[test]
fn a_running_call_keeps_its_model_and_the_next_one_has_the_new() {
    let old = ModelServer::script(vec![Turn::text("old").gated("g")]);
    let new = ModelServer::script(vec![Turn::text("new")]);
    let mut bench = Bench::new(&old);
    let session = bench.daemon.session(&mut bench.client);
    let first = bench.client.submit(&session, "p");
    old.wait_requests(1);
    bench.url = new.url();
    bench.write("", "", "");
    bench.reload();
    old.open("g");
    let first = bench.client.settled(&first.id);
    let second = bench.client.run(&session, "q");
    assert_eq!((first.result.as_deref(), second.result.as_deref()), (Some("old"), Some("new")));
}

#[test]
fn what_the_daemon_itself_is_told_changes() {
    let mut bench = idle();
    let session = bench.daemon.session(&mut bench.client);
    // Time zone.
    bench.write("time_zone = \"Asia/Tokyo\"", "", "");
    bench.reload();
    let params = json!({"session": session, "content": "c", "trigger": {"cron": "0 9 * * *"}});
    assert_eq!(bench.client.get::<Value>("followup.schedule", &params)["tz"], "Asia/Tokyo");
    // Roots of workspaces.
    let elsewhere = tempfile::tempdir().expect("a folder");
    let create = json!({"workspace": elsewhere.path()});
    bench.client.get::<Value>("session.create", &create);
    bench.write(&format!("workspaces = [{:?}]", bench.daemon.workspace()), "", "");
    bench.reload();
    assert_eq!(bench.client.refused("session.create", &create), -32602);
    // The longest line, for who connects from now on.
    bench.write("max_line = \"4KiB\"", "", "");
    bench.reload();
    let mut fresh = bench.daemon.client();
    fresh.begin("session.get", &json!({"session": "x".repeat(5000)})).expect("sent");
    let answer = fresh.read_line().expect("an answer");
    assert!(answer.contains("-32008") && answer.contains("4096"), "{answer}");
    // The log.
    bench.write("log = \"error\"", "", "");
    bench.reload();
    let before = bench.daemon.log();
    bench.reload();
    assert_eq!(bench.daemon.log(), before, "at `error` nothing is told of a good reload");
    bench.write("log = \"trace\"", "", "");
    bench.reload();
    assert!(bench.daemon.log().contains("reloaded"), "{}", bench.daemon.log());
}

#[test]
fn old_events_go_as_soon_as_fewer_are_kept() {
    let mut bench = idle();
    bench.daemon.session(&mut bench.client);
    let has_old = |daemon: &Daemon| {
        let mut reader = daemon.client();
        reader.subscribe(&json!({"since_seq": 0}));
        reader.next_event().is_some_and(|event| event.kind == EventType::SessionCreated)
    };
    assert!(has_old(&bench.daemon));
    bench.write("keep_events = \"1ms\"", "", "");
    bench.reload();
    // Memory still has them; a daemon that starts has what the store has.
    wait::until("the end of old events", || bench.daemon.log().contains("old events were removed").then_some(()));
    let status = bench.daemon.terminate();
    assert_eq!(status.code(), Some(0));
    bench.daemon.restart();
    bench.client = bench.daemon.client();
    bench.daemon.session(&mut bench.client);
    let mut reader = bench.daemon.client();
    reader.subscribe(&json!({"since_seq": 0}));
    let first = reader.next_event().expect("an event");
    assert_eq!((first.kind, first.data["from"].as_u64()), (EventType::Gap, Some(1)), "{first:?}");
}

#[test]
fn a_profile_that_goes_leaves_no_more_rights_behind() {
    let server = ModelServer::answering(|request, _| {
        let last = request["messages"].as_array().and_then(|all| all.last()).cloned().unwrap_or_default();
        let call = |id: &str, name: &str, arguments: Value| Call { id: id.into(), name: name.into(), arguments };
        let wait = json!({"command": "touch up; while [ ! -e go ]; do sleep 0.02; done"});
        let calls = vec![call("c1", "exec", wait), call("c2", "read_file", json!({"path": "../outside"}))];
        Some(if last["role"] == "user" { Turn { calls, ..Turn::default() } } else { Turn::text("done") })
    });
    let mut bench = Bench::new(&server);
    fs::write(bench.daemon.root().join("outside"), "what is outside").expect("a file");
    bench.write("", "", "[agents.strict]\nrestrict_to_workspace = true");
    bench.reload();
    let session = bench.daemon.session_with(&mut bench.client, json!({"agent": "strict"}));
    let task = bench.client.submit(&session, "p");
    let work = bench.daemon.workspace();
    wait::until("the first call", || work.join("up").exists().then_some(()));
    bench.write("", "restrict_to_workspace = false", "");
    bench.reload();
    fs::write(work.join("go"), "").expect("a file");
    assert_eq!(bench.client.settled(&task.id).state, TaskState::Failed, "its profile is gone");
    let messages = transcript::read(&mut bench.client, &session);
    let read = messages.iter().find(|message| message.tool_call_id.as_deref() == Some("c2")).expect("a result");
    assert!(read.ok != Some(true) && !read.content.contains("what is outside"), "{read:?}");
}

#[test]
fn folders_of_skills_come_and_go() {
    let mut bench = idle();
    for name in ["one", "two"] {
        let folder = bench.daemon.root().join(format!("skills-{name}")).join(name);
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("SKILL.md"), format!("---\nname: {name}\ndescription: d\n---\nbody\n")).expect("a skill");
    }
    for (named, expected) in [
        (&["one"][..], [true, false]),
        (&["one", "two"], [true, true]),
        (&["two"], [false, true]),
        (&[], [false, false]),
    ] {
        let paths: Vec<_> = named.iter().map(|name| bench.daemon.root().join(format!("skills-{name}"))).collect();
        bench.write("", "", &format!("[skills]\npaths = {paths:?}"));
        bench.reload();
        let listed: Value = bench.client.get("skill.list", &json!({}));
        let has = |name: &str| listed["skills"].as_array().is_some_and(|all| all.iter().any(|one| one["name"] == name));
        assert_eq!([has("one"), has("two")], expected, "{named:?}");
    }
}

#[test]
fn the_steering_file_is_named_anew_for_the_next_task() {
    let server =
        ModelServer::answering(|_, n| Some(if n % 2 == 1 { Turn::text("one").gated("g") } else { Turn::text("two") }));
    let mut bench = Bench::new(&server);
    bench.write("", "", "[steering]\nfile = \"told.jsonl\"");
    bench.reload();
    let session = bench.daemon.session(&mut bench.client);
    let task = bench.client.submit(&session, "p");
    server.wait_requests(1);
    let mut watcher = bench.daemon.client();
    watcher.subscribe(&json!({"session": session, "since_seq": 0}));
    fs::write(bench.daemon.workspace().join("told.jsonl"), "{\"content\": \"listen\"}\n").expect("a steering file");
    watcher.events_until("the steering", |event| event.kind == EventType::SteeringQueued);
    server.open("g");
    assert_eq!(bench.client.settled(&task.id).state, TaskState::Succeeded);
}

#[test]
fn a_shorter_drain_counts_at_once() {
    let server = ModelServer::script(vec![
        Turn::exec("c1", "trap '' TERM; touch up; while :; do sleep 0.05; done"),
        Turn::text("done"),
    ]);
    let mut bench = Bench::new(&server);
    bench.write("drain = \"2h\"", "exec_timeout = \"10m\"", "");
    bench.reload();
    let session = bench.daemon.session(&mut bench.client);
    let task = bench.client.submit(&session, "p");
    let up = bench.daemon.workspace().join("up");
    wait::until("the call", || up.exists().then_some(()));
    bench.write("drain = \"100ms\"", "exec_timeout = \"10m\"", "");
    bench.reload();
    assert_eq!(bench.daemon.terminate().code(), Some(0), "{}", bench.daemon.log());
    bench.daemon.restart();
    assert_eq!(bench.daemon.client().settled(&task.id).state, TaskState::Succeeded);
}

#[test]
fn what_needs_a_restart_is_named_and_the_rest_serves() {
    let mut bench = idle();
    let mut watcher = bench.daemon.client();
    watcher.subscribe(&json!({"types": ["warning"]}));
    for (of_daemon, extra, keys) in [
        ("socket_group = \"root\"", "", &["daemon.socket_group"][..]),
        ("", "[booters.shipyard]\nendpoint = \"http://127.0.0.1:9\"\naccess_token = \"t\"", &["booters.shipyard"]),
        ("", "[booters.shipyard]\nendpoint = \"http://127.0.0.1:9\"\naccess_token = \"u\"", &["booters.shipyard"]),
        (
            "",
            "[booters.boxlite]\nendpoint = \"http://127.0.0.1:9\"\n[skills]\nwatch = false",
            &["skills.watch", "booters.boxlite"],
        ),
    ] {
        bench.write(of_daemon, "max_turns = 9", extra);
        bench.reload();
        let warning = watcher.events_until("the warning", |_| true).remove(0);
        assert_eq!(warning.data["needs_restart"], json!(keys), "{warning:?}");
        let message = format!("{}: needs a restart", keys.join(", "));
        assert!(bench.daemon.log().contains(&message), "{}", bench.daemon.log());
        assert_eq!(bench.agent()["max_turns"], 9);
        bench.write("", "", "");
        bench.reload();
        assert_eq!(bench.agent()["max_turns"], 20);
    }
}
