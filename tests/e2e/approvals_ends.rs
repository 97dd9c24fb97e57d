//! Calls that wait for a person who does not come, or for a daemon: time, restarts, steering, delegates, and what
//! `nanoctl` says of it all.

use nano_protocol::approval::ApprovalState;
use nano_protocol::event::EventType;
use nano_protocol::message::NotRun;
use nano_protocol::task::{Task, TaskState};
use nano_tests::model_server::{ModelServer, Turn};
use nano_tests::{ctl, wait};
use serde_json::{Value, json};

use crate::approvals::{all, answer, asked, commands, daemon, not_run, results};
use crate::delegate_kit::{children, obedient, order};

const ASK: &str = "approve = [\"exec: ask\"]";
const SOON: &str = "approve = [\"exec: ask\"]\napprove_timeout = \"300ms\"";

#[test]
fn who_comes_too_late_finds_it_denied() {
    let server = commands(&["touch f"]);
    let daemon = daemon(&server, SOON);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    client.run(&session, "p");
    not_run(&mut client, &session, NotRun::Denied, "nobody answered within 300ms");
    let approval = all(&mut client).remove(0);
    assert_eq!((approval.state, approval.answered_by), (ApprovalState::Expired, None));
    let error = client.call("approval.answer", &json!({"approval": approval.id, "allow": true})).expect_err("late");
    assert!(error.code == -32002 && error.message.contains("expired"), "{error:?}");
    assert!(!daemon.workspace().join("f").exists());
}

#[test]
fn a_followup_at_night_does_the_rest() {
    let server = commands(&["touch f", "true"]);
    let daemon = daemon(&server, "approve = [\"exec touch *: ask\"]\napprove_timeout = \"300ms\"");
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let params = json!({"session": session, "content": "f", "trigger": {"after_ms": 20}});
    client.get::<Value>("followup.schedule", &params);
    drop(client);
    server.wait_requests(3);
    let mut client = daemon.client();
    let task = wait::until("its task", || client.tasks(&session).pop());
    assert_eq!(client.settled(&task.id).state, TaskState::Succeeded);
    let became: Vec<_> = results(&mut client, &session).iter().map(|result| (result.not_run, result.ok)).collect();
    assert_eq!(became, [(Some(NotRun::Denied), Some(false)), (None, Some(true))]);
}

#[test]
fn a_call_waits_on_over_restarts() {
    let server = commands(&["echo a >> f"]);
    let mut daemon = daemon(&server, ASK);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let task = client.submit(&session, "p");
    let approval = asked(&mut client);
    daemon.kill9();
    daemon.restart();
    assert_eq!(asked(&mut daemon.client()), approval, "after a death");
    assert!(daemon.terminate().success());
    daemon.restart();
    let mut client = daemon.client();
    assert_eq!(asked(&mut client), approval, "after an orderly end");
    let waiting: Task = client.get("task.get", &json!({"task": task.id}));
    assert_eq!(waiting.state, TaskState::Running);
    assert!(!daemon.workspace().join("f").exists(), "it ran unasked");
    answer(&mut client, &approval, true);
    assert_eq!(client.settled(&task.id).state, TaskState::Succeeded);
    assert_eq!(std::fs::read_to_string(daemon.workspace().join("f")).expect("a file"), "a\n");
    assert_eq!(server.requests().len(), 2, "the model is not asked again while a call waits");
    let asked = daemon.history().into_iter().filter(|event| event.kind == EventType::ApprovalRequested);
    assert_eq!(asked.count(), 1);
}

#[test]
fn time_goes_on_while_the_daemon_is_down() {
    let server = commands(&["touch f"]);
    let mut daemon = daemon(&server, "approve = [\"exec: ask\"]\napprove_timeout = \"2s\"");
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let task = client.submit(&session, "p");
    let approval = asked(&mut client);
    daemon.kill9();
    daemon.restart();
    let mut client = daemon.client();
    assert_eq!(client.settled(&task.id).state, TaskState::Succeeded);
    let ended: Vec<_> = all(&mut client).into_iter().map(|one| (one.id, one.state)).collect();
    assert_eq!(ended, [(approval.id, ApprovalState::Expired)]);
    assert!(!daemon.workspace().join("f").exists());
}

#[test]
fn a_task_that_does_not_go_on_by_itself_waits_no_longer() {
    let server = commands(&["touch f"]);
    let mut daemon = daemon(&server, "approve = [\"exec: ask\"]\nresume = \"ask\"");
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let task = client.submit(&session, "p");
    asked(&mut client);
    daemon.kill9();
    daemon.restart();
    let mut client = daemon.client();
    assert_eq!(client.settled(&task.id).state, TaskState::Interrupted);
    not_run(&mut client, &session, NotRun::Restart, "restarted");
    assert_eq!(all(&mut client)[0].state, ApprovalState::Expired);
}

