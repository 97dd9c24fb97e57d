#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::HashSet;
use std::sync::Mutex;

use serde_json::{Value, json};

use super::*;
use crate::model::Class;

/// What a reply comes to: its parts joined, or its error.
fn outcome(chunks: &[Value], complete: bool) -> Result<Answer, ProviderError> {
    let mut reply = Reply::default();
    for chunk in chunks {
        reply.push(chunk, &|_| {})?;
    }
    reply.finish(complete, 3, &HashSet::new())
}

fn says(delta: &Value) -> Value {
    json!({ "choices": [{ "index": 0, "delta": delta }] })
}

fn ends(reason: &Value) -> Value {
    json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] })
}

fn answer(text: &str, finish: Finish, tokens: (u64, u64)) -> Answer {
    let usage = Usage { input_tokens: tokens.0, output_tokens: tokens.1, cost: None };
    Answer { text: text.to_owned(), calls: vec![], finish, usage }
}

#[track_caller]
fn check(chunks: &[Value], text: &str, finish: Finish, tokens: (u64, u64)) {
    assert_eq!(outcome(chunks, true).unwrap(), answer(text, finish, tokens));
}

#[track_caller]
fn check_error(chunks: &[Value], complete: bool, class: Class, part: &str) {
    let error = outcome(chunks, complete).unwrap_err();
    assert!(error.class == class && error.message.contains(part), "{error:?}");
}

#[test]
fn usage_comes_anywhere() {
    let usage = |input: u64, output: u64| json!({ "prompt_tokens": input, "completion_tokens": output });
    let hi = says(&json!({ "content": "hi" }));
    check(
        &[hi.clone(), ends(&json!("stop")), json!({ "choices": [], "usage": usage(9, 3) })],
        "hi",
        Finish::Done,
        (9, 3),
    );
    let each = |n| json!({ "choices": [{ "delta": { "content": "a" } }], "usage": usage(9, n) });
    check(&[each(1), each(2), ends(&json!("stop")), json!({ "usage": null })], "aa", Finish::Done, (9, 2));
    let part = json!({ "choices": [], "usage": { "completion_tokens": 5, "prompt_tokens": null } });
    check(&[hi, json!({ "choices": [], "usage": usage(9, 3) }), part], "hi", Finish::Done, (9, 5));
}

#[test]
fn what_is_null_or_absent_or_odd_is_skipped() {
    let chunks = [
        json!({ "choices": [], "prompt_filter_results": [{}] }),
        json!({ "object": "chat.completion.chunk", "usage": null }),
        json!({ "choices": null, "error": null }),
        json!({ "choices": {}, "error": "" }),
        json!([]),
        json!({ "choices": [null, 1, {}, { "delta": null }, { "delta": "x" }, { "index": 0 }] }),
        says(&json!({ "role": "assistant", "content": null, "reasoning_content": null, "tool_calls": null })),
        says(&json!({ "content": "a", "refusal": null, "unknown": 1 })),
        json!({ "choices": [{ "delta": { "content": "b" }, "finish_reason": "" }] }),
        json!({ "choices": [{ "delta": { "content": [{ "type": "text", "text": "c" }, 1] }, "finish_reason": null }] }),
        says(&json!({ "content": 7 })),
        ends(&json!(7)),
    ];
    check(&chunks, "abc", Finish::Done, (0, 0));
}

#[test]
fn reasons_to_end() {
    for (reason, finish) in [
        ("stop", Finish::Done),
        ("end_turn", Finish::Done),
        ("eos", Finish::Done),
        ("tool_calls", Finish::Done),
        ("function_call", Finish::Done),
        ("never heard of", Finish::Done),
        ("length", Finish::Length),
        ("LENGTH", Finish::Length),
        ("max_tokens", Finish::Length),
        ("model_context_window_exceeded", Finish::Length),
        ("content_filter", Finish::Refused),
        ("refusal", Finish::Refused),
    ] {
        let chunks = [ends(&json!(reason)), says(&json!({ "content": "late" })), ends(&json!("stop"))];
        assert_eq!(outcome(&chunks, false).unwrap(), answer("late", finish, (0, 0)), "{reason}");
    }
    check(
        &[says(&json!({ "refusal": "I " })), says(&json!({ "refusal": "can't" }))],
        "I can't",
        Finish::Refused,
        (0, 0),
    );
}

