//! The body of a chat completion request. Pure.

use nano_protocol::message::ToolCall;
use nano_protocol::tool::Tool;
use serde_json::{Value, json};

use super::{ChatMessage, Request};

/// The longest tool name that servers take.
const MAX_NAME: usize = 64;

/// What a model's configuration adds to each of its requests.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The model's name at the server.
    pub model: String,
    /// Whether the reply is to be streamed.
    pub stream: bool,
    /// How many tokens the reply may have, under the name that the server knows the limit by.
    pub limit: Option<(&'static str, u64)>,
}

/// Returns the JSON text that asks for the reply to `request`.
pub fn text(settings: &Settings, request: &Request) -> Vec<u8> {
    let system = (!request.system.is_empty()).then(|| json!({ "role": "system", "content": request.system }));
    let messages: Vec<Value> = system.into_iter().chain(request.messages.iter().filter_map(message)).collect();
    let mut body = json!({ "model": settings.model, "messages": messages, "stream": settings.stream });
    if settings.stream {
        body["stream_options"] = json!({ "include_usage": true });
    }
    if let Some((name, tokens)) = settings.limit {
        body[name] = json!(tokens);
    }
    if !request.tools.is_empty() {
        body["tools"] = request.tools.iter().map(tool).collect();
    }
    body.to_string().into_bytes()
}

/// Returns a message as servers take it; one of the model's without words and calls is refused by some, so it is left out.
fn message(message: &ChatMessage) -> Option<Value> {
    match message {
        ChatMessage::User(text) => Some(json!({ "role": "user", "content": text })),
        ChatMessage::Tool { id, text, .. } => Some(json!({ "role": "tool", "tool_call_id": id, "content": text })),
        ChatMessage::Assistant { text, calls } if calls.is_empty() => {
            (!text.is_empty()).then(|| json!({ "role": "assistant", "content": text }))
        }
        ChatMessage::Assistant { text, calls } => {
            let content = if text.is_empty() { Value::Null } else { json!(text) };
            let calls: Vec<Value> = calls.iter().map(call).collect();
            Some(json!({ "role": "assistant", "content": content, "tool_calls": calls }))
        }
    }
}

/// Arguments are always a string here, and always JSON: servers parse what the model once wrote.
fn call(call: &ToolCall) -> Value {
    let arguments = Value::Object(call.arguments.clone()).to_string();
    json!({ "id": call.id, "type": "function", "function": { "name": name(&call.name), "arguments": arguments } })
}

/// A name that the model invented would be refused for ever after.
fn name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    if name.is_empty() { "unnamed".to_owned() } else { name.chars().take(MAX_NAME).map(plain).collect() }
}

fn tool(tool: &Tool) -> Value {
    let function = json!({ "name": tool.name, "description": tool.description, "parameters": tool.input_schema });
    json!({ "type": "function", "function": function })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn call(name: &str, arguments: &Value, raw: Option<&str>) -> ToolCall {
        let arguments = arguments.as_object().unwrap().clone();
        ToolCall { id: "c".to_owned(), name: name.to_owned(), arguments, arguments_raw: raw.map(str::to_owned) }
    }

    fn request(messages: Vec<ChatMessage>) -> Request {
        Request { system: String::new(), messages, tools: Vec::new(), replies: 0 }
    }

    fn body(settings: &Settings, request: &Request) -> Value {
        serde_json::from_slice(&text(settings, request)).unwrap()
    }

    fn settings(stream: bool, limit: Option<(&'static str, u64)>) -> Settings {
        Settings { model: "m".to_owned(), stream, limit }
    }

    fn check(message: ChatMessage, expected: &Value) {
        assert_eq!(&body(&settings(false, None), &request(vec![message]))["messages"], expected);
    }

    #[test]
    fn messages() {
        let says = |text: &str, calls| ChatMessage::Assistant { text: text.to_owned(), calls };
        let sent = |content: Value, name: &str, arguments: &str| {
            let function = json!({ "name": name, "arguments": arguments });
            json!([{ "role": "assistant", "content": content, "tool_calls": [{ "id": "c", "type": "function", "function": function }] }])
        };
        check(ChatMessage::User("hi".to_owned()), &json!([{ "role": "user", "content": "hi" }]));
        check(says("yes", vec![]), &json!([{ "role": "assistant", "content": "yes" }]));
        check(says("", vec![]), &json!([]));
        check(
            says("", vec![call("f", &json!({ "b": 1, "a": "ä" }), None)]),
            &sent(Value::Null, "f", r#"{"b":1,"a":"ä"}"#),
        );
        check(says("so", vec![call("f", &json!({}), Some("{\"a"))]), &sent(json!("so"), "f", "{}"));
        for (name, expected) in
            [("functions.read", "functions_read"), ("", "unnamed"), ("é b", "__b"), ("a-B_1", "a-B_1")]
        {
            check(says("", vec![call(name, &json!({}), None)]), &sent(Value::Null, expected, "{}"));
        }
        let long = says("", vec![call(&"x".repeat(65), &json!({}), None)]);
        check(long, &sent(Value::Null, &"x".repeat(64), "{}"));
        let result = ChatMessage::Tool { id: "c".to_owned(), name: "f".to_owned(), text: "out".to_owned() };
        check(result, &json!([{ "role": "tool", "tool_call_id": "c", "content": "out" }]));
    }

    #[test]
    fn settings_and_tools() {
        let mut asked = request(vec![ChatMessage::User("hi".to_owned())]);
        let user = json!({ "role": "user", "content": "hi" });
        assert_eq!(body(&settings(false, None), &asked), json!({ "model": "m", "messages": [user], "stream": false }));
        asked.system = "be brief".to_owned();
        let schema = json!({ "type": "object", "properties": { "z": {}, "a": {} } });
        asked.tools = vec![Tool {
            name: "f".to_owned(),
            description: "does".to_owned(),
            input_schema: schema.as_object().unwrap().clone(),
            output_schema: None,
            source: "core".to_owned(),
            requires: vec![],
        }];
        let function = json!({ "name": "f", "description": "does", "parameters": schema });
        let expected = json!({
            "model": "m",
            "messages": [{ "role": "system", "content": "be brief" }, user],
            "stream": true,
            "stream_options": { "include_usage": true },
            "max_tokens": 9,
            "tools": [{ "type": "function", "function": function }],
        });
        // Texts, not values: the order of a schema's properties is part of it.
        let sent = String::from_utf8(text(&settings(true, Some(("max_tokens", 9))), &asked)).unwrap();
        assert_eq!(sent, expected.to_string());
    }
}
