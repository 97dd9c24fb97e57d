//! What closing and deleting do to all below.

use super::*;

/// A parent, its child and that one's child, which is held.
fn three_generations() -> (ModelServer, Daemon, [String; 3]) {
    let server = obedient();
    let daemon = daemon(&server);
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let inner = order("-", &[json!({"content": "work held"})]);
    client.submit(&session, &order("-", &[json!({ "content": inner })]));
    let child = wait_children(&mut client, &session, 1).remove(0).id.0;
    let grandchild = wait_children(&mut client, &child, 1).remove(0).id.0;
    server.wait_requests(3);
    (server, daemon, [session, child, grandchild])
}

#[test]
fn closing_reaches_all_below() {
    let (_server, mut daemon, all) = three_generations();
    let mut client = daemon.client();
    client.get::<Value>("session.close", &json!({"session": all[0]}));
    for _ in 0..2 {
        for session in &all {
            let now: Session = client.get("session.get", &json!({ "session": session }));
            assert_eq!(now.state, SessionState::Closed);
            let tasks = client.tasks(session);
            assert!(tasks.len() == 1 && tasks[0].state == TaskState::Cancelled, "{tasks:?}");
        }
        client = restart(&mut daemon);
    }
    let closed = daemon.history().into_iter().filter(|event| event.kind == EventType::SessionClosed);
    let order: Vec<String> = closed.filter_map(|event| event.session).map(|session| session.0).collect();
    assert_eq!(order.iter().rev().collect::<Vec<_>>(), all.iter().collect::<Vec<_>>(), "from below");
}

#[test]
fn a_kill_in_the_midst_of_closing_leaves_nothing_open_below() {
    let mut random = Random::new(7);
    for _ in 0..8 {
        let (_server, mut daemon, all) = three_generations();
        let mut client = daemon.client();
        let pid = i32::try_from(daemon.pid()).expect("a process id");
        let delay = random.span(20);
        let killer = std::thread::spawn(move || {
            std::thread::park_timeout(delay);
            nano_tests::processes::signal(pid, Signal::KILL);
        });
        drop(client.try_call("session.close", &json!({"session": all[0]})));
        killer.join().expect("the killing thread");
        let mut client = restart(&mut daemon);
        let is_closed = |client: &mut Client, session: &String| {
            client.get::<Session>("session.get", &json!({ "session": session })).state == SessionState::Closed
        };
        if !is_closed(&mut client, &all[0]) {
            client.get::<Value>("session.close", &json!({"session": all[0]}));
        }
        wait::until("all to be closed", || all.iter().all(|session| is_closed(&mut client, session)).then_some(()));
    }
}

#[test]
fn deleting_reaches_all_below() {
    let (_server, mut daemon, all) = three_generations();
    let mut client = daemon.client();
    client.get::<Value>("session.delete", &json!({"session": all[0]}));
    for _ in 0..2 {
        for session in &all {
            assert_eq!(client.refused("session.get", &json!({ "session": session })), -32001);
        }
        client = restart(&mut daemon);
    }
}
