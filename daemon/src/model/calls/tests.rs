#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::HashSet;

use nano_protocol::message::ToolCall;
use proptest::prelude::*;

use super::{Calls, arguments};

/// Puts the deltas together and prints each call as `id name arguments`, malformed arguments in angle brackets.
fn calls(deltas: &[&str], taken: &[&str]) -> Vec<String> {
    let mut calls = Calls::default();
    for delta in deltas {
        calls.push(&serde_json::from_str(delta).unwrap());
    }
    let taken: HashSet<&str> = taken.iter().copied().collect();
    calls.finish(7, &taken).iter().map(print).collect()
}

fn print(call: &ToolCall) -> String {
    let object = serde_json::to_string(&call.arguments).unwrap();
    let arguments = call.arguments_raw.as_ref().map_or(object, |raw| format!("<{raw}>"));
    format!("{} {} {arguments}", call.id, call.name)
}

fn check(deltas: &[&str], expected: &[&str]) {
    assert_eq!(calls(deltas, &[]), expected, "{deltas:#?}");
}

#[test]
fn slots() {
    // No index: by id, else the last one.
    check(
        &[
            r#"[{"id":"c1","function":{"name":"f","arguments":"{\"a\""}}]"#,
            r#"[{"function":{"arguments":":1}"}}]"#,
            r#"[{"id":"c2","function":{"name":"g","arguments":"{"}}]"#,
            r#"[{"id":"c2","function":{"arguments":"}"}}]"#,
        ],
        &[r#"c1 f {"a":1}"#, "c2 g {}"],
    );
    // No index on several calls of one chunk, with and without ids, whole or continued.
    check(
        &[
            r#"[{"id":"a","function":{"name":"f","arguments":"{"}},{"id":"b","function":{"name":"g","arguments":"{"}}]"#,
            r#"[{"function":{"arguments":"}"}},{"function":{"arguments":"}"}}]"#,
        ],
        &["a f {}", "b g {}"],
    );
    check(
        &[r#"[{"function":{"name":"f","arguments":"{}"}},{"function":{"name":"g","arguments":"{}"}}]"#],
        &["call_7_0 f {}", "call_7_1 g {}"],
    );
    check(
        &[r#"[{"function":{"name":"f","arguments":"{}"}}]"#, r#"[{"function":{"name":"g","arguments":""}}]"#],
        &["call_7_0 f {}", "call_7_1 g {}"],
    );
    // Null, textual, late and gapped indexes.
    check(&[r#"[{"index":null,"id":"c1","function":{"name":"f"}}]"#], &["c1 f {}"]);
    check(
        &[
            r#"[{"index":3,"id":"b","function":{"name":"g","arguments":"{"}}]"#,
            r#"[{"index":"1","id":"a","function":{"name":"f","arguments":"{}"}}]"#,
            r#"[{"index":3,"function":{"arguments":"}"}}]"#,
        ],
        &["a f {}", "b g {}"],
    );
    // One index twice in one chunk.
    check(
        &[r#"[{"index":0,"id":"c","function":{"name":"f","arguments":"{"}},{"index":0,"function":{"arguments":"}"}}]"#],
        &["c f {}"],
    );
    // Every call is number 0.
    check(
        &[
            r#"[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]"#,
            r#"[{"index":0,"id":"b","function":{"name":"f","arguments":"{}"}}]"#,
            r#"[{"index":0,"id":"c","function":{"name":"g","arguments":""}}]"#,
            r#"[{"index":0,"id":"d","function":{"name":"g","arguments":"{}"}}]"#,
        ],
        &["a f {}", "b f {}", "c g {}", "d g {}"],
    );
    // A call that is no array.
    check(&[r#"{"id":"a","function":{"name":"f","arguments":"{}"}}"#, "null", "7"], &["a f {}"]);
    check(&[r#"[{"index":0,"id":"a"}]"#, "[null, 1, {}]"], &[]);
}

#[test]
fn glued_objects_never_run() {
    check(
        &[
            r#"[{"index":0,"id":"c","function":{"name":"f","arguments":"{\"q\":\"A\"}"}}]"#,
            r#"[{"index":0,"function":{"arguments":"{\"q\":\"B\"}"}}]"#,
        ],
        &[r#"c f <{"q":"A"}{"q":"B"}>"#],
    );
    // With a name of its own the second is a call of its own.
    check(
        &[
            r#"[{"index":0,"function":{"name":"f","arguments":"{\"q\":\"A\"}"}}]"#,
            r#"[{"index":0,"function":{"name":"f","arguments":"{\"q\":\"B\"}"}}]"#,
        ],
        &[r#"call_7_0 f {"q":"A"}"#, r#"call_7_1 f {"q":"B"}"#],
    );
}

#[test]
fn ids() {
    let one = |id: &str| format!(r#"[{{"index":0,"id":{id},"function":{{"name":"f","arguments":"{{}}"}}}}]"#);
    for (id, expected) in [
        (r#""c1""#, "c1"),
        (r#""functions.f:0""#, "functions.f:0"),
        (r#""""#, "call_7_0"),
        (r#"" ""#, "call_7_0"),
        ("null", "call_7_0"),
        ("17", "17"),
        (&format!("{:?}", "x".repeat(64)), &"x".repeat(64)),
        (&format!("{:?}", "x".repeat(65)), "call_7_0"),
    ] {
        check(&[&one(id)], &[&format!("{expected} f {{}}")]);
    }
    check(
        &[
            r#"[{"index":0,"id":"c1","function":{"name":"f","arguments":"{"}}]"#,
            r#"[{"index":0,"id":"c1","function":{"arguments":"}"}}]"#,
            r#"[{"index":0,"id":"c1"}]"#,
        ],
        &["c1 f {}"],
    );
    // Doubled in the reply, used before in the session, or just like one that is made.
    check(
        &[r#"[{"index":0,"id":"c","function":{"name":"f"}},{"index":1,"id":"c","function":{"name":"g"}}]"#],
        &["c f {}", "call_7_1 g {}"],
    );
    assert_eq!(calls(&[&one(r#""c""#)], &["c", "call_7_0"]), ["call_7_1000 f {}"]);
    check(
        &[r#"[{"index":0,"id":"call_7_1","function":{"name":"f"}},{"index":1,"function":{"name":"g"}}]"#],
        &["call_7_1 f {}", "call_7_1001 g {}"],
    );
}

#[test]
fn names_and_arguments_in_any_order() {
    check(
        &[r#"[{"index":0,"id":"c","function":{"name":"edit_ex"}}]"#, r#"[{"index":0,"function":{"name":"isting"}}]"#],
        &["c edit_existing {}"],
    );
    check(
        &[
            r#"[{"index":0,"id":"c","function":{"name":"f","arguments":""}}]"#,
            r#"[{"index":0,"function":{"name":"f","arguments":"{\"a\":"}}]"#,
            r#"[{"index":0,"function":{"name":"f","arguments":"1}"}}]"#,
            r#"[{"index":0,"function":{"name":"f","arguments":""}}]"#,
        ],
        &[r#"c f {"a":1}"#],
    );
    check(
        &[
            r#"[{"index":0,"id":"c","function":{"arguments":"{"}}]"#,
            r#"[{"function":{"name":"f"}}]"#,
            r#"[{"index":0,"function":{"arguments":"}"}}]"#,
        ],
        &["c f {}"],
    );
    check(&[r#"[{"index":0,"id":"c","function":{"name":"f","arguments":{"a":[1]}}}]"#], &[r#"c f {"a":[1]}"#]);
    check(&[r#"[{"index":0,"id":"c","type":"custom","function":{"name":"f","arguments":null}}]"#], &["c f {}"]);
}

#[test]
fn decoded_arguments() {
    let deep = format!("{}1{}", r#"{"a":"#.repeat(65), "}".repeat(65));
    for (text, expected) in [
        (r#"{"b":1,"a":{}}"#, Ok(r#"{"b":1,"a":{}}"#)),
        (" \n{} ", Ok("{}")),
        ("", Ok("{}")),
        (r#""{\"a\":1}""#, Ok(r#"{"a":1}"#)),
        (r#""ls""#, Err(())),
        (r#""\"{}\"""#, Err(())),
        ("[]", Err(())),
        ("null", Err(())),
        ("1", Err(())),
        ("{", Err(())),
        (r#"{"path":"a"#, Err(())),
        ("{}{}", Err(())),
        ("{} x", Err(())),
        (r#"{"a":1,"a":2}"#, Err(())),
        ("{'a':1}", Err(())),
        (&deep, Err(())),
    ] {
        let (object, raw) = arguments(text.to_owned());
        let printed = serde_json::to_string(&object).unwrap();
        assert_eq!((printed.as_str(), raw.as_deref()), (expected.unwrap_or("{}"), expected.err().map(|()| text)));
    }
}

proptest! {
    #[test]
    fn any_split_of_the_arguments_gives_the_same_call(
        text in "[a-z{}\\\\\" é技]{0,20}",
        size in 1usize..8,
    ) {
        let whole = serde_json::json!({ "text": text }).to_string();
        let letters: Vec<char> = whole.chars().collect();
        let mut calls = Calls::default();
        calls.push(&serde_json::json!([{ "index": 0, "id": "c", "function": { "name": "f", "arguments": "" } }]));
        for piece in letters.chunks(size) {
            let piece: String = piece.iter().collect();
            calls.push(&serde_json::json!([{ "index": 0, "function": { "arguments": piece } }]));
        }
        let made = calls.finish(0, &HashSet::new());
        prop_assert_eq!(made.len(), 1);
        prop_assert_eq!(serde_json::to_string(&made[0].arguments).unwrap(), whole);
    }
}
