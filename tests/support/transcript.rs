//! Transcripts in a short notation, to be compared as a whole.
//!
//! `U(text)` a user's message, `S(text)` steering, `F(text)` a follow-up, `N` a notice that is nobody's words,
//! `A(text)[c1 c2]` a reply and its calls, `~` after `A` where it was stopped on the way, `T(c1)` a result,
//! `T!(c1)` one that is not ok, with `:not_run=…` or `:outcome=…` where it has them.

use std::collections::BTreeSet;

use nano_protocol::message::{Message, Role};
use serde_json::json;

use crate::client::Client;

/// Reads the whole transcript of a session, page by page.
pub fn read(client: &mut Client, session: &str) -> Vec<Message> {
    read_after(client, session, 0)
}

/// Reads the messages of a session whose numbers are greater than `after`.
pub fn read_after(client: &mut Client, session: &str, mut after: u64) -> Vec<Message> {
    let mut messages = Vec::new();
    loop {
        let page: nano_protocol::session::Messages =
            client.get("session.messages", &json!({"session": session, "after_seq": after, "limit": 1000}));
        messages.extend(page.messages);
        match page.next_after_seq {
            Some(next) => after = next,
            None => return messages,
        }
    }
}

/// Renders messages in the notation.
pub fn render(messages: &[Message]) -> String {
    messages.iter().map(token).collect::<Vec<_>>().join(" ")
}

fn token(message: &Message) -> String {
    let text = message.content.trim().replace(char::is_whitespace, "_");
    let said = if text.is_empty() { String::new() } else { format!("({text})") };
    match message.role {
        Role::User if message.source.is_some() => "N".to_owned(),
        Role::User => format!("U{said}"),
        Role::Steering => format!("S{said}"),
        Role::Followup => format!("F{said}"),
        Role::Tool => result(message),
        Role::Assistant => {
            let partial = if message.partial == Some(true) { "~" } else { "" };
            let ids: Vec<_> = message.tool_calls.iter().map(|call| call.id.as_str()).collect();
            let calls = if ids.is_empty() { String::new() } else { format!("[{}]", ids.join(",")) };
            format!("A{partial}{said}{calls}")
        }
    }
}

fn result(message: &Message) -> String {
    let failed = if message.ok == Some(true) { "" } else { "!" };
    let id = message.tool_call_id.as_deref().unwrap_or("?");
    let not_run = message.not_run.map(|why| format!(":not_run={why}")).unwrap_or_default();
    let outcome = message.outcome.map(|how| format!(":outcome={how}")).unwrap_or_default();
    format!("T{failed}({id}{not_run}{outcome})")
}

/// Tells whether a rendered transcript fits `pattern`, in which a token with `?` at its end may be absent.
pub fn fits(pattern: &str, rendered: &str) -> bool {
    let want: Vec<&str> = pattern.split_whitespace().collect();
    let have: Vec<&str> = rendered.split_whitespace().collect();
    fits_tokens(&want, &have)
}

fn fits_tokens(want: &[&str], have: &[&str]) -> bool {
    let Some((first, rest)) = want.split_first() else { return have.is_empty() };
    let (token, optional) = first.strip_suffix('?').map_or((*first, false), |token| (token, true));
    let taken = have.first() == Some(&token) && fits_tokens(rest, &have[1..]);
    taken || (optional && fits_tokens(rest, have))
}

/// Checks what holds for every transcript: numbers rise, and each call has exactly one result, in order, before
/// anything else comes. The last reply's results may be missing while `open` says that its calls still run.
pub fn check_pairs(messages: &[Message], open: bool) {
    let rendered = render(messages);
    assert!(messages.is_sorted_by(|a, b| a.seq < b.seq), "numbers do not rise: {rendered}");
    let mut ids = BTreeSet::new();
    let mut waiting: Vec<&str> = Vec::new();
    for message in messages {
        if message.role == Role::Tool {
            let id = message.tool_call_id.as_deref().unwrap_or_default();
            assert!(!waiting.is_empty() && waiting.remove(0) == id, "a result of `{id}` out of place: {rendered}");
            continue;
        }
        assert!(waiting.is_empty(), "{waiting:?} have no result: {rendered}");
        waiting = message.tool_calls.iter().map(|call| call.id.as_str()).collect();
        assert!(waiting.iter().all(|id| ids.insert(*id)), "a call id twice: {rendered}");
    }
    assert!(open || waiting.is_empty(), "{waiting:?} have no result at the end: {rendered}");
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn patterns() {
        let check = |pattern, rendered, expected| assert_eq!(fits(pattern, rendered), expected, "{pattern} {rendered}");
        check("U(p) A", "U(p) A", true);
        check("U(p) A", "U(p)", false);
        check("U(p) N? A", "U(p) A", true);
        check("U(p) N? A", "U(p) N A", true);
        check("U(p) N? A", "U(p) N N A", false);
        check("U(p) A?", "U(p) A A", false);
    }
}
