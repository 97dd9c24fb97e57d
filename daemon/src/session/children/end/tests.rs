#![expect(clippy::unwrap_used, reason = "tests")]

use nano_protocol::task::Task;
use serde_json::{Value, json};

use super::*;

fn task(with: &Value) -> Task {
    let mut task = json!({
        "id": "tsk_1", "seq": 1, "session": "ses_1", "origin": "subagent", "content": "c", "usage": {"input_tokens": 0,
        "output_tokens": 0}, "turns": 0, "metadata": {}, "created_at": "2027-01-01T00:00:00.000Z"
    });
    task.as_object_mut().unwrap().extend(with.as_object().unwrap().clone());
    serde_json::from_value(task).unwrap()
}

#[test]
fn only_what_has_ended_has_an_end() {
    for (with, answer, told) in [
        (json!({"state": "queued"}), None, ""),
        (json!({"state": "running"}), None, ""),
        (json!({"state": "interrupted"}), None, ""),
        (
            json!({"state": "succeeded", "result": "42"}),
            Some("42"),
            "Subagent session ses_1 has done its work. Its answer:\n\n42",
        ),
        (
            json!({"state": "succeeded", "result": " "}),
            Some("(It ended without a word.)"),
            "Subagent session ses_1 has done its work. Its answer:\n\n(It ended without a word.)",
        ),
        (
            json!({"state": "failed", "reason": "max_turns", "error": {"kind": "max_turns", "message": "all used"}}),
            None,
            "Subagent session ses_1 failed (max_turns): all used.",
        ),
        (
            json!({"state": "failed", "reason": "timeout", "result": "half"}),
            None,
            "Subagent session ses_1 failed (timeout).\n\nIts last words were:\n\nhalf",
        ),
        (
            json!({"state": "cancelled", "reason": "cancelled"}),
            None,
            "The work of subagent session ses_1 was cancelled.",
        ),
    ] {
        let found = end(&task(&with));
        let found = found.map(|end| (end.answer, end.told));
        let expected = (!told.is_empty()).then(|| (answer.map(str::to_owned), told.to_owned()));
        assert_eq!(found, expected, "{with}");
    }
}