#[test]
fn errors_within_a_reply() {
    let partial = says(&json!({ "content": "par" }));
    let both = json!({ "error": { "code": 429, "message": "r" }, "choices": [{ "delta": { "content": "" }, "finish_reason": "error" }] });
    check_error(&[partial.clone(), both], true, Class::Transient, "r");
    let bare = json!({ "error": { "message": "boom", "type": "server_error" } });
    check_error(&[partial.clone(), bare], false, Class::Transient, "boom");
    check_error(&[json!({ "error": "rate limited" })], true, Class::Transient, "rate limited");
    check_error(&[json!({ "error": { "code": "401", "message": "who" } })], true, Class::Permanent, "who");
    check_error(&[partial.clone(), ends(&json!("error"))], true, Class::Transient, "error");
    check_error(&[partial], false, Class::Transient, "truncated");
    check_error(&[], true, Class::Transient, "empty");
}

#[test]
fn a_whole_reply_is_one_chunk() {
    let call = json!({ "id": "c", "function": { "name": "f", "arguments": { "a": 1 } } });
    let message = json!({ "role": "assistant", "content": "", "tool_calls": [call] });
    let made = outcome(&[json!({ "choices": [{ "finish_reason": "stop", "message": message }] })], true).unwrap();
    let arguments = json!({ "a": 1 }).as_object().unwrap().clone();
    let call = nano_protocol::message::ToolCall { id: "c".into(), name: "f".into(), arguments, arguments_raw: None };
    assert_eq!(made, Answer { calls: vec![call], ..answer("", Finish::Done, (0, 0)) });
}

#[test]
fn text_of_a_call_is_no_call_and_no_call_is_done() {
    let printed = r#"{"name":"f","arguments":{}}"#;
    check(&[says(&json!({ "content": printed })), ends(&json!("stop"))], printed, Finish::Done, (0, 0));
    check(&[ends(&json!("tool_calls"))], "", Finish::Done, (0, 0));
}

#[test]
fn a_call_that_was_cut_has_no_arguments() {
    let call = json!([{ "index": 0, "id": "c", "function": { "name": "f", "arguments": "{\"path\":\"a" } }]);
    let made = outcome(&[says(&json!({ "tool_calls": call })), ends(&json!("length"))], true).unwrap();
    assert_eq!(made.finish, Finish::Length);
    assert_eq!((made.calls[0].arguments.len(), made.calls[0].arguments_raw.as_deref()), (0, Some("{\"path\":\"a")));
}

#[test]
fn pieces_are_shown_as_they_come() {
    let shown = Mutex::new(Vec::new());
    let sink = |delta| shown.lock().unwrap().push(delta);
    let mut reply = Reply::default();
    for delta in [
        json!({ "reasoning_content": "r1" }),
        json!({ "reasoning": "r2", "reasoning_content": "" }),
        json!({ "reasoning": "r3", "reasoning_content": "r3" }),
        json!({ "content": "<thi" }),
        json!({ "content": "nk>h" }),
        json!({ "content": "</think>a" }),
        json!({ "refusal": "no" }),
    ] {
        reply.push(&says(&delta), &sink).unwrap();
    }
    let reasoning = ["r1", "r2", "r3", "h"].map(|text| Delta::Reasoning(text.to_owned()));
    let text = ["a", "no"].map(|text| Delta::Text(text.to_owned()));
    assert_eq!(shown.into_inner().unwrap(), [&reasoning[..], &text[..]].concat());
}
