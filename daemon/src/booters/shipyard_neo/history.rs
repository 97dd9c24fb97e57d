//! The history of executions as a model is to see it: its own commands, not the shell text that they were run with.

use serde_json::Value;

/// The tag of what nanod runs for itself.
pub const OWN: &str = "nanod";

/// The longest text of an entry, in bytes.
const TEXT: usize = 1000;

/// Tells whether a line starts a command, as opposed to looking after one.
pub fn is_start(line: &str) -> bool {
    command(line).is_some()
}

/// Returns the line such that its status is the command's, as far as it has ended by then.
pub fn truthful(line: &str) -> String {
    format!("{line}exit \"$(cat \"$d/rc\" 2>/dev/null || echo 0)\"\n")
}

/// Returns the history without what nanod ran for itself, and of long texts the beginning.
pub fn told(mut history: Value) -> Value {
    if let Some(Value::Array(entries)) = history.get_mut("entries") {
        entries.retain(|entry| !is_own(entry));
        for entry in entries.iter_mut().filter_map(Value::as_object_mut) {
            if let Some(line) = entry.get("code").and_then(Value::as_str).map(str::to_owned)
                && let Some(command) = command(&line)
            {
                entry.insert("code".into(), command.into());
                let output = entry.get("output").and_then(Value::as_str).map(|output| printed(&line, output));
                entry.extend(output.map(|output| ("output".to_owned(), output.into())));
            }
            entry.values_mut().for_each(shorten);
        }
    }
    history
}

fn shorten(value: &mut Value) {
    if let Value::String(text) = value
        && text.len() > TEXT
    {
        let left_out = text.len() - text.floor_char_boundary(TEXT);
        text.truncate(text.len() - left_out);
        text.extend(["[… ", &left_out.to_string(), " bytes left out]"]);
    }
}

/// Returns what a command printed, of what the line that started it did.
fn printed(line: &str, output: &str) -> String {
    let id = line.trim_start_matches("id=").split_whitespace().next().unwrap_or_default();
    let is_mark = |line: &&str| line.strip_prefix("nanod-").is_some_and(|rest| rest.starts_with(id));
    output.lines().filter(|line| !is_mark(line)).collect::<Vec<_>>().join("\n").trim_end().to_owned()
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

    use super::{TEXT, command, told};

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
        let long = format!("{}ä", "x".repeat(TEXT - 1));
        let entries = json!([
            {"id": "1", "code": "id=1\nput 'ls' || exit\nlaunch '.'\n", "tags": null,
                "output": "nanod-1 0 0 2 /out\nnanod-1 head text\na\nb\n\nnanod-1 end\n"},
            {"id": "2", "code": "id=1\nlook 1 -\n", "tags": "a,nanod"},
            {"id": "3", "code": "print(1)", "output": long},
        ]);
        let short = format!("{}[… 2 bytes left out]", "x".repeat(TEXT - 1));
        let expected = json!({"entries": [
            {"id": "1", "code": "ls", "tags": null, "output": "a\nb"},
            {"id": "3", "code": "print(1)", "output": short},
        ]});
        assert_eq!(told(json!({"entries": entries})), expected);
        assert_eq!(told(json!([1])), json!([1]));
    }
}
