//! Making sandboxes, finding them again, waiting for them, giving them back.

use std::time::Duration;

use nanod::booters::Booter;
use nanod::config::NeoConfig;
use nanod::sandbox::{Capabilities, Capability, SandboxError};
use serde_json::{Value, json};

use super::records::envelope;
use super::server::{Act, Server, say};
use super::support::request;
use super::{attach, booter, config, until, with};

const MAKE: &str = "POST /v1/sandboxes ";

#[tokio::test]
async fn a_sandbox_is_made_once_whatever_happens_on_the_way() {
    for broken in [Act::Lose, say(503, &json!({"x": 1})), Act::Say(502, "<html>".into()), Act::Hang] {
        let server = Server::start(move |asked| match asked {
            asked if asked.line.starts_with(MAKE) && asked.before == 0 => broken.clone(),
            _ => Act::Serve,
        });
        let handle = booter(&server.url).make(&request()).await.unwrap();
        assert_eq!(booter(&server.url).make(&request()).await.unwrap(), handle);
        let made = server.asked(MAKE);
        assert!(
            made.len() >= 3
                && made.iter().all(|one| one.body == made[0].body && one.headers["idempotency-key"] == "key")
        );
        assert_eq!(made[0].json(), json!({"profile": "browser-python", "ttl": 3600}));
        assert_eq!(server.sandboxes(), 1);
    }
}

#[tokio::test]
async fn profiles_are_chosen() {
    let list = |items: Value| say(200, &json!({"items": items}));
    for (configured, act, expected) in [
        (Some("python-data"), Act::Serve, "python-data"),
        (None, Act::Serve, "browser-python"),
        (None, say(500, &json!({})), "python-default"),
        (None, list(json!([])), "python-default"),
        (
            None,
            list(json!([{"id": "a", "capabilities": ["x", "python"]}, {"id": "b", "capabilities": ["python"]}])),
            "a",
        ),
    ] {
        let server = Server::but("/v1/profiles", act);
        let profile = configured.map(str::to_owned);
        with(NeoConfig { profile, ..config(&server.url) }).make(&request()).await.unwrap();
        assert_eq!(server.asked(MAKE).last().unwrap().json()["profile"], expected);
    }
}

#[tokio::test]
async fn a_sandbox_is_found_again_after_the_profiles_changed() {
    let server = Server::start(|asked| match asked.before {
        0 if asked.line.contains("/v1/profiles") => {
            say(200, &json!({"items": [{"id": "python-data", "capabilities": ["python"]}]}))
        }
        _ => Act::Serve,
    });
    let handle = booter(&server.url).make(&request()).await.unwrap();
    assert_eq!(booter(&server.url).make(&request()).await.unwrap(), handle);
    booter(&server.url).give_back(&request(), None).await.unwrap();
    assert_eq!(server.sandboxes(), 0);
}

#[tokio::test]
async fn another_ttl_makes_another_sandbox_once() {
    let server = Server::working();
    let first = booter(&server.url).make(&request()).await.unwrap();
    let changed = with(NeoConfig { ttl: Duration::from_mins(1), ..config(&server.url) });
    let second = changed.make(&request()).await.unwrap();
    assert!(first != second && changed.make(&request()).await.unwrap() == second && server.sandboxes() == 2);
}

/// Answers looks at the sandbox with these, the last one over and over.
fn telling(all: &'static [&'static str]) -> Server {
    Server::start(move |asked| match asked.line.as_str() {
        line if line.starts_with("GET /v1/sandboxes/sandbox-") => {
            say(200, &json!({"id": "x", "status": all[asked.before.min(all.len() - 1)], "capabilities": ["shell"]}))
        }
        _ => Act::Serve,
    })
}

#[tokio::test]
async fn a_boot_waits_until_the_sandbox_serves() {
    let server = telling(&["idle", "starting", "starting", "ready"]);
    attach(&booter(&server.url)).await;
    assert!(server.asked("GET /v1/sandboxes/").len() >= 4);
}

#[tokio::test]
async fn bug_6_a_sandbox_without_compute_is_not_waited_for() {
    attach(&booter(&telling(&["idle"]).url)).await;
}

#[tokio::test]
async fn bug_7_and_8_a_boot_that_fails_says_so_and_leaves_nothing() {
    let server = telling(&["starting", "failed"]);
    let handle = booter(&server.url).make(&request()).await.unwrap();
    let error = booter(&server.url).attach(&request(), &handle).await.err().unwrap();
    assert!(
        matches!(error, SandboxError::Boot { .. }) && error.to_string().contains("could not be started"),
        "{error}"
    );
    assert_eq!(server.sandboxes(), 0);
}

