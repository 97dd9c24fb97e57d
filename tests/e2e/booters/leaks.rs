//! Nothing is left behind at a server, whatever dies.

use nano_tests::sandboxes::Fault;

use super::*;

#[test]
fn twenty_sessions_leave_nothing() {
    let bay = Bay::start();
    let server = ModelServer::script(Vec::new());
    let daemon = daemon(&server, neo(&bay));
    let mut client = daemon.client();
    for _ in 0..20 {
        let session = session(&daemon, &mut client, "shipyard_neo");
        boot(&mut client, &session);
        assert_eq!(bay.sandboxes().len(), 1);
        close(&mut client, &session);
        assert_eq!(bay.sandboxes(), Vec::<String>::new());
    }
}

#[test]
fn a_daemon_that_dies_before_it_knows_the_id_makes_no_second_sandbox() {
    for ending in ["boot", "close"] {
        let bay = Bay::start();
        bay.fault(Fault::hold("POST", "/v1/sandboxes", "made").once());
        let server = ModelServer::script(Vec::new());
        let mut daemon = daemon(&server, neo(&bay));
        let mut client = daemon.client();
        let session = session(&daemon, &mut client, "shipyard_neo");
        client.begin("session.boot", &json!({ "session": session }));
        nano_tests::wait::until("a sandbox", || (bay.sandboxes().len() == 1).then_some(()));
        daemon.kill9();
        bay.open("made");
        daemon.restart();
        let mut client = daemon.client();
        if ending == "boot" {
            boot(&mut client, &session);
            assert_eq!(bay.sandboxes().len(), 1, "the same sandbox");
        }
        close(&mut client, &session);
        wait_none(&bay);
    }
}

#[test]
fn racing_calls_boot_once() {
    let bay = Bay::start();
    let server = ModelServer::script(Vec::new());
    let daemon = daemon(&server, neo(&bay));
    let mut client = daemon.client();
    let session = session(&daemon, &mut client, "shipyard_neo");
    let params = json!({ "session": session });
    let all: Vec<_> = (0..5).filter_map(|_| client.begin("session.boot", &params)).collect();
    for one in all {
        client.finish(one).expect("a living daemon").expect("a booted session");
    }
    assert_eq!((bay.sandboxes().len(), bay.requests_to("POST", "/v1/sandboxes").len()), (1, 1));
}

#[test]
fn a_server_that_is_down_at_the_end_gets_its_sandbox_back_later() {
    let bay = Bay::start();
    let server = ModelServer::script(Vec::new());
    let mut daemon = daemon(&server, neo(&bay));
    let mut client = daemon.client();
    let session = session(&daemon, &mut client, "shipyard_neo");
    boot(&mut client, &session);
    bay.fault(Fault::answer("DELETE", "/sandboxes/*", Bay::error(500, "internal_error", "down", &json!({}))));
    close(&mut client, &session);
    assert_eq!(bay.sandboxes().len(), 1);
    daemon.kill9();
    bay.clear_faults();
    daemon.restart();
    wait_none(&bay);
}

#[test]
fn a_lone_tasks_sandbox_goes_with_it() {
    let bay = Bay::start();
    let server = ModelServer::script(vec![call("c1", "exec", json!({"command": "echo hi"})), Turn::text("done")]);
    let daemon = daemon(&server, neo(&bay));
    daemon.ctl(["run", "p", "--booter", "shipyard_neo"]).run().expect_code(0);
    wait_none(&bay);
}

#[test]
fn a_session_that_lasted_long_gets_its_second_attempt_too() {
    let bay = Bay::start();
    let server = ModelServer::script(Vec::new());
    let daemon = daemon(&server, neo(&bay));
    let mut client = daemon.client();
    let session = session(&daemon, &mut client, "shipyard_neo");
    boot(&mut client, &session);
    let down = Bay::error(500, "internal_error", "down", &json!({}));
    bay.fault(Fault::answer("DELETE", "/sandboxes/*", down).times(5));
    close(&mut client, &session);
    wait_none(&bay);
}

#[test]
fn going_down_during_a_boot_loses_no_task() {
    let bay = Bay::start();
    bay.fault(Fault::hold("POST", "/v1/sandboxes", "made").once());
    let server = ModelServer::script(vec![
        call("c1", "exec", json!({"command": "echo one"})),
        call("c2", "exec", json!({"command": "echo two"})),
        Turn::text("done"),
    ]);
    let mut daemon = daemon(&server, neo(&bay));
    let mut client = daemon.client();
    let session = session(&daemon, &mut client, "shipyard_neo");
    let task = client.submit(&session, "p");
    nano_tests::wait::until("a sandbox", || (bay.sandboxes().len() == 1).then_some(()));
    assert!(daemon.terminate().success());
    bay.open("made");
    daemon.restart();
    let mut client = daemon.client();
    let ended = client.settled(&task.id);
    assert_eq!(ended.state, nano_protocol::task::TaskState::Succeeded, "{ended:?}");
    assert_eq!(bay.sandboxes().len(), 1, "the same sandbox");
}

#[test]
fn a_lone_task_that_is_interrupted_keeps_its_sandbox_and_a_later_one_is_told_of_another() {
    let bay = Bay::start();
    let server = ModelServer::answering(|request, n| {
        let messages = request["messages"].as_array().cloned().unwrap_or_default();
        let asked = messages.last().and_then(|one| one["content"].as_str()).unwrap_or_default() == "q";
        Some(match n {
            1 => call("c1", "exec", json!({"command": "echo kept > note"})),
            2 => Turn { hang: true, ..Turn::default() },
            3 => call("c2", "exec", json!({"command": "cat note"})),
            _ if asked => call("c3", "exec", json!({"command": "cat note || echo none"})),
            _ => Turn::text("done"),
        })
    });
    let agent = "skills = []\nresume = \"ask\"".into();
    let mut daemon = Daemon::with(&server, Setup { agent, extra: neo(&bay), ..Setup::default() });
    let mut client = daemon.client();
    let create = json!({"booter": "shipyard_neo", "workspace": daemon.workspace()});
    let task: Value = client.get("task.submit", &json!({"create": create, "content": "p"}));
    let session = task["session"].as_str().expect("a session").to_owned();
    server.wait_requests(2);
    daemon.kill9();
    daemon.restart();
    let mut client = daemon.client();
    let held: Value = client.get("task.wait", &json!({"task": task["id"]}));
    assert_eq!((held["state"].as_str(), bay.sandboxes().len()), (Some("interrupted"), 1));
    client.get::<Value>("task.resume", &json!({"task": task["id"]}));
    let ended: Value = client.get("task.wait", &json!({"task": task["id"]}));
    assert_eq!((ended["state"].as_str(), result(&mut client, &session)), (Some("succeeded"), ("kept".into(), true)));
    wait_none(&bay);
    client.run(&session, "q");
    assert_eq!(result(&mut client, &session), ("cat: note: No such file or directory\nnone".into(), true));
    let last = server.requests().last().map(Value::to_string).unwrap_or_default();
    assert_eq!(last.matches("The sandbox of before is gone").count(), 1, "{last}");
}
