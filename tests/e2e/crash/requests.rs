//! What the model server has seen of a run.

use std::collections::BTreeMap;

use nano_protocol::message::Role;
use serde_json::Value;

use super::story::Story;

/// Checks that a transcript only ever grew, that no reply was asked for again once it was recorded, and that only so
/// many replies are lost. That each request is well formed is checked by the server itself.
pub fn check(requests: &[Value], story: &Story, most_lost: usize) {
    prefixes(requests);
    let replies: Vec<usize> =
        story.messages().filter(|one| one.role == Role::Assistant).map(|one| number(&one.content)).collect();
    for reply in &replies {
        let asked = &requests[reply - 1];
        for (at, later) in
            requests.iter().enumerate().skip(*reply).filter(|(_, later)| session(later) == session(asked))
        {
            assert!(holds(later, *reply), "request {} does not know reply {reply}, which is recorded", at + 1);
        }
    }
    let lost = requests.len() - replies.len();
    assert!(lost <= most_lost, "{lost} replies of {} were lost, at most {most_lost} may be", requests.len());
}

/// Checks that the messages of each request begin with those of the one before in the same session.
fn prefixes(requests: &[Value]) {
    let mut last: BTreeMap<&str, (usize, &[Value])> = BTreeMap::new();
    for (at, request) in requests.iter().enumerate() {
        let now = messages(request);
        if let Some((before, old)) = last.insert(session(request), (at, now)) {
            let differs = old.iter().zip(now).find(|(old, now)| old != now);
            assert!(
                differs.is_none() && old.len() <= now.len(),
                "request {} does not begin as request {} does: {differs:#?}",
                at + 1,
                before + 1
            );
        }
    }
}

fn messages(request: &Value) -> &[Value] {
    request["messages"].as_array().map_or(&[], Vec::as_slice)
}

/// Returns what tells sessions apart: no two begin with the same words.
fn session(request: &Value) -> &str {
    let first = messages(request).iter().find(|message| message["role"] == "user");
    first.and_then(|message| message["content"].as_str()).unwrap_or_default()
}

fn holds(request: &Value, reply: usize) -> bool {
    let said = |message: &Value| message["content"].as_str().is_some_and(|text| number(text) == reply);
    messages(request).iter().any(|message| message["role"] == "assistant" && said(message))
}

/// Returns the number of the request that this is the reply to.
fn number(content: &str) -> usize {
    let word = content.split_whitespace().next().and_then(|word| word.strip_prefix('r'));
    word.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("no number in the reply {content:?}"))
}
