//! The history of executions as a model is to see it: its own commands, not the shell text that they were run with.

use serde_json::Value;

/// The tag of what nanod runs for itself.
pub const OWN: &str = "nanod";

/// Tells whether a line starts a command, as opposed to looking after one.
pub fn is_start(line: &str) -> bool {
    command(line).is_some()
}

/// Returns the line such that its status is the command's, as far as it has ended by then.
pub fn truthful(line: &str) -> String {
    format!("{line}exit \"$(cat \"$d/rc\" 2>/dev/null || echo 0)\"\n")
}

/// Returns the history without what nanod ran for itself.
pub fn told(mut history: Value) -> Value {
    if let Some(Value::Array(entries)) = history.get_mut("entries") {
        entries.retain(|entry| !is_own(entry));
        for entry in entries {
            if let Some(command) = entry.get("code").and_then(Value::as_str).and_then(command) {
                entry["code"] = command.into();
            }
        }
    }
    history
}

fn is_own(entry: &Value) -> bool {
    let tags = entry.get("tags").and_then(Value::as_str).unwrap_or_default();
    tags.split(',').any(|tag| tag.trim() == OWN)
}

/// Returns the command that a line starts.
fn command(line: &str) -> Option<String> {
    let (start, _) = line.rsplit_once("' || exit\nlaunch '")?;
    let (_, quoted) = start.split_once("\nput '").filter(|_| line.starts_with("id="))?;
    Some(quoted.replace(r"'\''", "'"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{command, told};

    #[test]
    fn commands_are_found() {
        for (line, expected) in [
            ("id=1 head=2\nput '' || exit\nlaunch './a'\nlook 1 -\n", Some("")),
            ("id=1\nput 'echo '\\''a'\\''\nb' || exit\nlaunch '.'\n", Some("echo 'a'\nb")),
            ("id=1\nput 'x'\\'' || exit\nlaunch '\\''y' || exit\nlaunch '.'\n", Some("x' || exit\nlaunch 'y")),
            ("id=1\nlook 1 -\n", None),
            ("put 'a' || exit\nlaunch '.'\n", None),
            ("echo hi", None),
        ] {
            assert_eq!(command(line).as_deref(), expected, "{line}");
        }
    }

    #[test]
    fn what_nanod_ran_for_itself_is_left_out() {
        let entries = json!([
            {"id": "1", "code": "id=1\nput 'ls' || exit\nlaunch '.'\n", "tags": null},
            {"id": "2", "code": "id=1\nlook 1 -\n", "tags": "a,nanod"},
            {"id": "3", "code": "print(1)"},
        ]);
        let expected = json!({"entries": [{"id": "1", "code": "ls", "tags": null}, {"id": "3", "code": "print(1)"}]});
        assert_eq!(told(json!({"entries": entries})), expected);
        assert_eq!(told(json!([1])), json!([1]));
    }
}
