//! A line of a timer that is tried again: the same slot is the same task, whatever was killed between the tries.

use std::process::{Command, Output, Stdio};

use nano_protocol::id::TaskId;
use nano_protocol::task::TaskState;
use nano_tests::daemon::Daemon;
use nano_tests::model_server::{ModelServer, Turn};
use nano_tests::{processes, programs};
use rustix::process::Signal;
use serde_json::json;

/// Makes the line as the barest caller would run it: no terminal, no stdin at all, no environment but the socket.
fn line(daemon: &Daemon, slot: usize) -> Command {
    let script = r#"exec "$0" submit -s fix --idempotency-key "report-$1" "Write the report" <&-"#;
    let mut command = Command::new("setsid");
    command.args(["--wait", "env", "-i"]).arg(format!("NANO_SOCKET={}", daemon.socket().display()));
    command.args(["/bin/sh", "-c", script]).arg(programs::program("nanoctl")).arg(slot.to_string());
    command.current_dir(daemon.root()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Returns the id of the task that a line answered.
fn id(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout.clone()).expect("UTF-8");
    assert!(text.starts_with("tsk_") && text.lines().count() == 1 && text.ends_with('\n'), "{text}");
    text
}

#[test]
fn a_slot_is_one_task() {
    let server = ModelServer::answering(|_, _| Some(Turn::text("done")));
    let mut daemon = Daemon::start(&server);
    let session = { daemon.session_with(&mut daemon.client(), json!({"name": "fix"})) };
    for slot in 0..12 {
        let first = match slot % 3 {
            // Killed after the answer.
            0 => {
                let answer = id(&line(&daemon, slot).output().expect("a line"));
                daemon.kill9();
                daemon.restart();
                Some(answer)
            }
            // Killed while the line runs, which does not give up.
            1 => {
                let running = line(&daemon, slot).spawn().expect("a line");
                // The daemon is gone before, between or after the request and its answer.
                (0..slot % 4).for_each(|_| drop(daemon.client()));
                processes::signal(i32::try_from(daemon.pid()).expect("a process id"), Signal::KILL);
                assert!(!daemon.wait().success());
                daemon.restart();
                let output = running.wait_with_output().expect("its end");
                // One that had not reached the daemon yet says so at once.
                (output.status.code() != Some(3)).then(|| id(&output))
            }
            // Not there.
            _ => {
                daemon.kill9();
                assert_eq!(line(&daemon, slot).output().expect("a line").status.code(), Some(3));
                daemon.restart();
                None
            }
        };
        let again = id(&line(&daemon, slot).output().expect("a line"));
        assert_eq!(first.as_ref().unwrap_or(&again), &again, "slot {slot}");
        let task = TaskId(again.trim_end().to_owned());
        assert_eq!(daemon.client().settled(&task).state, TaskState::Succeeded);
        assert_eq!(id(&line(&daemon, slot).output().expect("a line")), again, "slot {slot}");
    }
    assert_eq!(daemon.client().tasks(&session).len(), 12);
}
