//! What goes wrong between nanod and the server, in words that help.

use nanod::booters::Booter;
use nanod::sandbox::SandboxError;
use serde_json::{Value, json};

use super::records::envelope;
use super::server::{Act, Server, say};
use super::support::request;
use super::{Session, boot, booter, command, program, run};

#[tokio::test]
async fn bug_10_a_wrong_server_is_told_from_bay() {
    for act in [
        say(404, &json!({"detail": "Not Found"})),
        say(404, &json!({"detail": "Resource not found"})),
        Act::Say(404, "Resource not found".into()),
        Act::Say(405, String::new()),
        Act::Say(200, "<html>hello</html>".into()),
        Act::Say(500, " <html>".into()),
    ] {
        let server = Server::start(move |_| act.clone());
        let error = booter(&server.url).make(&request()).await.unwrap_err().to_string();
        assert!(error.contains("use the booter shipyard,") && error.contains(&server.url), "{error}");
    }
}

#[tokio::test]
async fn bug_5_nothing_listens_and_the_words_say_so() {
    let server = Server::working();
    let error = booter(&server.url.replace("127.0.0.1", "127.0.0.2")).make(&request()).await.unwrap_err();
    assert!(matches!(error, SandboxError::Boot { .. }));
    assert!(error.to_string().contains("is booters.shipyard_neo.endpoint right?"), "{error}");
}

#[tokio::test]
async fn every_code_has_words_to_act_on() {
    let none = json!({});
    for (status, code, details, expected) in [
        (401, "unauthorized", &none, "access_token"),
        (403, "forbidden", &none, "may not do this"),
        (429, "quota_exceeded", &none, "try again later"),
        (500, "internal_error", &none, "whether it took effect is not known"),
        (400, "validation_error", &none, "correct the arguments"),
        (400, "invalid_path", &json!({"field": "path", "reason": "absolute_path"}), "absolute_path"),
        (400, "capability_not_supported", &json!({"available": ["python", "shell"]}), "only python, shell"),
        (404, "not_found", &none, "look at the id"),
        (409, "conflict", &none, "list_skill_releases"),
        (409, "conflict", &json!({"candidate_id": "sc-1"}), "latest evaluation has passed"),
        (502, "ship_error", &none, "whether it took effect is not known"),
        (504, "timeout", &none, "longer timeout"),
        (418, "teapot", &none, "says no more"),
    ] {
        let server = Server::but("python/exec", say(status, &envelope(code, "the\n message", details)));
        let sandbox = boot(&server).await;
        let error = run(sandbox.as_ref(), program("1", 5)).await.unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, SandboxError::Failed(_)) && text.contains(expected), "{code}: {error:?}");
        assert!(text.contains(&format!("{code}: the message (request req-7)")), "{text}");
        assert_eq!(server.asked("python/exec").len(), 1, "{code}");
    }
}

#[tokio::test]
async fn replies_that_make_no_sense_are_said_to_be_so() {
    let fields = json!({"detail": [{"type": "x", "loc": ["body", "timeout"], "msg": "too large"}, {"loc": []}, 5]});
    for (act, expected) in [
        (say(422, &fields), "`timeout`: too large; ``: is wrong"),
        (Act::Say(500, "Internal Server Error".into()), "Internal Server Error; whether it took effect is not known"),
        (Act::Say(200, "{\"success\": tr".into()), "is not JSON"),
        (Act::Say(200, "x".repeat((16 << 20) + 1)), "more than"),
        (say(200, &json!({})), "makes no sense"),
        (Act::Lose, "whether it took effect is not known"),
        (Act::Hang, "whether it took effect is not known"),
        (say(500, &json!({"error": "no"})), "HTTP 500"),
        (say(500, &json!({"error": {"code": 5}})), "HTTP 500"),
        (Act::Say(413, String::new()), "larger than the server takes"),
    ] {
        let server = Server::but("python/exec", act);
        let sandbox = boot(&server).await;
        let error = run(sandbox.as_ref(), program("1", 5)).await.unwrap_err();
        assert!(matches!(error, SandboxError::Failed(_)) && error.to_string().contains(expected), "{error:?}");
        assert!(error.to_string().len() < 1000);
        assert_eq!(server.asked("python/exec").len(), 1, "what may have run is not run again");
    }
}

#[tokio::test]
async fn what_only_reads_is_tried_again() {
    for broken in [Act::Lose, Act::Hang, Act::Say(500, "x".into()), say(429, &json!({}))] {
        let server = Server::start(move |asked| match asked.before {
            0 if asked.line.contains("/history") => broken.clone(),
            _ => Act::Serve,
        });
        Session::new(&server).await.done("get_execution_history", json!({})).await;
        assert_eq!(server.asked("/history").len(), 2);
    }
}

#[tokio::test]
async fn bug_4_a_call_waits_for_compute_to_start() {
    let wait = |ms: Value| say(503, &envelope("session_not_ready", "starting", &json!({"retry_after_ms": ms})));
    for what in ["python/exec", "shell/exec", "filesystem/upload", "filesystem/download"] {
        let server = Server::start(move |asked| match asked.before {
            0..4 if asked.line.contains(what) => wait(json!(20)),
            _ => Act::Serve,
        });
        let session = Session::new(&server).await;
        session.fixture.write("a.txt", "a".repeat(100_000));
        let text = |(done, text): (bool, String)| if done { text } else { panic!("{text}") };
        let up = text(session.call("upload_file", json!({"local_path": "a.txt"})).await);
        assert_eq!(up, "uploaded a.txt to /workspace/a.txt");
        assert_eq!(std::fs::read(server.path("a.txt")).unwrap().len(), 100_000);
        let down = json!({"remote_path": "a.txt", "local_path": "b.txt"});
        text(session.call("download_file", down).await);
        assert_eq!(session.fixture.read("b.txt").len(), 100_000);
        assert_eq!(text(session.call("python", json!({"code": "5"})).await), "5");
        assert_eq!(text(session.call("exec", json!({"command": "echo 6"})).await), "6");
    }
}

#[tokio::test]
async fn a_sandbox_that_went_away_is_lost() {
    let server = Server::working();
    let sandbox = boot(&server).await;
    server.expire();
    for command in [program("1", 5), command("true", 5)] {
        let error = run(sandbox.as_ref(), command).await.unwrap_err();
        assert!(matches!(error, SandboxError::Lost { .. }), "{error:?}");
    }
    let file = tempfile::tempfile().unwrap();
    let error = sandbox.download("a", file).await.unwrap_err();
    assert!(matches!(error, SandboxError::Lost { .. }), "{error:?}");
    for (status, code, message) in [(404, "not_found", "Cargo not found: ws-1"), (409, "sandbox_expired", "over")] {
        let server = Server::but("python/exec", say(status, &envelope(code, message, &json!({}))));
        let error = run(boot(&server).await.as_ref(), program("1", 5)).await.unwrap_err();
        assert!(matches!(error, SandboxError::Lost { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn what_is_not_found_in_a_sandbox_that_is_there_is_no_loss() {
    let act = say(404, &envelope("not_found", "No active release", &json!({})));
    let session = Session::new(&Server::but("/run", act)).await;
    let text = session.failed("run_browser_skill", json!({"skill_key": "a b/c"})).await;
    assert!(text.starts_with("not_found: No active release"), "{text}");
}
