#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::HashSet;

use proptest::prelude::*;

use super::Intake;
use crate::model::{Answer, Class, Finish, ProviderError};

const HI: &str = r#"{"choices":[{"delta":{"content":"hi"}}]}"#;
const STOP: &str = r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#;
const WHOLE: &str = r#"{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}"#;

fn read<'a>(reads: impl IntoIterator<Item = &'a [u8]>) -> Result<Answer, ProviderError> {
    let mut intake = Intake::default();
    for bytes in reads {
        if intake.push(bytes, &|_| {})? {
            break;
        }
    }
    intake.finish(&|_| {}, 0, &HashSet::new())
}

/// In one read and byte by byte: the answer's text, or the error's class and a part of its message.
fn check(body: &str, expected: Result<&str, (Class, &str)>) {
    for size in [1, 7, body.len().max(1)] {
        match (read(body.as_bytes().chunks(size)), expected) {
            (Ok(answer), Ok(text)) => assert_eq!(answer.text, text, "{body}"),
            (Err(error), Err((class, part))) => {
                assert!(error.class == class && error.message.contains(part), "{body}: {error:?}");
            }
            (got, _) => unreachable!("{body}: {got:?}"),
        }
    }
}

#[test]
fn streams() {
    for body in [
        format!("data: {HI}\n\ndata: {STOP}\n\ndata: [DONE]\n\n"),
        format!(": PROCESSING\n\ndata: {HI}\n\n: PROCESSING\n\ndata: {STOP}\n\ndata: [DONE]"),
        format!("data: {HI}\n\ndata: {STOP}\n\n"),
        format!("data: {HI}\n\ndata: {STOP}"),
        format!("data: {HI}\n\ndata: [DONE]\n\n"),
        format!("data: {STOP}\n\ndata: {HI}\n\ndata:[DONE]\n\n"),
        format!("data: {HI}\n\ndata: {STOP}\n\ndata: {{\"choices\":[],\"usa"),
        format!("data: {HI}\n\ndata: [DONE]\n\ndata: {{\"error\":\"too late\"}}\n\ndata: {HI}\n\n"),
        format!("data: ping\n\ndata:\n\ndata: {HI}\n\ndata: {STOP}\n\n"),
        format!("data: {HI}\ndata: {STOP}\ndata: [DONE]\n"),
        format!("event: message\r\ndata: {HI}\r\n\r\ndata: {STOP}\r\n\r\n"),
        "data: {\"choices\":[\ndata: {\"delta\":{\"content\":\"hi\"}}]}\n\ndata: [DONE]\n\n".to_owned(),
    ] {
        check(&body, Ok("hi"));
    }
}

#[test]
fn truncated_streams() {
    for body in [
        String::new(),
        ": PROCESSING\n\n: PROCESSING\n\n".to_owned(),
        "data: ping\n\n".to_owned(),
        format!("data: {HI}\n\n"),
        format!("data: {HI}\n\ndata: {{\"choices\":[{{\"del"),
        r#"{"choices":[{"message":{"content":"h"#.to_owned(),
    ] {
        check(&body, Err((Class::Transient, "truncated")));
    }
    check("data: [DONE]\n\n", Err((Class::Transient, "empty")));
}

#[test]
fn documents() {
    for body in [
        WHOLE.to_owned(),
        format!("\n\n  {WHOLE}\n"),
        format!("\u{feff}{WHOLE}"),
        format!(": PROCESSING\n\n: PROCESSING\n\n{WHOLE}"),
        WHOLE.replace(',', ",\n"),
        format!("{HI}\n{STOP}\n"),
    ] {
        check(&body, Ok("hi"));
    }
    for (body, class, part) in [
        (r#"{"error":{"message":"x"}}"#, Class::Transient, "reports: x"),
        (r#"[{"error":{"message":"x","code":400}}]"#, Class::Permanent, "reports: x"),
        (r#"{"detail":"no such path"}"#, Class::Transient, "no such path"),
        (": c\n\n{\"error\":\"x\"}", Class::Transient, "reports: x"),
        (r#"{"models":[]}"#, Class::Permanent, "no completion (13 bytes); check base_url"),
        ("<!DOCTYPE html><html>\ndata: x\n\n</html>", Class::Permanent, "HTML (38 bytes); check base_url"),
        ("Welcome to nginx", Class::Permanent, "neither JSON nor an event stream (16 bytes)"),
    ] {
        check(body, Err((class, part)));
    }
}

#[test]
fn the_end_is_told() {
    let mut intake = Intake::default();
    assert!(!intake.push(format!("data: {STOP}\n\n").as_bytes(), &|_| {}).unwrap());
    assert!(intake.has_ended());
    assert!(intake.push(b"data: [DONE]\n\n", &|_| {}).unwrap());
}

#[test]
fn recordings() {
    let text = include_bytes!("../../../tests/fixtures/model/llamacpp-text.txt");
    let after = include_bytes!("../../../tests/fixtures/model/llamacpp-after-tool.txt");
    for (body, expected, tokens) in [
        (&text[..], "Hello, I'm here to help with any creative writing project.", (37, 14)),
        (&after[..], "The output is hi.", (309, 6)),
    ] {
        let answer = read([body]).unwrap();
        let usage = (answer.usage.input_tokens, answer.usage.output_tokens);
        assert_eq!((answer.text.as_str(), answer.calls.len(), usage), (expected, 0, tokens));
    }
    let llama = include_bytes!("../../../tests/fixtures/model/llamacpp-tool-enum.txt");
    let passed = include_bytes!("../../../tests/fixtures/model/litellm-openai-passthrough.txt");
    let whole = include_bytes!("../../../tests/fixtures/model/litellm-tool-whole.txt");
    for (body, id) in
        [(&llama[..], "EmTdcIXjNtcd5LygnKjIwbJtGqd6VAx3"), (&passed[..], "call_128"), (&whole[..], "call_abc123")]
    {
        let answer = read(body.chunks(5)).unwrap();
        let call = &answer.calls[0];
        assert_eq!((answer.calls.len(), call.id.as_str(), call.name.as_str()), (1, id, "shell"));
        assert_eq!(call.arguments, *serde_json::json!({ "command": "echo hi" }).as_object().unwrap());
    }
    let empty = include_bytes!("../../../tests/fixtures/model/litellm-tool.txt");
    let answer = read([&empty[..]]).unwrap();
    assert_eq!((answer.text.as_str(), answer.finish), ("", Finish::Done));
}

proptest! {
    #[test]
    fn any_chunking_gives_the_same_answer(cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..40)) {
        let body = include_bytes!("../../../tests/fixtures/model/llamacpp-tool-enum.txt");
        let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(body.len() + 1)).collect();
        places.extend([0, body.len()]);
        places.sort_unstable();
        let reads = places.windows(2).map(|pair| &body[pair[0]..pair[1]]);
        prop_assert_eq!(read(reads).unwrap(), read([&body[..]]).unwrap());
    }
}
