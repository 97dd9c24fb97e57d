//! Follow-ups that wait for what happens: ends of tasks, events, each once, over restarts, and never in a circle.

use nano_protocol::event::EventType;
use nano_protocol::followup::{Followup, RunState};
use nano_protocol::task::TaskState;
use nano_tests::client::Client;
use nano_tests::daemon::Daemon;
use nano_tests::wait;
use serde_json::{Value, json};

use crate::followup_kit::{act, check, get, holding, made, plain, runs, schedule, wait_for, wait_made};

fn on(client: &mut Client, session: &str, on: &Value) -> Followup {
    schedule(client, session, &json!({ "on": on }), &json!({"overlap": "queue"}))
}

#[test]
fn after_a_task() {
    let server = holding("p");
    let mut daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let task = client.submit(&session, "p");
    let other = daemon.session(&mut client);
    let followup = on(&mut client, &other, &json!({"task": task.id}));
    assert_eq!((followup.state.as_str(), followup.next.len()), ("active", 0));
    daemon.kill9();
    daemon.restart();
    server.open("p");
    let mut client = daemon.client();
    client.settled(&task.id);
    wait_made(&mut client, &other, 1);
    daemon.kill9();
    daemon.restart();
    let mut client = daemon.client();
    assert_eq!((get(&mut client, &followup).state.as_str(), made(&mut client, &other).len()), ("done", 1));
    // Who comes late gets it at once, as from `docker wait`.
    let late = on(&mut client, &other, &json!({"task": task.id}));
    assert_eq!((late.state.as_str(), late.runs), ("done", 1), "{late:?}");
    assert_eq!(check(&daemon, &late).len(), 1);
    let unknown = json!({"session": other, "content": "f", "trigger": {"on": {"task": "tsk_nobody"}}});
    assert_eq!(client.refused("followup.schedule", &unknown), -32001);
}

#[test]
fn a_task_that_ended_in_a_pause_is_missed() {
    let server = holding("p");
    let daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let task = client.submit(&session, "p");
    let followup = on(&mut client, &session, &json!({"task": task.id}));
    act(&mut client, "followup.pause", &followup);
    server.open("p");
    client.settled(&task.id);
    let resumed = act(&mut client, "followup.resume", &followup);
    assert_eq!((resumed.state.as_str(), resumed.runs, resumed.missed), ("done", 0, 1), "{resumed:?}");
}

#[test]
fn each_event_that_fits_once() {
    let server = nano_tests::model_server::ModelServer::answering(|request, _| {
        let fails = request["messages"]
            .as_array()
            .and_then(|all| all.last())
            .is_some_and(|last| last.to_string().contains("bad"));
        Some(nano_tests::model_server::Turn {
            status: fails.then_some(400),
            ..nano_tests::model_server::Turn::text("x")
        })
    });
    let mut daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let (session, other) = (daemon.session(&mut client), daemon.session(&mut client));
    let failed = on(&mut client, &session, &json!({"event": "task.finished", "match": {"task.state": "failed"}}));
    let elsewhere = json!({"event": "task.finished", "match": {"session": other, "task": {"content": "bad 1"}}});
    let elsewhere = on(&mut client, &session, &elsewhere);
    for n in 0..3 {
        for (session, word) in [(&session, "bad"), (&session, "good"), (&other, "bad")] {
            let task = client.submit(session, &format!("{word} {n}"));
            client.settled(&task.id);
        }
        daemon.kill9();
        daemon.restart();
        client = daemon.client();
    }
    wait::until("all of them", || (get(&mut client, &failed).runs >= 3).then_some(()));
    let fired = check(&daemon, &failed);
    assert_eq!(fired.len(), 3, "those of its own session, and not its own task's: {fired:?}");
    assert_eq!(check(&daemon, &elsewhere).len(), 1);
    assert_eq!(made(&mut client, &session).len(), 4);
}

#[test]
fn what_happens_in_a_pause_is_not_heard() {
    let server = plain();
    let daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let followup = on(&mut client, &session, &json!({"event": "task.finished", "match": {"task.origin": "user"}}));
    act(&mut client, "followup.pause", &followup);
    client.run(&session, "unheard");
    act(&mut client, "followup.resume", &followup);
    client.run(&session, "heard");
    wait_made(&mut client, &session, 1);
    client.run(&session, "heard");
    wait::until("both", || (runs(&mut client, &followup).len() == 2).then_some(()));
}

