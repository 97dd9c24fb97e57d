//! How what runs in a ship is ended.

use nanod::sandbox::{Command, Ending};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::server::{Act, Server, say};
use super::{boot, command, run, until};

#[tokio::test]
async fn at_its_time_limit_all_of_it_ends() {
    let server = Server::working();
    let sandbox = boot(&server).await;
    let text = "echo begun; setsid sleep 1234 & sleep 1234 & echo $! $$ >pids; sleep 1234";
    let report = run(sandbox.as_ref(), command(text, 1)).await.unwrap();
    assert_eq!((report.ending, report.output.as_str(), report.left_running), (Ending::TimedOut, "begun\n", 0));
    for pid in std::fs::read_to_string(server.path("pids")).unwrap().split_whitespace() {
        assert!(!lives(pid), "{pid}");
    }
}

#[tokio::test]
async fn cancelled_all_of_it_ends() {
    let server = Server::working();
    let sandbox = boot(&server).await;
    let cancel = CancellationToken::new();
    let running = sandbox.run(command("echo $$ >pid; echo begun; sleep 1234", 600), &cancel);
    let pid = server.path("pid");
    let (report, ()) = tokio::join!(running, async {
        until(|| std::fs::read_to_string(&pid).is_ok_and(|text| text.ends_with('\n'))).await;
        cancel.cancel();
    });
    let report = report.unwrap();
    assert_eq!((report.ending, report.output.as_str(), report.left_running), (Ending::Cancelled, "begun\n", 0));
    assert!(!lives(std::fs::read_to_string(&pid).unwrap().trim()));
}

#[tokio::test]
async fn cancelled_before_it_began_it_never_begins() {
    let server = Server::working();
    let sandbox = boot(&server).await;
    let cancel = CancellationToken::new();
    cancel.cancel();
    let report = sandbox.run(command("touch it", 600), &cancel).await.unwrap();
    assert_eq!(report.ending, Ending::Cancelled);
    assert!(!server.path("it").exists());
}

#[tokio::test]
async fn what_runs_in_the_background_ends_with_its_task() {
    let server = Server::working();
    let sandbox = boot(&server).await;
    let background = Command { background: true, ..command("echo $$ >one; echo begun; sleep 1234", 20) };
    let report = run(sandbox.as_ref(), background).await.unwrap();
    assert_eq!((report.ending, report.left_running), (Ending::Running, 1));
    assert_eq!(std::fs::read_to_string(report.spill.unwrap()).unwrap(), "begun\n");
    let left = run(sandbox.as_ref(), command("sleep 1234 & echo $! >two", 20)).await.unwrap();
    assert_eq!((left.ending, left.left_running), (Ending::Exited(0), 1));
    let mut other = command("sleep 1234 & echo $! >three", 20);
    other.task.0 = "tsk_2".into();
    run(sandbox.as_ref(), other).await.unwrap();
    let pid = |name: &str| std::fs::read_to_string(server.path(name)).unwrap().trim().to_owned();
    let living = || ["one", "two", "three"].map(|name| lives(&pid(name)));
    assert_eq!(living(), [true, true, true]);
    sandbox.end_task(&command("", 1).task).await;
    assert_eq!(living(), [false, false, true]);
    sandbox.shutdown().await;
    assert_eq!(living(), [false, false, false]);
}

#[tokio::test]
async fn a_ship_that_is_gone_when_a_command_is_stopped_is_no_loss_but_an_end() {
    for ending in [Ending::Cancelled, Ending::TimedOut] {
        let server = Server::start(move |asked| {
            let is_stop = asked.line.contains("/exec ") && asked.json().to_string().contains("stop\\nlook");
            if is_stop { say(400, &json!({"detail": "Ship not found"})) } else { Act::Serve }
        });
        let sandbox = boot(&server).await;
        let cancel = CancellationToken::new();
        let seconds = if ending == Ending::TimedOut { 1 } else { 600 };
        let running = sandbox.run(command("touch up; sleep 30", seconds), &cancel);
        let (report, ()) = tokio::join!(running, async {
            until(|| server.path("up").exists()).await;
            if ending == Ending::Cancelled {
                cancel.cancel();
            }
        });
        let report = report.unwrap();
        assert_eq!((report.ending, report.left_running, report.spill), (ending, 0, None));
        assert!(report.output.contains("the sandbox went away"), "{}", report.output);
    }
}

#[tokio::test]
async fn what_a_dead_daemon_left_running_ends_with_the_first_command() {
    let server = Server::working();
    let sandbox = boot(&server).await;
    let left = |name: &str, mark: &str| {
        let text = format!("{mark} setsid sleep 1234 >/dev/null & echo $! >{name}");
        let ended = std::process::Command::new("sh").args(["-c", &text]).current_dir(server.path("")).status().unwrap();
        assert!(ended.success());
    };
    left("dead", "NANOD_RUN=$PWD:01KBB0000000000000000000AA");
    left("elsewhere", "NANOD_RUN=$PWD/x:01KBB0000000000000000000AA");
    left("other", "");
    let background = Command { background: true, ..command("echo $$ >own; exec sleep 1234", 20) };
    run(sandbox.as_ref(), background).await.unwrap();
    run(boot(&server).await.as_ref(), command("true", 20)).await.unwrap();
    let pid = |name: &str| std::fs::read_to_string(server.path(name)).unwrap().trim().to_owned();
    let living = ["dead", "elsewhere", "other", "own"].map(|name| lives(&pid(name)));
    sandbox.shutdown().await;
    for name in ["elsewhere", "other"] {
        std::process::Command::new("kill").arg(pid(name)).status().unwrap();
    }
    assert_eq!(living, [false, true, true, true]);
    let sweeps = server.asked("/exec ").iter().filter(|asked| asked.json().to_string().contains("\\nsweep\\n")).count();
    assert_eq!(sweeps, 2, "once for each time that the ship was taken up");
}

/// Tells whether a process is there and not only waits to be forgotten.
pub fn lives(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}
