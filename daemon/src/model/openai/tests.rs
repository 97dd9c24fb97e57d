#![expect(clippy::unwrap_used, reason = "tests")]

use std::sync::Mutex;
use std::time::Duration;

use serde_json::json;

use super::OpenAi;
use crate::config::{Api, ModelConfig, Secret};
use crate::http::scripted::{Server, Step};
use crate::model::Class::{Permanent, Transient};
use crate::model::{Answer, ChatMessage, Delta, Provider, ProviderError, Request};

const KEY: &str = "sk-very-secret";
const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
const HI: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n";
const STOP: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
const DONE: &str = "data: [DONE]\n\n";
/// So long that a test which should not wait for it hangs.
const LONG: Duration = Duration::from_secs(100_000);

fn config(base_url: &str, idle_timeout: Duration) -> ModelConfig {
    ModelConfig {
        name: "test".to_owned(),
        api: Api::OpenAi,
        base_url: base_url.to_owned(),
        model: "m".to_owned(),
        api_key: Some(Secret(KEY.to_owned())),
        context_window: None,
        max_output: None,
        stream: true,
        idle_timeout,
        price_input: None,
        price_output: None,
        fallback: vec![],
        cassette: None,
        source: "config".to_owned(),
    }
}

fn request() -> Request {
    let messages = vec![ChatMessage::User("hello".to_owned())];
    Request { system: String::new(), messages, tools: vec![], replies: 0 }
}

async fn ask(config: &ModelConfig) -> Result<Answer, ProviderError> {
    OpenAi::new(config).stream(&request(), &|_| {}).await
}

fn send(parts: &[&str]) -> Step {
    Step::Send(parts.concat().into_bytes())
}

async fn ask_steps(steps: Vec<Step>) -> Result<Answer, ProviderError> {
    ask(&config(&Server::start(steps).await.url, LONG)).await
}

async fn refusal(head: &str, body: &str) -> ProviderError {
    ask(&config(&Server::answering(head, body).await.url, LONG)).await.unwrap_err()
}

#[tokio::test]
async fn what_is_sent() {
    let mut server = Server::answering("200 OK", &[HI, STOP].concat()).await;
    let mut config = config(&format!("{}/v1/", server.url), LONG);
    assert_eq!(ask(&config).await.unwrap().text, "hi");
    config.api_key = None;
    assert_eq!(ask(&config).await.unwrap().text, "hi");
    let requests = server.requests();
    let [with, without] = requests.as_slice() else { unreachable!("{requests:?}") };
    let (head, body) = with.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{head}");
    assert!(head.contains(&format!("authorization: Bearer {KEY}\r\n")), "{head}");
    assert!(head.contains("content-type: application/json\r\n"), "{head}");
    let sent: serde_json::Value = serde_json::from_str(body).unwrap();
    assert_eq!(sent["messages"], json!([{ "role": "user", "content": "hello" }]));
    assert!(!without.contains("authorization"), "{without}");
}

#[test]
fn the_name_of_the_limit() {
    for (base_url, expected) in [
        ("https://api.openai.com/v1", "max_completion_tokens"),
        ("http://127.0.0.1:8080/v1", "max_tokens"),
        ("https://api.openai.com.example/v1", "max_tokens"),
    ] {
        let config = ModelConfig { max_output: Some(7), ..config(base_url, LONG) };
        assert_eq!(OpenAi::new(&config).settings.limit, Some((expected, 7)));
    }
}

