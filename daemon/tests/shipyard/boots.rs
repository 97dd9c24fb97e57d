//! Making ships, finding them again, giving them back; and what is said where that does not work.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use nanod::booters::shipyard::ShipyardBooter;
use nanod::booters::{BootRequest, Booter};
use nanod::config::{Secret, ShipyardConfig};
use nanod::sandbox::{Capabilities, SandboxError};
use serde_json::json;

use super::server::{Act, Server, TOKEN, say};
use super::{boot, booter, command, request, run};

async fn why(server: &Server) -> String {
    let error = booter(&server.url).make(&request("k")).await.unwrap_err();
    assert!(matches!(error, SandboxError::Boot { .. }), "{error:?}");
    let text = error.to_string();
    assert!(!format!("{error:?}").contains(TOKEN), "{text}");
    text
}

#[tokio::test]
async fn a_ship_is_made_once_and_found_again() {
    let server = Server::working();
    let handle = booter(&server.url).make(&request("k")).await.unwrap();
    assert_eq!(booter(&server.url).make(&request("k")).await.unwrap(), handle);
    let asked = server.asked("POST /ship ");
    assert_eq!(asked[0].json(), json!({"ttl": 3600, "max_session_num": 1}));
    assert_eq!(server.ships(), 1);
    let sandbox = booter(&server.url).attach(&request("k"), &handle).await.unwrap();
    assert_eq!(*sandbox.capabilities(), Capabilities::Unknown);
}

#[tokio::test]
async fn sessions_do_not_share_a_user() {
    let server = Server::working();
    for key in ["01KBB0000000000000000000AA", "01KBB0000000000000000000AB"] {
        booter(&server.url).make(&request(key)).await.unwrap();
    }
    let ids: Vec<String> = server.asked("POST /ship ").iter().map(super::server::Asked::session).collect();
    assert!(ids.iter().all(|id| id.len() == 64 && id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))));
    assert_ne!(ids[0][..8], ids[1][..8]);
}

#[tokio::test]
async fn a_stopped_ship_is_started_again_and_a_lost_one_is_lost() {
    let server = Server::working();
    let handle = booter(&server.url).make(&request("k")).await.unwrap();
    let session = server.asked("POST /ship ")[0].session();
    server.set(&session, 0);
    let sandbox = booter(&server.url).attach(&request("k"), &handle).await.unwrap();
    assert_eq!(run(sandbox.as_ref(), command("echo on", 20)).await.unwrap().output, "on\n");
    for handle in ["ship-gone", "", "../ships", "a/b"] {
        let lost = booter(&server.url).attach(&request("k"), handle).await.err();
        assert!(matches!(lost, Some(SandboxError::Lost { .. })), "{handle}: {lost:?}");
    }
}

#[tokio::test]
async fn a_session_that_lost_its_place_in_a_running_ship_gets_it_back() {
    let is_out = Arc::new(AtomicBool::new(false));
    let out = is_out.clone();
    let server = Server::start(move |asked| {
        if asked.line.starts_with("POST /ship ") {
            out.store(false, Ordering::SeqCst);
        }
        let no = say(400, &json!({"detail": "Session does not have access to this ship"}));
        if asked.line.contains("/exec ") && out.load(Ordering::SeqCst) { no } else { Act::Serve }
    });
    let handle = booter(&server.url).make(&request("k")).await.unwrap();
    let sandbox = booter(&server.url).attach(&request("k"), &handle).await.unwrap();
    is_out.store(true, Ordering::SeqCst);
    let lost = run(sandbox.as_ref(), command("echo on", 20)).await.unwrap_err();
    assert!(matches!(lost, SandboxError::Lost { .. }), "{lost:?}");
    let sandbox = booter(&server.url).attach(&request("k"), &handle).await.unwrap();
    assert_eq!(run(sandbox.as_ref(), command("echo on", 20)).await.unwrap().output, "on\n");
    assert_eq!(server.ships(), 1);
}

