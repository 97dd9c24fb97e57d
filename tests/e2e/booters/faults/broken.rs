//! Replies that do not come, break off, or make no sense.

use nano_tests::sandboxes::Fault;

use super::*;

type Break = fn(&str, &str) -> Fault;

/// What becomes of a reply, and whether what was asked is done all the same.
const LOST: [(&str, Break, usize); 3] = [("reset", Fault::reset, 0), ("lose", Fault::lose, 1), ("cut", Fault::cut, 1)];

fn oversized(method: &str, path: &str) -> Fault {
    Fault::oversized(method, path, 17)
}

#[test]
fn a_command_whose_reply_is_lost_is_not_run_again() {
    for (how, fault, marks) in LOST {
        for remote in both() {
            let mut world = World::new(remote);
            world.boot();
            world.remote.fault(fault("POST", world.remote.exec()).once());
            let (text, ok) = world.call("exec", marking());
            // One that ran is found; of one that did not, nobody says that it did not.
            assert!(if marks == 1 { ok } else { !ok && text.contains("took effect") }, "{how}: {text}");
            world.remote.wait_quiet();
            assert_eq!(world.remote.marks(), marks, "{how}: {text}");
            assert_eq!(world.call("exec", marking()), ("marked".into(), true), "{how}");
            assert_eq!(world.remote.marks(), marks + 1, "{how}");
        }
    }
}

#[test]
fn a_program_whose_reply_is_lost_is_not_run_again() {
    let code = json!({"code": "print('m', file=open('marks', 'a'))"});
    for (how, fault, marks) in LOST {
        for remote in both() {
            let mut world = World::new(remote);
            world.boot();
            world.remote.fault(fault("POST", world.remote.python()).once());
            let (text, ok) = world.call("python", code.clone());
            assert!(!ok && text.contains("took effect"), "{how}: {text}");
            assert_eq!(world.remote.marks(), marks, "{how}: {text}");
        }
    }
}

/// A look at a command that runs may be lost: another one is made.
#[test]
fn a_command_is_watched_through_lost_replies() {
    for remote in both() {
        let mut world = World::new(remote);
        world.boot();
        let exec = world.remote.exec();
        for fault in [Fault::reset, Fault::cut, Fault::malformed] {
            world.remote.fault(fault("POST", exec).after(1).once());
        }
        // For longer than the start itself waits.
        let command = json!({"command": "echo m >> marks; sleep 21; echo over", "timeout": 60});
        assert_eq!(world.call("exec", command), ("over".into(), true));
        assert_eq!(world.remote.marks(), 1);
    }
}

#[test]
fn a_computer_whose_making_is_not_heard_of_is_made_once() {
    for (how, fault, _) in LOST {
        for remote in both() {
            remote.fault(fault("POST", remote.create()).once());
            let mut world = World::new(remote);
            assert_eq!(world.exec("echo hello"), ("hello".into(), true), "{how}");
            assert_eq!(world.remote.sandboxes().len(), 1, "{how}");
            world.close();
            world.remote.wait_none();
        }
    }
}

#[test]
fn replies_at_boot_that_make_no_sense_are_named_and_leave_nothing() {
    let breaks: [(Break, [&str; 2]); 2] =
        [(Fault::malformed, ["is not JSON", "its reply is no ship"]), (oversized, ["more than 16777216 bytes"; 2])];
    for (fault, says) in breaks {
        for (remote, says) in both().into_iter().zip(says) {
            for (method, path) in [("POST", remote.create()), ("GET", remote.one())] {
                remote.fault(fault(method, path).once());
            }
            let mut world = World::new(remote);
            for _ in ["create", "get"] {
                let why = no_computer(&world.run(&hello()));
                assert!(why.contains(says) && why.len() < 600, "{says}: {why}");
            }
            assert_eq!(world.exec("echo hello"), ("hello".into(), true));
            wait::until("the end of the others", || (world.remote.sandboxes().len() == 1).then_some(()));
            world.close();
            world.remote.wait_none();
        }
    }
}

#[test]
fn a_command_whose_reply_makes_no_sense_is_found() {
    for (fault, how) in [(Fault::malformed as Break, "malformed"), (oversized, "oversized")] {
        for remote in both() {
            let mut world = World::new(remote);
            world.boot();
            world.remote.fault(fault("POST", world.remote.exec()).once());
            assert_eq!(world.call("exec", marking()), ("marked".into(), true), "{how}");
            assert_eq!(world.remote.marks(), 1, "{how}");
        }
    }
}

#[test]
fn replies_to_a_program_that_make_no_sense_are_named() {
    for (fault, how) in [(Fault::malformed as Break, "malformed"), (oversized, "oversized")] {
        for remote in both() {
            let mut world = World::new(remote);
            world.boot();
            world.remote.fault(fault("POST", world.remote.python()).once());
            let (text, ok) = world.call("python", json!({"code": "1"}));
            assert!(!ok && text.len() < 600 && text.contains("took effect"), "{how}: {text}");
            assert_eq!(world.call("python", json!({"code": "2"})), ("2".into(), true), "{how}");
        }
    }
}

#[test]
fn an_upload_whose_reply_is_lost_arrives_or_says_so() {
    for (how, fault, arrived) in LOST {
        for remote in both() {
            let mut world = World::new(remote);
            world.boot();
            std::fs::write(world.daemon.workspace().join("note"), "text").expect("a file");
            world.remote.fault(fault("POST", world.remote.upload()).once());
            let (text, ok) = world.call("upload_file", json!({"local_path": "note"}));
            assert!(ok || text.contains("took effect"), "{how}: {text}");
            let there = std::fs::read_to_string(world.remote.folder().join("note")).unwrap_or_default();
            assert_eq!(there, if ok || arrived == 1 { "text" } else { "" }, "{how}");
            assert!(world.call("upload_file", json!({"local_path": "note"})).1);
        }
    }
}

#[test]
fn a_download_that_breaks_off_leaves_what_was_there() {
    for (how, fault, _) in LOST {
        for remote in both() {
            let mut world = World::new(remote);
            world.exec("head -c 1000000 /dev/zero > note");
            let place = world.daemon.workspace().join("note");
            std::fs::write(&place, "mine").expect("a file");
            world.remote.fault(fault("GET", world.remote.download()));
            let (text, ok) = world.call("download_file", json!({"remote_path": "note"}));
            assert!(!ok && text.contains("again"), "{how}: {text}");
            assert_eq!(std::fs::read_to_string(&place).expect("a file"), "mine", "{how}");
            world.remote.clear_faults();
            assert!(world.call("download_file", json!({"remote_path": "note"})).1);
            assert_eq!(std::fs::metadata(&place).expect("a file").len(), 1_000_000);
        }
    }
}

#[test]
fn a_download_without_an_end_is_given_up() {
    for remote in both() {
        let mut world = World::new(remote);
        world.exec("echo small > note");
        world.remote.fault(Fault::oversized("GET", world.remote.download(), 101).once());
        let (text, ok) = world.call("download_file", json!({"remote_path": "note"}));
        assert!(!ok && text.contains("100 MiB"), "{text}");
        assert!(!world.daemon.workspace().join("note").exists());
        assert!(world.call("download_file", json!({"remote_path": "note"})).1);
    }
}

#[test]
fn a_computer_whose_deletion_is_not_heard_of_is_gone() {
    for (_, fault, _) in LOST {
        for remote in both() {
            let mut world = World::new(remote);
            world.boot();
            world.remote.fault(fault("DELETE", world.remote.one()).once());
            world.close();
            world.remote.wait_none();
        }
    }
}
