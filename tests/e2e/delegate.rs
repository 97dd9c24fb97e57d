//! Work that an agent delegates: the session that does it, what it has from its parent, and how many there may be.

use nano_protocol::session::{Level, Session, SessionState, SessionTools, ToolMode};
use nano_protocol::task::{Origin, TaskState};
use nano_tests::client::Client;
use nano_tests::transcript;
use serde_json::{Value, json};

use crate::delegate_kit::{children, daemon, ended, obedient, order, rendered, results, wait_children};

fn tools(client: &mut Client, session: &str) -> SessionTools {
    client.get("session.tools", &json!({ "session": session }))
}

#[test]
fn the_call_waits_for_the_answer() {
    let server = obedient();
    let daemon = daemon(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    client.run(&session, &order("-", &[json!({"content": "work -"}), json!({"content": "fail"})]));
    assert_eq!(rendered(&mut client, &session), "U A[c1,c2] T(c1) T!(c2) A(noted)");
    let results = results(&mut client, &session);
    assert_eq!(results[0].content, "42");
    let below = children(&mut client, &session);
    assert!(results[1].content.starts_with(&format!("Subagent session {} failed (error): ", below[1].id)));
    assert_eq!(below.len(), 2, "{below:?}");
    let above: Session = client.get("session.get", &json!({ "session": session }));
    for child in &below {
        assert_eq!((&child.agent, &child.workspace, child.owner), (&above.agent, &above.workspace, above.owner));
        assert_eq!((&child.booter, &child.model, child.level), (&above.booter, &above.model, above.level));
        assert_eq!((child.tool_mode, &child.tools, &child.skills), (above.tool_mode, &above.tools, &above.skills));
        assert_eq!((child.state, child.name.as_ref()), (SessionState::Idle, None));
    }
    let task = ended(&mut client, &below[0], TaskState::Succeeded);
    assert_eq!((task.origin, task.content.as_str()), (Origin::Subagent, "work -"));
    let first = transcript::read(&mut client, below[0].id.as_str()).remove(0);
    assert_eq!(first.source, Some(format!("session {session}")));
    assert_eq!(client.tasks(&session).len(), 1, "what the call has told is not told again");
}

#[test]
fn tools_come_from_the_same_place() {
    let server = obedient();
    let daemon = daemon(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let same = |client: &mut Client| {
        client.run(&session, &order("-", &[json!({"content": "work -"})]));
        let child = children(client, &session).pop().expect("a child");
        let of_booter = |tools: SessionTools| {
            let list = tools.tools.into_iter().filter(|tool| tool.source.starts_with("booter:"));
            serde_json::to_string(&list.collect::<Vec<_>>()).expect("JSON")
        };
        let (above, below) = (tools(client, &session), tools(client, child.id.as_str()));
        assert!(above.tools.iter().any(|tool| tool.name == "exec"), "{above:?}");
        assert_eq!(of_booter(above), of_booter(below));
    };
    same(&mut client);
    client.get::<Value>("session.boot", &json!({ "session": session }));
    same(&mut client);
}

#[test]
fn a_profile_or_a_list_is_taken_where_it_is_named() {
    let server = obedient();
    let daemon = daemon(&server);
    let mut client = daemon.client();
    let params = json!({"skills": ["one"], "level": "workspace-write"});
    let session = daemon.session_with(&mut client, params);
    let orders = [
        json!({"content": "work -", "agent": "reader"}),
        json!({"content": "work -", "agent": "host"}),
        json!({"content": "work -", "agent": "bare"}),
        json!({"content": "work -", "tools": ["grep", "delegate"]}),
        json!({"content": "work -", "agent": "reader", "tools": []}),
    ];
    client.run(&session, &order("-", &orders));
    assert_eq!(rendered(&mut client, &session), "U A[c1,c2,c3,c4,c5] T(c1) T(c2) T(c3) T(c4) T(c5) A(noted)");
    let (one, none) = (Some(vec!["one".to_owned()]), None);
    let expected = [
        ("reader", "local", Level::ReadOnly, ToolMode::ReadOnly, "mode", none.clone()),
        ("host", "local", Level::WorkspaceWrite, ToolMode::All, "mode", Some(vec![])),
        ("bare", "none", Level::WorkspaceWrite, ToolMode::All, "mode", none.clone()),
        ("default", "local", Level::WorkspaceWrite, ToolMode::All, "grep delegate", one),
        ("reader", "local", Level::ReadOnly, ToolMode::ReadOnly, "", none),
    ];
    for (child, (agent, booter, level, mode, list, skills)) in children(&mut client, &session).iter().zip(expected) {
        assert_eq!((child.agent.as_str(), child.booter.as_str()), (agent, booter), "{child:?}");
        assert_eq!((child.level, child.tool_mode, &child.skills), (level, mode, &skills), "{child:?}");
        let tools = child.tools.as_ref().map_or("mode".to_owned(), |tools| tools.join(" "));
        assert_eq!(tools, list, "{child:?}");
    }
}

#[test]
fn what_cannot_be_is_said_and_opens_nothing() {
    let server = obedient();
    let daemon = daemon(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let cases = [
        (
            json!({"content": "work -", "agent": "nobody"}),
            "unknown agent `nobody`; there is bare, default, host, reader",
        ),
        (json!({"content": "work -", "agent": ""}), "unknown agent ``; there is bare"),
        (
            json!({"content": "work -", "tools": ["exce"]}),
            "unknown tool `exce`; there is load_skill, datetime, delegate",
        ),
        (json!({"content": " "}), "the content is empty"),
        (json!({"agent": "reader"}), "`content` is missing"),
        (json!({"content": "work -", "level": "host"}), "`level`"),
        (json!({"content": "work -", "wait": "perhaps"}), "`wait`"),
    ];
    let orders: Vec<Value> = cases.iter().map(|(order, _)| order.clone()).collect();
    client.run(&session, &order("-", &orders));
    for (result, (order, says)) in results(&mut client, &session).iter().zip(&cases) {
        assert!(result.ok == Some(false) && result.content.contains(says), "{order}: {}", result.content);
    }
    assert!(children(&mut client, &session).is_empty());
}

#[test]
fn three_deep_and_no_deeper() {
    let server = obedient();
    let daemon = daemon(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let told = (0..4).fold("work -".to_owned(), |told, _| order("-", &[json!({ "content": told })]));
    client.run(&session, &told);
    let mut at = session;
    for depth in 0..=3 {
        let barred = tools(&mut client, &at).withheld.into_iter().find(|tool| tool.name == "delegate");
        assert_eq!(barred.map(|tool| tool.why), (depth == 3).then(|| "depth 3 of 3 is reached".to_owned()));
        let result = results(&mut client, &at).remove(0);
        if depth == 3 {
            assert!(result.content.contains("`delegate` is not offered: depth 3 of 3 is reached"), "{result:?}");
            assert!(children(&mut client, &at).is_empty());
        } else {
            assert_eq!((result.ok, result.content.as_str()), (Some(true), "noted"));
            at = children(&mut client, &at).remove(0).id.0;
        }
    }
}

#[test]
fn the_eighth_is_waited_for_again_after_a_restart() {
    let server = obedient();
    let mut daemon = daemon(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let mut orders = vec![json!({"content": "work held", "wait": false}); 7];
    orders.push(json!({"content": "work held"}));
    let task = client.submit(&session, &order("-", &orders));
    let below = wait_children(&mut client, &session, 8);
    server.wait_requests(9);
    daemon.kill9();
    daemon.restart();
    server.wait_requests(17);
    let mut client = daemon.client();
    server.open("held");
    assert_eq!(client.settled(&task.id).state, TaskState::Succeeded);
    let last = results(&mut client, &session).remove(7);
    assert_eq!((last.ok, last.content.as_str()), (Some(true), "42"));
    assert_eq!(children(&mut client, &session).len(), below.len());
}

#[test]
fn eight_at_once_and_no_more() {
    let server = obedient();
    let mut daemon = daemon(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let orders = vec![json!({"content": "work held", "wait": false}); 9];
    client.run(&session, &order("-", &orders));
    let barred = "8 subagent sessions work for this one already";
    let results = results(&mut client, &session);
    assert_eq!(results.iter().map(|result| result.ok == Some(true)).collect::<Vec<_>>(), {
        let mut expected = vec![true; 9];
        expected[8] = false;
        expected
    });
    assert_eq!(results[8].content, barred);
    for _ in 0..2 {
        let tools = tools(&mut client, &session);
        assert!(tools.withheld.iter().any(|tool| tool.name == "delegate" && tool.why == barred), "{tools:?}");
        daemon.kill9();
        daemon.restart();
        client = daemon.client();
    }
    let below = wait_children(&mut client, &session, 8);
    assert_eq!(below.len(), 8);
    server.open("held");
    for child in &below {
        ended(&mut client, child, TaskState::Succeeded);
    }
    assert!(tools(&mut client, &session).tools.iter().any(|tool| tool.name == "delegate"));
}