#[test]
fn a_circle_ends_by_itself() {
    let server = plain();
    let daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    for event in ["task.finished", "followup.fired", "message.added", "followup.missed"] {
        for _ in 0..2 {
            on(&mut client, &session, &json!({ "event": event }));
        }
    }
    let more = json!({"overlap": "skip"});
    let skipping: Vec<_> =
        (0..2).map(|_| schedule(&mut client, &session, &json!({"on": {"event": "followup.missed"}}), &more)).collect();
    client.run(&session, "p");
    let mut seen = (0, std::time::Instant::now());
    let head = wait::until("the end of the chain", || {
        let head = daemon.client().subscribe(&json!({}));
        if head != seen.0 {
            seen = (head, std::time::Instant::now());
        }
        (seen.1.elapsed() > std::time::Duration::from_secs(2)).then_some(head)
    });
    assert!(head < 20_000, "{head} events");
    assert!(skipping.iter().all(|one| get(&mut client, one).state.as_str() == "active"));
}

#[test]
fn a_chain_has_three_links() {
    let server = plain();
    let daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let sessions: Vec<String> = (0..5).map(|_| daemon.session(&mut client)).collect();
    let links: Vec<Followup> = sessions
        .windows(2)
        .map(|pair| on(&mut client, &pair[1], &json!({"event": "task.finished", "match": {"session": pair[0]}})))
        .collect();
    client.run(&sessions[0], "p");
    wait::until("the end of the chain", || runs(&mut client, &links[3]).first().cloned());
    let states: Vec<_> = links.iter().map(|one| runs(&mut client, one)[0].state).collect();
    assert_eq!(states, [RunState::Fired, RunState::Fired, RunState::Fired, RunState::Skipped]);
}

#[test]
fn it_ends_when_its_time_is_over() {
    let server = plain();
    let daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let until = crate::followup_kit::now().plus_ms(700).to_string();
    let bounded = schedule(&mut client, &session, &json!({"external": true}), &json!({ "until": until }));
    let counted = json!({"on": {"event": "task.finished", "match": {"task.origin": "user"}}});
    let counted = schedule(&mut client, &session, &counted, &json!({"max_runs": 2}));
    (0..4).for_each(|n| drop(client.run(&session, &format!("p{n}"))));
    assert_eq!(wait_for(&mut client, &counted, "done").runs, 2);
    assert_eq!(wait_for(&mut client, &bounded, "done").runs, 0);
}

#[test]
fn refusals() {
    let server = plain();
    let daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    for (on, says) in [
        (json!({}), "give one of task, event, file"),
        (json!({"event": "task.finish"}), "task.finished"),
        (json!({"event": "text.delta"}), "not durable"),
        (json!({"event": "gap"}), "not durable"),
        (json!({"event": "task.finished", "file": "x"}), "exclude"),
        (json!({"file": "../x"}), "leads out"),
        (json!({"file": "/etc/x"}), "absolute"),
        (json!({"file": ""}), "empty"),
        (json!({"task": "t", "match": {}}), "match"),
        (json!({"event": "task.finished", "matches": {}}), "matches"),
    ] {
        let params = json!({"session": session, "content": "f", "trigger": {"on": on}});
        let error = client.call("followup.schedule", &params).expect_err("a refusal");
        assert_eq!(error.code, -32602, "{params}");
        assert!(error.message.contains(says), "{params}: {error:?}");
    }
    let foreign = json!({"event": "task.finished", "match": {"session": "nobody"}});
    let params = json!({"session": session, "content": "f", "trigger": {"on": foreign}});
    assert_eq!(client.refused("followup.schedule", &params), -32001);
}

#[test]
fn a_full_session_hears_it_when_there_is_room() {
    let server = holding("w0");
    let daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let (full, other) = (daemon.session(&mut client), daemon.session(&mut client));
    let heard = on(&mut client, &full, &json!({"event": "task.finished", "match": {"session": other}}));
    client.submit(&full, "w0");
    server.wait_requests(1);
    let refused =
        |client: &mut Client| client.call("task.submit", &json!({"session": full, "content": "more"})).is_err();
    wait::until("a full queue", || refused(&mut client).then_some(()));
    let before = daemon.history().iter().filter(|event| event.kind == EventType::FollowupFired).count();
    client.run(&other, "a");
    client.run(&other, "b");
    assert_eq!((before, get(&mut client, &heard).runs), (0, 0));
    server.open("w0");
    wait::until("both", || (get(&mut client, &heard).runs == 2).then_some(()));
    assert_eq!(check(&daemon, &heard).len(), 2);
    let tasks = made(&mut client, &full);
    assert!(tasks.iter().all(|task| client.settled(&task.id).state == TaskState::Succeeded));
}
