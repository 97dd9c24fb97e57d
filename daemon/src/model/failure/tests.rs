#![expect(clippy::unwrap_used, reason = "tests")]

use super::super::Class::{Permanent, Transient};
use super::{class_of, describe, find, one_line};

#[test]
fn reasons_in_any_shape() {
    for (body, expected) in [
        (r#"{"error":{"message":"x","type":"server_error"}}"#, "x"),
        (r#"{"error":"rate limited"}"#, "rate limited"),
        (r#"{"error":503}"#, "503"),
        (r#"{"error":{"code":null,"type":"boom"}}"#, r#"{"code":null,"type":"boom"}"#),
        (r#"{"error":{"error":{"message":"deep"}}}"#, "deep"),
        (r#"{"error":{"errors":[{"message":"first"},{"message":"second"}]}}"#, "first"),
        (r#"{"error":["a","b"]}"#, "a"),
        (r#"{"detail":"x"}"#, "x"),
        (r#"{"detail":[{"loc":["body"],"msg":"field required"}]}"#, "field required"),
        (r#"{"message":"x"}"#, "x"),
        (r#"{"message":"out","error":null}"#, "out"),
        (r#"{"message":"out","error":{"message":"in"}}"#, "in"),
        (r#"[{"error":{"message":"x"}}]"#, "x"),
        (r#"{"success":false,"error":{"message":"x"}}"#, "x"),
        (r#"{"errors":[{"message":"x"}]}"#, "x"),
        (r#"{"cloudflare_error":true,"status":520}"#, r#"{"cloudflare_error":true,"status":520}"#),
        ("[]", "[]"),
        (r#""text""#, "text"),
    ] {
        assert_eq!(describe(&serde_json::from_str(body).unwrap()).reason, expected, "{body}");
    }
}

#[test]
fn errors_among_chunks() {
    for body in [
        r#"{"error":{"message":"x"},"choices":[{"delta":{}}]}"#,
        r#"{"error":true}"#,
        r#"{"type":"error","code":"x"}"#,
        r#"{"object":"error","message":"x"}"#,
        r#"{"detail":"x"}"#,
        r#"[{"error":"x"}]"#,
        r#"{"success":false,"errors":[{"message":"x"}]}"#,
    ] {
        assert!(find(&serde_json::from_str(body).unwrap()).is_some(), "{body}");
    }
    for body in [
        r#"{"error":null,"choices":[]}"#,
        r#"{"error":"","choices":[]}"#,
        r#"{"error":{},"choices":[]}"#,
        r#"{"error":false}"#,
        r#"{"choices":[],"message":"x"}"#,
        r#"{"message":null}"#,
        r#"{"usage":{}}"#,
        "{}",
        "[]",
        "1",
    ] {
        assert!(find(&serde_json::from_str(body).unwrap()).is_none(), "{body}");
    }
}

#[test]
fn classes_within_a_reply() {
    for (body, expected) in [
        (r#"{"error":{"code":429,"message":"r"}}"#, Transient),
        (r#"{"error":{"code":"503","message":"r"}}"#, Transient),
        (r#"{"error":{"code":401,"message":"r"}}"#, Permanent),
        (r#"{"error":{"message":"r"},"status":400}"#, Permanent),
        (r#"{"error":{"code":429,"type":"insufficient_quota"}}"#, Permanent),
        (r#"{"error":{"code":"insufficient_quota"}}"#, Permanent),
        (r#"{"error":{"type":"invalid_request_error"}}"#, Permanent),
        (r#"{"error":{"code":"context_length_exceeded"}}"#, Permanent),
        (r#"{"error":{"type":"authentication_error"}}"#, Permanent),
        (r#"{"error":{"type":"server_error"}}"#, Transient),
        (r#"{"error":{"type":"overloaded_error"}}"#, Transient),
        (r#"{"error":{"code":null}}"#, Transient),
        (r#"{"error":"rate limited"}"#, Transient),
    ] {
        assert_eq!(find(&serde_json::from_str(body).unwrap()).unwrap().within_reply().class, expected, "{body}");
    }
}

#[test]
fn waits_within_a_reply() {
    for (body, expected) in [
        (r#"{"error":{"code":429,"message":"try again in 1.2s"}}"#, Some(1200)),
        (r#"{"error":{"code":400,"message":"try again in 1.2s"}}"#, None),
        (r#"{"error":{"code":429,"message":"later"}}"#, None),
    ] {
        let error = find(&serde_json::from_str(body).unwrap()).unwrap().within_reply();
        assert_eq!(error.retry_after, expected.map(std::time::Duration::from_millis), "{body}");
    }
}

#[test]
fn classes_by_status() {
    for status in [408, 409, 425, 429, 500, 502, 503, 504, 520, 521, 524, 529] {
        assert_eq!(class_of(status), Transient, "{status}");
    }
    for status in [301, 307, 400, 401, 402, 403, 404, 405, 413, 422] {
        assert_eq!(class_of(status), Permanent, "{status}");
    }
    let quota = describe(&serde_json::json!({ "error": { "code": "insufficient_quota" } }));
    assert_eq!((quota.class(429), quota.class(401)), (Permanent, Permanent));
    let limit = describe(&serde_json::json!({ "error": { "code": "rate_limit_exceeded" } }));
    assert_eq!((limit.class(429), limit.class(400)), (Transient, Permanent));
}

#[test]
fn lines_that_can_be_shown() {
    let long = "ä".repeat(301);
    for (text, expected) in [
        ("plain", "plain"),
        (" a\r\n\tb\u{1b}[31m\u{0}c ", "a b [31m c"),
        ("bad key sk-secret, sk-secret!", "bad key [key], [key]!"),
        ("<!DOCTYPE html><html><h1>502", "(HTML, 28 bytes)"),
        ("upstream: <HTML><h1>sk-secret", "upstream: (HTML, 15 bytes)"),
        (&long, &format!("{}…", "ä".repeat(300))),
    ] {
        assert_eq!(one_line(text, Some("sk-secret"), 300), expected);
    }
    // The cut is made after the key is gone, never through it.
    let near = format!("{}sk-secret", "x".repeat(298));
    assert_eq!(one_line(&near, Some("sk-secret"), 300), format!("{}[k…", "x".repeat(298)));
    assert_eq!(one_line("abc", Some(""), 300), "abc");
}
