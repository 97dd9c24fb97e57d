//! Calls that are stopped, run out of time, or lose the ground they stand on.

use super::*;

/// A command that says it is up, and then stays until it is killed.
const STAYS: &str = "touch up; sleep 1234 & sleep 1234";

fn staying(world: &mut World) -> Task {
    world.boot();
    let task = world.submit(&[("exec", json!({"command": STAYS, "timeout": 100}))]);
    world.remote.wait_file("up");
    task
}

#[test]
fn a_stopped_command_dies_with_all_it_started() {
    for remote in both() {
        let mut world = World::new(remote);
        let task = staying(&mut world);
        assert_eq!(world.cancel(&task).state, TaskState::Cancelled);
        world.remote.wait_quiet();
        assert_eq!(json!(world.last())["outcome"], "stopped");
        std::fs::remove_file(world.remote.folder().join("up")).expect("a mark");
        let task = staying(&mut world);
        assert_eq!(world.steer("interrupt")["accepted_as"], "interrupt");
        assert_eq!(world.settled(&task).state, TaskState::Succeeded);
        world.remote.wait_quiet();
        assert_eq!(json!(world.last())["outcome"], "stopped");
        assert_eq!(world.exec("echo on"), ("on".into(), true));
    }
}

#[test]
fn stopped_python_is_over_for_neo_and_told_of_for_a_ship() {
    for remote in both() {
        let mut world = World::new(remote);
        world.boot();
        let code = "import time; open('up', 'w'); time.sleep(5); open('late', 'w')";
        let task = world.submit(&[("python", json!({"code": code, "timeout": 20}))]);
        world.remote.wait_file("up");
        assert_eq!(world.cancel(&task).state, TaskState::Cancelled);
        let last = world.last();
        assert_eq!(json!(last)["outcome"], "stopped");
        match world.remote {
            Remote::Neo(_) => {
                assert!(last.content.contains("files are kept"), "{last:?}");
                wait::until("the end of Python", || processes::of(&world.remote.folder()).is_empty().then_some(()));
                assert!(!world.remote.folder().join("late").exists());
            }
            Remote::Ship(_) => assert!(last.content.contains("may still run"), "{last:?}"),
        }
        assert_eq!(world.call("python", json!({"code": "5"})), ("5".into(), true));
    }
}

#[test]
fn what_runs_in_the_background_ends_with_the_task() {
    for remote in both() {
        let mut world = World::new(remote);
        let (text, ok) = world.call("exec", json!({"command": STAYS, "background": true}));
        assert!(ok && text.contains("running in the background"), "{text}");
        world.remote.wait_quiet();
    }
}

#[test]
fn a_ship_whose_time_is_over_is_started_again_with_its_files() {
    let ships = Ships::start();
    let mut world = World::new(Remote::Ship(ships));
    assert_eq!(world.exec("echo kept > note"), ("(no output)".into(), true));
    let Remote::Ship(ships) = &world.remote else { return };
    let ship = ships.ships().remove(0);
    ships.expire(&ship);
    assert_eq!(world.exec("cat note"), ("kept".into(), true));
    assert_eq!(world.remote.sandboxes(), [ship]);
}

#[test]
fn a_ship_that_is_gone_is_replaced_once_and_the_model_is_told() {
    let ships = Ships::start();
    let mut world = World::new(Remote::Ship(ships));
    world.exec("echo kept > note");
    let Remote::Ship(ships) = &world.remote else { return };
    let ship = ships.ships().remove(0);
    ships.forget(&ship);
    let (text, ok) = world.exec("cat note");
    assert!(!ok && text.contains("No such file"), "{text}");
    let lost = events(&world.daemon, EventType::SandboxLost);
    assert_eq!(lost.iter().map(|event| event.data["sandbox"].clone()).collect::<Vec<_>>(), [json!(ship)]);
    let told = world.model.requests().pop().expect("a request")["messages"].to_string();
    assert!(told.contains("[sandbox] The sandbox of before is gone"), "{told}");
    assert_eq!(world.remote.sandboxes().len(), 1);
}

#[test]
fn compute_that_was_killed_comes_back() {
    for remote in both() {
        let mut world = World::new(remote);
        assert_eq!(world.exec("echo kept > note"), ("(no output)".into(), true));
        assert_eq!(world.call("python", json!({"code": "x = 1; x"})), ("1".into(), true));
        let sandboxes = world.remote.sandboxes();
        match &world.remote {
            Remote::Neo(bay) => bay.kill_runtime(&sandboxes[0]),
            Remote::Ship(ships) => ships.kill_runtime(&sandboxes[0]),
        }
        assert_eq!(world.exec("cat note"), ("kept".into(), true));
        let (text, ok) = world.call("python", json!({"code": "x"}));
        assert!(!ok && text.contains("NameError"), "{text}");
        assert_eq!(world.remote.sandboxes(), sandboxes);
    }
}

#[test]
fn a_command_whose_compute_is_killed_is_not_waited_for() {
    for remote in both() {
        let mut world = World::new(remote);
        let task = staying(&mut world);
        match &world.remote {
            Remote::Neo(bay) => bay.kill_runtime(&bay.sandboxes()[0]),
            Remote::Ship(ships) => ships.kill_runtime(&ships.ships()[0]),
        }
        assert_eq!(world.settled(&task).state, TaskState::Succeeded);
        let last = world.last();
        assert_eq!(last.ok, Some(false), "{last:?}");
        assert_eq!(world.exec("echo on"), ("on".into(), true));
    }
}

