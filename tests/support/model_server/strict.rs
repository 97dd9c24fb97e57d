//! What the strictest chat-completions server refuses.

use std::collections::BTreeSet;

use serde_json::Value;

/// Returns everything that is wrong with a request.
pub fn violations(request: &Value) -> Vec<String> {
    let mut found = Vec::new();
    if request["stream"] != true {
        found.push("`stream` is not true".to_owned());
    }
    if request["model"].as_str().is_none_or(str::is_empty) {
        found.push("no `model`".to_owned());
    }
    check_tools(&request["tools"], &mut found);
    match request["messages"].as_array() {
        Some(messages) => check_messages(messages, &mut found),
        None => found.push("no `messages`".to_owned()),
    }
    found
}

fn check_tools(tools: &Value, found: &mut Vec<String>) {
    if tools.is_null() {
        return;
    }
    let Some(tools) = tools.as_array().filter(|tools| !tools.is_empty()) else {
        return found.push("`tools` is there but no list, or empty".to_owned());
    };
    let mut names = BTreeSet::new();
    for tool in tools {
        let name = tool["function"]["name"].as_str().unwrap_or_default();
        let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
        if tool["type"] != "function" || !plain || !(1..=64).contains(&name.len()) || !names.insert(name) {
            found.push(format!("a tool with a bad, missing or doubled name: {tool}"));
        }
        if tool["function"]["parameters"]["type"] != "object" {
            found.push(format!("`{name}` has no object schema"));
        }
    }
}

fn check_messages(messages: &[Value], found: &mut Vec<String>) {
    let mut ids = BTreeSet::new();
    let mut open: Vec<String> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        if role == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            if open.first().is_some_and(|next| next == id) {
                open.remove(0);
            } else {
                found.push(format!("message {at} answers `{id}`, which does not wait there"));
            }
        } else if !open.is_empty() {
            found.push(format!("message {at} comes before the results of {open:?}"));
            open.clear();
        }
        match role {
            "system" if at > 0 => found.push(format!("message {at} is a late system message")),
            "system" | "user" | "tool" if message["content"].is_string() => {}
            "assistant" => open = check_assistant(at, message, &mut ids, found),
            _ => found.push(format!("message {at} has a bad role or content: {message}")),
        }
    }
    if !open.is_empty() || messages.last().is_none_or(|last| last["role"] != "user" && last["role"] != "tool") {
        found.push(format!("the transcript does not end with a user message or all results, {open:?} wait"));
    }
}

/// Checks a reply and returns the ids of its calls.
fn check_assistant(at: usize, message: &Value, ids: &mut BTreeSet<String>, found: &mut Vec<String>) -> Vec<String> {
    let calls = message["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
    let has_text = message["content"].as_str().is_some_and(|text| !text.is_empty());
    if !has_text && calls.is_empty() {
        found.push(format!("message {at} is an empty reply"));
    }
    if message.get("tool_calls").is_some() && calls.is_empty() {
        found.push(format!("message {at} has an empty list of calls"));
    }
    for call in calls {
        let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
        let is_object = serde_json::from_str::<Value>(arguments).is_ok_and(|value| value.is_object());
        if call["type"] != "function" || call["function"]["name"].as_str().is_none_or(str::is_empty) || !is_object {
            found.push(format!("message {at} has a bad call: {call}"));
        }
    }
    let of = |call: &Value| call["id"].as_str().unwrap_or_default().to_owned();
    let own: Vec<String> = calls.iter().map(of).collect();
    for id in &own {
        if id.is_empty() || !ids.insert(id.clone()) {
            found.push(format!("message {at} has an empty or doubled call id `{id}`"));
        }
    }
    own
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::violations;

    fn check(messages: &Value, expected: usize) {
        let request = json!({"stream": true, "model": "m", "messages": messages});
        let found = violations(&request);
        assert_eq!(found.len(), expected, "{messages}: {found:?}");
    }

    #[test]
    fn requests() {
        let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": "exec", "arguments": "{}"}});
        let user = json!({"role": "user", "content": "p"});
        let two = json!({"role": "assistant", "content": null, "tool_calls": [call("a"), call("b")]});
        let result = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": ""});
        check(&json!([user]), 0);
        check(&json!([user, two, result("a"), result("b")]), 0);
        check(&json!([user, two, result("a"), result("b"), user]), 0);
        check(&json!([]), 1);
        check(&json!([user, two, result("b"), result("a")]), 2);
        check(&json!([user, two, result("a")]), 1);
        check(&json!([user, two, result("a"), user]), 1);
        check(&json!([user, two, result("a"), result("b"), result("b")]), 1);
        check(&json!([user, {"role": "assistant", "content": ""}, user]), 1);
        check(&json!([{"role": "steering", "content": "s"}, user]), 1);
        check(&json!([user, {"role": "system", "content": "s"}, user]), 1);
        check(&json!([user, {"role": "assistant", "content": "x"}]), 1);
        check(&json!([user, two, result("a"), result("b"), two, result("a"), result("b")]), 2);
    }
}
