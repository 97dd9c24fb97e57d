//! What takes more of the machine than it may: the daemon answers all the while, nothing is left, and the model is told.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nano_protocol::daemon::{Doctor, Status};
use nano_protocol::message::{Message, Role};
use nano_tests::client::Client;
use nano_tests::daemon::{Daemon, Setup};
use nano_tests::model_server::{ModelServer, Turn};
use nano_tests::{leaks, skip, transcript, wait};
use serde_json::json;

/// A machine that does other things as well may need so much longer than a second.
const PATIENCE: Duration = Duration::from_secs(10);

/// Asks for the daemon's status all the time: over a connection that is there, which is timed, and as a person would, with
/// nanoctl, whose own start takes a fork that has to wait for other forks.
struct Probe {
    ended: Arc<AtomicBool>,
    asking: JoinHandle<(usize, [Duration; 2])>,
}

impl Probe {
    fn start(daemon: &Daemon) -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        let (stop, root, socket) = (ended.clone(), daemon.root().to_owned(), daemon.socket());
        let asking = std::thread::spawn(move || {
            let (mut count, mut slowest) = (0, [Duration::ZERO; 2]);
            let mut client = Client::connect(&socket).expect("a connection");
            while !stop.load(Ordering::Relaxed) {
                let begun = Instant::now();
                status(&mut client);
                let answered = Instant::now();
                let ctl =
                    nano_tests::ctl::Ctl::new(&root).env("NANO_SOCKET", &socket).args(["status", "--timeout", "30s"]);
                ctl.run().expect_code(0);
                let [asked, typed] = slowest;
                slowest = [asked.max(answered - begun), typed.max(answered.elapsed())];
                count += 1;
                std::thread::park_timeout(Duration::from_millis(50));
            }
            (count, slowest)
        });
        Self { ended, asking }
    }

    fn end(self, what: &str) {
        self.ended.store(true, Ordering::Relaxed);
        let (count, [slowest, typed]) = self.asking.join().expect("every answer");
        eprintln!("{what}: {count} answers, the slowest after {slowest:?}; of nanoctl after {typed:?}");
        assert!(count > 0 && slowest < PATIENCE, "{what}: the slowest answer came after {slowest:?}");
    }
}

fn status(client: &mut Client) -> Status {
    client.get("daemon.status", &json!({}))
}

/// How many pipes the daemon has open: each command has one. Of files it keeps some for later.
fn pipes(daemon: &Daemon) -> usize {
    leaks::descriptors(daemon).iter().filter(|name| name.starts_with("pipe:")).count()
}

/// The folders of control groups of this daemon's commands.
fn groups(daemon: &Daemon) -> Vec<PathBuf> {
    let word = fs::read_to_string(daemon.state().join("instance")).expect("the daemon's mark");
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::from("/sys/fs/cgroup")];
    while let Some(folder) = folders.pop() {
        let below = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        folders.extend(below.filter(|path| path.is_dir() && !path.is_symlink()));
        let named = |path: &PathBuf| path.to_string_lossy().contains(word.trim());
        found.extend(folders.iter().filter(|path| named(path)).cloned());
    }
    found
}

/// Runs one command and returns what the model was told; checks that the daemon was there throughout and nothing is left.
fn run(daemon: &mut Daemon, what: &str) -> Message {
    let mut client = daemon.client();
    let session = daemon.session(&mut client);
    let pid = daemon.pid();
    let before = pipes(daemon);
    let probe = Probe::start(daemon);
    let task = client.submit(&session, "p");
    client.settled(&task.id);
    probe.end(what);
    assert_eq!(status(&mut client).pid, pid, "{what}");
    wait::until("the end of all that the command had started", || (daemon.left().len() == 1).then_some(()));
    wait::until("the end of its control groups", || groups(daemon).is_empty().then_some(()));
    wait::until("the end of its descriptors", || (pipes(daemon) <= before).then_some(()));
    let messages = transcript::read(&mut client, &session);
    messages.into_iter().find(|message| message.role == Role::Tool).expect("a result")
}

/// Tells whether control groups count this: `what` is `processes` or `memory`.
fn counts(daemon: &Daemon, what: &str) -> bool {
    let doctor: Doctor = daemon.client().get("daemon.doctor", &json!({}));
    doctor.checks.iter().any(|check| check.name == "control groups" && check.detail.contains(what))
}

#[test]
fn a_fork_bomb() {
    // In the shell's own process group, and away from it; the second is quick enough to be sure of reaching the limit.
    for (bomb, is_quick) in [
        ("bomb() { bomb | bomb & }; bomb; sleep 60", false),
        ("python3 -c 'import os\nwhile True:\n try: os.fork() or os.setsid()\n except OSError: pass'", true),
    ] {
        let server = ModelServer::script(vec![Turn::exec("c1", bomb), Turn::text("done")]);
        let setup = Setup { agent: "exec_timeout = \"20s\"".into(), ..Setup::default() };
        let mut daemon = Daemon::with(&server, setup);
        if !counts(&daemon, "processes") {
            return skip::say(
                "a fork bomb: no control group counts processes here, and it would take the machine down",
            );
        }
        let result = run(&mut daemon, bomb);
        assert!(result.content.contains("stopped after 20 s"), "{bomb}: {result:?}");
        assert!(!is_quick || result.content.contains("may have 1024"), "{bomb}: {result:?}");
    }
}

