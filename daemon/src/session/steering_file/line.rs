//! What a line may say. Pure.

use nano_protocol::session::Delivery;
use nano_protocol::{MAX_CONTENT, Object, strict};
use serde::Deserialize;

/// Whose words a line holds; nothing else follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WrittenBy {
    /// A program that watches.
    #[default]
    Steering,
    /// A person.
    User,
}

/// A valid line.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SteeringLine {
    /// The text.
    pub content: String,
    /// Whose words it holds.
    pub role: Option<WrittenBy>,
    /// When it takes effect; note unless told.
    pub delivery: Option<Delivery>,
    /// The writer's own data.
    pub metadata: Option<Object>,
    /// When it was written, in the writer's words.
    pub timestamp: Option<String>,
    /// The writer's own name for it.
    pub id: Option<String>,
}

/// Reads one line without its LF.
pub fn parse(line: &[u8]) -> Result<SteeringLine, String> {
    let text = std::str::from_utf8(line).map_err(|error| format!("not UTF-8: {error}"))?;
    // A list would be read as the members in order.
    if !text.trim_ascii_start().starts_with('{') {
        return Err("not a JSON object".to_owned());
    }
    strict::check(text).map_err(|error| format!("not valid JSON: {error}"))?;
    let line: SteeringLine = serde_json::from_str(text).map_err(|error| error.to_string())?;
    match line.content.len() {
        0 => Err("content is empty".to_owned()),
        length if length > MAX_CONTENT => Err(format!("content has {length} bytes, {MAX_CONTENT} are allowed")),
        _ => Ok(line),
    }
}

#[cfg(test)]
mod tests {
    use nano_protocol::session::Delivery;

    use super::{SteeringLine, WrittenBy, parse};

    fn plain(content: &str) -> SteeringLine {
        SteeringLine { content: content.into(), role: None, delivery: None, metadata: None, timestamp: None, id: None }
    }

    #[test]
    fn good_lines() {
        for (line, expected) in [
            (r#"{"content":"a"}"#, plain("a")),
            ("  {\"content\": \"a\\u0062\"}\r", plain("ab")),
            (r#"{"content":"a","role":"user"}"#, SteeringLine { role: Some(WrittenBy::User), ..plain("a") }),
            (r#"{"content":"a","role":null,"delivery":null,"metadata":null}"#, plain("a")),
            (
                r#"{"content":"a","delivery":"interrupt","metadata":{},"timestamp":"t","id":"1"}"#,
                SteeringLine {
                    delivery: Some(Delivery::Interrupt),
                    metadata: Some(nano_protocol::Object::new()),
                    timestamp: Some("t".into()),
                    id: Some("1".into()),
                    ..plain("a")
                },
            ),
        ] {
            assert_eq!(parse(line.as_bytes()), Ok(expected), "{line}");
        }
    }

    #[test]
    fn bad_lines() {
        for (line, words) in [
            (&b"{\"content\":\"\xff\"}"[..], "not UTF-8"),
            (b"hello", "not a JSON object"),
            (b"{hello}", "not valid JSON"),
            (b"{\"content\":\"a\"", "not valid JSON"),
            (b"{\"content\":\"a\"} x", "not valid JSON"),
            (b"{\"content\":\"a\",\"content\":\"b\"}", "duplicate key `content`"),
            (b"{\"content\":\"a\",\"metadata\":{\"x\":1,\"x\":2}}", "duplicate key `x`"),
            (b"{\"content\":\"a\",\"contnet\":\"b\"}", "unknown field `contnet`"),
            (b"{}", "missing field `content`"),
            (b"{\"content\":\"\"}", "content is empty"),
            (b"{\"content\":7}", "invalid type"),
            (b"{\"content\":\"a\",\"role\":\"system\"}", "unknown variant `system`"),
            (b"{\"content\":\"a\",\"delivery\":\"now\"}", "unknown variant `now`"),
            (b"[\"a\"]", "not a JSON object"),
            (b"\"a\"", "not a JSON object"),
            (b"null", "not a JSON object"),
            (b"[\"a\",null,null,null,null,null]", "not a JSON object"),
            (b"", "not a JSON object"),
        ] {
            let why = parse(line).err().unwrap_or_default();
            assert!(why.contains(words), "{}: {why}", String::from_utf8_lossy(line));
        }
    }
}
