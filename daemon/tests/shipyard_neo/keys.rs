//! The key: where it comes from, and that it goes nowhere else.

use std::fs;

use nanod::booters::Booter;
use nanod::config::{NeoConfig, Secret};
use serde_json::{Value, json};

use super::server::{Act, Server, TOKEN, say};
use super::support::request;
use super::{booter, config, with};

#[tokio::test]
async fn bug_9_a_key_left_by_the_server_is_used_only_for_that_server() {
    let server = Server::working();
    let (host, other) = (server.url.trim_start_matches("http://"), server.url.replace("127.0.0.1", "localhost"));
    let left = |endpoint: &str| json!({"api_key": TOKEN, "endpoint": endpoint}).to_string();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("credentials.json");
    for (text, expected) in [
        (left(&server.url), None),
        (left(&format!("HTTP://{host}/")), None),
        (left(&other), Some("not for")),
        (left(&format!("https://{host}")), Some("not for")),
        (left(&format!("http://u:{TOKEN}@evil.example")), Some("not for")),
        (left(""), Some("names no `endpoint`")),
        (json!({"api_key": TOKEN}).to_string(), Some("names no `endpoint`")),
        (json!({"endpoint": server.url}).to_string(), Some("has no `api_key`")),
        (json!({"endpoint": server.url, "api_key": " "}).to_string(), Some("has no `api_key`")),
        (format!("{{\"api_key\": \"{TOKEN}\""), Some("not JSON")),
        (json!([TOKEN]).to_string(), Some("names no `endpoint`")),
    ] {
        fs::write(&path, &text).unwrap();
        let credentials = Some(path.clone());
        let booter = with(NeoConfig { access_token: None, credentials, ..config(&server.url) });
        let missing = booter.missing().unwrap_or_default();
        let error = booter.make(&request()).await.err().map(|error| error.to_string()).unwrap_or_default();
        for words in [&missing, &error] {
            assert_eq!(words.contains(expected.unwrap_or("?")), expected.is_some(), "{text}: {words}");
            assert_eq!((words.is_empty(), words.contains(TOKEN)), (expected.is_none(), false), "{text}: {words}");
        }
    }
}

#[test]
fn what_is_missing_is_said() {
    let gone = Some("/nowhere/credentials.json".into());
    for (config, expected) in [
        (NeoConfig::default(), Some("booters.shipyard_neo.endpoint or BAY_ENDPOINT")),
        (NeoConfig { access_token: None, ..config("http://x") }, Some("BAY_TOKEN")),
        (NeoConfig { access_token: Some(Secret(String::new())), ..config("http://x") }, Some("BAY_TOKEN")),
        (NeoConfig { access_token: None, credentials: gone, ..config("http://x") }, Some("/nowhere/credentials.json")),
        (config("http://x"), None),
    ] {
        let missing = with(config).missing();
        assert_eq!(missing.is_some(), expected.is_some());
        assert!(missing.unwrap_or_default().contains(expected.unwrap_or_default()));
    }
}

#[tokio::test]
async fn the_key_does_not_follow_a_redirect() {
    let other = Server::working();
    for status in [301, 302, 307, 308] {
        let to = format!("{}/v1/sandboxes", other.url);
        let server = Server::start(move |_| Act::Send(status, to.clone()));
        let error = booter(&server.url).make(&request()).await.unwrap_err().to_string();
        assert!(error.contains("redirects"), "{error}");
    }
    assert!(other.asked("").is_empty());
}

#[tokio::test]
async fn no_text_has_the_key() {
    let echo = json!({"error": {"code": "unauthorized", "message": format!("bad key {TOKEN}")}});
    let (plain, cut) = (format!("denied: {TOKEN}"), format!("{}{TOKEN}", "x".repeat(490)));
    let acts = [say(401, &echo), Act::Say(401, plain.clone()), Act::Say(418, plain), Act::Say(418, cut)];
    for act in acts.into_iter().chain([say(401, &Value::Null)]) {
        let server = Server::but("sandboxes", act);
        let error = booter(&server.url).make(&request()).await.unwrap_err();
        assert!(!format!("{error:?} {error}").contains("sk-bay"), "{error}");
    }
    let wrong = with(NeoConfig { access_token: Some(Secret("sk-bay-other".into())), ..config(&Server::working().url) });
    let error = wrong.make(&request()).await.unwrap_err().to_string();
    assert!(error.contains("booters.shipyard_neo.access_token") && error.contains("BAY_TOKEN"), "{error}");
    assert!(error.contains("req-7") && !error.contains("sk-bay-other"), "{error}");
}
