//! `todo`: the session's list of what is to be done; what is given takes the place of what was there.

use nano_protocol::session::{Todo, TodoState};
use serde::Deserialize;

use super::class::Class;
use super::typed::Typed;
use super::{Tool, ToolOutcome, ToolSpec, schema};
use crate::store::{Change, Key};

/// How many entries there may be, and how many characters each may have.
const ENTRIES: usize = 100;
const TEXT: usize = 500;

#[derive(Debug, Deserialize, schemars::JsonSchema)]
struct Args {
    /// The whole list, in order.
    items: Vec<Item>,
}

#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Item {
    /// What is to be done.
    text: String,
    /// `pending`, `in_progress` or `done`.
    state: String,
}

/// Returns the tool.
pub fn tool() -> impl Tool {
    let spec = ToolSpec {
        name: "todo".into(),
        description:
            "Keeps the list of what is to be done in this session; give the whole list each time. People see it.".into(),
        input_schema: schema::schema::<Args>(),
        source: "core".into(),
        requires: &[],
        read_only: false,
    };
    // The list goes into the commit that has the result, so that both are there or neither; the same again is the same.
    Typed::new(spec, |context, args: Args| {
        let kept = checked(args).map(|list| {
            let change = Change::put(Key::todo(&context.session), &list);
            ToolOutcome::Settles(change, Box::new(ToolOutcome::Done(shown(&list))))
        });
        Box::pin(std::future::ready(Ok(kept.unwrap_or_else(ToolOutcome::Failed))))
    })
    .classed(Class::Keyed)
}

fn checked(args: Args) -> Result<Vec<Todo>, String> {
    if args.items.len() > ENTRIES {
        return Err(format!("bad arguments: `items` may have up to {ENTRIES} entries, not {}", args.items.len()));
    }
    args.items.into_iter().enumerate().map(|(at, item)| entry(at + 1, &item)).collect()
}

fn entry(number: usize, Item { text, state }: &Item) -> Result<Todo, String> {
    let wrong = |what: String| format!("bad arguments: entry {number} {what}");
    let state = state.parse::<TodoState>();
    let state = state.map_err(|_| wrong("must have the state pending, in_progress or done".into()))?;
    let text = super::walk::printable(text.trim());
    if text.is_empty() || text.chars().count() > TEXT {
        return Err(wrong(format!("must have a text of 1 to {TEXT} characters")));
    }
    Ok(Todo { text, state })
}

fn shown(list: &[Todo]) -> String {
    let mark = |state| match state {
        TodoState::Pending => "[ ]",
        TodoState::InProgress => "[>]",
        TodoState::Done => "[x]",
    };
    let lines: Vec<_> = list.iter().map(|one| format!("{} {}", mark(one.state), one.text)).collect();
    if lines.is_empty() { "The list is empty.".into() } else { lines.join("\n") }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Args, checked, shown};

    #[test]
    fn lists() {
        let check = |items: Value, expected: Result<&str, &str>| {
            let read = serde_json::from_value::<Args>(json!({ "items": items })).map_err(|why| why.to_string());
            let told = read.and_then(checked).map(|list| shown(&list));
            assert_eq!(told.as_deref().map_err(String::as_str), expected);
        };
        check(json!([]), Ok("The list is empty."));
        let all = json!([{"text": " a\nb ", "state": "done"}, {"text": "c", "state": "in_progress"}, {"text": "d", "state": "pending"}]);
        check(all, Ok("[x] a\u{fffd}b\n[>] c\n[ ] d"));
        let states = "bad arguments: entry 1 must have the state pending, in_progress or done";
        for state in ["", "Done", "finished"] {
            check(json!([{"text": "a", "state": state}]), Err(states));
        }
        let text = "bad arguments: entry 2 must have a text of 1 to 500 characters";
        for bad in [String::new(), " \n".into(), "x".repeat(501)] {
            check(json!([{"text": "x".repeat(500), "state": "done"}, {"text": bad, "state": "done"}]), Err(text));
        }
        let many = vec![json!({"text": "a", "state": "done"}); 101];
        check(json!(many), Err("bad arguments: `items` may have up to 100 entries, not 101"));
    }
}
