//! The list stays true whatever becomes of the sandbox.

use nano_tests::sandboxes::Capabilities;

use super::*;

fn given(words: &[&str]) -> Capabilities {
    Capabilities::Given(words.iter().map(|word| (*word).to_owned()).collect())
}

#[test]
fn a_call_boots_and_the_next_request_has_the_exact_list() {
    let bay = Bay::start();
    bay.set_capabilities(given(&["shell", "python", "filesystem"]));
    let turns = vec![call("c1", "exec", json!({"command": "echo hello; exit 3"})), Turn::text("done")];
    let server = ModelServer::script(turns);
    let daemon = daemon(&server, neo(&bay));
    let mut client = daemon.client();
    let session = session(&daemon, &mut client, "shipyard_neo");
    client.run(&session, "p");
    assert_eq!(result(&mut client, &session), ("hello\n[exit status 3]".into(), false));
    let offered = |at: usize| server.requests()[at]["tools"].as_array().map_or(0, Vec::len);
    assert_eq!((offered(0), offered(1)), (18, 15));
    let changed = events(&daemon, EventType::SessionToolsChanged);
    assert_eq!(changed.len(), 1);
    assert_eq!(changed[0].data["removed"], json!(["browser_batch_exec", "browser_exec", "run_browser_skill"]));
}

#[test]
fn a_restart_finds_the_sandbox_again() {
    let bay = Bay::start();
    let turns = vec![
        call("c1", "exec", json!({"command": "echo kept > note"})),
        Turn::text("done"),
        call("c2", "exec", json!({"command": "cat note"})),
        Turn::text("done"),
    ];
    let server = ModelServer::script(turns);
    let mut daemon = daemon(&server, neo(&bay));
    let mut client = daemon.client();
    let session = session(&daemon, &mut client, "shipyard_neo");
    client.run(&session, "p");
    let before = tools(&mut client, &session);
    let sandboxes = bay.sandboxes();
    daemon.kill9();
    daemon.restart();
    let mut client = daemon.client();
    assert_eq!(tools(&mut client, &session), before);
    client.run(&session, "q");
    assert_eq!(result(&mut client, &session), ("kept".into(), true));
    assert_eq!((bay.sandboxes(), events(&daemon, EventType::SessionBooted).len()), (sandboxes, 1));
}

#[test]
fn a_sandbox_that_died_is_replaced_once_and_the_model_is_told() {
    for how in ["forget", "expire", "fail"] {
        let bay = Bay::start();
        let turns = vec![
            call("c1", "exec", json!({"command": "echo one"})),
            Turn::text("done"),
            call("c2", "browser_exec", json!({"cmd": "open x"})),
            call("c3", "exec", json!({"command": "echo two"})),
            Turn::text("done"),
        ];
        bay.set_capabilities(given(&["shell", "browser"]));
        let server = ModelServer::script(turns);
        let mut daemon = daemon(&server, neo(&bay));
        let mut client = daemon.client();
        let session = session(&daemon, &mut client, "shipyard_neo");
        client.run(&session, "p");
        let old = bay.sandboxes().remove(0);
        // The next daemon looks whether it is there.
        daemon.kill9();
        bay.set_capabilities(given(&["shell"]));
        match how {
            "forget" => bay.forget(&old),
            // A sandbox whose time is over works until its server comes by.
            "expire" => {
                bay.expire(&old);
                bay.collect();
            }
            _ => bay.fail(&old),
        }
        daemon.restart();
        let mut client = daemon.client();
        client.run(&session, "q");
        assert_eq!(result(&mut client, &session), ("two".into(), true), "{how}");
        let lost = events(&daemon, EventType::SandboxLost);
        let which: Vec<_> = lost.iter().map(|event| event.data["sandbox"].clone()).collect();
        assert_eq!(which, [json!(old)], "{how}");
        let told = server.requests()[2]["messages"].to_string();
        assert!(told.contains("[sandbox] The sandbox of before is gone"), "{how}: {told}");
        assert_eq!(tools(&mut client, &session).capabilities, Some(vec!["shell".into()]), "{how}");
        let asked = server.requests()[3]["messages"].to_string();
        assert!(asked.contains("the tool `browser_exec` is not offered"), "{how}: {asked}");
        close(&mut client, &session);
        wait_none(&bay);
    }
}

#[test]
fn a_sandbox_that_dies_between_two_calls_of_a_task() {
    let bay = Bay::start();
    let turns = vec![
        call("c1", "exec", json!({"command": "echo one"})),
        call("c2", "exec", json!({"command": "echo two"})).gated("dead"),
        Turn::text("done"),
    ];
    let server = ModelServer::script(turns);
    let daemon = daemon(&server, neo(&bay));
    let mut client = daemon.client();
    let session = session(&daemon, &mut client, "shipyard_neo");
    let task = client.submit(&session, "p");
    server.wait_requests(2);
    bay.forget(&bay.sandboxes().remove(0));
    server.open("dead");
    client.settled(&task.id);
    assert_eq!(result(&mut client, &session), ("two".into(), true));
    assert!(server.requests()[2]["messages"].to_string().contains("[sandbox] The sandbox of before is gone"));
    assert_eq!(bay.sandboxes().len(), 1);
}

