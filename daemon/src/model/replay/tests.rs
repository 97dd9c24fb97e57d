#![expect(clippy::unwrap_used, reason = "tests")]

use std::sync::Mutex;

use serde_json::json;

use super::*;

fn cassette(text: &str) -> Result<Replay, String> {
    Replay::parse("tape".to_owned(), text)
}

/// Plays reply `number` and returns it with the pieces that were shown.
async fn play(text: &str, number: usize) -> (Result<Answer, ProviderError>, Vec<String>) {
    let shown = Mutex::new(Vec::new());
    let sink = |delta| {
        if let Delta::Text(text) = delta {
            shown.lock().unwrap().push(text);
        }
    };
    let request = Request { system: String::new(), messages: vec![], tools: vec![], replies: number };
    let played = cassette(text).unwrap();
    let result = played.stream(&request, &sink).await;
    (result, shown.into_inner().unwrap())
}

#[tokio::test(start_paused = true)]
async fn turns_play_by_number() {
    let tape = concat!(
        "{\"text\":\"first\",\"usage\":{\"input_tokens\":3,\"output_tokens\":2}}\n\n",
        "{\"calls\":[{\"name\":\"f\",\"arguments\":{\"a\":1}},{\"id\":\"x\",\"name\":\"g\"},{\"name\":\"h\",\"arguments\":\"{\\\"a\"}]}\n",
        "{\"text\":\"é技é技é\",\"finish\":\"length\",\"delay_ms\":5000,\"chunk_delay_ms\":100}\r\n",
        "{\"finish\":\"refused\"}",
    );
    let (first, _) = play(tape, 0).await;
    let usage = Usage { input_tokens: 3, output_tokens: 2, cost: None };
    assert_eq!(first.unwrap(), Answer { text: "first".to_owned(), calls: vec![], finish: Finish::Done, usage });
    let calls = play(tape, 1).await.0.unwrap().calls;
    let arguments = |object: Value| object.as_object().unwrap().clone();
    let expected = [
        ("call_1_0", "f", json!({ "a": 1 }), None),
        ("x", "g", json!({}), None),
        ("call_1_2", "h", json!({}), Some("{\"a".to_owned())),
    ]
    .map(|(id, name, object, arguments_raw)| ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: arguments(object),
        arguments_raw,
    });
    assert_eq!(calls, expected);
    let start = tokio::time::Instant::now();
    let (cut, pieces) = play(tape, 2).await;
    assert_eq!((cut.unwrap().finish, pieces.concat().as_str(), pieces.len()), (Finish::Length, "é技é技é", 3));
    assert_eq!(start.elapsed(), Duration::from_millis(5300));
    assert_eq!(play(tape, 3).await.0.unwrap().finish, Finish::Refused);
    let over = play(tape, 4).await.0.unwrap_err();
    assert_eq!(
        (over.class, over.message.as_str()),
        (Class::Permanent, "the cassette tape has 4 turns and this is reply 5")
    );
}

#[tokio::test]
async fn a_turn_may_fail() {
    let tape =
        "{\"text\":\"par\",\"error\":{\"message\":\"busy\",\"transient\":true}}\n{\"error\":{\"message\":\"no\"}}";
    let (busy, pieces) = play(tape, 0).await;
    let busy = busy.unwrap_err();
    assert_eq!((busy.class, busy.message.as_str(), pieces.concat().as_str()), (Class::Transient, "busy", "par"));
    let no = play(tape, 1).await.0.unwrap_err();
    assert_eq!((no.class, no.message.as_str()), (Class::Permanent, "no"));
}

#[test]
fn mistakes_are_named_with_their_place() {
    for (text, expected) in [
        ("{}\nx", "tape:2: expected value"),
        ("\n{\"txt\":\"a\"}", "tape:2: unknown field `txt`"),
        ("{\"finish\":\"stop\"}", "tape:1: unknown variant `stop`"),
        ("{\"calls\":[{}]}", "tape:1: missing field `name`"),
        (
            "{\"calls\":[{\"name\":\"f\",\"arguments\":[1]}]}",
            "tape:1: arguments of `f` are neither an object nor a string: [1]",
        ),
        (
            "{\"calls\":[{\"id\":\"a\",\"name\":\"f\"},{\"id\":\"a\",\"name\":\"g\"}]}",
            "tape:1: two calls have the id `a`",
        ),
        ("{\"error\":\"x\"}", "tape:1: invalid type"),
    ] {
        let error = cassette(text).unwrap_err();
        assert!(error.starts_with(expected), "{error}");
    }
    let missing = Replay::open(Path::new("/nowhere/tape.jsonl")).unwrap_err();
    assert!(missing.starts_with("/nowhere/tape.jsonl: No such file"), "{missing}");
}
