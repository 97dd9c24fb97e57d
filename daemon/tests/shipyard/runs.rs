//! Commands and programs in a ship.

use std::sync::atomic::{AtomicUsize, Ordering};

use nanod::sandbox::{Command, Ending, SandboxError};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::ends::lives;
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
async fn a_start_whose_reply_is_lost_is_found_by_a_look() {
    for background in [true, false] {
        let count = AtomicUsize::new(0);
        let server = Server::start(move |asked| {
            let is_start = asked.line.contains("/exec ") && count.fetch_add(1, Ordering::SeqCst) == 0;
            if is_start { Act::Lose } else { Act::Serve }
        });
        let sandbox = boot(&server).await;
        let text = if background { "echo $$ >pid; exec sleep 1234" } else { "echo $$ >pid; exit 3" };
        let report = run(sandbox.as_ref(), Command { background, ..command(text, 20) }).await.unwrap();
        assert_eq!(report.ending, if background { Ending::Running } else { Ending::Exited(3) });
        sandbox.shutdown().await;
        assert!(!lives(std::fs::read_to_string(server.path("pid")).unwrap().trim()));
    }
}

#[tokio::test]
async fn a_start_that_never_arrived_is_said_to_be_unknown_and_kept_from_starting() {
    let count = AtomicUsize::new(0);
    let server = Server::start(move |asked| {
        let is_start = asked.line.contains("/exec ") && count.fetch_add(1, Ordering::SeqCst) == 0;
        if is_start { Act::Hang } else { Act::Serve }
    });
    let sandbox = boot(&server).await;
    let why = run(sandbox.as_ref(), command("touch it", 20)).await.unwrap_err();
    assert!(why.to_string().contains("unknown whether"), "{why}");
    let late = server.asked("/exec ")[0].json()["payload"]["command"].as_str().unwrap().to_owned();
    let folder = server.path("");
    let ended = std::process::Command::new("sh").args(["-c", &late]).current_dir(folder).output().unwrap();
    assert!(ended.status.success() && !server.path("it").exists());
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
