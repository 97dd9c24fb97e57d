//! Delegates and a computer that is somewhere else: one for both, as long as one of them works.

use nano_protocol::session::{Queue, Session, SessionTools, Sessions};
use nano_protocol::task::{Task, TaskState};
use nano_tests::client::Client;
use nano_tests::daemon::{Daemon, Setup};
use nano_tests::model_server::{Call, ModelServer, Turn};
use nano_tests::sandboxes::{Bay, Capabilities, Fault};
use nano_tests::wait;
use serde_json::{Value, json};

use crate::delegate_kit::{ended, results, settled, wait_children};

/// A model that makes the calls which a message says, answers results when the gate `-` or the one that the message
/// names before them is open, and hears the rest.
fn obedient() -> ModelServer {
    let server = ModelServer::answering(|request, n| {
        let messages = request["messages"].as_array().expect("messages");
        let text = |message: &Value| message["content"].as_str().unwrap_or_default().to_owned();
        let last = messages.last().expect("a message");
        let told = messages.iter().rev().map(text).find(|text| text.starts_with("do ")).unwrap_or_default();
        let gate = told.split(' ').nth(1).unwrap_or("-").to_owned();
        let Some(calls) = text(last).strip_prefix("do ").and_then(|rest| Some(rest.split_once(' ')?.1.to_owned()))
        else {
            return Some(Turn::text("42").gated(if last["role"] == "tool" { &gate } else { "-" }));
        };
        let calls: Vec<(String, Value)> = serde_json::from_str(&calls).expect("calls");
        let call = |(at, (name, arguments))| Call { id: format!("c{n}_{at}"), name, arguments };
        Some(Turn { calls: calls.into_iter().enumerate().map(call).collect(), ..Turn::default() })
    });
    server.open("-");
    server
}

fn run(command: &str) -> Value {
    json!(["exec", {"command": command}])
}

fn told(gate: &str, calls: &[Value]) -> String {
    format!("do {gate} {}", json!(calls))
}

fn neo(server: &ModelServer, bay: &Bay) -> Daemon {
    let keys = format!("endpoint = \"{}\"\naccess_token = \"{}\"\n", bay.url(), bay.key());
    let agents = "[agents.quiet]\nskills = []\n[agents.far]\nbooter = \"shipyard_neo\"\nskills = []\n";
    let extra = format!("[booters.shipyard_neo]\n{keys}\n{agents}");
    Daemon::with(server, Setup { agent: "tool_mode = \"all\"\nskills = []".into(), extra, ..Setup::default() })
}

fn of_booter(client: &mut Client, session: &str) -> (usize, String) {
    let tools: SessionTools = client.get("session.tools", &json!({ "session": session }));
    let list: Vec<_> = tools.tools.into_iter().filter(|tool| tool.source.starts_with("booter:")).collect();
    (list.len(), serde_json::to_string(&list).expect("JSON"))
}

#[test]
fn both_see_what_the_one_computer_can_do() {
    let bay = Bay::start();
    let words = ["shell", "python", "filesystem"];
    bay.set_capabilities(Capabilities::Given(words.iter().map(|word| (*word).to_owned()).collect()));
    let server = obedient();
    let mut daemon = neo(&server, &bay);
    let mut client = daemon.client();
    let session = daemon.session_with(&mut client, json!({"booter": "shipyard_neo"}));
    for agent in [json!(null), json!("quiet")] {
        client.run(&session, &told("-", &[json!(["delegate", {"content": "say something", "agent": agent}])]));
    }
    let below = wait_children(&mut client, &session, 2);
    for count in [18, 15, 15] {
        let list = of_booter(&mut client, &session);
        assert_eq!(list.0, count);
        for child in &below {
            assert_eq!(
                (child.booter.as_str(), of_booter(&mut client, child.id.as_str())),
                ("shipyard_neo", list.clone())
            );
            check_agreement(&mut client, child);
        }
        client.get::<Value>("session.boot", &json!({"session": below[0].id}));
        if bay.sandboxes().is_empty() {
            continue;
        }
        daemon.kill9();
        daemon.restart();
        client = daemon.client();
    }
    assert_eq!(bay.sandboxes().len(), 1);
    client.get::<Value>("session.close", &json!({"session": below[0].id}));
    assert_eq!(bay.sandboxes().len(), 1, "it is not the child's to give back");
    client.get::<Value>("session.close", &json!({ "session": session }));
    assert_eq!(bay.sandboxes(), Vec::<String>::new());
}

/// Checks that all that shows a session says the same of its computer.
fn check_agreement(client: &mut Client, session: &Session) {
    let tools: SessionTools = client.get("session.tools", &json!({"session": session.id}));
    let got: Session = client.get("session.get", &json!({"session": session.id}));
    let all: Sessions = client.get("session.list", &json!({}));
    let listed = all.sessions.into_iter().find(|one| one.id == session.id).expect("a row");
    for shown in [got, listed] {
        assert_eq!((shown.booted, shown.capabilities), (tools.booted, tools.capabilities.clone()));
    }
}

#[test]
fn a_child_works_on_what_its_parent_has_made() {
    let bay = Bay::start();
    let server = obedient();
    let daemon = neo(&server, &bay);
    let mut client = daemon.client();
    let session = daemon.session_with(&mut client, json!({"booter": "shipyard_neo"}));
    let inner = told("-", &[run("cat note; echo too >> note")]);
    let calls = [run("echo mine > note"), json!(["delegate", { "content": inner }]), run("cat note")];
    client.run(&session, &told("-", &calls));
    let child = wait_children(&mut client, &session, 1).remove(0);
    assert_eq!(results(&mut client, child.id.as_str())[0].content, "mine");
    assert_eq!(results(&mut client, &session)[2].content, "mine\ntoo");
    assert_eq!(bay.sandboxes().len(), 1);
}

