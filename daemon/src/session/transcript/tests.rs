#![expect(clippy::unwrap_used, reason = "tests")]

use nano_protocol::id::{MessageId, TaskId};
use nano_protocol::message::{Message, NotRun, Outcome, Role, ToolCall};
use nano_protocol::task::Origin;
use nano_protocol::time::Timestamp;

use super::{fingerprint, fingerprints, first_role, not_run_text, project, with_repeat_warning};
use crate::model::ChatMessage;

fn message(role: Role, content: &str) -> Message {
    Message::text(MessageId("msg_1".into()), TaskId("tsk_1".into()), role, content, Timestamp(0))
}

fn from(source: &str, mut message: Message) -> Message {
    message.source = Some(source.into());
    message
}

fn call(id: &str, name: &str, arguments: &str) -> ToolCall {
    let (id, name) = (id.to_owned(), name.to_owned());
    ToolCall { id, name, arguments: serde_json::from_str(arguments).unwrap(), arguments_raw: None }
}

fn calls(content: &str, calls: &[ToolCall]) -> Message {
    let mut message = message(Role::Assistant, content);
    message.tool_calls = calls.to_vec();
    message
}

fn result(of: &str, content: &str) -> Message {
    let mut message = message(Role::Tool, content);
    (message.tool_call_id, message.tool_name, message.ok) = (Some(of.into()), Some("exec".into()), Some(true));
    message
}

/// Prints what the model is sent, one line for each message.
fn print(chat: &[ChatMessage]) -> Vec<String> {
    let ids = |calls: &[ToolCall]| calls.iter().map(|call| call.id.as_str()).collect::<Vec<_>>().join(" ");
    let line = |one: &ChatMessage| match one {
        ChatMessage::User(text) => format!("user: {text}"),
        ChatMessage::Assistant { text, calls } => format!("model: {text} {}", ids(calls)).trim_end().to_owned(),
        ChatMessage::Tool { id, name, text } => format!("{name} {id}: {text}"),
    };
    chat.iter().map(line).collect()
}

#[test]
fn whose_words_they_are_is_shown_to_the_model() {
    for (message, expected) in [
        (message(Role::User, "go"), "user: go"),
        (message(Role::Steering, "stop"), "user: [steering] stop"),
        (from("file", message(Role::Steering, "stop")), "user: [file] stop"),
        (message(Role::Followup, "wake"), "user: [follow-up] wake"),
        (from("followup fup_1", message(Role::Followup, "wake")), "user: [followup fup_1] wake"),
        (calls("", &[call("c1", "exec", "{}")]), "model:  c1"),
        (result("c1", "hi"), "exec c1: hi"),
    ] {
        assert_eq!(print(&project(&[message])), [expected]);
    }
}

#[test]
fn the_model_is_not_asked_to_go_on_with_its_own_reply() {
    let (user, text, asks) =
        (message(Role::User, "p"), message(Role::Assistant, "so far"), calls("", &[call("c1", "exec", "{}")]));
    let check = |messages: &[&Message], expected: &[&str]| {
        let messages: Vec<Message> = messages.iter().copied().cloned().collect();
        assert_eq!(print(&project(&messages)), expected);
    };
    check(&[], &[]);
    check(&[&text], &[]);
    check(&[&user, &text, &text], &["user: p"]);
    check(&[&user, &text, &user], &["user: p", "model: so far", "user: p"]);
    check(&[&user, &asks, &result("c1", "r"), &text], &["user: p", "model:  c1", "exec c1: r"]);
    // Calls are never left out: their results follow.
    check(&[&user, &asks], &["user: p", "model:  c1"]);
}

#[test]
fn a_task_begins_with_the_words_of_its_origin() {
    let roles = [Origin::User, Origin::Subagent, Origin::Followup, Origin::Steering].map(first_role);
    assert_eq!(roles, [Role::User, Role::User, Role::Followup, Role::Steering]);
}

#[test]
fn a_call_that_never_started_says_why() {
    let all = [NotRun::Redirect, NotRun::Cancel, NotRun::Length, NotRun::Restart, NotRun::Limit, NotRun::Denied];
    let mut texts = all.map(not_run_text).to_vec();
    assert!(texts.iter().all(|text| text.starts_with("Not run: ") && text.ends_with('.')), "{texts:?}");
    texts.sort();
    texts.dedup();
    assert_eq!(texts.len(), all.len());
}

#[test]
fn what_makes_a_call_the_same() {
    let one = call("c1", "exec", r#"{"command":"ls"}"#);
    let raw = ToolCall { arguments_raw: Some("{".into()), ..one.clone() };
    let same = |other: &ToolCall, result: &str| fingerprint(&one, "a\n") == fingerprint(other, result);
    assert!(same(&call("c2", "exec", r#"{"command":"ls"}"#), "a\n"), "the id does not count");
    assert!(same(&one, &with_repeat_warning("a\n", 3)), "nor does the warning");
    assert!(!same(&one, "b\n"));
    assert!(!same(&call("c1", "python", r#"{"command":"ls"}"#), "a\n"));
    assert!(!same(&call("c1", "exec", r#"{"command":"ls -l"}"#), "a\n"));
    assert!(!same(&raw, "a\n"));
}

#[test]
fn the_warning_names_the_time_and_leaves_the_result() {
    let warned = with_repeat_warning("out", 4);
    assert!(warned.starts_with("out\n[") && warned.contains("time 4"), "{warned}");
}

#[test]
fn repeats_are_read_back_from_the_transcript() {
    let (one, two) = (call("c1", "exec", "{}"), call("c2", "exec", "{}"));
    let not_run = Message { not_run: Some(NotRun::Limit), ..result("c1", "r") };
    let unknown = Message { outcome: Some(Outcome::Unknown), ..result("c1", "r") };
    let stopped = Message { outcome: Some(Outcome::Stopped), ..result("c1", "r") };
    let asks = calls("", &[one.clone(), two.clone()]);
    let seen = |results: &[Message]| fingerprints(&[&[message(Role::User, "p"), asks.clone()], results].concat());
    assert_eq!(seen(&[]), [0; 0]);
    assert_eq!(seen(&[result("c1", "r"), result("c2", &with_repeat_warning("r", 3))]), [fingerprint(&one, "r"); 2]);
    assert_eq!(seen(&[result("c2", "s"), result("c1", "r")]), [fingerprint(&two, "s"), fingerprint(&one, "r")]);
    assert_eq!(seen(&[not_run, unknown, stopped, result("c9", "r")]), [0; 0], "only what really came of a call counts");
}
