//! A delegate has its parent's computer and, for it, exactly its parent's list.

use nano_tests::sandboxes::Capabilities;

use super::*;

/// Returns the booter's tools of a request, as they went over the wire.
fn of_booter(request: &Value, names: &[&str]) -> Vec<String> {
    let tools = request["tools"].as_array().cloned().unwrap_or_default();
    let is_booters = |tool: &&Value| tool["function"]["name"].as_str().is_some_and(|name| names.contains(&name));
    tools.iter().filter(is_booters).map(Value::to_string).collect()
}

#[test]
fn a_delegate_sees_the_parents_list_before_boot_and_after() {
    let bay = Bay::start();
    bay.set_capabilities(Capabilities::Given(["shell", "python", "filesystem"].map(String::from).into()));
    let server = ModelServer::script(vec![
        call("c1", "delegate", json!({"content": "look around"})),
        call("c2", "exec", json!({"command": "echo made > by-child; hostname"})),
        Turn::text("the child is done"),
        call("c3", "exec", json!({"command": "cat by-child"})),
        Turn::text("done"),
    ]);
    let daemon = daemon(&server, neo(&bay));
    let mut client = daemon.client();
    let session = daemon.session_with(&mut client, json!({"booter": "shipyard_neo", "tool_mode": "all"}));
    let all: Value = client.get("tool.list", &json!({}));
    let all = all["tools"].as_array().cloned().unwrap_or_default();
    let neo: Vec<_> = all.iter().filter(|one| one["source"] == "booter:shipyard_neo").collect();
    let neo: Vec<_> = neo.iter().filter_map(|one| one["name"].as_str()).collect();
    client.run(&session, "p");
    assert_eq!(result(&mut client, &session), ("made".into(), true), "one computer for both");
    let seen: Vec<_> = server.requests().iter().map(|request| of_booter(request, &neo)).collect();
    let counts: Vec<_> = seen.iter().map(Vec::len).collect();
    assert_eq!(counts, [18, 18, 15, 15, 15]);
    assert!(seen[0] == seen[1] && seen[2] == seen[3], "byte for byte the same");
    assert_eq!(bay.requests_to("POST", "/v1/sandboxes").len(), 1, "one sandbox for both");
    let sessions: Value = client.get("session.list", &json!({}));
    let child = sessions["sessions"].as_array().cloned().unwrap_or_default();
    let child = child.iter().find(|one| one["parent"] == json!(session)).cloned().expect("the child");
    assert_eq!(bay.sandboxes().len(), 1, "the child's end leaves the parent's computer alone");
    let of = |client: &mut Client, session: &str| {
        let tools = tools(client, session).tools;
        let tools: Vec<_> =
            tools.iter().filter(|tool| tool.source == "booter:shipyard_neo").map(|tool| json!(tool)).collect();
        json!(tools).to_string()
    };
    assert_eq!(of(&mut client, child["id"].as_str().unwrap_or_default()), of(&mut client, &session));
    close(&mut client, &session);
    wait_none(&bay);
}

#[test]
fn a_delegate_whose_computer_is_gone_gets_the_parents_new_one() {
    let bay = Bay::start();
    let server = ModelServer::script(vec![
        call("c1", "exec", json!({"command": "echo one"})),
        call("c2", "delegate", json!({"content": "go on"})),
        call("c3", "exec", json!({"command": "echo two"})).gated("gone"),
        Turn::text("the child is done"),
        call("c4", "exec", json!({"command": "echo three"})),
        Turn::text("done"),
    ]);
    let daemon = daemon(&server, neo(&bay));
    let mut client = daemon.client();
    let session = daemon.session_with(&mut client, json!({"booter": "shipyard_neo", "tool_mode": "all"}));
    let task = client.submit(&session, "p");
    server.wait_requests(3);
    bay.forget(&bay.sandboxes().remove(0));
    server.open("gone");
    client.settled(&task.id);
    assert_eq!(result(&mut client, &session), ("three".into(), true));
    assert_eq!(bay.sandboxes().len(), 1, "one new sandbox for both");
    let told = |at: usize| server.requests()[at]["messages"].to_string().contains("The sandbox of before is gone");
    assert!(told(3) && told(4), "both are told");
}
