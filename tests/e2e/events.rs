//! Events: replay by number without a gap or a double, and what is seen is stored.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use nano_protocol::event::{Event, EventType};
use nano_tests::client::Client;
use nano_tests::daemon::Daemon;
use nano_tests::model_server::{ModelServer, Turn};
use nano_tests::{transcript, wait};
use serde_json::{Value, json};

fn chatty() -> ModelServer {
    ModelServer::answering(|_, number| {
        Some(if number % 2 == 1 { Turn::exec(format!("c{number}"), "echo hi") } else { Turn::text("all done") })
    })
}

/// Reads every event that fits `params`, up to and with number `last`.
fn replay(daemon: &Daemon, params: &Value, last: Option<u64>) -> Vec<Event> {
    let mut client = daemon.client();
    client.subscribe(params);
    client.events_until("the newest event", |event| event.seq >= last)
}

fn numbers(events: &[Event]) -> Vec<u64> {
    events.iter().filter_map(|event| event.seq).collect()
}

#[test]
fn replay_has_no_gap_and_no_double() {
    let server = chatty();
    let mut daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let mut live = daemon.client();
    live.subscribe(&json!({"since_seq": 0}));
    client.run(&session, "p1");
    let is_end = |event: &Event| event.kind == EventType::TaskFinished;
    let mut seen = live.events_until("the end of p1", is_end);
    daemon.kill9();
    daemon.restart();
    let mut live = daemon.client();
    live.subscribe(&json!({"since_seq": seen.last().and_then(|event| event.seq)}));
    daemon.client().run(&session, "p2");
    seen.extend(live.events_until("the end of p2", is_end));

    let all = daemon.history();
    assert_eq!(numbers(&seen), numbers(&all));
    assert!(seen == all, "an event is another when it is replayed:\n{seen:#?}\n{all:#?}");
    let unique: BTreeSet<u64> = numbers(&all).into_iter().collect();
    assert_eq!(unique.into_iter().collect::<Vec<_>>(), numbers(&all), "numbers rise and none comes twice");
}

#[test]
fn every_number_is_a_place_to_go_on_from() {
    let server = chatty();
    let daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    client.run(&session, "p");
    let all = numbers(&daemon.history());
    for (at, since) in all.iter().enumerate().take(all.len() - 1) {
        let rest = replay(&daemon, &json!({"since_seq": since}), all.last().copied());
        assert_eq!(numbers(&rest), all[at + 1..], "since {since}");
    }
}

#[test]
fn filters() {
    let server = chatty();
    let daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let mine = daemon.session(&mut client);
    let other = daemon.session(&mut client);
    client.run(&other, "p");
    let task = client.run(&mine, "p");
    let is_end = |event: &&Event| event.kind == EventType::TaskFinished && event.task.as_ref() == Some(&task.id);
    let end = daemon.history().iter().find(is_end).and_then(|event| event.seq);
    let ends = json!({"since_seq": 0, "session": mine, "types": ["task.queued", "task.finished"]});
    let kinds: Vec<_> = replay(&daemon, &ends, end).into_iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [EventType::TaskQueued, EventType::TaskFinished]);
    let own = replay(&daemon, &json!({"since_seq": task.seq - 1, "task": task.id}), end);
    assert_eq!(own.first().map(|event| event.kind), Some(EventType::TaskQueued));
    assert!(own.iter().all(|event| event.task.as_ref() == Some(&task.id)), "{own:#?}");
}

#[test]
fn deltas_only_when_asked_for() {
    let server = chatty();
    let daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let [mut without, mut with] = [daemon.client(), daemon.client()];
    without.subscribe(&json!({ "session": session }));
    with.subscribe(&json!({"session": session, "deltas": true}));
    client.run(&session, "p");
    let is_end = |event: &Event| event.kind == EventType::TaskFinished;
    let durable = without.events_until("the end", is_end);
    assert!(durable.iter().all(|event| event.seq.is_some()), "{durable:#?}");
    let both = with.events_until("the end", is_end);
    assert!(both.iter().any(|event| event.kind == EventType::TextDelta && event.seq.is_none()), "{both:#?}");
    assert_eq!(numbers(&both), numbers(&durable));
}

#[test]
fn no_more_after_unsubscribe() {
    let server = chatty();
    let daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let mut watcher = daemon.client();
    let answer: Value = watcher.get("events.subscribe", &json!({ "session": session }));
    watcher.get::<Value>("events.unsubscribe", &json!({"subscription": answer["subscription"]}));
    client.run(&session, "p");
    watcher.subscribe(&json!({"session": session, "since_seq": 0, "types": ["session.created"]}));
    let first = watcher.next_event().expect("a live daemon");
    assert_eq!(first.kind, EventType::SessionCreated, "the first event is that of the second subscription");
}

