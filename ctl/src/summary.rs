//! Says on one short line what a call, an event or a result is about.

use nano_protocol::Object;
use nano_protocol::approval::Approval;
use nano_protocol::event::{Event, EventType};
use nano_protocol::message::{Message, NotRun, Role};
use nano_protocol::task::{Task, TaskState};
use serde_json::Value;

use crate::visible::{cut, first_line, one_line};

const LABEL: usize = 100;

/// Returns a call: the tool and the first of its arguments that is a text.
pub fn label(name: &str, arguments: Option<&Object>) -> String {
    let first = arguments.and_then(|object| object.values().find_map(Value::as_str)).unwrap_or_default();
    cut(one_line(&format!("{name} {first}")).trim_end(), LABEL)
}

/// Returns what an event's data says: its message, else the first text in it, else each member with its value.
pub fn brief(data: &Value) -> String {
    let said = match data {
        Value::Null => String::new(),
        Value::String(said) => said.clone(),
        Value::Object(object) => spoken(object),
        other => other.to_string(),
    };
    cut(&first_line(&said), 2 * LABEL)
}

/// Returns how a call failed: how its result begins, and the note in brackets that a program's end leaves there.
pub fn failing(message: &Message) -> Option<String> {
    if message.ok != Some(false) || message.not_run.is_some() {
        return None;
    }
    let mut lines = message.content.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next()?;
    let end = lines.next_back().filter(|line| line.starts_with('[')).unwrap_or_default();
    let room = LABEL.saturating_sub(end.chars().count() + 1);
    Some(cut(one_line(&format!("{} {end}", cut(first, room))).trim_end(), LABEL))
}

/// Returns what an event tells beside its type and what it is about.
pub fn summary(event: &Event) -> String {
    let data = &event.data;
    let said = match event.kind {
        EventType::TaskQueued | EventType::TaskStarted => member(data, "task").map(|task: Task| task.content),
        EventType::TaskFinished | EventType::TaskInterrupted => member(data, "task").map(|task| ended(&task)),
        EventType::TurnStarted | EventType::TurnFinished => data.get("turn").map(|turn| format!("turn {turn}")),
        EventType::MessageAdded => member(data, "message").map(|message| said(&message)),
        EventType::ToolStarted => Some(label(text(data, "name"), data.get("arguments").and_then(Value::as_object))),
        EventType::ToolFinished => Some(marked(data.get("ok") == Some(&Value::Bool(true)), text(data, "name"))),
        EventType::ApprovalRequested | EventType::ApprovalAnswered => member(data, "approval").map(|it: Approval| {
            let Approval { id, state, what, .. } = it;
            format!("{id} {state}: {what}")
        }),
        EventType::SkillChanged => Some(skills(data)),
        EventType::ModelRetry => {
            let delay = data.get("delay_ms").and_then(Value::as_u64).unwrap_or(0);
            Some(format!("again in {delay} ms: {}", text(data, "error")))
        }
        _ => None,
    };
    cut(&first_line(&said.unwrap_or_else(|| brief(data))), 2 * LABEL)
}

/// Says what became of each skill.
fn skills(data: &Value) -> String {
    let all = data.get("skills").and_then(Value::as_array).into_iter().flatten();
    all.map(|skill| format!("{} {}", text(skill, "name"), text(skill, "became"))).collect::<Vec<_>>().join(", ")
}

/// Returns the text in a member, empty where there is none.
pub fn text<'v>(data: &'v Value, key: &str) -> &'v str {
    data.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Returns an object in a member.
pub fn member<T: serde::de::DeserializeOwned>(data: &Value, key: &str) -> Option<T> {
    serde_json::from_value(data.get(key)?.clone()).ok()
}

fn spoken(object: &Object) -> String {
    let said = ["message", "error", "reason", "text", "why"].iter().find_map(|key| object.get(*key)?.as_str());
    let pair = |(key, value): (&String, &Value)| match value {
        Value::Null => None,
        Value::Object(inner) => Some(named(inner)),
        Value::Array(items) if items.is_empty() => None,
        Value::Array(items) => Some(format!("{key} {}", items.iter().map(plain).collect::<Vec<_>>().join(","))),
        Value::String(id) if key == "followup" || key == "task" => Some(id.clone()),
        value => Some(format!("{key} {}", plain(value))),
    };
    said.map_or_else(|| object.iter().filter_map(pair).collect::<Vec<_>>().join(", "), str::to_owned)
}

/// Returns an object of the daemon: its id, and its name or what it is to say.
fn named(object: &Object) -> String {
    let words = ["id", "name", "content"].into_iter().filter_map(|key| object.get(key)?.as_str());
    let words: Vec<_> = words.take(2).collect();
    if words.is_empty() { spoken(object) } else { words.join(" ") }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Object(object) => named(object),
        other => other.to_string(),
    }
}

