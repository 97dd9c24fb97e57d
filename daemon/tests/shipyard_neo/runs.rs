//! Programs and files in a sandbox that serves.

use std::io::{Read, Seek, Write};
use std::time::Duration;

use nanod::sandbox::{Ending, SandboxError};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::records::envelope;
use super::server::{Act, Server, say};
use super::{Session, boot, command, program, run, until};

#[tokio::test]
async fn commands_end_as_they_end() {
    let server = Server::working();
    let sandbox = boot(&server).await;
    for (text, ending, output) in [
        ("echo hi", Ending::Exited(0), "hi\n"),
        ("echo out; echo err >&2; exit 3", Ending::Exited(3), "out\nerr\n"),
        ("printf ''", Ending::Exited(0), ""),
        ("exit 127", Ending::Exited(127), ""),
    ] {
        let report = run(sandbox.as_ref(), command(text, 20)).await.unwrap();
        assert_eq!((report.ending, report.output.as_str()), (ending, output), "{text}");
    }
}

#[tokio::test]
async fn bug_16_the_time_limit_is_the_one_that_was_asked_for() {
    let server = Server::working();
    let sandbox = boot(&server).await;
    let report = run(sandbox.as_ref(), command("echo so far; sleep 60", 1)).await.unwrap();
    assert_eq!((report.ending, report.output.as_str()), (Ending::TimedOut, "so far\n"));
    for (seconds, expected) in [(1, 1), (300, 300), (600, 300)] {
        run(sandbox.as_ref(), program("1", seconds)).await.unwrap();
        assert_eq!(server.asked("python/exec").last().unwrap().json()["timeout"], expected);
    }
}

/// Waits until the process that wrote its number there is gone.
async fn gone(server: &Server) {
    let number = std::fs::read_to_string(server.path("number")).unwrap();
    let place = std::path::PathBuf::from("/proc").join(number.trim());
    until(|| std::fs::read_to_string(place.join("stat")).map_or(true, |stat| stat.contains(") Z "))).await;
}

#[tokio::test]
async fn what_runs_in_the_background_ends_with_its_task() {
    let server = Server::working();
    let sandbox = boot(&server).await;
    let mut background = command("echo $$ >new; mv new number; exec sleep 100", 5);
    background.background = true;
    let report = run(sandbox.as_ref(), background.clone()).await.unwrap();
    assert_eq!((report.ending, report.left_running > 0), (Ending::Running, true));
    until(|| server.path("number").exists()).await;
    sandbox.end_task(&background.task).await;
    gone(&server).await;
}

#[tokio::test]
async fn a_cancelled_command_is_ended_and_compute_goes_on() {
    let server = Server::working();
    let sandbox = boot(&server).await;
    let cancel = CancellationToken::new();
    let ended = sandbox.run(command("echo $$ >new; mv new number; exec sleep 100", 100), &cancel);
    let (report, ()) = tokio::join!(ended, async {
        until(|| server.path("number").exists()).await;
        cancel.cancel();
    });
    assert_eq!(report.unwrap().ending, Ending::Cancelled);
    gone(&server).await;
    assert!(server.asked("/stop").is_empty());
}

#[tokio::test]
async fn what_is_cancelled_before_it_began_stops_nothing() {
    let server = Server::working();
    let sandbox = boot(&server).await;
    let cancel = CancellationToken::new();
    cancel.cancel();
    assert_eq!(sandbox.run(program("1", 5), &cancel).await.unwrap().ending, Ending::Cancelled);
    assert!(server.asked("/stop").is_empty() && server.asked("/exec").is_empty());
}

#[tokio::test]
async fn cancelled_python_ends_with_the_compute_and_says_what_is_gone() {
    let server = Server::but("python/exec", Act::Hold);
    let sandbox = boot(&server).await;
    let cancel = CancellationToken::new();
    let ended = sandbox.run(program("while True: pass", 100), &cancel);
    let (report, ()) = tokio::join!(ended, async {
        until(|| !server.asked("python/exec").is_empty()).await;
        cancel.cancel();
    });
    let report = report.unwrap();
    assert_eq!((report.ending, server.asked("/stop").len()), (Ending::Cancelled, 1));
    assert!(report.output.contains("variables and processes are gone"), "{}", report.output);
}

#[tokio::test]
async fn python_tells_what_it_printed_and_why_it_failed() {
    let server = Server::working();
    let sandbox = boot(&server).await;
    for (text, ending, output) in
        [("hello", Ending::Exited(0), "hello"), ("fail\n", Ending::Exited(1), "fail\nNameError: x")]
    {
        let report = run(sandbox.as_ref(), program(text, 20)).await.unwrap();
        assert_eq!((report.ending, report.output.as_str()), (ending, output), "{text}");
    }
    server.kill_compute();
    let report = run(sandbox.as_ref(), program("again", 20)).await.unwrap();
    assert_eq!(report.output, "again\n[Python was started anew since the last call: earlier variables are gone]");
    let late = json!({"success": false, "output": "", "error": "Command timed out", "data": null});
    let server = Server::but("python/exec", say(200, &late));
    let report = run(boot(&server).await.as_ref(), program("x", 600)).await.unwrap();
    assert_eq!(report.ending, Ending::Limited(Duration::from_mins(5)));
    assert!(report.output.contains("300 s"), "{}", report.output);
    let text = Session::new(&server).await.failed("python", json!({"code": "x", "timeout": 600})).await;
    assert!(text.contains("[stopped after 300 s") && !text.contains("600"), "{text}");
}

