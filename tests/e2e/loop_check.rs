//! What must have come of a case of the loop, and what must hold after every one.

use std::collections::BTreeMap;

use nano_protocol::event::{Event, EventType};
use nano_protocol::message::{Message, Role};
use nano_protocol::task::{Reason, Task};
use nano_tests::transcript;
use serde::Deserialize;
use serde_json::Value;

use crate::loop_case::Run;

/// What a case expects; what is absent is not looked at.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Expect {
    /// The transcripts that are right; a token with `?` may be absent.
    transcript: Vec<String>,
    /// How many requests reach the model, at least and at most.
    requests: Option<[usize; 2]>,
    /// Whether there is one request more than there are events `model.retry`.
    all_retried: bool,
    tasks: Vec<TaskEnd>,
    /// The types of the session's durable events from the first task on, in order.
    events: Vec<EventType>,
    counts: BTreeMap<String, usize>,
    never_started: Vec<String>,
    /// What the results of calls must say.
    says: BTreeMap<String, Vec<String>>,
    /// What the results of calls must not say.
    hides: BTreeMap<String, Vec<String>>,
    /// Files of the workspace with their content; null: must not exist.
    files: BTreeMap<String, Option<String>>,
    /// Calls without output events once they have finished.
    silent_after_end: Vec<String>,
    /// What the last request to the model must hold.
    last_request_says: Vec<String>,
}

#[derive(Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
struct TaskEnd {
    content: String,
    #[serde(default = "user")]
    origin: String,
    state: String,
    reason: Option<String>,
    result: Option<String>,
}

fn user() -> String {
    "user".to_owned()
}

/// Checks a case that has come to rest.
pub fn check(run: &mut Run, expect: &Expect) {
    let session = run.session.clone();
    let messages = transcript::read(run.client(), &session);
    transcript::check_pairs(&messages, false);
    let rendered = transcript::render(&messages);
    let fits = expect.transcript.is_empty() || expect.transcript.iter().any(|one| transcript::fits(one, &rendered));
    assert!(fits, "the transcript is\n  {rendered}\nbut should be\n  {}", expect.transcript.join("\n  or "));
    check_tasks(&run.tasks(), &expect.tasks);
    check_texts(&messages, expect);
    check_events(&run.events, &messages, expect);
    check_requests(&run.server.requests(), &run.events, expect);
    for (name, content) in &expect.files {
        let found = std::fs::read_to_string(run.daemon.workspace().join(name)).ok();
        assert_eq!(&found, content, "the file {name}");
    }
}

fn check_tasks(tasks: &[Task], expected: &[TaskEnd]) {
    let end = |(task, want): (&Task, &TaskEnd)| TaskEnd {
        content: task.content.clone(),
        origin: task.origin.to_string(),
        state: task.state.to_string(),
        reason: task.reason.as_ref().map(Reason::to_string),
        result: if want.result.is_some() { task.result.clone() } else { None },
    };
    let found: Vec<_> = tasks.iter().zip(expected).map(end).collect();
    assert_eq!(found, expected);
    assert!(expected.is_empty() || tasks.len() == expected.len(), "further tasks: {tasks:?}");
}

fn check_texts(messages: &[Message], expect: &Expect) {
    let text = |call: &String| {
        let result = messages.iter().find(|message| message.tool_call_id.as_ref() == Some(call));
        result.unwrap_or_else(|| panic!("no result of {call}")).content.clone()
    };
    for (call, part) in parts(&expect.says) {
        assert!(text(call).contains(part), "{call} should say `{part}`: {}", text(call));
    }
    for (call, part) in parts(&expect.hides) {
        assert!(!text(call).contains(part), "{call} should not say `{part}`: {}", text(call));
    }
}

fn parts(texts: &BTreeMap<String, Vec<String>>) -> impl Iterator<Item = (&String, &String)> {
    texts.iter().flat_map(|(call, parts)| parts.iter().map(move |part| (call, part)))
}

fn check_requests(requests: &[Value], events: &[Event], expect: &Expect) {
    if let Some([least, most]) = expect.requests {
        assert!((least..=most).contains(&requests.len()), "{} requests, not {least} to {most}", requests.len());
    }
    let retries = events.iter().filter(|event| event.kind == EventType::ModelRetry).count();
    if expect.all_retried {
        assert_eq!((requests.len(), retries > 0), (retries + 1, true), "requests and retries");
    }
    let last = requests.last().map(Value::to_string).unwrap_or_default();
    for part in &expect.last_request_says {
        assert!(last.contains(part), "the last request should say `{part}`: {last}");
    }
}

fn check_events(events: &[Event], messages: &[Message], expect: &Expect) {
    let durable: Vec<&Event> = events.iter().filter(|event| event.kind.is_durable()).collect();
    let numbered = durable.iter().all(|event| event.seq.is_some());
    assert!(numbered && durable.is_sorted_by(|a, b| a.seq < b.seq), "events without rising numbers: {durable:?}");
    if !expect.events.is_empty() {
        let about_tasks = |kind: &EventType| !kind.as_str().starts_with("session.") && *kind != EventType::Warning;
        let kinds: Vec<_> = durable.iter().map(|event| event.kind).filter(about_tasks).collect();
        assert_eq!(kinds, expect.events);
    }
    for (kind, count) in &expect.counts {
        let found = events.iter().filter(|event| event.kind.as_str() == kind).count();
        assert_eq!(found, *count, "events {kind}");
    }
    for call in &expect.never_started {
        assert!(!started(events, call), "{call} was started");
    }
    for result in messages.iter().filter(|message| message.role == Role::Tool && message.not_run.is_some()) {
        let call = result.tool_call_id.as_deref().unwrap_or_default();
        assert!(!started(events, call), "{call} was started though it says `not_run`");
    }
    for call in &expect.silent_after_end {
        check_silent(events, call);
    }
}

fn check_silent(events: &[Event], call: &str) {
    let end = events.iter().position(|event| event.kind == EventType::ToolFinished && names(event, call));
    let end = end.unwrap_or_else(|| panic!("{call} never finished"));
    let late = events[end..].iter().find(|event| event.kind == EventType::ToolOutput && names(event, call));
    assert!(late.is_none(), "{call} had output after its end: {late:?}");
}

/// Tells whether a call has started.
pub fn started(events: &[Event], call: &str) -> bool {
    events.iter().any(|event| event.kind == EventType::ToolStarted && names(event, call))
}

/// Tells whether an event is about a call: some text in its data is the call's id.
fn names(event: &Event, call: &str) -> bool {
    fn holds(value: &Value, call: &str) -> bool {
        match value {
            Value::String(text) => text == call,
            Value::Array(values) => values.iter().any(|value| holds(value, call)),
            Value::Object(members) => members.values().any(|value| holds(value, call)),
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }
    holds(&event.data, call)
}
