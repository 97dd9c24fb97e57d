//! Ends of daemons and sessions, and what an agent may not have.

use nano_tests::sandboxes::Fault;

use super::*;

/// A command that leaves a mark, says that it is up, and ends once it is told to.
fn waiting() -> [(&'static str, Value); 1] {
    let command = "echo m >> marks; touch up; until [ -e go ]; do sleep 0.1; done; echo went";
    [("exec", json!({"command": command, "timeout": 300}))]
}

#[test]
fn a_daemon_that_is_told_to_end_during_boot_finds_the_computer() {
    for remote in both() {
        remote.fault(Fault::hold("POST", remote.create(), "slow").once());
        let mut world = World::new(remote);
        let task = world.submit(&[("exec", marking())]);
        wait::until("a sandbox", || (world.remote.sandboxes().len() == 1).then_some(()));
        assert_eq!(world.daemon.terminate().code(), Some(0));
        world.remote.open("slow");
        world.restart();
        let task = world.settled(&task);
        assert!(task.state.is_settled(), "{task:?}");
        assert_eq!(world.call("exec", json!({"command": "echo two"})), ("two".into(), true));
        assert!(world.remote.marks() <= 1);
        world.close();
        world.remote.wait_none();
    }
}

#[test]
fn a_daemon_that_is_told_to_end_during_a_command_doubles_nothing() {
    for remote in both() {
        let mut world = World::new(remote);
        world.boot();
        let task = world.submit(&waiting());
        world.remote.wait_file("up");
        assert_eq!(world.daemon.terminate().code(), Some(0));
        world.remote.wait_quiet();
        world.restart();
        assert_eq!(world.settled(&task).state, TaskState::Succeeded);
        assert_eq!((json!(world.last())["outcome"].as_str(), world.remote.marks()), (Some("stopped"), 1));
        assert_eq!(world.call("exec", marking()), ("marked".into(), true));
        assert_eq!((world.remote.marks(), events(&world.daemon, EventType::SessionBooted).len()), (2, 1));
    }
}

#[test]
fn a_daemon_that_dies_during_a_command_does_not_know_and_does_not_repeat() {
    for remote in both() {
        let mut world = World::new(remote);
        world.boot();
        let sandboxes = world.remote.sandboxes();
        let task = world.submit(&waiting());
        world.remote.wait_file("up");
        world.daemon.kill9();
        world.restart();
        assert_eq!(world.settled(&task).state, TaskState::Succeeded);
        assert_eq!((json!(world.last())["outcome"].as_str(), world.remote.marks()), (Some("unknown"), 1));
        assert_eq!(world.call("exec", marking()), ("marked".into(), true));
        assert_eq!((world.remote.sandboxes(), world.remote.marks()), (sandboxes, 2));
        world.close();
        world.remote.wait_none();
    }
}

#[test]
fn a_deleted_session_leaves_nothing() {
    for remote in both() {
        let mut world = World::new(remote);
        let task = world.submit(&waiting());
        wait::until("a sandbox", || (world.remote.sandboxes().len() == 1).then_some(()));
        world.remote.wait_file("up");
        assert_eq!(world.cancel(&task).state, TaskState::Cancelled);
        world.client.get::<Value>("session.delete", &json!({"session": world.session}));
        world.remote.wait_none();
    }
}

#[test]
fn programs_can_be_withheld_from_every_remote_computer() {
    for remote in both() {
        let section = remote.section();
        let mut world = World::with(remote, section, "skills = []\nenable_exec = false");
        for _ in ["before", "after"] {
            let offered = tools(&mut world.client, &world.session);
            assert!(!names(&offered).contains(&"exec") && !names(&offered).contains(&"python"), "{offered:?}");
            assert!(names(&offered).contains(&"upload_file"));
            let why = offered.withheld.iter().find(|one| one.name == "exec").expect("exec is withheld");
            assert_eq!(why.why, "enable_exec is off");
            world.boot();
        }
        for (name, arguments) in [("exec", marking()), ("python", json!({"code": "open('marks', 'w')"}))] {
            let (text, ok) = world.call(name, arguments);
            assert!(!ok && text.contains("enable_exec is off"), "{text}");
        }
        assert_eq!(world.remote.marks(), 0);
    }
    let server = ModelServer::script(Vec::new());
    let agent = "skills = []\nenable_exec = false".into();
    let daemon = Daemon::with(&server, Setup { agent, ..Setup::default() });
    let mut client = daemon.client();
    let boxlite = session(&daemon, &mut client, "boxlite");
    assert_eq!(names(&tools(&mut client, &boxlite)), ["upload_file", "download_file"]);
}

#[test]
fn an_agents_list_names_exactly_some_of_neos_tools() {
    let bay = Bay::start();
    let section = neo(&bay);
    let agent = "skills = []\ntools = [\"browser_exec\", \"exec\", \"get_execution_history\"]";
    let mut world = World::with(Remote::Neo(bay), section, agent);
    let offered = tools(&mut world.client, &world.session);
    assert_eq!(names(&offered), ["exec", "get_execution_history", "browser_exec"]);
    let (text, ok) = world.call("python", json!({"code": "1"}));
    assert!(!ok && text.contains("not in the agent's tools list"), "{text}");
    assert_eq!(world.exec("echo hello"), ("hello".into(), true));
}