#[tokio::test]
async fn long_output_is_whole_in_the_sandbox() {
    let server = Server::working();
    let sandbox = boot(&server).await;
    let long: String = super::support::lines(0..=19_999, |n| format!("line {n}\n"));
    for report in [
        run(sandbox.as_ref(), program(&long, 20)).await.unwrap(),
        run(sandbox.as_ref(), command("i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done", 20))
            .await
            .unwrap(),
    ] {
        assert!(report.output.starts_with("line 0\n") && report.output.len() < 60_000);
        let place = report.spill.unwrap();
        assert!(report.output.contains(place.to_str().unwrap()));
        let whole = std::fs::read_to_string(server.path("").join(&place)).unwrap();
        assert_eq!(whole, long);
    }
}

#[tokio::test]
async fn bug_11_and_13_paths_are_the_sandboxs_own() {
    let server = Server::working();
    let sandbox = boot(&server).await;
    for (path, expected) in [
        ("a.txt", Some("a.txt")),
        ("/workspace/x/a.txt", Some("x/a.txt")),
        ("b/../c", Some("c")),
        ("/etc/passwd", None),
        ("../a", None),
        ("", None),
        ("x/", None),
        ("/home/ship_1/workspace/a", None),
    ] {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(path.as_bytes()).unwrap();
        file.rewind().unwrap();
        let before = server.asked("/filesystem/").len();
        let uploaded = sandbox.upload(file, path).await;
        let mut back = tempfile::tempfile().unwrap();
        let downloaded = sandbox.download(path, back.try_clone().unwrap()).await;
        let Some(expected) = expected else {
            assert!(matches!(uploaded, Err(SandboxError::Failed(_))) && downloaded.is_err(), "{path}");
            assert_eq!(server.asked("/filesystem/").len(), before, "{path}");
            continue;
        };
        assert_eq!(uploaded.unwrap(), format!("/workspace/{expected}"));
        assert_eq!(downloaded.unwrap(), path.len() as u64);
        let mut text = String::new();
        back.rewind().unwrap();
        back.read_to_string(&mut text).unwrap();
        assert_eq!(text, path);
    }
}

#[tokio::test]
async fn a_file_that_is_not_there_is_no_loss() {
    let ship = say(502, &envelope("ship_error", "Ship request failed: 404", &json!({})));
    for server in [Server::working(), Server::but("filesystem/download", ship)] {
        let error = boot(&server).await.download("gone", tempfile::tempfile().unwrap()).await.unwrap_err();
        assert!(
            matches!(error, SandboxError::Failed(_)) && error.to_string().contains("there is no such file"),
            "{error}"
        );
        assert_eq!(server.asked("filesystem/download").len(), 1);
    }
}

#[tokio::test]
async fn a_fault_that_only_mentions_404_is_not_a_missing_file() {
    for message in ["Ship request failed: 500: see /errors/404", "Ship request failed: 4040"] {
        let ship = say(502, &envelope("ship_error", message, &json!({})));
        let server = Server::but("filesystem/download", ship);
        let error = boot(&server).await.download("x", tempfile::tempfile().unwrap()).await.unwrap_err().to_string();
        assert!(!error.contains("no such file"), "{error}");
    }
}

#[tokio::test]
async fn a_command_outlives_a_request_that_bay_ends() {
    let server = Server::start(|asked| match asked.before {
        0 if asked.line.contains("shell/exec") => Act::Late,
        _ => Act::Serve,
    });
    let report = run(boot(&server).await.as_ref(), command("echo done; exit 3", 20)).await.unwrap();
    assert_eq!((report.ending, report.output.as_str()), (Ending::Exited(3), "done\n"));
    let late = json!({"success": false, "output": "", "error": "Command timed out", "exit_code": -1});
    let server = Server::start(move |asked| match asked.before {
        0 if asked.line.contains("shell/exec") => say(200, &late),
        _ => Act::Serve,
    });
    let error = run(boot(&server).await.as_ref(), command("echo done", 20)).await.unwrap_err().to_string();
    assert!(error.contains("unknown whether it began"), "{error}");
}

#[tokio::test]
async fn a_download_that_breaks_off_leaves_no_file() {
    let session = Session::new(&Server::but("filesystem/download", Act::Lose)).await;
    let text = session.failed("download_file", json!({"remote_path": "x"})).await;
    assert!(!session.fixture.path("x").exists(), "{text}");
}

#[tokio::test]
async fn bug_12_a_skill_is_brought_again_once_it_changed() {
    let server = Server::working();
    let sandbox = boot(&server).await;
    let folder = tempfile::tempdir().unwrap();
    for text in ["one", "one", "two"] {
        std::fs::write(folder.path().join("SKILL.md"), text).unwrap();
        let place = sandbox.skill_folder("deploy", folder.path()).await.unwrap();
        assert_eq!(place, "/workspace/skills/deploy");
        assert_eq!(std::fs::read_to_string(server.path("skills/deploy/SKILL.md")).unwrap(), text);
    }
    assert_eq!(server.asked("filesystem/upload").len(), 2);
}

#[tokio::test]
async fn no_reply_is_waited_for_as_long_as_the_server_may_take() {
    let server = Server::but("/browser/exec", Act::Hold);
    let session = Session::new(&server).await;
    let call = session.call("browser_exec", json!({"cmd": "open x"}));
    let still_waiting = tokio::time::timeout(Duration::from_millis(300), call).await.is_err();
    assert!(still_waiting && !server.asked("/browser/exec").is_empty());
    session.fixture.context.cancel.cancel();
    let text = session.failed("browser_exec", json!({"cmd": "open x"})).await;
    assert!(text.contains("whether it took effect is not known"), "{text}");
    let none = Value::Null;
    assert_eq!(server.asked("/browser/exec")[0].json().get("description").unwrap_or(&none), &none);
}
