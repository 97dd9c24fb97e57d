//! Debian's cron as the caller: its lines as the README has them, in a place of its own, so that nothing of the
//! machine is touched. Cron wakes once a minute, and no clock can be moved for it alone: this takes up to a minute.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nano_protocol::followup::Followup;
use nano_protocol::task::{Task, TaskState};
use nano_tests::daemon::Daemon;
use nano_tests::model_server::{ModelServer, Turn};
use nano_tests::{programs, skip, wait};
use serde_json::json;

/// Hides the machine's tables, then becomes cron; `$1` is the folder that holds ours.
const PRIVATE: &str = r#"
set -e
mount -t tmpfs -o mode=755 tmpfs /var/spool/cron
mount -t tmpfs -o mode=755 tmpfs /etc/cron.d
mount -t tmpfs -o mode=755 tmpfs /run
[ ! -e /etc/crontab ] || mount --bind /dev/null /etc/crontab
mkdir -m 1730 /var/spool/cron/crontabs
install -m 600 "$1/crontab" /var/spool/cron/crontabs/root
cd / && exec cron -f
"#;

struct Cron(Child);

impl Cron {
    fn start(root: &Path) -> Self {
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", PRIVATE, "sh"]).arg(root).env_clear();
        command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").stdin(Stdio::null());
        Self(command.spawn().expect("unshare"))
    }
}

impl Drop for Cron {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Returns why cron cannot be run here.
fn missing() -> Option<&'static str> {
    let works = |program: &str, args: &[&str]| {
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    match () {
        () if !Path::new("/usr/sbin/cron").exists() => Some("cron is not installed; Debian: apt install cron"),
        () if !rustix::process::geteuid().is_root() => Some("only root can give cron tables of its own"),
        () if !works("unshare", &["-m", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]) => {
            Some("this machine lets not even root mount in a namespace of its own")
        }
        () => None,
    }
}

#[test]
fn debian_cron_calls_nanoctl() {
    if let Some(why) = missing() {
        return skip::say(&format!("a real cron: {why}"));
    }
    let server = ModelServer::answering(|_, _| Some(Turn::text("done")));
    let daemon = Daemon::start(&server);
    let mut client = daemon.client();
    let session = daemon.session_with(&mut client, json!({"name": "fix"}));
    let hook = json!({"session": session, "content": "look around", "trigger": {"external": true}});
    let hook: Followup = client.get("followup.schedule", &hook);
    let nanoctl = programs::program("nanoctl").display().to_string();
    let (socket, ids) = (daemon.socket().display().to_string(), daemon.root().join("ids"));
    let (ids_path, hook) = (ids.display(), hook.id);
    let key = |name: &str| format!(r#"--idempotency-key "{name}-$(date +\%F-\%H-\%M)""#);
    let report = format!(r#"* * * * *  {nanoctl} submit -s fix {} "Write the report" >>{ids_path}"#, key("report"));
    let piped = format!("* * * * *  {nanoctl} submit -s fix {} -%two%lines", key("piped"));
    let fired = format!("* * * * *  {nanoctl} followup trigger {hook} {}", key("hook"));
    // Where coverage is measured, it says where to.
    let profile = std::env::var("LLVM_PROFILE_FILE").map(|path| format!("LLVM_PROFILE_FILE={path}\n"));
    let variables = format!("MAILTO=\"\"\nNANO_SOCKET={socket}\n{}", profile.unwrap_or_default());
    // The same line twice: one that is tried again.
    let table = format!("{variables}{report}\n{report}\n{piped}\n{fired}\n");
    std::fs::write(daemon.root().join("crontab"), table).expect("a crontab");
    let _cron = Cron::start(daemon.root());
    let answers = || std::fs::read_to_string(&ids).ok().filter(|ids| ids.lines().count() >= 2);
    let answers = wait::within(Duration::from_secs(75), "two answers to lines of a crontab", answers);
    let mut answers = answers.lines();
    assert!(answers.next().is_some_and(|id| id.starts_with("tsk_") && Some(id) == answers.next()), "one task");
    let done = |tasks: Vec<Task>| Some(tasks).filter(|tasks| tasks.len() >= 3);
    let tasks = wait::until("three tasks", || done(client.tasks(&session)));
    for content in ["Write the report", "two\nlines", "look around"] {
        let task = tasks.iter().find(|task| task.content == content).expect(content);
        assert_eq!(client.settled(&task.id).state, TaskState::Succeeded);
    }
}
