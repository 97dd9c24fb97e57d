//! Deaths at any moment: each end is told once.

use super::*;

/// Kills the daemon at random moments while children begin and end, and counts what their parents were told.
#[test]
fn whatever_dies_each_end_is_told_once() {
    let seed = std::env::var("NANO_KILL_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(20_270_301);
    eprintln!("repeat with NANO_KILL_SEED={seed}"); // Shown when the test fails.
    let mut random = Random::new(seed);
    let server = obedient();
    let mut daemon = daemon_with(&server, "max_turns = 1000");
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let orders = |wait: bool| json!({"content": "work -", "wait": wait});
    for _ in 0..KILLS {
        let order = order("-", &[orders(false), orders(true), orders(false)]);
        client.submit(&session, &order);
        std::thread::park_timeout(random.span(250));
        client = restart(&mut daemon);
    }
    settle_all(&mut client, &session);
    check_once(&mut client, &session);
}

/// Takes up what was interrupted and waits until nothing more happens in a session and below it.
fn settle_all(client: &mut Client, session: &str) {
    wait::until("the end of everything", || {
        let below = children(client, session);
        let all: Vec<String> = below.into_iter().map(|child| child.id.0).chain([session.to_owned()]).collect();
        let mut open = waiting(client, session);
        for task in all.iter().flat_map(|session| client.tasks(session)).collect::<Vec<_>>() {
            if task.state == TaskState::Interrupted {
                client.call("task.resume", &json!({"task": task.id})).ok();
            }
            open += usize::from(!matches!(task.state, TaskState::Succeeded));
        }
        // Each child is told of by a message, or by its call.
        let silent = children(client, session).iter().filter(|child| told_of(client, session, child) == 0).count();
        (open == 0 && silent == answered(client, session)).then_some(())
    });
}

/// Returns how many calls have told an answer.
fn answered(client: &mut Client, session: &str) -> usize {
    results(client, session).into_iter().filter(|result| result.content == "42").count()
}

fn check_once(client: &mut Client, session: &str) {
    let below = children(client, session);
    assert!(below.len() > 10, "{} children", below.len());
    let counts: Vec<usize> = below.iter().map(|child| told_of(client, session, child)).collect();
    assert!(counts.iter().all(|count| *count <= 1), "{counts:?}");
    let silent = counts.iter().filter(|count| **count == 0).count();
    assert_eq!(silent, answered(client, session), "each child without a message was answered by its call");
    for child in &below {
        assert_eq!(client.tasks(child.id.as_str()).len(), 1, "one task for {}", child.id);
    }
    rendered(client, session);
}
