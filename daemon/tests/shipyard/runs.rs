//! Commands and programs in a ship.

use std::sync::atomic::{AtomicUsize, Ordering};

use nanod::sandbox::{Command, Ending, SandboxError};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::server::{Act, Server, TOKEN, say};
use super::{boot, command, program, run, until};

/// A server that does this with commands.
pub fn failing(act: Act) -> Server {
    Server::start(move |asked| if asked.line.contains("/exec ") { act.clone() } else { Act::Serve })
}

#[tokio::test]
async fn the_envelope_is_unwrapped_and_the_status_told() {
    let server = Server::working();
    let sandbox = boot(&server).await;
    for (text, ending, output) in [
        ("echo hello; exit 3", Ending::Exited(3), "hello\n"),
        ("echo err >&2; echo out", Ending::Exited(0), "err\nout\n"),
        ("", Ending::Exited(0), ""),
        ("# nothing", Ending::Exited(0), ""),
        ("printf '  a\\n\\n'", Ending::Exited(0), "  a\n\n"),
        ("printf 'ä\\377\\033[31mx'", Ending::Exited(0), "ä\u{fffd}x"),
        ("echo \"it's $((1 + 2)) $#\" '$HOME'", Ending::Exited(0), "it's 3 0 $HOME\n"),
        ("cat <<'END'\na'b\nEND\ncat", Ending::Exited(0), "a'b\n"),
        ("x() { echo f; }\nx", Ending::Exited(0), "f\n"),
        ("(", Ending::Exited(2), ""),
        ("kill -9 $$", Ending::Exited(137), ""),
    ] {
        let report = run(sandbox.as_ref(), command(text, 20)).await.unwrap();
        // How a shell complains is its own affair.
        let said = if matches!(text, "(" | "kill -9 $$") { "" } else { &report.output };
        assert_eq!((report.ending, said), (ending, output), "{text}");
        assert_eq!((report.left_running, report.spill), (0, None), "{text}");
    }
}

#[tokio::test]
async fn a_folder_may_be_named() {
    let server = Server::working();
    std::fs::create_dir_all(server.path("a b/-c")).unwrap();
    let sandbox = boot(&server).await;
    let absolute = server.path("a b");
    for (cwd, expected) in [("a b", "a b"), ("a b/-c", "a b/-c"), (absolute.to_str().unwrap(), "a b")] {
        let report = run(sandbox.as_ref(), Command { cwd: Some(cwd.into()), ..command("pwd", 20) }).await.unwrap();
        assert_eq!(report.output.trim_end(), server.path(expected).to_str().unwrap());
    }
    for cwd in ["nowhere", "-", "$HOME", "/host/workspace"] {
        let asked = Command { cwd: Some(cwd.into()), ..command("pwd", 20) };
        let why = run(sandbox.as_ref(), asked).await.unwrap_err().to_string();
        assert!(why.contains("there is no folder") && why.contains(cwd), "{why}");
    }
}

#[tokio::test]
async fn a_long_output_keeps_head_and_tail_and_lies_whole_in_the_sandbox() {
    let server = Server::working();
    let sandbox = boot(&server).await;
    let report = run(sandbox.as_ref(), command("seq 1 200000", 20)).await.unwrap();
    let spill = report.spill.unwrap();
    assert!(report.output.starts_with("1\n2\n") && report.output.ends_with("199999\n200000\n"));
    assert!(report.output.contains(spill.to_str().unwrap()) && report.output.len() < 60_000);
    assert_eq!(std::fs::read_to_string(&spill).unwrap().lines().count(), 200_000);
    run(sandbox.as_ref(), command("true", 20)).await.unwrap();
    run(sandbox.as_ref(), command("true", 20)).await.unwrap();
    assert!(spill.exists());
    assert_eq!(std::fs::read_dir(server.path(".nanod/jobs")).unwrap().count(), 2, "those before are gone");
}

#[tokio::test]
async fn bug_19_a_command_may_be_longer_than_an_argument() {
    let server = Server::working();
    let sandbox = boot(&server).await;
    let body = "it's ä line\n".repeat(20_000);
    let text = format!("cat >big <<'END'\n{body}END\nwc -c <big");
    let report = run(sandbox.as_ref(), command(&text, 20)).await.unwrap();
    assert_eq!(report.output.trim(), body.len().to_string());
    assert_eq!(std::fs::read_to_string(server.path("big")).unwrap(), body);
}

#[tokio::test]
async fn bug_16_a_long_timeout_is_kept() {
    let server = Server::working();
    let sandbox = boot(&server).await;
    let path = server.path("go");
    let waits = format!("until [ -e '{}' ]; do sleep 0.1; done; echo went", path.display());
    let cancel = CancellationToken::new();
    let running = sandbox.run(command(&waits, 600), &cancel);
    let (report, ()) = tokio::join!(running, async {
        until(|| !server.asked("/exec ").is_empty()).await;
        std::fs::write(&path, "").unwrap();
    });
    let report = report.unwrap();
    assert_eq!((report.ending, report.output.as_str()), (Ending::Exited(0), "went\n"));
    // No request asks to be waited for longer than the server waits, whatever the command may take.
    let limits = server.asked("/exec ").iter().map(|asked| asked.json()["payload"]["timeout"].as_u64().unwrap()).max();
    assert!(limits.unwrap() < 30);
}

