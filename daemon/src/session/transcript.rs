//! The transcript as the model sees it, and the texts of results that no tool wrote. Pure.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use nano_protocol::event::{Data, Event, EventType};
use nano_protocol::message::{Message, NotRun, Role, ToolCall};
use nano_protocol::task::Origin;

use crate::model::ChatMessage;

/// Stands at the end of a result that was seen too often; the count follows.
const REPEATED: &str = "\n[the same call gave the same result before; time ";

/// Turns messages into what a provider is sent. A trailing reply without calls is left out: the model has to answer,
/// not to go on where it was cut or failed.
pub fn project(messages: &[Message]) -> Vec<ChatMessage> {
    let mut chat: Vec<ChatMessage> = messages.iter().map(chat_message).collect();
    while matches!(chat.last(), Some(ChatMessage::Assistant { calls, .. }) if calls.is_empty()) {
        chat.pop();
    }
    chat
}

fn chat_message(message: &Message) -> ChatMessage {
    let content = &message.content;
    match message.role {
        Role::User => ChatMessage::User(content.clone()),
        Role::Steering => ChatMessage::User(format!("[{}] {content}", message.source.as_deref().unwrap_or("steering"))),
        Role::Followup => {
            ChatMessage::User(format!("[{}] {content}", message.source.as_deref().unwrap_or("follow-up")))
        }
        Role::Assistant => ChatMessage::Assistant { text: content.clone(), calls: message.tool_calls.clone() },
        Role::Tool => ChatMessage::Tool {
            id: message.tool_call_id.clone().unwrap_or_default(),
            name: message.tool_name.clone().unwrap_or_default(),
            text: content.clone(),
        },
    }
}

/// Gives the messages at the end that have none yet their numbers, from the events of the commit that held them.
pub fn number(messages: &mut [Message], receipt: &[Arc<Event>]) {
    let mut numbers =
        receipt.iter().filter(|event| event.kind == EventType::MessageAdded).filter_map(|event| event.seq);
    let fresh = messages.iter().rposition(|message| message.seq != 0).map_or(0, |last| last + 1);
    for message in messages.iter_mut().skip(fresh) {
        message.seq = numbers.next().unwrap_or_default();
    }
}

/// Returns the role of the first message of a task from `origin`.
pub fn first_role(origin: Origin) -> Role {
    match origin {
        Origin::User | Origin::Subagent => Role::User,
        Origin::Followup => Role::Followup,
        Origin::Steering => Role::Steering,
    }
}

/// Returns the one neutral text for a call that never started.
pub fn not_run_text(why: NotRun) -> String {
    let why = match why {
        NotRun::Redirect => "a message arrived first",
        NotRun::Cancel => "the task was stopped",
        NotRun::Length => {
            "the reply was cut by the length limit, so the call may be incomplete; make it again, shorter"
        }
        NotRun::Restart => "the daemon restarted first",
        NotRun::Limit => "a limit of the task was reached",
        NotRun::Denied => "it was not allowed",
    };
    format!("Not run: {why}.")
}

/// Returns the text for a call that was running when the daemon died.
pub const UNKNOWN: &str =
    "Interrupted: the daemon died while this ran. Whether it took effect is unknown; look before doing it again.";

/// Adds the warning that the model repeats itself.
pub fn with_repeat_warning(content: &str, times: u32) -> String {
    format!("{content}{REPEATED}{times}. Try something else.]")
}

/// Returns the number that stands for a call with its result.
pub fn fingerprint(call: &ToolCall, result: &str) -> u64 {
    let result = result.split(REPEATED).next().unwrap_or(result);
    let mut hasher = DefaultHasher::new();
    // The order of members says nothing.
    let mut arguments = Data::Object(call.arguments.clone());
    arguments.sort_all_objects();
    let arguments = arguments.to_string();
    (&call.name, arguments, &call.arguments_raw, result).hash(&mut hasher);
    hasher.finish()
}

/// Returns the fingerprints of a task's calls with their results, in order.
pub fn fingerprints(messages: &[Message]) -> Vec<u64> {
    let calls = || messages.iter().flat_map(|message| &message.tool_calls);
    let results = messages
        .iter()
        .filter(|message| message.role == Role::Tool && message.not_run.is_none() && message.outcome.is_none());
    results
        .filter_map(|result| {
            let call = calls().find(|call| Some(&call.id) == result.tool_call_id.as_ref())?;
            Some(fingerprint(call, &result.content))
        })
        .collect()
}

#[cfg(test)]
mod tests;
