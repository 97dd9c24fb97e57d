//! Wire objects as the daemon writes them.

use serde_json::{Value, json};

const AT: &str = "2027-01-31T08:00:00.000Z";

/// Returns a task in `state` with a result, reason and error as given.
pub fn task(id: &str, state: &str, more: &Value) -> Value {
    let mut task = json!({
        "id": id, "seq": 7, "session": "ses_1", "origin": "user", "content": "fix\nit", "state": state,
        "usage": {"input_tokens": 3, "output_tokens": 4}, "turns": 1, "metadata": {}, "created_at": AT,
        "new_member": "of a newer daemon"
    });
    task.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    task
}

/// Returns a session.
pub fn session(id: &str, name: Option<&str>) -> Value {
    json!({
        "id": id, "name": name, "owner": 1000, "agent": "default", "workspace": "/w", "booter": "local", "booted": false,
        "capabilities": null, "model": "m", "level": "workspace-write", "tool_mode": "core", "tools": null,
        "skills": null, "state": "idle", "metadata": {}, "created_at": AT, "updated_at": AT,
        "usage": {"input_tokens": 0, "output_tokens": 0}
    })
}

/// Returns a follow-up that is due in 2027.
pub fn followup(id: &str) -> Value {
    json!({
        "id": id, "session": "ses_1", "content": "again", "trigger": {"every_ms": 90000}, "tz": "UTC", "state": "active",
        "next": [AT, "2027-01-31T08:01:30.000Z"], "runs": 0, "missed": 0, "missed_policy": "latest",
        "overlap": "skip", "grace_ms": 45000, "metadata": {}, "created_at": AT
    })
}

/// Returns an event of task `tsk_1`; without a number where `seq` is 0.
pub fn event(seq: u64, kind: &str, data: &Value) -> Value {
    let seq = (seq > 0).then_some(seq);
    json!({"seq": seq, "session": "ses_1", "task": "tsk_1", "at": AT, "type": kind, "data": data})
}

/// Returns the event of a message.
pub fn added(seq: u64, role: &str, content: &str) -> Value {
    let message = json!({"id": "msg_1", "seq": seq, "task": "tsk_1", "role": role, "content": content, "at": AT});
    event(seq, "message.added", &json!({"message": message}))
}

/// Returns a profile that was made over RPC.
pub fn agent(name: &str) -> Value {
    json!({
        "name": name, "model": null, "system_prompt": "Be\nkind.", "booter": "local", "level": "read-only",
        "tool_mode": "core", "tools": [], "skills": ["git"], "max_turns": 5, "timeout_ms": 60000,
        "exec_timeout_ms": 30000, "exec_timeout_max_ms": 600_000, "enable_exec": false, "enable_steering": true,
        "enable_followup": false, "restrict_to_workspace": true, "resume": "auto", "budget": 0.5, "source": "config",
        "note": "hides a stored profile of the same name"
    })
}

/// Returns a skill as `skill.get` has it; lists ignore what they do not know.
pub fn skill(name: &str, more: &Value) -> Value {
    let mut skill = json!({
        "name": name, "description": "Says hello.", "path": format!("/k/{name}/SKILL.md"), "source": "config",
        "always_load": false, "valid": true, "problems": [], "body": "Wave.\nSmile.", "metadata": {}, "files": [],
        "text": document(name), "digest": "d1"
    });
    skill.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    skill
}

/// Returns a plain SKILL.md.
pub fn document(name: &str) -> String {
    format!("---\nname: {name}\ndescription: Says hello.\n---\n\nWave.\nSmile.\n")
}