/// A group with little memory for a daemon.
struct Small(PathBuf);

impl Small {
    /// Has the daemon started in a group of its own; none where that is not allowed.
    fn around(daemon: &mut Daemon, bytes: u64) -> Option<Self> {
        let name = daemon.root().file_name().expect("a name").to_string_lossy().into_owned();
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let own = own.lines().find_map(|line| line.split_once(":memory:").map(|(_, path)| path.to_owned()))?;
        let group = Path::new("/sys/fs/cgroup/memory").join(own.trim_start_matches('/')).join(name);
        fs::create_dir(&group).ok()?;
        let this = Self(group);
        fs::write(this.0.join("memory.limit_in_bytes"), bytes.to_string()).ok()?;
        let script = format!("echo 0 > {}/cgroup.procs; exec \"$@\"", this.0.display());
        daemon.run_under(["/bin/sh", "-c", &script, "sh"]);
        Some(this)
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        wait::until("an empty group", || fs::remove_dir(&self.0).ok());
    }
}

#[test]
fn what_eats_all_memory() {
    for (hog, failed) in [
        ("tail /dev/zero", true),
        ("tail /dev/zero; echo on", false),
        ("setsid --wait python3 -c 'x = bytearray(10**9)'; exit 1", true),
    ] {
        let server = ModelServer::script(vec![Turn::exec("c1", hog), Turn::text("done")]);
        let mut daemon = Daemon::prepare(&server, Setup::default());
        let Some(small) = Small::around(&mut daemon, 512 << 20) else {
            return skip::say("what eats all memory: no control group can be made here that counts it");
        };
        daemon.restart();
        let result = run(&mut daemon, hog);
        assert!(result.content.contains("[killed: out of memory; commands may use 384 MiB]"), "{hog}: {result:?}");
        assert_eq!(result.ok, Some(!failed), "{hog}: {result:?}");
        drop((daemon, small));
    }
}

#[test]
fn two_gib_of_output() {
    let server = ModelServer::script(vec![Turn::exec("c1", "yes | head -c 2G; echo end"), Turn::text("done")]);
    let setup = Setup { agent: "exec_timeout = \"50s\"".into(), ..Setup::default() };
    let mut daemon = Daemon::with(&server, setup);
    let before = status(&mut daemon.client()).rss_bytes;
    let result = run(&mut daemon, "2 GiB of output");
    assert!(result.content.contains("bytes left out"), "{result:?}");
    let after = status(&mut daemon.client()).rss_bytes;
    assert!(after < before + (32 << 20), "from {before} to {after} bytes");
}

#[test]
fn a_disk_filler() {
    let server = ModelServer::script(vec![
        Turn::exec("c1", "cd small && dd if=/dev/zero of=fill bs=1M"),
        Turn::exec("c2", "cd small && rm fill && echo room"),
        Turn::text("done"),
    ]);
    let mut daemon = Daemon::prepare(&server, Setup::default());
    let small = daemon.workspace();
    let script = format!("mount -t tmpfs -o size=64m tmpfs {0} && mkdir {0}/small && exec \"$@\"", small.display());
    daemon.run_under(["unshare", "-m", "sh", "-c", &script, "sh"]);
    if daemon.try_start().is_err() {
        return skip::say("a disk filler: no disk can be mounted here");
    }
    let result = run(&mut daemon, "a disk filler");
    assert!(result.content.contains("a file may have") || result.content.contains("too large"), "{result:?}");
    assert!(!result.content.contains("No space left"), "{result:?}");
    daemon.ctl(["status"]).run().expect_code(0);
}

#[test]
fn what_commands_may_take_is_set() {
    let command = "ulimit -c; cat /proc/self/oom_score_adj; nice; ulimit -f; node -e 'console.log(6*7)' 2>&1; \
                   java -version 2>&1 | head -n 1; python3 -c 'print(6 * 7)'";
    let server = ModelServer::script(vec![Turn::exec("c1", command), Turn::text("done")]);
    let mut daemon = Daemon::with(&server, Setup::default());
    let result = run(&mut daemon, "what is set");
    let lines: Vec<_> = result.content.lines().collect();
    assert_eq!(lines[..2], ["0", "1000"], "{result:?}");
    assert!(lines[3].parse::<u64>().is_ok_and(|blocks| blocks > 0), "{result:?}");
    assert!(lines.contains(&"42"), "{result:?}");
}
