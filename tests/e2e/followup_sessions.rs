//! Follow-ups and what becomes of their session: busy, interrupted, closed, deleted; and a daemon that is killed.

use nano_protocol::message::{Message, Role};
use nano_protocol::task::TaskState;
use nano_tests::daemon::{Daemon, Setup};
use nano_tests::wait;
use serde_json::{Value, json};

use crate::followup_kit::{act, check, get, holding, made, now, plain, schedule, wait_for, wait_made};

#[test]
fn a_busy_session_takes_it_behind_what_was_there() {
    let server = holding("hold");
    let daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    client.submit(&session, "hold");
    server.wait_requests(1);
    let before = client.submit(&session, "before");
    let followup = schedule(&mut client, &session, &json!({"after_ms": 1}), &json!({"name": "nightly"}));
    let due = wait_made(&mut client, &session, 1).remove(0);
    let behind = client.submit(&session, "behind");
    server.open("hold");
    let started: Vec<_> = [before.id, due.id.clone(), behind.id]
        .iter()
        .map(|task| client.settled(task).started_at.expect("a start"))
        .collect();
    assert!(started.is_sorted(), "{started:?}");
    let messages: Value = client.get("session.messages", &json!({ "session": session }));
    let messages: Vec<Message> = serde_json::from_value(messages["messages"].clone()).expect("messages");
    let first = messages.iter().find(|message| message.task == due.id).expect("its first message");
    assert_eq!((first.role, first.content.as_str()), (Role::Followup, "f"));
    let source = format!("follow-up {} nightly", followup.id);
    assert_eq!(first.source.as_deref(), Some(source.as_str()));
    let asked = server.requests().into_iter().any(|request| request["messages"].to_string().contains(&source));
    assert!(asked, "the model is told where it comes from");
}

#[test]
fn an_interrupted_session_keeps_it_waiting() {
    let server = holding("hold");
    let mut daemon = Daemon::with(&server, Setup { agent: "resume = \"ask\"".into(), ..Setup::default() });
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let held = client.submit(&session, "hold");
    server.wait_requests(1);
    daemon.kill9();
    daemon.restart();
    let mut client = daemon.client();
    assert_eq!(client.settled(&held.id).state, TaskState::Interrupted);
    schedule(&mut client, &session, &json!({"after_ms": 1}), &json!({}));
    let task = wait_made(&mut client, &session, 1).remove(0);
    assert_eq!(task.state, TaskState::Queued);
    server.open("hold");
    client.get::<Value>("task.cancel", &json!({"task": held.id}));
    assert_eq!(client.settled(&task.id).state, TaskState::Succeeded);
}

#[test]
fn a_closed_session_pauses_it_for_good() {
    let server = plain();
    let mut daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let all = [json!({"every_ms": 1000}), json!({"external": true}), json!({"on": {"event": "session.closed"}})]
        .map(|trigger| schedule(&mut client, &session, &trigger, &json!({})));
    client.get::<Value>("session.close", &json!({ "session": session }));
    let count = made(&mut client, &session).len();
    daemon.kill9();
    daemon.restart();
    let mut client = daemon.client();
    for followup in &all {
        let paused = wait_for(&mut client, followup, "paused");
        assert!(paused.reason.as_ref().is_some_and(|reason| reason.contains("closed")), "{paused:?}");
        assert_eq!(client.refused("followup.resume", &json!({"followup": followup.id})), -32002);
        assert_eq!(client.refused("followup.trigger", &json!({"followup": followup.id})), -32002);
    }
    assert_eq!(made(&mut client, &session).len(), count);
    let params = json!({"session": session, "content": "f", "trigger": {"external": true}});
    assert_eq!(client.refused("followup.schedule", &params), -32002);
}

#[test]
fn a_deleted_session_leaves_none() {
    let server = plain();
    let mut daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let all = [json!({"every_ms": 1000}), json!({"external": true}), json!({"on": {"file": "*.md"}})]
        .map(|trigger| schedule(&mut client, &session, &trigger, &json!({})));
    wait_made(&mut client, &session, 1);
    client.get::<Value>("session.delete", &json!({ "session": session }));
    for _ in 0..2 {
        for followup in &all {
            for method in ["followup.get", "followup.runs", "followup.trigger", "followup.resume"] {
                assert_eq!(client.refused(method, &json!({"followup": followup.id})), -32001, "{method}");
            }
        }
        let status: Value = client.get("daemon.status", &json!({}));
        assert_eq!(status["followups"], json!({"active": 0}));
        daemon.kill9();
        daemon.restart();
        client = daemon.client();
    }
}

#[test]
fn killed_at_any_time_no_slot_is_lost_or_doubled() {
    let server = plain();
    let mut daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let more = json!({"missed": "all", "grace_ms": 3_600_000, "overlap": "queue"});
    let all = [json!({"every_ms": 1000}), json!({"cron": "* * * * * *"})]
        .map(|trigger| schedule(&mut client, &session, &trigger, &more));
    let from = now();
    for n in 1..9 {
        // Close to a slot of both, before it or behind it.
        let at = from.plus_ms(n * 1000 + n * 7 - 30);
        wait::until("a slot", || (now() >= at).then_some(()));
        daemon.kill9();
        daemon.restart();
    }
    let mut client = daemon.client();
    for followup in &all {
        act(&mut client, "followup.cancel", followup);
        let rows = check(&daemon, followup);
        assert!(rows.windows(2).all(|pair| pair[0].slot.0 - pair[1].slot.0 == 1000), "none is left out: {rows:#?}");
        assert_eq!(rows.last().map(|row| row.slot), followup.next.first().copied());
    }
    let fired: u64 = all.iter().map(|followup| get(&mut client, followup).runs).sum();
    assert_eq!(made(&mut client, &session).len() as u64, fired);
}

#[test]
fn who_waits_for_a_task_hears_of_its_end_in_a_session_that_is_deleted() {
    let server = holding("hold");
    let daemon = Daemon::start(&server);
    let mut client = daemon.client();
    for round in 0..3 {
        let (gone, other) = (daemon.session(&mut client), daemon.session(&mut client));
        let tasks: Vec<_> = (0..6).map(|_| client.submit(&gone, "hold")).collect();
        server.wait_requests(1);
        let mut after = |task: &str| {
            [(); 2]
                .map(|()| schedule(&mut client, &other, &json!({"on": {"task": task}}), &json!({"overlap": "queue"})))
        };
        let waiting: Vec<_> = tasks.iter().flat_map(|task| after(&task.id.0)).collect();
        client.get::<Value>("session.delete", &json!({ "session": gone }));
        for followup in &waiting {
            assert_eq!(wait_for(&mut client, followup, "done").runs, 1, "{round}");
        }
    }
}
