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

/// Returns the line such that its status is the command's; one that has not ended by then is no success.
pub fn truthful(line: &str) -> String {
    format!("{line}exit \"$(cat \"$d/rc\" 2>/dev/null || echo 75)\"\n")
}

/// Returns an entry with the command as it was given, and of long texts the beginning; none of what nanod ran for itself.
pub fn told(mut entry: Value) -> Option<Value> {
    if is_own(&entry) {
        return None;
    }
    if let Some(fields) = entry.as_object_mut() {
        if let Some(line) = fields.get("code").and_then(Value::as_str).map(str::to_owned)
            && let Some(command) = command(&line)
        {
            fields.insert("code".into(), command.into());
            if let Some(output) = fields.get("output").and_then(Value::as_str).map(str::to_owned) {
                fields.insert("output".into(), printed(&line, &output).into());
                if ran_on(&line, &output) {
                    fields.insert("success".into(), Value::Null);
                    fields.insert("output".into(), RAN_ON.into());
                }
            }
        }
        fields.values_mut().for_each(shorten);
    }
    Some(entry)
}

const RAN_ON: &str = "(how it ended is not known here: it ran on after the request that started it)";

/// Tells whether a command had not ended when the line that started it did.
fn ran_on(line: &str, output: &str) -> bool {
    output.lines().any(|said| said.strip_prefix(&mark(line)).is_some_and(|rest| rest.starts_with("running ")))
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
    let mark = mark(line);
    output.lines().filter(|line| !line.starts_with(&mark)).collect::<Vec<_>>().join("\n").trim_end().to_owned()
}

/// Returns how lines begin that are not the command's own.
fn mark(line: &str) -> String {
    format!("nanod-{} ", line.trim_start_matches("id=").split_whitespace().next().unwrap_or_default())
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

    use super::{RAN_ON, TEXT, command, told};

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
        let entries = [
            json!({"id": "1", "code": "id=1\nput 'ls' || exit\nlaunch '.'\n", "tags": null,
                "output": "nanod-1 0 0 2 /out\nnanod-1 head text\na\nb\n\nnanod-1 end\n"}),
            json!({"id": "2", "code": "id=1\nlook 1 -\n", "tags": "a,nanod"}),
            json!({"id": "3", "code": "print(1)", "output": long}),
            json!({"id": "4", "code": "id=1\nput 'ls' || exit\nlaunch '.'\n", "success": false,
                "output": "nanod-1 running 1 0 /out\nnanod-1 end\n"}),
        ];
        let short = format!("{}[… 2 bytes left out]", "x".repeat(TEXT - 1));
        let expected = [
            json!({"id": "1", "code": "ls", "tags": null, "output": "a\nb"}),
            json!({"id": "3", "code": "print(1)", "output": short}),
            json!({"id": "4", "code": "ls", "success": null, "output": RAN_ON}),
        ];
        assert_eq!(entries.into_iter().filter_map(told).collect::<Vec<_>>(), expected);
        assert_eq!(told(json!(1)), Some(json!(1)));
    }
}
