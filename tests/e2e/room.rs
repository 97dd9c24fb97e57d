//! A disk that takes nothing while a record is owed: what is to end ends at once, and what is asked for is refused at
//! once, by whoever holds what.

use nano_protocol::followup::Followup;
use nano_protocol::task::{Task, TaskState};
use nano_tests::client::Client;
use nano_tests::daemon::{Daemon, Setup};
use nano_tests::model_server::{ModelServer, Turn};
use nano_tests::wait;
use serde_json::{Value, json};

use crate::store_full::Disk;

/// A model whose one command lasts, and that hangs where it is told so.
fn model() -> ModelServer {
    ModelServer::answering(|request, n| {
        let last = request["messages"].as_array().and_then(|all| all.last()).cloned().unwrap_or_default();
        Some(match last["content"].as_str() {
            Some("run") => Turn::exec(format!("c{n}"), "echo > runs; sleep 600"),
            Some("hang") => Turn { hang: true, ..Turn::default() },
            _ => Turn::text("done"),
        })
    })
}

/// A daemon on a small disk of its own.
fn daemon(server: &ModelServer) -> Option<(Disk, Daemon)> {
    // The command must not end by itself.
    let agent = "exec_timeout = \"1h\"\nexec_timeout_max = \"1h\"".into();
    let mut daemon = Daemon::prepare(server, Setup { agent, ..Setup::default() });
    let disk = Disk::below(&mut daemon, "16M")?;
    daemon.restart();
    Some((disk, daemon))
}

/// Has a session's actor wait for room: it is to record that a task is taken back that is larger than all that is left.
fn stuck(disk: &Disk, daemon: &Daemon, client: &mut Client, session: &str) -> u64 {
    let waiting = client.submit(session, &"x".repeat(1_000_000));
    disk.fill();
    let asked = client.begin("session.withdraw", &json!({"session": session, "id": waiting.id})).expect("sent");
    wait::until("a record that waits", || {
        let more = json!({"session": session, "content": "more"});
        let refused = daemon.client().call("task.submit", &more).err()?;
        refused.message.contains("waits to be recorded").then_some(())
    });
    asked
}

fn command_runs(daemon: &Daemon) -> bool {
    daemon.left().iter().any(|process| process.command.contains("sleep 600"))
}

#[test]
fn a_cancelled_command_ends_before_that_is_on_record() {
    for method in ["task.cancel", "session.close"] {
        let server = model();
        let Some((disk, mut daemon)) = daemon(&server) else { return };
        let mut client = daemon.client();
        let session = daemon.session(&mut client);
        let task = client.submit(&session, "run");
        wait::until("the command", || {
            (daemon.workspace().join("runs").exists() && command_runs(&daemon)).then_some(())
        });
        let withdrawn = stuck(&disk, &daemon, &mut client, &session);
        let params = if method == "task.cancel" { json!({"task": task.id}) } else { json!({"session": session}) };
        let ending = client.begin(method, &params).expect("sent");
        wait::until("the end of the command", || (!command_runs(&daemon)).then_some(()));
        disk.free();
        client.finish(withdrawn).expect("an answer").expect("it is taken back");
        client.finish(ending).expect("an answer").expect("its end");
        assert_eq!(client.settled(&task.id).state, TaskState::Cancelled);
        daemon.kill9_beside(&[disk.holder.id()]);
    }
}

#[test]
fn what_is_asked_for_is_refused_at_once() {
    let server = model();
    let Some((disk, mut daemon)) = daemon(&server) else { return };
    let mut client = daemon.client();
    let [busy, idle] = [(), ()].map(|()| daemon.session(&mut client));
    let task = client.submit(&busy, "hang");
    server.wait_requests(1);
    let later = json!({"session": idle, "content": "f", "trigger": {"after_ms": 3_600_000}});
    let followup: Followup = client.get("followup.schedule", &later);
    client.get::<Value>("agent.create", &json!({"name": "p"}));
    let withdrawn = stuck(&disk, &daemon, &mut client, &busy);
    let asked = [
        ("followup.pause", json!({"followup": followup.id})),
        ("followup.cancel", json!({"followup": followup.id})),
        ("session.delete", json!({"session": idle})),
        ("agent.delete", json!({"name": "p"})),
    ];
    let mut other = daemon.client();
    for (method, params) in &asked {
        assert_eq!(other.refused(method, params), -32006, "{method}");
    }
    disk.free();
    client.finish(withdrawn).expect("an answer").expect("it is taken back");
    for (method, params) in &asked {
        wait::until(method, || other.call(method, params).ok());
    }
    client.get::<Task>("task.cancel", &json!({"task": task.id}));
    daemon.kill9_beside(&[disk.holder.id()]);
}