#[tokio::test]
async fn bug_16_a_command_outlives_the_requests_that_watch_it() {
    let count = AtomicUsize::new(0);
    let server = Server::start(move |asked| match asked.line.contains("/exec ") {
        true if count.fetch_add(1, Ordering::SeqCst) < 3 => Act::GiveUp,
        true => Act::Hurry,
        false => Act::Serve,
    });
    let sandbox = boot(&server).await;
    let report = run(sandbox.as_ref(), command("sleep 2; echo done", 60)).await.unwrap();
    assert_eq!((report.ending, report.output.as_str()), (Ending::Exited(0), "done\n"));
    let served = failing(Act::GiveUp);
    let sandbox = boot(&served).await;
    let why = run(sandbox.as_ref(), command("sleep 1234", 60)).await.unwrap_err().to_string();
    assert!(why.contains("does not wait for commands"), "{why}");
}

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
async fn in_the_background_a_command_that_fails_at_once_is_seen() {
    let server = Server::working();
    let sandbox = boot(&server).await;
    let background = Command { background: true, ..command("echo no; exit 7", 20) };
    let report = run(sandbox.as_ref(), background).await.unwrap();
    assert_eq!((report.ending, report.output.as_str(), report.left_running), (Ending::Exited(7), "no\n", 0));
}

#[tokio::test]
async fn a_ship_that_is_gone_is_lost_and_nothing_was_run() {
    for detail in ["Ship not found or not running", "Session does not have access to this ship", "Ship not found"] {
        let server = failing(say(400, &json!({"detail": detail})));
        let sandbox = boot(&server).await;
        for asked in [command("touch it", 20), program("1", 20)] {
            let lost = run(sandbox.as_ref(), asked).await.unwrap_err();
            assert!(matches!(lost, SandboxError::Lost { .. }), "{lost:?}");
        }
    }
}

#[tokio::test]
async fn a_ship_that_goes_while_a_command_runs_is_not_simply_lost() {
    let count = AtomicUsize::new(0);
    let server = Server::start(move |asked| match asked.line.contains("/exec ") {
        true if count.fetch_add(1, Ordering::SeqCst) > 0 => say(400, &json!({"detail": "Ship not found"})),
        true => Act::Hurry,
        false => Act::Serve,
    });
    let sandbox = boot(&server).await;
    let why = run(sandbox.as_ref(), command("sleep 5", 60)).await.unwrap_err();
    assert!(matches!(&why, SandboxError::Failed(text) if text.contains("unknown how far")), "{why:?}");
}

#[tokio::test]
async fn replies_that_are_none_are_words() {
    let huge = json!({"success": true, "data": {"stdout": "x".repeat(17 << 20), "return_code": 0}}).to_string();
    for (act, expected) in [
        (Act::Hang, "unknown whether"),
        (Act::Lose, "unknown whether"),
        (Act::Say(200, "{\"success\": tru".into()), "makes no sense; it is unknown whether"),
        (Act::Say(200, "{}".into()), "makes no sense"),
        (say(200, &json!({"success": true, "data": null})), "makes no sense"),
        (Act::Say(200, huge), "unknown whether"),
        (say(200, &json!({"success": false, "data": null, "error": "disk full"})), "refused: disk full"),
        (say(400, &json!({"detail": "Ship returned 404: {}"})), "400: Ship returned 404"),
        (say(401, &json!({"detail": format!("no {TOKEN}")})), "access_token"),
        (Act::Say(502, "<html>".into()), "unknown whether"),
        (Act::Send(307, "http://127.0.0.1:9/".into()), "redirects"),
        (Act::Say(200, "<html>".into()), "makes no sense"),
    ] {
        let server = failing(act);
        let sandbox = boot(&server).await;
        for asked in [command("true", 20), program("1", 20)] {
            let why = run(sandbox.as_ref(), asked).await.unwrap_err();
            assert!(matches!(&why, SandboxError::Failed(text) if text.contains(expected)), "{expected}: {why:?}");
            assert!(!format!("{why:?}").contains(TOKEN));
        }
    }
}

#[tokio::test]
async fn a_start_whose_reply_is_lost_leaves_nothing_running() {
    let count = AtomicUsize::new(0);
    let server = Server::start(move |asked| {
        let is_start = asked.line.contains("/exec ") && count.fetch_add(1, Ordering::SeqCst) == 0;
        if is_start { Act::Lose } else { Act::Serve }
    });
    let sandbox = boot(&server).await;
    let text = "echo $$ >pid; exec sleep 1234";
    let why = run(sandbox.as_ref(), Command { background: true, ..command(text, 20) }).await.unwrap_err();
    assert!(why.to_string().contains("unknown whether"), "{why}");
    assert!(!lives(std::fs::read_to_string(server.path("pid")).unwrap().trim()));
}

#[tokio::test]
async fn a_shell_that_does_not_work_is_words() {
    for (data, expected) in [
        (json!({"success": false, "return_code": -1, "error": "403: outside"}), "403: outside"),
        (json!({"success": false, "return_code": 127, "stdout": "", "stderr": "sh: not found"}), "sh: not found"),
        (json!({"success": true, "return_code": null, "stdout": ""}), "does not say why"),
    ] {
        let server = failing(say(200, &json!({"success": true, "data": data, "error": null})));
        let sandbox = boot(&server).await;
        let why = run(sandbox.as_ref(), command("true", 20)).await.unwrap_err().to_string();
        assert!(why.contains(expected), "{why}");
    }
}

/// Tells whether a process is there and not only waits to be forgotten.
fn lives(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}