fn ended(task: &Task) -> String {
    let reason = task.reason.map_or(String::new(), |reason| format!(" ({reason})"));
    let error = task.error.as_ref().map_or(String::new(), |error| format!(": {}", error.message));
    marked(task.state == TaskState::Succeeded, &format!("{}{reason}{error}", task.state))
}

fn said(message: &Message) -> String {
    let calls = message.tool_calls.iter().map(|call| format!("-> {}", label(&call.name, Some(&call.arguments))));
    let calls = calls.collect::<Vec<_>>().join(", ");
    let how = message.not_run.map(NotRun::as_str).map_or(String::new(), |why| format!(" ({why})"));
    let who = match (message.role, &message.tool_name) {
        (Role::Tool, Some(tool)) => tool.clone(),
        (role, _) => role.to_string(),
    };
    let text = if message.content.trim().is_empty() { calls } else { first_line(&message.content) };
    format!("{who}{how}: {text}")
}

fn marked(good: bool, text: &str) -> String {
    format!("{} {text}", if good { "✓" } else { "✗" })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::expect_used, reason = "tests")]

    use serde_json::json;

    use super::{brief, failing, label, summary};

    #[test]
    fn labels() {
        for (name, arguments, expected) in [
            ("exec", json!({"timeout": 3, "command": "ls\n-la"}), "exec ls\\n-la"),
            ("datetime", json!({}), "datetime"),
            ("\u{1b}c", json!({"x": 1}), "\\x1bc"),
        ] {
            assert_eq!(label(name, arguments.as_object()), expected);
        }
    }

    #[test]
    fn briefs() {
        for (data, expected) in [
            (json!("gone"), "gone"),
            (json!({"kind": "model", "message": "overloaded"}), "overloaded"),
            (json!({"from": 1, "to": 3}), "from 1, to 3"),
            (json!({"added": ["exec", "python"], "removed": [], "revision": 2}), "added exec,python, revision 2"),
            (json!({"session": {"id": "ses_1", "name": "web", "agent": "default"}}), "ses_1 web"),
            (json!({"session": {"id": "ses_1", "name": null}}), "ses_1"),
            (json!({"followup": {"id": "fup_1", "content": "look"}}), "fup_1 look"),
            (json!({"followup": "fup_1", "slot": "S", "task": "tsk_1"}), "fup_1, slot S, tsk_1"),
            (json!({"deep": {"er": {"x": true}}}), "x true"),
            (json!(null), ""),
        ] {
            assert_eq!(brief(&data), expected);
        }
    }

    #[test]
    fn failures_of_calls() {
        for (content, more, expected) in [
            ("boom\nmore\n[exit status 1]", json!({}), Some("boom [exit status 1]")),
            ("(no output)\n\n[exit status 1]\n", json!({}), Some("(no output) [exit status 1]")),
            ("there is no file x", json!({}), Some("there is no file x")),
            ("fine", json!({"ok": true}), None),
            ("not run", json!({"not_run": "redirect"}), None),
            ("", json!({}), None),
        ] {
            let mut message = json!({"id": "msg_1", "seq": 1, "task": "tsk_1", "role": "tool", "ok": false, "at": "2027-01-31T08:00:00.000Z"});
            message["content"] = json!(content);
            message.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
            let message = serde_json::from_value(message).expect("a message");
            assert_eq!(failing(&message).as_deref(), expected, "{content}");
        }
    }

    #[test]
    fn summaries_are_short_and_no_json() {
        let task = |state: &str, more: serde_json::Value| {
            let mut task = json!({"id": "tsk_1", "seq": 1, "session": "ses_1", "origin": "user", "content": "fix\nit", "usage": {"input_tokens": 0, "output_tokens": 0}, "turns": 1, "metadata": {}, "created_at": "2027-01-31T08:00:00.000Z", "state": state});
            task.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
            json!({ "task": task })
        };
        let error = json!({"reason": "error", "error": {"kind": "model", "message": "overloaded"}});
        for (kind, data, expected) in [
            ("task.queued", task("queued", json!({})), "fix …"),
            ("task.finished", task("succeeded", json!({"reason": "done"})), "✓ succeeded (done)"),
            ("task.finished", task("failed", error), "✗ failed (error): overloaded"),
            ("task.interrupted", task("interrupted", json!({})), "✗ interrupted"),
            ("turn.started", json!({"turn": 3}), "turn 3"),
            ("tool.started", json!({"call": "c", "name": "exec", "arguments": {"command": "ls"}}), "exec ls"),
            ("tool.finished", json!({"call": "c", "name": "exec", "ok": false}), "✗ exec"),
            ("session.created", json!({"session": {"id": "ses_1", "name": "web"}}), "ses_1 web"),
            ("model.retry", json!({"attempt": 1, "delay_ms": 20, "error": "busy"}), "again in 20 ms: busy"),
            ("warning", json!({}), ""),
        ] {
            let event = json!({"at": "2027-01-31T08:00:00.000Z", "type": kind, "data": data});
            assert_eq!(summary(&serde_json::from_value(event).expect("an event")), expected, "{kind}");
        }
    }
}