#[test]
fn a_lone_tasks_computer_stays_while_work_is_done_on_it() {
    let bay = Bay::start();
    let server = obedient();
    let daemon = neo(&server, &bay);
    let mut client = daemon.client();
    // The child delegates too, and ends before its own child does.
    let last = told("held", &[run("cat note")]);
    let inner = told("-", &[run("cat note"), json!(["delegate", {"content": last, "wait": false}])]);
    let calls = [run("echo mine > note"), json!(["delegate", {"content": inner, "wait": false}])];
    let create = json!({"booter": "shipyard_neo"});
    let task: Task = client.get("task.submit", &json!({"create": create, "content": told("-", &calls)}));
    assert_eq!(client.settled(&task.id).state, TaskState::Succeeded);
    let child = wait_children(&mut client, &task.session.0, 1).remove(0);
    let grandchild = wait_children(&mut client, child.id.as_str(), 1).remove(0);
    settled(&mut client, &task.session.0, 2);
    wait::until("the command", || (results(&mut client, grandchild.id.as_str()).len() == 1).then_some(()));
    assert_eq!(bay.sandboxes().len(), 1, "it is worked on");
    server.open("held");
    ended(&mut client, &grandchild, TaskState::Succeeded);
    settled(&mut client, child.id.as_str(), 2);
    for session in [&child, &grandchild] {
        assert_eq!(results(&mut client, session.id.as_str())[0].content, "mine");
    }
    wait::until("the end of the sandbox", || bay.sandboxes().is_empty().then_some(()));
}

#[test]
fn a_lone_tasks_computer_stays_for_what_its_delegates_are_given_later() {
    let bay = Bay::start();
    let server = obedient();
    let mut daemon = neo(&server, &bay);
    let mut client = daemon.client();
    let last = told("held", &[run("cat note")]);
    let inner = told("-", &[json!(["delegate", {"content": last, "wait": false}])]);
    let calls = [run("echo mine > note"), json!(["delegate", { "content": inner }])];
    let create = json!({"booter": "shipyard_neo"});
    let task: Task = client.get("task.submit", &json!({"create": create, "content": told("-", &calls)}));
    assert_eq!(client.settled(&task.id).state, TaskState::Succeeded);
    let child = wait_children(&mut client, &task.session.0, 1).remove(0);
    let grandchild = wait_children(&mut client, child.id.as_str(), 1).remove(0);
    let second = client.submit(child.id.as_str(), &told("second", &[run("cat note")]));
    wait::until("the command", || (results(&mut client, child.id.as_str()).len() == 2).then_some(()));
    server.open("held");
    ended(&mut client, &grandchild, TaskState::Succeeded);
    let queue = |client: &mut Client| client.get::<Queue>("session.queue", &json!({"session": child.id})).waiting.len();
    wait::until("the note", || (queue(&mut client) == 1).then_some(()));
    daemon.kill9();
    daemon.restart();
    client = daemon.client();
    let third = client.submit(child.id.as_str(), &told("-", &[run("cat note")]));
    server.open("second");
    for task in [&second, &third] {
        assert_eq!(client.settled(&task.id).state, TaskState::Succeeded);
    }
    let results = results(&mut client, child.id.as_str());
    assert_eq!(results[1..].iter().map(|one| one.content.as_str()).collect::<Vec<_>>(), ["mine", "mine"]);
    wait::until("the end of the sandbox", || bay.sandboxes().is_empty().then_some(()));
}

#[test]
fn a_close_during_the_boot_cancels_what_waits_for_it_below() {
    let bay = Bay::start();
    let server = obedient();
    let daemon = neo(&server, &bay);
    let mut client = daemon.client();
    bay.fault(Fault::hold("POST", "/v1/sandboxes", "slow"));
    let session = daemon.session_with(&mut client, json!({"booter": "shipyard_neo"}));
    let inner = told("-", &[run("cat note")]);
    client.run(&session, &told("-", &[json!(["delegate", {"content": inner, "wait": false}])]));
    bay.wait_requests("POST", "/v1/sandboxes", 1);
    let child = wait_children(&mut client, &session, 1).remove(0);
    client.get::<Value>("session.close", &json!({ "session": session }));
    ended(&mut client, &child, TaskState::Cancelled);
    bay.open("slow");
    wait::until("the end of the sandbox", || bay.sandboxes().is_empty().then_some(()));
}

#[test]
fn a_profile_that_names_another_kind_gets_one_of_its_own_for_the_work() {
    let bay = Bay::start();
    let server = obedient();
    let daemon = neo(&server, &bay);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let inner = told("held", &[run("echo far")]);
    let calls = [json!(["delegate", {"content": inner, "agent": "far"}]), run("echo near")];
    let task = client.submit(&session, &told("-", &calls));
    let child: Session = wait_children(&mut client, &session, 1).remove(0);
    assert_eq!(child.booter, "shipyard_neo");
    wait::until("a sandbox", || (bay.sandboxes().len() == 1).then_some(()));
    server.open("held");
    assert_eq!(client.settled(&task.id).state, TaskState::Succeeded);
    assert_eq!(results(&mut client, child.id.as_str())[0].content, "far");
    assert_eq!(results(&mut client, &session)[1].content, "near");
    wait::until("the end of the sandbox", || bay.sandboxes().is_empty().then_some(()));
}