#[tokio::test]
async fn another_ship_instead_of_the_stopped_one_is_a_loss_and_does_not_leak() {
    let server = Server::working();
    booter(&server.url).make(&request("other")).await.unwrap();
    let other = server.asked("POST /ship ")[0].session();
    server.set(&other, 0);
    let handle = format!("ship-{}", &other[..8]);
    let lost = booter(&server.url).attach(&request("k"), &handle).await.err();
    assert!(matches!(lost, Some(SandboxError::Lost { .. })), "{lost:?}");
    assert_eq!(server.ships(), 1);
}

#[tokio::test]
async fn ships_are_given_back_with_and_without_a_handle() {
    let server = Server::working();
    for round in 0..20 {
        let key = round.to_string();
        let handle = booter(&server.url).make(&request(&key)).await.unwrap();
        let handle = (round % 2 == 0).then_some(handle);
        for _ in 0..2 {
            booter(&server.url).give_back(&request(&key), handle.as_deref()).await.unwrap();
        }
    }
    assert_eq!(server.ships(), 0);
}

#[tokio::test]
async fn a_ship_that_others_use_is_left_to_its_time() {
    let shared = || say(201, &json!({"id": "s1", "status": 1, "current_session_num": 2}));
    let server = Server::start(move |_| shared());
    for handle in [None, Some("s1")] {
        booter(&server.url).give_back(&request("k"), handle).await.unwrap();
    }
    assert!(server.asked("DELETE").is_empty());
}

#[tokio::test]
async fn bug_4_and_7_a_boot_that_fails_says_why() {
    for (act, expected) in [
        (say(401, &json!({"detail": "Invalid access token"})), "booters.shipyard.access_token"),
        (say(403, &json!({"detail": "Not authenticated"})), "booters.shipyard.access_token"),
        (say(422, &json!({"detail": [{"loc": ["body", "ttl"], "msg": "too small"}]})), "422: ttl: too small"),
        (say(500, &json!({"detail": "Failed to create ship"})), "Failed to create ship"),
        (say(408, &json!({"detail": "Timeout waiting for available ship slot"})), "available ship slot"),
        (Act::Hang, "unknown whether"),
        (Act::Say(201, "{\"id\": \"s1\"".into()), "is no ship"),
        (say(201, &json!({"id": "../x", "status": 1})), "is no ship"),
        (say(201, &json!([])), "is no ship"),
        (say(500, &json!({"detail": format!("bad {TOKEN}\n{}", "x".repeat(1000))})), "bad …"),
    ] {
        let server = Server::start(move |asked| if asked.line.contains("/v1") { Act::Hang } else { act.clone() });
        let why = why(&server).await;
        assert!(why.contains(expected) && why.len() < 500 && !why.contains('\n'), "{why}");
    }
}

#[tokio::test]
async fn bug_10_a_wrong_server_is_told_from_a_shipyard() {
    let html = Act::Say(200, "<html>hello</html>".into());
    let not_found = say(404, &json!({"detail": "Not Found"}));
    let resource = say(404, &json!({"detail": "Resource not found"}));
    for act in [html, not_found, resource, Act::Say(405, String::new()), Act::Say(502, "<html>".into())] {
        let is_gateway = matches!(act, Act::Say(502, _));
        let server = Server::start(move |_| act.clone());
        let why = why(&server).await;
        assert_eq!(why.contains("is not an old Shipyard"), !is_gateway, "{why}");
    }
    let neo = json!({"error": {"code": "not_found", "message": "no"}});
    let server = Server::start(move |asked| match asked.line.as_str() {
        line if line.starts_with("GET /v1/profiles ") => say(200, &json!({"items": []})),
        _ => say(404, &neo),
    });
    assert!(why(&server).await.contains("use the booter shipyard_neo"));
    assert!(server.asked("/v1/profiles").iter().all(|asked| !asked.headers.contains_key("authorization")));
}

#[tokio::test]
async fn nothing_listens() {
    let server = Server::working();
    let url = server.url.replace("127.0.0.1", "127.0.0.2");
    let error = booter(&url).make(&request("k")).await.unwrap_err().to_string();
    assert!(error.contains("cannot be reached"), "{error}");
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let other = Server::working();
    let to = format!("{}/ship", other.url);
    for status in [301, 302, 307, 308] {
        let to = to.clone();
        let server = Server::start(move |_| Act::Send(status, to.clone()));
        let why = why(&server).await;
        assert!(why.contains("booters.shipyard.endpoint") && why.contains("redirects"), "{why}");
    }
    assert!(other.asked("").is_empty());
}