#[tokio::test]
async fn a_reply_that_does_not_say_how_the_sandbox_is_ends_the_boot() {
    for reply in [json!([]), json!({"id": "x"}), json!({"status": 5}), Value::Null] {
        let server = Server::but("GET /v1/sandboxes/", say(200, &reply));
        let handle = booter(&server.url).make(&request()).await.unwrap();
        let error = booter(&server.url).attach(&request(), &handle).await.err().unwrap();
        assert!(matches!(error, SandboxError::Boot { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn a_sandbox_that_is_gone_is_lost() {
    for statuses in [&["expired"], &["failed"], &["deleted"]] {
        let server = telling(statuses);
        let handle = booter(&server.url).make(&request()).await.unwrap();
        let lost = booter(&server.url).attach(&request(), &handle).await.err();
        assert!(matches!(lost, Some(SandboxError::Lost { .. })), "{statuses:?}: {lost:?}");
    }
    let server = Server::working();
    for handle in ["sandbox-gone", "", "..", "a/b", "a?b"] {
        let lost = booter(&server.url).attach(&request(), handle).await.err();
        assert!(matches!(lost, Some(SandboxError::Lost { .. })), "{handle}: {lost:?}");
    }
}

#[tokio::test]
async fn a_list_of_capabilities_that_is_missing_is_not_an_empty_one() {
    let known = |all: &[Capability]| Capabilities::Known(all.iter().copied().collect());
    let all = [Capability::Shell, Capability::Python, Capability::Filesystem, Capability::Browser];
    for (told, expected) in [
        (Value::Null, Capabilities::Unknown),
        (json!("shell"), Capabilities::Unknown),
        (json!([]), known(&[])),
        (json!(["shell", "gpu", 5]), known(&[Capability::Shell])),
        (json!(["shell", "python", "filesystem", "browser"]), known(&all)),
        (json!(["python", "shell", "browser", "filesystem"]), known(&all)),
    ] {
        let server = Server::working();
        let handle = booter(&server.url).make(&request()).await.unwrap();
        server.set("capabilities", &told);
        let sandbox = booter(&server.url).attach(&request(), &handle).await.unwrap();
        assert_eq!(*sandbox.capabilities(), expected, "{told}");
    }
}

#[tokio::test]
async fn sandboxes_are_given_back_with_and_without_a_handle() {
    let server = Server::working();
    for round in 0..20 {
        let request = nanod::booters::BootRequest { key: format!("ses_{round}"), ..request() };
        let handle = booter(&server.url).make(&request).await.unwrap();
        let handle = (round % 2 == 0).then_some(handle);
        for _ in 0..2 {
            booter(&server.url).give_back(&request, handle.as_deref()).await.unwrap();
        }
    }
    assert_eq!(server.sandboxes(), 0);
    let failing = Server::but("DELETE", say(500, &envelope("internal_error", "no", &json!({}))));
    assert!(booter(&failing.url).give_back(&request(), None).await.is_err());
}

#[tokio::test]
async fn a_sandbox_that_is_used_is_kept_alive_and_given_time() {
    let server = Server::working();
    let handle = booter(&server.url).make(&request()).await.unwrap();
    server.set("expires_at", &json!("2001-01-01T00:00:00.5"));
    let sandbox = booter(&server.url).attach(&request(), &handle).await.unwrap();
    until(|| !server.asked("extend_ttl").is_empty() && !server.asked("keepalive").is_empty()).await;
    let extended = &server.asked("extend_ttl")[0];
    assert_eq!(extended.json(), json!({"extend_by": 3600}));
    assert_eq!(extended.headers["idempotency-key"], format!("{handle}-2001-01-01T0000005"));
    drop(sandbox);
}

#[tokio::test]
async fn a_sandbox_without_an_end_is_extended_no_more() {
    let server = Server::but("extend_ttl", say(409, &envelope("sandbox_ttl_infinite", "infinite", &json!({}))));
    let short = with(NeoConfig { ttl: Duration::from_secs(1), ..config(&server.url) });
    let handle = short.make(&request()).await.unwrap();
    server.set("expires_at", &json!("2001-01-01T00:00:00"));
    let _sandbox = short.attach(&request(), &handle).await.unwrap();
    until(|| server.asked("keepalive").len() > 3).await;
    assert_eq!(server.asked("extend_ttl").len(), 1);
}
