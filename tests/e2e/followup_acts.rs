//! What people do with follow-ups: pause, resume, trigger, look at what became of them.

use nano_protocol::followup::{Followup, RunState};
use nano_protocol::task::Task;
use nano_tests::client::Client;
use nano_tests::daemon::Daemon;
use nano_tests::wait;
use serde_json::{Value, json};

use crate::followup_kit::{HOUR, act, check, get, made, now, plain, runs, schedule, wait_for, wait_made};

fn trigger(client: &mut Client, followup: &Followup, more: &Value) -> Task {
    let mut params = json!({"followup": followup.id});
    params.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    client.get("followup.trigger", &params)
}

#[test]
fn what_passes_in_a_pause_is_missed() {
    let server = plain();
    let mut daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let followup =
        schedule(&mut client, &session, &json!({"every_ms": 1000}), &json!({"missed": "all", "grace_ms": HOUR}));
    wait_made(&mut client, &session, 1);
    let paused = act(&mut client, "followup.pause", &followup);
    assert_eq!((paused.state.as_str(), paused.next.len(), paused.reason.as_deref()), ("paused", 0, None));
    assert_eq!(act(&mut client, "followup.pause", &followup), paused, "a second time changes nothing");
    let (at, before) = (now(), made(&mut client, &session).len());
    daemon.kill9();
    daemon.restart();
    let mut client = daemon.client();
    wait::until("slots that pass", || (now() > at.plus_ms(2500)).then_some(()));
    assert_eq!(made(&mut client, &session).len(), before, "paused, over a restart too");
    let resumed = act(&mut client, "followup.resume", &followup);
    assert_eq!((resumed.state.as_str(), resumed.next.len()), ("active", 3));
    assert!(resumed.next[0] > at.plus_ms(2500), "{resumed:?}");
    assert!(resumed.missed >= 2, "{resumed:?}");
    wait_made(&mut client, &session, before + 1);
    act(&mut client, "followup.cancel", &followup);
    let rows = check(&daemon, &followup);
    let missed = rows.iter().filter(|row| row.state == RunState::Missed).count();
    assert_eq!(get(&mut client, &followup).missed, missed as u64, "{rows:?}");
    assert!(rows.windows(2).all(|pair| pair[0].slot.0 - pair[1].slot.0 == 1000), "no slot is left out: {rows:?}");
}

#[test]
fn any_number_of_runs_may_be_allowed() {
    let server = plain();
    let daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let followup = schedule(&mut client, &session, &json!({"after_ms": 3_600_000}), &json!({"max_runs": u64::MAX}));
    trigger(&mut client, &followup, &json!({}));
    let list: Value = client.get("followup.list", &json!({}));
    assert_eq!(list["followups"][0]["runs"], 1);
    act(&mut client, "followup.pause", &followup);
    assert_eq!(act(&mut client, "followup.resume", &followup).next.len(), 1);
}

#[test]
fn none_is_taken_that_would_fire_after_its_last_instant() {
    let server = plain();
    let daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    // Of ten that are spread over a day all but about one would fire after the hour.
    let at = json!({"every_ms": 86_400_000});
    let params = json!({"session": session, "content": "c", "trigger": at, "jitter_ms": 86_000_000,
        "until": now().plus_ms(86_400_000 + HOUR.cast_signed())});
    let made = (0..10).filter_map(|_| client.call("followup.schedule", &params).ok());
    let made: Vec<Followup> = made.map(|followup| serde_json::from_value(followup).expect("a follow-up")).collect();
    assert!(made.len() < 10 && made.iter().all(|it| it.next.iter().all(|next| Some(*next) <= it.until)), "{made:?}");
}

#[test]
fn what_has_ended_stays_so() {
    let server = plain();
    let daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let done = schedule(&mut client, &session, &json!({"after_ms": 1}), &json!({}));
    let done = wait_for(&mut client, &done, "done");
    let cancelled = schedule(&mut client, &session, &json!({"external": true}), &json!({}));
    let cancelled = act(&mut client, "followup.cancel", &cancelled);
    for followup in [done, cancelled] {
        let id = json!({"followup": followup.id});
        assert_eq!(client.refused("followup.resume", &id), -32005);
        assert_eq!(client.refused("followup.trigger", &id), -32005);
        assert_eq!(act(&mut client, "followup.pause", &followup), followup);
        assert_eq!(act(&mut client, "followup.cancel", &followup), followup);
    }
    let nothing = json!({"followup": "fup_00000000000000000000000000"});
    for method in ["pause", "resume", "trigger", "runs", "get", "cancel"] {
        assert_eq!(client.refused(&format!("followup.{method}"), &nothing), -32001, "{method}");
    }
}

