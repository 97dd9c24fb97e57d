//! What delegation does not get around: the tools and rights of the parent, and the length of chains.

use nano_protocol::event::EventType;
use nano_protocol::followup::Followup;
use nano_protocol::session::SessionTools;
use nano_protocol::task::{Origin, TaskState};
use nano_tests::client::Client;
use nano_tests::daemon::{Daemon, Setup};
use nano_tests::model_server::{Call, ModelServer, Turn};
use nano_tests::wait;
use serde_json::{Value, json};

use crate::delegate_kit::{children, obedient, order, results, settled};
use crate::followup_kit::schedule;

fn daemon(server: &ModelServer, agent: &str, extra: &str) -> Daemon {
    let agent = format!("tool_mode = \"all\"\n{agent}");
    Daemon::with(server, Setup { agent, extra: extra.into(), ..Setup::default() })
}

fn names(client: &mut Client, session: &str) -> Vec<String> {
    let tools: SessionTools = client.get("session.tools", &json!({ "session": session }));
    tools.tools.into_iter().map(|tool| tool.name).collect()
}

#[test]
fn a_child_gets_no_tool_that_its_parent_lacks() {
    let server = obedient();
    let daemon = daemon(&server, "", "[agents.narrow]\ntools = [\"grep\", \"exec\"]\nskills = []\n");
    let mut client = daemon.client();
    let session = daemon.session_with(&mut client, json!({"tools": ["read_file", "delegate"], "skills": []}));
    let inner = order("-", &[json!({"content": "work -", "tools": ["grep"]}), json!({"content": "work -"})]);
    let orders = [
        json!({"content": "work -", "tools": ["exec"]}),
        json!({"content": "work -", "agent": "narrow", "tools": ["read_file"]}),
        json!({"content": "work -", "tools": ["read_file"]}),
        json!({"content": "work -", "agent": "narrow", "tools": ["grep"]}),
        json!({"content": "work -", "agent": "narrow"}),
        json!({ "content": inner }),
    ];
    client.run(&session, &order("-", &orders));
    let told = results(&mut client, &session);
    let why = "is not offered: not in the agent's tools list; there are: ";
    assert_eq!(told[0].content, format!("the tool `exec` {why}read_file, delegate"));
    assert_eq!(told[1].content, format!("the tool `read_file` {why}exec, grep"));
    let below = children(&mut client, &session);
    let found: Vec<_> = below.iter().map(|child| names(&mut client, child.id.as_str()).join(" ")).collect();
    assert_eq!(found, ["read_file", "grep", "exec grep", "read_file delegate"]);
    let told = results(&mut client, below[3].id.as_str());
    assert!(told[0].content.starts_with("the tool `grep` is not offered"), "{told:?}");
    let grandchild = children(&mut client, below[3].id.as_str()).remove(0);
    assert_eq!(names(&mut client, grandchild.id.as_str()), ["read_file", "delegate"]);
}

#[test]
fn no_profile_runs_programs_below_one_that_may_not() {
    let server = obedient();
    let agents = "[agents.free]\ntool_mode = \"all\"\nlevel = \"host\"\n";
    let mut daemon = daemon(&server, "enable_exec = false\nlevel = \"host\"", agents);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let inner = order("-", &[json!({"content": "work -", "agent": "free"})]);
    let tools = json!({"content": "work -", "agent": "free", "tools": ["exec"]});
    client.run(&session, &order("-", &[json!({"content": inner, "agent": "free"}), tools]));
    assert!(results(&mut client, &session)[1].content.contains("`exec` is not offered: enable_exec is off"));
    for _ in 0..2 {
        let child = children(&mut client, &session).remove(0);
        let grandchild = children(&mut client, child.id.as_str()).remove(0);
        for below in [&child, &grandchild] {
            let tools = names(&mut client, below.id.as_str());
            assert!(tools.iter().any(|name| name == "read_file"), "{tools:?}");
            assert!(!tools.iter().any(|name| ["exec", "python", "process"].contains(&name.as_str())), "{tools:?}");
        }
        daemon.kill9();
        daemon.restart();
        client = daemon.client();
    }
}