#[test]
fn four_booters_in_one_daemon_do_not_mix() {
    let (bay, ships, boxes) = (Bay::start(), Ships::start(), Boxlite::start());
    let server = ModelServer::answering(|request, _| {
        let messages = request["messages"].as_array().cloned().unwrap_or_default();
        let answered = messages.last().is_some_and(|last| last["role"] == "tool");
        Some(if answered { Turn::text("done") } else { call("c", "exec", json!({"command": "pwd"})) })
    });
    let daemon = daemon(&server, neo(&bay) + &shipyard(&ships) + &boxlite(&boxes));
    let mut client = daemon.client();
    let kinds = ["local", "shipyard", "shipyard_neo", "boxlite"];
    let sessions = kinds.map(|booter| session(&daemon, &mut client, booter));
    let without = session(&daemon, &mut client, "none");
    let tasks: Vec<_> = sessions.iter().map(|one| client.submit(one, "p")).collect();
    for task in &tasks {
        client.settled(&task.id);
    }
    let counts = sessions.each_ref().map(|one| names(&tools(&mut client, one)).len());
    assert_eq!((counts, names(&tools(&mut client, &without)).len()), ([5, 4, 18, 4], 0));
    let keys = |requests: Vec<nano_tests::http::Request>, other: &str| {
        requests.iter().all(|one| !format!("{:?}", one.headers).contains(other))
    };
    assert!(keys(bay.requests(), &ships.key()) && keys(ships.requests(), &bay.key()), "a key went astray");
    assert!(!boxes.seen().iter().any(|one| format!("{one:?}").contains(&bay.key())), "a key went astray");
    for (one, kind) in sessions.iter().zip(kinds) {
        let prompt = format!("booter:{kind}");
        let all: Value = client.get("session.prompts", &json!({ "session": one }));
        let sources = all["prompts"].as_array().cloned().unwrap_or_default();
        let booters: Vec<_> = sources.iter().filter_map(|part| part["source"].as_str()).collect();
        assert!(booters.iter().filter(|source| source.starts_with("booter:")).all(|source| **source == prompt));
    }
}

#[test]
fn a_cancelled_command_is_not_run_again_on_another_computer() {
    let bay = Bay::start();
    let server = ModelServer::script(vec![call("c1", "exec", json!({"command": "echo mark; sleep 100"}))]);
    let daemon = daemon(&server, neo(&bay));
    let mut client = daemon.client();
    let session = session(&daemon, &mut client, "shipyard_neo");
    let task = client.submit(&session, "p");
    nano_tests::wait::until("the command", || (!bay.requests_to("POST", "/shell/exec").is_empty()).then_some(()));
    bay.forget(&bay.sandboxes().remove(0));
    let ended: Value = client.get("task.cancel", &json!({"task": task.id}));
    assert_eq!(ended["state"], "cancelled");
    // The loss may be noticed before the cancel, and another sandbox made for what comes next.
    let commands = bay.requests_to("POST", "/shell/exec");
    let runs = commands.iter().filter(|one| String::from_utf8_lossy(&one.body).contains("echo mark")).count();
    assert_eq!(runs, 1, "a cancelled command on another sandbox");
}

#[test]
fn every_model_that_knew_the_old_sandbox_is_told_once() {
    let bay = Bay::start();
    let server = ModelServer::answering(|request, _| {
        let messages = request["messages"].as_array().cloned().unwrap_or_default();
        let first = messages.iter().find(|one| one["role"] == "user").and_then(|one| one["content"].as_str());
        let calls = messages.iter().filter(|one| one["role"] == "tool").count();
        let exec = |n: usize| call(&format!("e{n}"), "exec", json!({"command": "echo x"}));
        Some(match (first.unwrap_or_default(), calls) {
            ("p", 0) => exec(0),
            ("p", 1) => call("d1", "delegate", json!({"content": "one", "wait": false})),
            ("p", 2) => call("d2", "delegate", json!({"content": "two", "wait": false})),
            ("one", 0) => exec(1).gated("one"),
            ("two", 0) => exec(2),
            ("two", 1) => exec(3).gated("two"),
            _ => Turn::text("done"),
        })
    });
    let daemon = daemon(&server, neo(&bay));
    let mut client = daemon.client();
    let session = daemon.session_with(&mut client, json!({"booter": "shipyard_neo", "tool_mode": "all"}));
    client.run(&session, "p");
    let requests = |says: &str| {
        let of = |one: &&Value| one["messages"][1]["content"] == says;
        server.requests().iter().filter(of).map(Value::to_string).collect::<Vec<_>>()
    };
    nano_tests::wait::until("both children", || {
        (requests("one").len() == 1 && requests("two").len() == 2).then_some(())
    });
    bay.forget(&bay.sandboxes().remove(0));
    server.open("two");
    nano_tests::wait::until("the end of two", || (requests("two").len() == 3).then_some(()));
    server.open("one");
    nano_tests::wait::until("the end of one", || (requests("one").len() == 2).then_some(()));
    let told = |request: &String| request.matches("The sandbox of before is gone").count();
    assert_eq!(requests("two").last().map(told), Some(1));
    assert_eq!(requests("one").last().map(told), Some(1));
    client.run(&session, "q");
    assert_eq!(server.requests().last().map(|one| told(&one.to_string())), Some(1));
    assert_eq!(bay.sandboxes().len(), 1);
}