#[tokio::test]
async fn replies_of_each_kind() {
    let whole = r#"{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}"#;
    let chunked = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
    let chunked_head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    for steps in [
        vec![send(&[HEAD, HI, STOP, DONE])],
        vec![send(&[HEAD, HI, STOP])],
        vec![send(&[HEAD, whole])],
        // The server keeps the connection open after the end, or breaks its own framing there.
        vec![send(&[HEAD, HI, STOP, DONE]), Step::Hold],
        vec![send(&[chunked_head, &chunked(HI), &chunked(STOP), &chunked(DONE)]), Step::Hold],
        vec![send(&[chunked_head, &chunked(HI), &chunked(STOP), "no number\r\n"])],
        vec![send(&[chunked_head, &chunked(HI), &chunked(STOP)])],
    ] {
        assert_eq!(ask_steps(steps).await.unwrap().text, "hi");
    }
    let mut server = Server::answering("200 OK\r\ncontent-type: application/json", whole).await;
    let config = ModelConfig { stream: false, ..config(&server.url, LONG) };
    assert_eq!(ask(&config).await.unwrap().text, "hi");
    let request = server.requests().remove(0);
    assert!(request.contains(r#""stream":false"#) && !request.contains("stream_options"), "{request}");
}

#[tokio::test]
async fn broken_replies() {
    let length = "HTTP/1.1 200 OK\r\ncontent-length: 9999\r\n\r\n";
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffff\r\n";
    for (steps, class, part) in [
        (vec![send(&[HEAD, HI])], Transient, "truncated"),
        (vec![send(&[HEAD])], Transient, "truncated"),
        (vec![send(&[length, HI])], Transient, "broke off the reply"),
        (vec![send(&[chunked, HI])], Transient, "broke off the reply"),
        (vec![], Transient, "cannot reach 127.0.0.1:"),
        (vec![send(&["not http\r\n\r\n"])], Transient, "cannot reach 127.0.0.1:"),
        (vec![send(&[HEAD, "<!DOCTYPE html><p>hi"])], Permanent, "HTML (20 bytes); check base_url"),
        (vec![send(&[HEAD, "{\"error\":{\"message\":\"no sk-very-secret\"}}"])], Transient, "reports: no [key]"),
        (
            vec![send(&[HEAD, HI, "data: {\"error\":{\"code\":400,\"message\":\"a\\nb\"}}\n\n"])],
            Permanent,
            "reports: a b",
        ),
    ] {
        let error = ask_steps(steps).await.unwrap_err();
        assert!(error.class == class && error.message.contains(part), "{part}: {error:?}");
    }
}

#[tokio::test]
async fn nobody_listens() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://user:{KEY}@{}/v1", listener.local_addr().unwrap());
    drop(listener);
    let error = ask(&config(&url, LONG)).await.unwrap_err();
    assert!(error.class == Transient && error.message.contains("refused"), "{error}");
    assert!(error.message.starts_with("cannot reach 127.0.0.1:"), "{error}");
    let error = ask(&config("localhost:1", LONG)).await.unwrap_err();
    assert!(error.class == Permanent && error.message.contains("check base_url"), "{error}");
}

#[tokio::test]
async fn classes_and_reasons() {
    let quota = r#"{"error":{"message":"pay","code":"insufficient_quota"}}"#;
    let echo = r#"{"error":{"message":"Incorrect API key provided: sk-very-secret."}}"#;
    let html = "<html><h1>502 Bad Gateway</h1></html>";
    for (head, body, class, message) in [
        (
            "401 Unauthorized",
            echo,
            Permanent,
            "HTTP 401: Incorrect API key provided: [key].; check the model's api_key",
        ),
        ("404 Not Found", r#"{"detail":"x"}"#, Permanent, "HTTP 404: x; check base_url and the model's name"),
        (
            "400 Bad Request",
            r#"{"error":{"code":400,"message":"bad","type":"invalid_request_error"}}"#,
            Permanent,
            "HTTP 400: bad",
        ),
        ("402 Payment Required", r#"{"message":"x"}"#, Permanent, "HTTP 402: x"),
        ("413 Too Large", "", Permanent, "HTTP 413 (non-JSON body, 0 bytes)"),
        ("422 Unprocessable", r#"[{"error":{"message":"x"}}]"#, Permanent, "HTTP 422: x"),
        ("408 Timeout", "slow", Transient, "HTTP 408 (non-JSON body, 4 bytes)"),
        ("409 Conflict", "{}", Transient, "HTTP 409: {}"),
        ("429 Too Many", r#"{"error":"rate limited"}"#, Transient, "HTTP 429: rate limited"),
        ("429 Too Many", quota, Permanent, "HTTP 429: pay"),
        ("500 Oops", r#"{"success":false,"error":{"message":"x"}}"#, Transient, "HTTP 500: x"),
        ("502 Bad Gateway", html, Transient, "HTTP 502 (non-JSON body, 37 bytes)"),
        ("503 Unavailable", &json!({ "error": html }).to_string(), Transient, "HTTP 503: (HTML, 37 bytes)"),
        (
            "520 Unknown",
            r#"{"cloudflare_error":true,"status":520}"#,
            Transient,
            r#"HTTP 520: {"cloudflare_error":true,"status":520}"#,
        ),
        ("529 ", "overloaded", Transient, "HTTP 529 (non-JSON body, 10 bytes)"),
    ] {
        let error = refusal(head, body).await;
        let (server, said) = error.message.split_once(" answered ").unwrap();
        assert!(server.starts_with("127.0.0.1:"), "{server}");
        assert_eq!((error.class, said, error.retry_after), (class, message, None), "{head}");
    }
}

#[tokio::test]
async fn the_hint_and_the_key_survive_a_long_reason() {
    let body = json!({ "message": format!("{}{KEY}", "x".repeat(290)) }).to_string();
    let message = refusal("401 No", &body).await.message;
    assert!(message.ends_with("xxx[key]; check the model's api_key"), "{message}");
    let message = refusal("401 No", &json!({ "message": "x".repeat(9999) }).to_string()).await.message;
    assert!(message.ends_with("x…; check the model's api_key") && message.len() < 500, "{message}");
}

#[tokio::test]
async fn waits_that_are_asked_for() {
    for (head, body, wait) in [
        ("429 No\r\nretry-after: 7", "{}", Some(Duration::from_secs(7))),
        ("503 No\r\nretry-after-ms: 1500\r\nretry-after: 2", "", Some(Duration::from_millis(1500))),
        ("429 No", r#"{"error":{"details":[{"retryDelay":"33s"}]}}"#, Some(Duration::from_secs(33))),
        ("400 No\r\nretry-after: 7", "{}", None),
    ] {
        assert_eq!(refusal(head, body).await.retry_after, wait, "{head}");
    }
    let error = refusal("429 No\r\nretry-after: 18000", "{}").await;
    assert!(error.message.ends_with("; it asks to wait 18000 s, too long to wait for"), "{error}");
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let mut elsewhere = Server::answering("200 OK", &[HI, STOP].concat()).await;
    let error = refusal(&format!("307 Temporary Redirect\r\nlocation: {}", elsewhere.url), "").await;
    assert!(error.class == Permanent && error.message.ends_with("redirects are not followed"), "{error}");
    assert_eq!(elsewhere.requests(), Vec::<String>::new());
}

#[tokio::test]
async fn silence_before_and_between_bytes_ends_the_request() {
    for steps in [vec![Step::Hold], vec![send(&[HEAD]), Step::Hold], vec![send(&[HEAD, HI]), Step::Hold]] {
        let server = Server::start(steps).await;
        let error = ask(&config(&server.url, Duration::from_millis(50))).await.unwrap_err();
        assert!(error.class == Transient && error.message.contains("was silent for 0.05 s"), "{error}");
    }
}

#[tokio::test]
async fn an_error_that_does_not_end_is_told() {
    let server = Server::start(vec![send(&["HTTP/1.1 503 No\r\n\r\n{\"error\":\"full\"}"]), Step::Hold]).await;
    // Long enough for a busy machine to bring the head: only the body must be cut.
    let error = ask(&config(&server.url, Duration::from_secs(3))).await.unwrap_err();
    assert!(error.message.ends_with("HTTP 503: full"), "{error}");
}

/// Asks with time that stands still, and jumps when there is nothing to do, from the first text on.
async fn ask_jumping(steps: Vec<Step>, idle: Duration) -> Result<Answer, ProviderError> {
    let server = Server::start(steps).await;
    let texts = Mutex::new(0);
    let sink = |delta| {
        let mut count = texts.lock().unwrap();
        *count += usize::from(matches!(delta, Delta::Text(_)));
        if *count == 1 {
            tokio::time::pause();
        }
    };
    let reply = OpenAi::new(&config(&server.url, idle)).stream(&request(), &sink).await;
    tokio::time::resume();
    reply
}

#[tokio::test]
async fn silence_after_the_reason_to_end_is_the_end() {
    let steps = vec![send(&[HEAD, HI, STOP]), Step::Hold];
    assert_eq!(ask_jumping(steps, LONG).await.unwrap().text, "hi");
}

#[tokio::test]
async fn comments_reset_the_idle_timeout() {
    let pause = || Step::Wait(Duration::from_secs(40));
    let comment = || send(&[": still here\n\n"]);
    let start = vec![send(&[HEAD, HI]), pause(), comment(), pause(), comment(), pause()];
    let steps = [start.clone(), vec![send(&[STOP, DONE])]].concat();
    assert_eq!(ask_jumping(steps, Duration::from_mins(1)).await.unwrap().text, "hi");
    let error = ask_jumping([start, vec![pause()]].concat(), Duration::from_mins(1)).await.unwrap_err();
    assert!(error.message.contains("silent"), "{error}");
}