#[test]
fn a_slot_that_passed_in_a_pause_does_not_fire_late() {
    let server = plain();
    let daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let followup = schedule(&mut client, &session, &json!({"after_ms": 300}), &json!({}));
    act(&mut client, "followup.pause", &followup);
    wait::until("the slot", || (now() > followup.next[0]).then_some(()));
    let resumed = act(&mut client, "followup.resume", &followup);
    assert_eq!((resumed.state.as_str(), resumed.runs, resumed.missed), ("done", 0, 1), "{resumed:?}");
    assert_eq!(runs(&mut client, &followup).len(), 1);
}

#[test]
fn a_run_out_of_turn() {
    let server = plain();
    let mut daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let followup =
        schedule(&mut client, &session, &json!({"cron": "0 0 1 1 *"}), &json!({"max_runs": 1, "name": "yearly"}));
    let task = trigger(&mut client, &followup, &json!({"content": "now", "idempotency_key": "k"}));
    assert_eq!((task.content.as_str(), task.origin.as_str(), task.replayed), ("now", "followup", false));
    daemon.kill9();
    daemon.restart();
    let mut client = daemon.client();
    let again = trigger(&mut client, &followup, &json!({"content": "now", "idempotency_key": "k"}));
    assert_eq!((again.id, again.replayed), (task.id.clone(), true));
    let other = json!({"followup": followup.id, "content": "other", "idempotency_key": "k"});
    assert_eq!(client.refused("followup.trigger", &other), -32002);
    let own = trigger(&mut client, &followup, &json!({}));
    assert_eq!(own.content, "f");
    let now = get(&mut client, &followup);
    // Neither its next slot nor its one run has been used up.
    assert_eq!((now.state.as_str(), now.runs, &now.next), ("active", 2, &followup.next), "{now:?}");
    assert_eq!(now.last.and_then(|last| last.task), Some(own.id));
    assert_eq!(check(&daemon, &followup).len(), 2);
    for content in [json!(""), json!(" \n")] {
        assert_eq!(client.refused("followup.trigger", &json!({"followup": followup.id, "content": content})), -32602);
    }
    let long = "x".repeat(1024 * 1024 + 1);
    assert_eq!(client.refused("followup.trigger", &json!({"followup": followup.id, "content": long})), -32008);
    act(&mut client, "followup.pause", &followup);
    let refused = client.call("followup.trigger", &json!({"followup": followup.id})).expect_err("it is paused");
    assert_eq!(refused.code, -32002);
    assert!(refused.data.hint.as_ref().is_some_and(|hint| hint.contains("followup resume")), "{refused:?}");
    client.get::<Value>("session.close", &json!({ "session": session }));
    assert_eq!(client.refused("followup.trigger", &json!({"followup": followup.id})), -32002);
    assert_eq!(client.refused("followup.resume", &json!({"followup": followup.id})), -32002);
}

#[test]
fn one_that_waits_for_a_call() {
    let server = plain();
    let mut daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let followup = schedule(&mut client, &session, &json!({"external": true}), &json!({"max_runs": 20}));
    assert_eq!((followup.state.as_str(), followup.next.len()), ("active", 0));
    let asked: Vec<u64> = (0..19)
        .map(|n| {
            let params = json!({"followup": followup.id, "content": format!("hook {n}")});
            client.begin("followup.trigger", &params).expect("a daemon")
        })
        .collect();
    for id in asked {
        client.finish(id).expect("a live daemon").expect("a task");
    }
    daemon.kill9();
    daemon.restart();
    let mut client = daemon.client();
    assert_eq!(check(&daemon, &followup).len(), 19, "many in one millisecond are many runs");
    assert_eq!(made(&mut client, &session).len(), 19);
    trigger(&mut client, &followup, &json!({}));
    assert_eq!(get(&mut client, &followup).state.as_str(), "done", "of this one calls are the turns");
    assert_eq!(client.refused("followup.runs", &json!({"followup": followup.id, "after": "x"})), -32602);
}