#[test]
fn no_profile_leaves_the_workspace_below_one_that_may_not() {
    let server = ModelServer::answering(|request, n| {
        let last = request["messages"].as_array().and_then(|all| all.last()).expect("a message").clone();
        let told = last["content"].as_str().unwrap_or_default().to_owned();
        let (name, arguments) = match told.split_once(' ') {
            Some(("read", path)) => ("read_file", json!({ "path": path })),
            Some(("pass", inner)) => ("delegate", json!({"content": inner, "agent": "free"})),
            _ => return Some(Turn::text("done")),
        };
        Some(Turn { calls: vec![Call { id: format!("c{n}"), name: name.into(), arguments }], ..Turn::default() })
    });
    let agents = "[agents.free]\ntool_mode = \"all\"\nlevel = \"host\"\nrestrict_to_workspace = false\n";
    let daemon = daemon(&server, "level = \"host\"\nrestrict_to_workspace = true", agents);
    std::fs::write(daemon.root().join("outside"), "beyond").expect("a file");
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    client.run(&session, &format!("pass read {}", daemon.root().join("outside").display()));
    let child = children(&mut client, &session).remove(0);
    let read = results(&mut client, child.id.as_str()).remove(0);
    assert!(read.ok == Some(false) && !read.content.contains("beyond"), "{read:?}");
}

#[test]
fn a_chain_of_follow_ups_goes_through_delegates_and_back() {
    let server = ModelServer::answering(|request, n| {
        let last = request["messages"].as_array().and_then(|all| all.last()).expect("a message").clone();
        let told = last["content"].as_str().unwrap_or_default().to_owned();
        let call = || Call {
            id: format!("c{n}"),
            name: "delegate".into(),
            arguments: json!({"content": "work", "wait": false}),
        };
        Some(match told.as_str() {
            "work" => Turn::text("42").gated("held"),
            told if told.contains("begin") => Turn { calls: vec![call()], ..Turn::default() },
            _ => Turn::text("done"),
        })
    });
    let daemon = daemon(&server, "", "");
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    schedule(&mut client, &session, &json!({"after_ms": 1}), &json!({"content": "begin"}));
    settled(&mut client, &session, 1);
    server.open("held");
    let heard = settled(&mut client, &session, 2);
    assert_eq!((heard.origin, heard.state), (Origin::Subagent, TaskState::Succeeded));
    let child = children(&mut client, &session).remove(0);
    let work = client.tasks(child.id.as_str()).remove(0);
    for task in [&work, &heard] {
        let next: Followup = schedule(&mut client, &session, &json!({"on": {"task": task.id}}), &json!({}));
        let depth = wait::until("its task", || {
            let fired = daemon.history().into_iter().filter(|event| event.kind == EventType::FollowupFired);
            fired
                .filter(|event| event.data["followup"] == json!(next.id))
                .map(|event| event.data["depth"].clone())
                .next()
        });
        assert_eq!(depth, 2, "{task:?}");
    }
}

#[test]
fn results_that_begin_tasks_which_delegate_come_to_an_end() {
    let server = ModelServer::answering(|request, n| {
        let messages = request["messages"].as_array().expect("messages").clone();
        let last = messages.last().expect("a message");
        let told = last["content"].as_str().unwrap_or_default();
        if let Some(gate) = told.strip_prefix("work ") {
            return Some(Turn::text("42").gated(gate));
        }
        if last["role"] == "tool" {
            return Some(Turn::text("noted"));
        }
        let calls = messages.iter().filter(|message| message["role"] == "tool").count();
        let arguments: Value = json!({"content": format!("work gate{calls}"), "wait": false});
        Some(Turn { calls: vec![Call { id: format!("c{n}"), name: "delegate".into(), arguments }], ..Turn::default() })
    });
    let daemon = daemon(&server, "", "");
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    client.submit(&session, "go");
    for round in 0..=8 {
        settled(&mut client, &session, round + 1);
        server.open(&format!("gate{round}"));
    }
    let last = results(&mut client, &session).pop().expect("a result");
    assert_eq!((last.ok, results(&mut client, &session).len()), (Some(false), 9));
    assert!(last.content.starts_with("wait = false: this task ends a chain of 8"), "{last:?}");
    assert_eq!(children(&mut client, &session).len(), 8);
    client.run(&session, "go");
    assert_eq!(children(&mut client, &session).len(), 9, "what somebody asks for begins anew");
}