#[test]
fn cancelling_and_steering_end_the_wait() {
    for (how, why, state) in [
        ("cancel", NotRun::Cancel, TaskState::Cancelled),
        ("redirect", NotRun::Redirect, TaskState::Succeeded),
        ("interrupt", NotRun::Redirect, TaskState::Succeeded),
        ("close", NotRun::Cancel, TaskState::Cancelled),
    ] {
        let server = commands(&["touch f"]);
        let daemon = daemon(&server, ASK);
        let mut client = daemon.client();
        let session = daemon.session(&mut client);
        let task = client.submit(&session, "p");
        let approval = asked(&mut client);
        match how {
            "cancel" => drop(client.get::<Value>("task.cancel", &json!({"task": task.id}))),
            "close" => drop(client.get::<Value>("session.close", &json!({"session": session}))),
            delivery => {
                let note = json!({"session": session, "content": "n", "delivery": "note"});
                client.get::<Value>("session.steer", &note);
                assert_eq!(asked(&mut client), approval, "a note waits for the call");
                let params = json!({"session": session, "content": "s", "delivery": delivery});
                client.get::<Value>("session.steer", &params);
            }
        }
        assert_eq!(client.settled(&task.id).state, state, "{how}");
        not_run(&mut client, &session, why, "Not run");
        let ended = all(&mut client).remove(0);
        assert_eq!((ended.id, ended.state), (approval.id, ApprovalState::Expired), "{how}");
        assert!(!daemon.workspace().join("f").exists());
    }
}

#[test]
fn a_delegate_is_under_its_parents_rules() {
    let server = obedient();
    let inner = ModelServer::script(vec![Turn::exec("c", "touch f"), Turn { repeat: true, ..Turn::text("done") }]);
    let extra = format!(
        "[models.inner]\napi = \"openai\"\nbase_url = \"{}\"\nmodel = \"inner\"\napi_key = \"k\"\n\
         [agents.free]\nmodel = \"inner\"\napprove = [\"exec: allow\"]\n",
        inner.url()
    );
    let agent = "tool_mode = \"all\"\napprove = [\"exec: deny\"]".into();
    let setup = nano_tests::daemon::Setup { agent, extra, ..Default::default() };
    let daemon = nano_tests::daemon::Daemon::with(&server, setup);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    client.run(&session, &order("-", &[json!({"content": "work -", "agent": "free"})]));
    let child = children(&mut client, &session).remove(0);
    not_run(&mut client, child.id.as_str(), NotRun::Denied, "rule \"exec: deny\"");
    assert!(!daemon.workspace().join("f").exists());
}

#[test]
fn nanoctl_shows_asks_and_explains() {
    let server = commands(&["touch f", "git push", "true"]);
    let daemon = daemon(&server, "approve = [\"exec touch *: ask\", \"exec git push *: deny\"]");
    let run = daemon.ctl(["run", "--new", "web", "go"]).spawn();
    let mut client = daemon.client();
    let approval = asked(&mut client);
    let listed = daemon.ctl(["approvals"]).run().expect_code(0);
    assert!(listed.contains(approval.id.as_str()) && listed.contains("exec touch f"), "{listed}");
    let said = daemon.ctl(["approve", &approval.id.0[..27]]).run();
    assert_eq!(said.expect_code(0), format!("{} allowed", approval.id));
    let ran = ctl::output(run);
    assert_eq!(ran.expect_code(0), "done");
    let shown =
        [format!("nanoctl approve {}", approval.id), "rule \"exec touch *: ask\"".into(), "exec touch f".into()];
    assert!(shown.iter().all(|text| ran.stderr.contains(text)), "{ran:?}");
    daemon.ctl(["deny", approval.id.as_str()]).run().expect_error(5);
    daemon.ctl(["deny", "apr_x"]).run().expect_error(4);
    let task = client.tasks("web").remove(0);
    let told = daemon.ctl(["explain", task.id.as_str()]).run().expect_code(0);
    let lines: Vec<_> = told.lines().collect();
    assert_eq!(lines.len(), 3, "{told}");
    for (line, parts) in lines.iter().zip([
        ["exec touch f", "ran", "ask", approval.id.as_str()],
        ["exec git push", "not run: denied", "deny", "rule \"exec git push *: deny\""],
        ["exec true", "ran", "allow", "no rule"],
    ]) {
        assert!(parts.iter().all(|part| line.contains(part)), "{line}: {parts:?}");
    }
    let added = daemon.ctl(["followup", "add", "web", "later", "--in", "1h"]).run();
    assert!(added.stderr.contains("a rule of agent default asks a person"), "{added:?}");
    daemon.ctl(["approvals", "--all"]).run().expect_code(0);
}
