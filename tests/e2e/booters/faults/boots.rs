//! Computers that come late, or not at all.

use nano_protocol::session::SessionState;
use nano_tests::sandboxes::{AtLimit, Boot, Fault, Reply};

use super::*;

/// Holds the making of the computer, and waits for it with a task.
fn held(remote: Remote) -> (World, Task) {
    remote.fault(Fault::hold("POST", remote.create(), "slow"));
    let mut world = World::new(remote);
    let task = world.submit(&hello());
    world.remote.wait_requests("POST", world.remote.create(), 1);
    (world, task)
}

#[test]
fn a_slow_boot_leaves_the_session_answering() {
    for remote in both() {
        let (mut world, task) = held(remote);
        let told: Session = world.client.get("session.get", &json!({"session": world.session}));
        assert_eq!((told.state, told.booted), (SessionState::Running, false));
        assert_eq!(world.steer("note")["accepted_as"], "note");
        let second = world.submit(&hello());
        assert_eq!(world.cancel(&second).state, TaskState::Cancelled);
        assert!(tools(&mut world.client, &world.session).tools.len() >= 4);
        world.remote.open("slow");
        assert_eq!(world.settled(&task).state, TaskState::Succeeded);
        assert_eq!((world.last().content.as_str(), world.remote.sandboxes().len()), ("hello", 1));
        let told = world.model.requests().pop().expect("a request")["messages"].to_string();
        assert!(told.contains("look up"), "{told}");
    }
}

/// A look every three seconds, fifteen of them: longer than half a minute.
#[test]
fn a_boot_of_half_a_minute_is_waited_for() {
    let bay = Bay::start();
    bay.set_boot(Boot::Stalled { status: "starting", looks: 14 });
    let mut world = World::new(Remote::Neo(bay));
    assert_eq!(world.exec("echo hello"), ("hello".into(), true));
    assert!(world.remote.requests_to("GET", "/sandboxes/*").len() > 14);
}

#[test]
fn a_stop_during_boot_is_heard_at_once() {
    for remote in both() {
        let (mut world, task) = held(remote);
        assert_eq!(world.cancel(&task).state, TaskState::Cancelled);
        assert_eq!(json!(world.last())["outcome"], "stopped");
        world.remote.open("slow");
        assert_eq!(world.exec("echo two"), ("two".into(), true));
        assert_eq!(world.remote.sandboxes().len(), 1);
    }
    for remote in both() {
        let (mut world, task) = held(remote);
        assert_eq!(world.steer("interrupt")["accepted_as"], "interrupt");
        assert_eq!(world.settled(&task).state, TaskState::Succeeded);
        assert_eq!(json!(world.last())["outcome"], "stopped");
        world.remote.open("slow");
        assert_eq!(world.boot().state, SessionState::Idle);
        assert_eq!(world.remote.sandboxes().len(), 1);
    }
}

#[test]
fn a_session_that_ends_during_boot_leaves_nothing() {
    for method in ["session.close", "session.delete"] {
        for remote in both() {
            let (mut world, task) = held(remote);
            let ended = world.client.begin(method, &json!({"session": world.session})).expect("a living daemon");
            let mut other = world.daemon.client();
            wait::until("the end of the task", || {
                let told = other.try_call("task.get", &json!({"task": task.id}))?;
                told.map_or(Some(()), |told| (told["state"] == "cancelled").then_some(()))
            });
            world.remote.open("slow");
            world.client.finish(ended).expect("a living daemon").expect("an ended session");
            world.remote.wait_none();
        }
    }
}

/// Lets booting fail in this way, then lets it work.
fn check(remote: Remote, extra: String, says: &[&str], heal: impl FnOnce(&World)) {
    let mut world = World::with(remote, extra, "skills = []");
    let task = world.run(&hello());
    let boot = world.boot_fails();
    for word in says {
        assert!(no_computer(&task).contains(word), "{word}: {task:?}");
        assert!(boot.contains(word), "{word}: {boot}");
    }
    world.remote.wait_none();
    heal(&world);
    assert_eq!(world.exec("echo hello"), ("hello".into(), true));
    assert_eq!(world.remote.sandboxes().len(), 1);
    world.close();
    world.remote.wait_none();
}

