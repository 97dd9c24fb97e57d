#![expect(clippy::unwrap_used, reason = "tests")]

use std::cell::Cell;
use std::collections::HashMap;
use std::os::unix::net::UnixStream;

use super::*;

/// The daemon is 50, started by the service manager; 60 is a child that it had before.
const DAEMON: Daemon<'static> = Daemon { pid: 50, is_elder: &|pid| pid == 60 };

/// Process, parent, whether it is marked.
const TABLE: [(i32, i32, bool); 22] = [
    (1, 0, false),
    (50, 1, false),
    (60, 50, false),
    (61, 60, false),
    // Keeper, helper, shell, what that started, what had opened a session of its own.
    (51, 50, true),
    (52, 51, true),
    (53, 52, true),
    (54, 53, false),
    (55, 52, false),
    // Its keeper and helper were killed.
    (56, 50, false),
    (57, 56, false),
    // An earlier run left it.
    (70, 1, true),
    (71, 70, false),
    // People: a shell of theirs, one of cron whose parents are gone, one that the daemon's starter started.
    (80, 1, false),
    (81, 80, false),
    (82, 1, false),
    // From outside of the container.
    (90, 0, false),
    (91, 90, false),
    // Below another user's, which is not shown; below one that has ended.
    (95, 2000, false),
    (96, 3000, false),
    // Numbers that were used again.
    (98, 99, false),
    (99, 98, false),
];

fn seen(pid: i32) -> Seen {
    let table: HashMap<i32, _> = TABLE.into_iter().map(|(pid, parent, marked)| (pid, (parent, marked))).collect();
    match table.get(&pid) {
        Some((parent, marked)) => Seen::Process { parent: *parent, started: 7, marked: *marked },
        None if pid == 2000 => Seen::Hidden,
        None => Seen::Gone,
    }
}

#[test]
fn commands_are_told_from_everybody_else() {
    use Peer::{Command, Stranger, Unknown};
    for (pid, expected) in [
        (51, Command),
        (52, Command),
        (53, Command),
        (54, Command),
        (55, Command),
        (56, Command),
        (57, Command),
        (70, Command),
        (71, Command),
        (1, Stranger),
        (50, Stranger),
        (60, Stranger),
        (61, Stranger),
        (80, Stranger),
        (81, Stranger),
        (82, Stranger),
        (90, Stranger),
        (91, Stranger),
        (95, Stranger),
        (2000, Stranger),
        (96, Unknown),
        (3000, Unknown),
        (98, Unknown),
    ] {
        assert_eq!(settled(pid, seen, DAEMON), expected, "{pid}");
    }
}

#[test]
fn as_the_first_process_of_a_container_it_tells_them_apart_too() {
    let daemon = Daemon { pid: 1, is_elder: &|_| false };
    for (pid, expected) in [(81, Peer::Command), (91, Peer::Stranger), (1, Peer::Stranger)] {
        assert_eq!(settled(pid, seen, daemon), expected, "{pid}");
    }
}

/// A process whose parent ends while it is read: `views` are what one reading after the other sees.
fn changing(views: &[Seen]) -> Peer {
    let reading = Cell::new(0);
    let see = |pid| {
        if pid != 100 {
            return seen(pid);
        }
        let at = reading.replace(reading.get() + 1);
        *views.get(at).or(views.last()).unwrap()
    };
    settled(100, see, DAEMON)
}

#[test]
fn what_changes_is_read_again() {
    let below = |parent, started| Seen::Process { parent, started, marked: false };
    for (views, expected) in [
        // Its parent's number is a stranger's by now, then it has come to its helper.
        (&[below(80, 1), below(52, 1)][..], Peer::Command),
        (&[below(3000, 1), below(52, 1)], Peer::Command),
        (&[below(3000, 1), below(3000, 1), below(1, 1)], Peer::Stranger),
        // It has ended, and another one has its number.
        (&[below(52, 1), below(80, 2)], Peer::Stranger),
        (&[below(80, 1), Seen::Gone], Peer::Unknown),
        (&[Seen::Gone], Peer::Unknown),
        (&(0..40).map(|n| below(80, n)).collect::<Vec<_>>(), Peer::Unknown),
    ] {
        assert_eq!(changing(views), expected, "{views:?}");
    }
}

#[test]
fn a_real_socket_has_a_peer() {
    let (one, _other) = UnixStream::pair().unwrap();
    assert_eq!(of(one.as_fd(), None), Peer::Stranger, "this process itself");
}

#[test]
fn a_real_peer_that_has_ended_is_unknown() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let connect = "import socket,sys\ns = socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])";
    let mut child = std::process::Command::new("python3").args(["-c", connect]).arg(&path).spawn().unwrap();
    let (accepted, _) = listener.accept().unwrap();
    child.wait().unwrap();
    assert_eq!(of(accepted.as_fd(), None), Peer::Unknown);
}

#[test]
fn a_real_child_is_a_command() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let connect = "import socket,sys\ns = socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])\ns.recv(1)";
    let mut child = std::process::Command::new("python3").args(["-c", connect]).arg(&path).spawn().unwrap();
    let (accepted, _) = listener.accept().unwrap();
    assert_eq!(of(accepted.as_fd(), None), Peer::Command);
    drop(accepted);
    child.wait().unwrap();
}