#[tokio::test]
async fn what_passes_is_tried_again() {
    for act in [Act::Hang, Act::Lose, Act::Say(503, String::new()), Act::Say(429, "{}".into())] {
        let count = AtomicUsize::new(0);
        let server = Server::start(move |_| match count.fetch_add(1, Ordering::SeqCst) {
            0 => act.clone(),
            _ => Act::Serve,
        });
        booter(&server.url).make(&request("k")).await.unwrap();
        assert_eq!((server.asked("POST /ship ").len(), server.ships()), (2, 1));
    }
}

#[tokio::test]
async fn a_ship_is_kept_alive_while_it_is_used() {
    let server = Server::working();
    let config = ShipyardConfig {
        endpoint: Some(server.url.clone()),
        access_token: Some(Secret(TOKEN.into())),
        ttl: std::time::Duration::from_secs(1),
        max_sessions: 3,
    };
    let booter = ShipyardBooter::new(config);
    let handle = booter.make(&request("k")).await.unwrap();
    let sandbox = booter.attach(&request("k"), &handle).await.unwrap();
    super::until(|| server.asked("/extend-ttl").len() >= 3).await;
    assert!(server.asked("/extend-ttl").iter().all(|asked| asked.json() == json!({"ttl": 1})));
    drop(sandbox);
}

#[test]
fn what_is_missing_is_said_without_the_token() {
    let check = |endpoint: Option<&str>, token: Option<&str>, expected: Option<&str>| {
        let (endpoint, access_token) = (endpoint.map(str::to_owned), token.map(|token| Secret(token.into())));
        let booter = ShipyardBooter::new(ShipyardConfig { endpoint, access_token, ..ShipyardConfig::default() });
        let missing = booter.missing();
        assert_eq!(missing.is_some(), expected.is_some(), "{missing:?}");
        let words = expected.is_none_or(|word| missing.unwrap().contains(word));
        assert!(words && !format!("{booter:?}").contains(TOKEN));
    };
    check(None, Some(TOKEN), Some("SHIPYARD_ENDPOINT"));
    check(Some("http://127.0.0.1:1"), None, Some("SHIPYARD_ACCESS_TOKEN"));
    check(Some("http://127.0.0.1:1"), Some(" "), Some("booters.shipyard.access_token"));
    check(Some("http://127.0.0.1:1"), Some(TOKEN), None);
}

#[tokio::test]
async fn bug_21_a_booter_that_is_not_configured_keeps_its_tools_and_fails_at_boot() {
    let booter = ShipyardBooter::new(ShipyardConfig::default());
    let names: Vec<_> = booter.tools().iter().map(|tool| tool.spec().name.clone()).collect();
    assert_eq!(names, ["exec", "python", "upload_file", "download_file"]);
    let error = booter.make(&BootRequest { ..request("k") }).await.unwrap_err().to_string();
    assert!(error.contains("booters.shipyard.endpoint"), "{error}");
}

#[test]
fn bug_11_13_14_the_prompt_says_which_way_files_go() {
    let declared = booter("http://127.0.0.1:1").declared(Path::new("/w"));
    assert!(declared.fixed && declared.capabilities.len() == 3);
    let [prompt] = declared.prompts.as_slice() else { panic!("one part") };
    assert_eq!((prompt.name.as_str(), prompt.source.as_str()), ("sandbox", "booter:shipyard"));
    assert!(!prompt.text.contains("/workspace") && !prompt.text.contains("/w"));
    assert!(!prompt.text.contains("`exec`") && !prompt.text.contains("`python`"), "an agent may have neither");
    for words in ["`upload_file` copies a file from the workspace into the sandbox", "28 s"] {
        assert!(prompt.text.contains(words), "{}", prompt.text);
    }
}

#[tokio::test]
async fn bug_5_a_session_works_from_boot_to_end() {
    let server = Server::working();
    let sandbox = boot(&server).await;
    assert_eq!(run(sandbox.as_ref(), command("pwd", 20)).await.unwrap().left_running, 0);
    sandbox.shutdown().await;
}