#[test]
fn a_sandbox_that_fails_is_named_and_deleted() {
    let bay = Bay::start();
    bay.set_boot(Boot::Failed);
    let extra = neo(&bay);
    check(Remote::Neo(bay), extra, &["shipyard_neo cannot be booted", "failed", "log"], |world| {
        let Remote::Neo(bay) = &world.remote else { return };
        bay.set_boot(Boot::Warm);
    });
}

#[test]
fn a_profile_that_is_not_there_is_named_with_those_that_are() {
    let bay = Bay::start();
    let extra = format!("{}profile = \"nope\"\n", neo(&bay));
    let says = ["Invalid profile: nope", "booters.shipyard_neo.profile", "python-data, python-default"];
    check(Remote::Neo(bay), extra, &says, |world| {
        let Remote::Neo(bay) = &world.remote else { return };
        bay.force_profile(Some("python-data"));
    });
}

#[test]
fn a_server_that_fails_is_named() {
    for remote in both() {
        remote.fault(Fault::answer("POST", remote.create(), Reply::text(500, "text/plain", "Internal Server Error")));
        let extra = remote.section();
        let kind = remote.kind();
        check(remote, extra, &[&format!("{kind} cannot be booted"), "500"], |world| world.remote.clear_faults());
    }
}

#[test]
fn a_server_that_is_full_is_named() {
    let ships = Ships::start();
    ships.set_limit(0, AtLimit::Reject);
    let extra = shipyard(&ships);
    check(Remote::Ship(ships), extra, &["Maximum number of ships reached"], |world| {
        let Remote::Ship(ships) = &world.remote else { return };
        ships.set_limit(1, AtLimit::Reject);
    });
}

#[test]
fn a_server_that_says_wait_is_waited_for() {
    let bay = Bay::start();
    for (method, path) in [("POST", "/v1/sandboxes"), ("GET", "/sandboxes/*"), ("POST", "/shell/exec")] {
        bay.fault(Fault::not_ready(method, path, 20).times(5));
    }
    let mut world = World::new(Remote::Neo(bay));
    assert_eq!(world.exec("echo m >> marks; echo hello"), ("hello".into(), true));
    assert_eq!((world.remote.sandboxes().len(), world.remote.marks()), (1, 1));
}

#[test]
fn a_server_that_says_wait_for_ever_is_given_up() {
    let bay = Bay::start();
    bay.fault(Fault::not_ready("GET", "/sandboxes/*", 6_000));
    let mut world = World::new(Remote::Neo(bay));
    let why = no_computer(&world.run(&hello()));
    assert!(why.contains("session_not_ready") && why.contains("try again"), "{why}");
    let asked = world.remote.requests_to("GET", "/sandboxes/*").len();
    assert!((2..=5).contains(&asked), "{asked}");
    world.remote.clear_faults();
    assert_eq!(world.exec("echo hello"), ("hello".into(), true));
}

#[test]
fn a_call_that_waits_for_ever_can_be_stopped() {
    let bay = Bay::start();
    bay.fault(Fault::not_ready("POST", "/shell/exec", 30_000));
    let mut world = World::new(Remote::Neo(bay));
    let task = world.submit(&hello());
    world.remote.wait_requests("POST", "/shell/exec", 1);
    assert_eq!(world.cancel(&task).state, TaskState::Cancelled);
    world.remote.clear_faults();
    assert_eq!(world.exec("echo hello"), ("hello".into(), true));
}

#[test]
fn first_calls_that_race_boot_once() {
    let bay = Bay::start();
    bay.fault(Fault::hold("POST", "/v1/sandboxes", "slow"));
    let mut world = World::new(Remote::Neo(bay));
    let task = world.submit(&[("get_execution_history", json!({})), ("list_skill_candidates", json!({}))]);
    let (mut other, session) = (world.daemon.client(), json!({"session": world.session}));
    let others = [0; 2].map(|_| other.begin("session.boot", &session).expect("a living daemon"));
    world.remote.wait_requests("POST", "/v1/sandboxes", 1);
    world.remote.open("slow");
    assert_eq!(world.settled(&task).state, TaskState::Succeeded);
    for one in others {
        other.finish(one).expect("a living daemon").expect("a booted session");
    }
    let messages = transcript::read(&mut world.client, &world.session);
    assert!(messages.iter().filter(|one| one.role == Role::Tool).all(|one| one.ok == Some(true)), "{messages:?}");
    assert_eq!((world.remote.sandboxes().len(), world.remote.requests_to("POST", "/v1/sandboxes").len()), (1, 1));
}