#[test]
fn a_reader_that_never_reads_slows_nobody() {
    let server = ModelServer::answering(|_, _| Some(Turn::text("word ".repeat(20_000))));
    let daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let mut deaf = daemon.client();
    deaf.subscribe(&json!({"since_seq": 0, "deltas": true}));
    (0..5).for_each(|n| drop(client.run(&session, &format!("p{n}"))));
    let all = daemon.history();
    let ends = all.iter().filter(|event| event.kind == EventType::TaskFinished).count();
    assert_eq!(ends, 5);
    let last = all.last().and_then(|event| event.seq);
    let late = deaf.events_until("the newest event, or a gap", |event| event.seq == last);
    let gapless = numbers(&late) == numbers(&all);
    assert!(gapless || late.iter().any(|event| event.kind == EventType::Gap), "events are missing without a gap");
}

/// Restarts a daemon that keeps events for a second, after that second.
fn restart_and_forget(daemon: &mut Daemon) {
    let made = SystemTime::now();
    daemon.kill9();
    let config = daemon.root().join("nanod.toml");
    let text = std::fs::read_to_string(&config).expect("the config");
    std::fs::write(&config, text.replace("[daemon]\n", "[daemon]\nkeep_events = \"1s\"\n")).expect("a config file");
    let is_old = || made.elapsed().is_ok_and(|age| age > Duration::from_millis(1100));
    wait::until("the age of the events", || is_old().then_some(()));
    daemon.restart();
}

#[test]
fn old_events_go_and_leave_a_gap() {
    let server = chatty();
    let mut daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    client.run(&session, "p");
    let old = daemon.history().last().and_then(|event| event.seq).expect("a number");
    restart_and_forget(&mut daemon);
    let mut client = daemon.client();
    let task = client.submit(&session, "q");
    client.settled(&task.id);
    let first = || {
        let mut watcher = daemon.client();
        watcher.subscribe(&json!({"since_seq": 0}));
        let first = watcher.next_event().expect("a live daemon");
        (first.kind == EventType::Gap).then(|| (first, watcher.next_event().expect("a live daemon")))
    };
    let (gap, next) = wait::until("the end of the old events", first);
    assert_eq!((&gap.seq, &gap.data), (&None, &json!({"from": 1, "to": old})));
    assert_eq!((next.seq, next.kind), (Some(old + 1), EventType::TaskQueued));
    transcript::check_pairs(&transcript::read(&mut client, &session), false);
    assert_eq!(client.tasks(&session).len(), 2, "tasks and messages stay");
}

#[test]
fn a_gap_at_the_head_is_told_too() {
    let server = chatty();
    let mut daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    client.run(&session, "p");
    let old = daemon.history().last().and_then(|event| event.seq).expect("a number");
    restart_and_forget(&mut daemon);
    wait::until("the end of the old events", || daemon.log().contains("old events were removed").then_some(()));
    let mut watcher = daemon.client();
    watcher.subscribe(&json!({"since_seq": 0}));
    daemon.session(&mut daemon.client());
    let gap = watcher.next_event().expect("a live daemon");
    assert_eq!((gap.kind, &gap.data), (EventType::Gap, &json!({"from": 1, "to": old})), "{gap:?}");
    let next = watcher.next_event().expect("a live daemon");
    assert_eq!((next.seq, next.kind), (Some(old + 1), EventType::SessionCreated));
}

/// Returns the numbers that a reader was told of, as events or in gaps, in order.
fn told(event: &Event) -> std::ops::RangeInclusive<u64> {
    match event.seq {
        Some(seq) => seq..=seq,
        None => event.data["from"].as_u64().expect("from")..=event.data["to"].as_u64().expect("to"),
    }
}

#[test]
fn what_is_deleted_under_a_reader_is_a_gap() {
    let server = chatty();
    let daemon = Daemon::start(&server);
    let mut live = daemon.client();
    live.subscribe(&json!({"since_seq": 0}));
    let mut clients: Vec<_> = (0..4).map(|_| daemon.client()).collect();
    for _ in 0..50 {
        let made: Vec<String> = clients.iter_mut().map(|client| daemon.session(client)).collect();
        let delete = |(client, session)| Client::begin(client, "session.delete", &json!({ "session": session }));
        let under_way: Vec<_> = clients.iter_mut().zip(&made).map(delete).collect();
        for (client, id) in clients.iter_mut().zip(under_way) {
            client.finish(id.expect("a live daemon")).expect("a live daemon").expect("a session");
        }
    }
    daemon.session(&mut clients[0]);
    let last = clients[0].subscribe(&json!({}));
    let seen = live.events_until("the newest event", |event| event.seq == Some(last));
    let numbers: Vec<u64> = seen.iter().flat_map(told).collect();
    assert_eq!(numbers, (1..=last).collect::<Vec<_>>(), "each number is an event or in a gap, once");
}

#[test]
fn what_was_seen_is_stored() {
    let server = chatty();
    let mut daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let mut watcher = daemon.client();
    watcher.subscribe(&json!({"since_seq": 0}));
    client.submit(&session, "p");
    let seen = watcher.events_until("a result", |event| event.kind == EventType::ToolFinished);
    daemon.kill9();
    daemon.restart();
    let all = daemon.history();
    assert!(all.len() >= seen.len() && all[..seen.len()] == seen, "{seen:#?}\n{all:#?}");
}