/// It fails in the midst of a task: the call that finds out is made again in a new one, since nothing was done.
#[test]
fn a_sandbox_that_fails_between_calls_is_replaced() {
    let bay = Bay::start();
    let section = neo(&bay);
    let model = ModelServer::script(vec![
        call("c1", "exec", json!({"command": "true"})),
        call("c2", "exec", marking()).gated("failed"),
        Turn::text("done"),
    ]);
    let mut world = World::scripted(model, Remote::Neo(bay), section, "skills = []");
    let task = world.client.submit(&world.session, "p");
    world.model.wait_requests(2);
    let old = world.remote.sandboxes().remove(0);
    let Remote::Neo(bay) = &world.remote else { return };
    bay.fail(&old);
    world.model.open("failed");
    assert_eq!(world.settled(&task).state, TaskState::Succeeded);
    assert_eq!((world.last().content.as_str(), world.last().ok), ("marked", Some(true)));
    wait::until("the end of the old one", || (!world.remote.sandboxes().contains(&old)).then_some(()));
    assert_eq!(world.remote.marks(), 1);
}

#[test]
fn a_key_that_is_refused_between_calls_is_named_and_not_shown() {
    for remote in both() {
        let (section, key) = (remote.section(), remote.key());
        let model = ModelServer::script(vec![
            call("c1", "exec", json!({"command": "echo kept > note"})),
            call("c2", "exec", json!({"command": "cat note"})).gated("changed"),
            call("c3", "python", json!({"code": "1"})),
            call("c4", "download_file", json!({"remote_path": "note"})),
            Turn::text("done"),
            call("c5", "exec", json!({"command": "cat note"})),
            Turn::text("done"),
        ]);
        let mut world = World::scripted(model, remote, section, "skills = []");
        let task = world.client.submit(&world.session, "p");
        world.model.wait_requests(2);
        let (sandboxes, fresh) = (world.remote.sandboxes(), world.remote.change_key());
        world.model.open("changed");
        assert_eq!(world.settled(&task).state, TaskState::Succeeded);
        let name = format!("booters.{}.access_token", world.remote.kind());
        let messages = transcript::read(&mut world.client, &world.session);
        for refused in messages.iter().filter(|one| one.role == Role::Tool).skip(1) {
            assert!(refused.ok == Some(false) && refused.content.contains(&name), "{refused:?}");
            assert!(!refused.content.contains(&key), "{refused:?}");
        }
        assert_eq!(world.daemon.terminate().code(), Some(0));
        let path = world.daemon.root().join("nanod.toml");
        let config = std::fs::read_to_string(&path).expect("the config").replace(&key, &fresh);
        std::fs::write(path, config).expect("the config");
        world.restart();
        world.client.run(&world.session, "r");
        assert_eq!((world.last().content, world.remote.sandboxes()), ("kept".into(), sandboxes));
    }
}

/// The server's clock is an hour ahead, so the end that it tells is later than it is.
#[test]
fn a_sandbox_is_given_time_whatever_the_servers_clock_says() {
    let bay = Bay::start();
    bay.advance(std::time::Duration::from_hours(1));
    let section = format!("{}ttl = \"4s\"\n", neo(&bay));
    let mut world = World::with(Remote::Neo(bay), section, "skills = []");
    let task = staying(&mut world);
    let Remote::Neo(bay) = &world.remote else { return };
    bay.wait_requests("POST", "/extend_ttl", 2);
    assert_eq!(bay.status(&bay.sandboxes()[0]), Some("ready"));
    assert_eq!(world.cancel(&task).state, TaskState::Cancelled);
}

/// Bay's sandboxes live for so short that the task outlives them unless they are given time.
#[test]
fn a_sandbox_is_given_time_while_a_task_runs() {
    for remote in both() {
        let section = format!("{}ttl = \"3s\"\n", remote.section());
        let mut world = World::with(remote, section, "skills = []");
        world.boot();
        let sandboxes = world.remote.sandboxes();
        let command = json!({"command": "until [ -e go ]; do sleep 0.1; done; echo went", "timeout": 100});
        let task = world.submit(&[("exec", command)]);
        match &world.remote {
            Remote::Neo(bay) => {
                bay.wait_requests("POST", "/keepalive", 3);
                let extended = bay.wait_requests("POST", "/extend_ttl", 2);
                let keys: Vec<_> = extended.iter().map(|one| one.header("idempotency-key")).collect();
                assert!(keys[0].is_some() && keys[0] != keys[1], "{keys:?}");
                assert_eq!(extended[0].json(), json!({"extend_by": 3}));
            }
            Remote::Ship(ships) => {
                ships.wait_requests("POST", "/extend-ttl", 5);
            }
        }
        std::fs::write(world.remote.folder().join("go"), "").expect("a file");
        assert_eq!(world.settled(&task).state, TaskState::Succeeded);
        assert_eq!((world.last().content, world.remote.sandboxes()), ("went".into(), sandboxes));
    }
}
