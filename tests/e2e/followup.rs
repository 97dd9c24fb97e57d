//! Follow-ups of the plain kinds: durable, once per slot, listed, cancelled, refused where they make no sense.

use std::collections::BTreeSet;
use std::time::{SystemTime, UNIX_EPOCH};

use nano_protocol::event::{Event, EventType};
use nano_protocol::followup::{Followup, Followups, NextTimes};
use nano_protocol::task::{Origin, Task};
use nano_protocol::time::Timestamp;
use nano_tests::client::Client;
use nano_tests::daemon::Daemon;
use nano_tests::model_server::{ModelServer, Turn};
use nano_tests::wait;
use serde_json::{Value, json};

fn plain() -> ModelServer {
    ModelServer::answering(|_, _| Some(Turn::text("done")))
}

fn in_ms(ms: i64) -> Timestamp {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970").as_millis();
    Timestamp(i64::try_from(now).expect("a clock before the year 292 million") + ms)
}

fn schedule(client: &mut Client, session: &str, trigger: &Value) -> Followup {
    client.get("followup.schedule", &json!({"session": session, "content": "f", "trigger": trigger}))
}

/// Waits until `count` tasks of follow-ups have been made and returns all of them.
fn fired(client: &mut Client, session: &str, count: usize) -> Vec<Task> {
    wait::until("tasks of a follow-up", || {
        let mut tasks = client.tasks(session);
        tasks.retain(|task| task.origin == Origin::Followup);
        (tasks.len() >= count).then_some(tasks)
    })
}

/// Checks that each slot was fired once, and that there are as many tasks as slots.
fn check_slots(daemon: &Daemon, session: &str, followup: &Followup) {
    let mut client = daemon.client();
    let now: Followup = client.get("followup.get", &json!({"followup": followup.id}));
    let is_fired = |event: &Event| event.kind == EventType::FollowupFired;
    let fired: Vec<Event> = wait::until("the events of all slots", || {
        let fired: Vec<Event> = daemon.history().into_iter().filter(is_fired).collect();
        (fired.len() as u64 >= now.runs).then_some(fired)
    });
    let slot = |event: &Event| event.data["slot"].as_str().expect("a slot").to_owned();
    let slots: BTreeSet<String> = fired.iter().map(slot).collect();
    assert_eq!(slots.len(), fired.len(), "a slot was fired twice: {fired:#?}");
    let tasks = client.tasks(session).into_iter().filter(|task| task.origin == Origin::Followup).count();
    assert_eq!((fired.len(), now.runs), (tasks, u64::try_from(tasks).expect("a count")), "{now:?}");
}

/// Makes a follow-up of one slot, lets it fire, over a restart if told so, and checks that it fired once and is done.
fn check_single(trigger: &Value, restart: bool) {
    let server = plain();
    let mut daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let followup = schedule(&mut client, &session, trigger);
    assert_eq!((followup.state.as_str(), followup.next.len()), ("active", 1), "{followup:?}");
    if restart {
        daemon.kill9();
        daemon.restart();
        client = daemon.client();
    }
    fired(&mut client, &session, 1);
    daemon.kill9();
    daemon.restart();
    let mut client = daemon.client();
    let mut now = || client.get::<Followup>("followup.get", &json!({"followup": followup.id}));
    let now = wait::until("the end of the follow-up", || Some(now()).filter(|now| now.state.as_str() == "done"));
    assert_eq!((now.runs, now.next.len()), (1, 0), "{now:?}");
    check_slots(&daemon, &session, &followup);
}

#[test]
fn after_a_delay() {
    check_single(&json!({"after_ms": 1}), false);
    check_single(&json!({"after_ms": 1500}), true);
}

#[test]
fn at_an_instant() {
    check_single(&json!({"at": in_ms(1200).to_string()}), false);
    check_single(&json!({"at": in_ms(2500).to_string()}), true);
}

/// Makes a recurring follow-up, lets it fire before and after a kill, and checks every slot.
fn check_recurring(trigger: &Value) {
    let server = plain();
    let mut daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let followup = schedule(&mut client, &session, trigger);
    assert_eq!(followup.next.len(), 3, "{followup:?}");
    fired(&mut client, &session, 2);
    daemon.kill9();
    daemon.restart();
    let mut client = daemon.client();
    let before = client.tasks(&session).len();
    fired(&mut client, &session, before + 2);
    let cancelled: Followup = client.get("followup.cancel", &json!({"followup": followup.id}));
    assert_eq!((cancelled.state.as_str(), cancelled.next.len()), ("cancelled", 0), "{cancelled:?}");
    check_slots(&daemon, &session, &followup);
}

#[test]
fn every_interval() {
    check_recurring(&json!({"every_ms": 1000}));
}

#[test]
fn by_cron() {
    check_recurring(&json!({"cron": "* * * * * *", "tz": "Europe/Oslo"}));
}

