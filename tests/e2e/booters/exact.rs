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
        // A daemon that was not there meanwhile looks before it asks the model.
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