#[test]
fn a_busy_session_lets_it_wait() {
    let server = ModelServer::script(vec![Turn::text("one").gated("m1"), Turn::text("two")]);
    let daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    client.submit(&session, "p");
    server.wait_requests(1);
    schedule(&mut client, &session, &json!({"after_ms": 1}));
    let task = fired(&mut client, &session, 1).remove(0);
    assert_eq!(task.state.as_str(), "queued");
    server.open("m1");
    assert_eq!(client.settled(&task.id).state.as_str(), "succeeded");
}

#[test]
fn one_that_fell_due_while_the_daemon_was_down_fires_at_the_start() {
    let server = plain();
    let mut daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let followup = schedule(&mut client, &session, &json!({"after_ms": 300}));
    daemon.kill9();
    let due = followup.next[0];
    wait::until("the slot", || (in_ms(0) > due).then_some(()));
    daemon.restart();
    fired(&mut daemon.client(), &session, 1);
    check_slots(&daemon, &session, &followup);
}

#[test]
fn a_cancelled_one_never_fires() {
    let server = plain();
    let mut daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let gone = schedule(&mut client, &session, &json!({"after_ms": 700}));
    let kept = schedule(&mut client, &session, &json!({"after_ms": 900}));
    client.get::<Followup>("followup.cancel", &json!({"followup": gone.id}));
    daemon.kill9();
    daemon.restart();
    let mut client = daemon.client();
    fired(&mut client, &session, 1);
    let mut list = || client.get::<Followups>("followup.list", &json!({ "session": session }));
    let list = wait::until("the end of both", || Some(list()).filter(|list| list.followups[0].runs > 0));
    let found: Vec<_> = list.followups.iter().map(|one| (&one.id, one.state.as_str(), one.runs)).collect();
    assert_eq!(found, [(&kept.id, "done", 1), (&gone.id, "cancelled", 0)]);
}

#[test]
fn refusals() {
    let server = plain();
    let daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    for trigger in [
        json!({}),
        json!({"after_ms": 1, "every_ms": 1000}),
        json!({"every_ms": 999}),
        json!({"every_ms": 0}),
        json!({"at": in_ms(-60_000).to_string()}),
        json!({"at": "tomorrow"}),
        json!({"at": "2027-02-30T00:00:00Z"}),
        json!({"cron": "61 * * * *"}),
        json!({"cron": "* * *"}),
        json!({"cron": "0 0 31 2 *"}),
        json!({"cron": "0 0 * * *", "tz": "Mars/Olympus"}),
        json!({"cron": "0 0 * * *", "tz": "../../etc/passwd"}),
        json!({"soon": true}),
    ] {
        let params = json!({"session": session, "content": "f", "trigger": trigger});
        assert_eq!(client.refused("followup.schedule", &params), -32602, "{trigger}");
    }
    let list: Followups = client.get("followup.list", &json!({}));
    assert!(list.followups.is_empty(), "a refused follow-up was made: {list:?}");
    let params = json!({"session": "nobody", "content": "f", "trigger": {"after_ms": 1}});
    assert_eq!(client.refused("followup.schedule", &params), -32001);
}

#[test]
fn next_times_are_computed_and_nothing_is_stored() {
    let server = plain();
    let daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let mut check = |trigger: Value, from: &str, expected: &[&str]| {
        let params = json!({"trigger": trigger, "from": from, "count": expected.len()});
        let times: NextTimes = client.get("followup.next", &params);
        let times: Vec<_> = times.next.iter().map(Timestamp::to_string).collect();
        assert_eq!(times, expected, "{params}");
    };
    let oslo = |cron: &str| json!({"cron": cron, "tz": "Europe/Oslo"});
    let plain = ["2027-01-01T08:00:00.000Z", "2027-01-02T08:00:00.000Z", "2027-01-03T08:00:00.000Z"];
    check(oslo("0 9 * * *"), "2027-01-01T00:00:00Z", &plain);
    let gap = ["2027-03-27T01:30:00.000Z", "2027-03-28T01:00:00.000Z", "2027-03-29T00:30:00.000Z"];
    check(oslo("30 2 * * *"), "2027-03-27T00:00:00Z", &gap);
    let fold = ["2027-10-30T00:30:00.000Z", "2027-10-31T00:30:00.000Z", "2027-11-01T01:30:00.000Z"];
    check(oslo("30 2 * * *"), "2027-10-29T12:00:00Z", &fold);
    let hourly = ["2027-10-31T00:30:00.000Z", "2027-10-31T01:30:00.000Z", "2027-10-31T02:30:00.000Z"];
    check(oslo("30 * * * *"), "2027-10-31T00:00:00Z", &hourly);
    let list: Followups = client.get("followup.list", &json!({}));
    assert!(list.followups.is_empty(), "{list:?}");
}
