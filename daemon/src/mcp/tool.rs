//! One tool of a server, and what its answers say to a model.

use std::sync::Arc;

use nano_protocol::Object;
use serde_json::{Value, json};
use ulid::Ulid;

use super::link::Link;
use super::{Fault, Limits};
use crate::sandbox::BoxFuture;
use crate::sandbox::output::Output;
use crate::tools::{Tool, ToolContext, ToolFault, ToolOutcome, ToolSpec};

/// A tool that a server does.
pub struct ServerTool {
    /// What is fixed about it.
    pub spec: ToolSpec,
    /// What its answers have, if the server says that.
    pub output_schema: Option<Object>,
    /// The server's own name for it.
    pub raw: String,
    /// The server.
    pub link: Arc<Link>,
}

impl Tool for ServerTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn output_schema(&self) -> Option<&Object> {
        self.output_schema.as_ref()
    }

    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        arguments: Object,
    ) -> BoxFuture<'a, Result<ToolOutcome, ToolFault>> {
        Box::pin(async move { Ok(self.outcome(context, arguments).await) })
    }
}

impl ServerTool {
    async fn outcome(&self, context: &ToolContext, arguments: Object) -> ToolOutcome {
        let limits = Limits { silent: context.exec_timeout, most: context.exec_timeout_max, progress: true };
        let params = json!({"name": self.raw, "arguments": arguments});
        let server = self.spec.source.trim_start_matches("mcp:");
        match self.link.request("tools/call", params, limits, &context.cancel).await {
            Ok(result) => bounded(context, &result, &self.link.without_keys(content(&result))),
            Err(Fault::Refused(code, why)) => {
                ToolOutcome::Failed(format!("the server {server} refused the call: {why} ({code})"))
            }
            Err(Fault::Late(limit)) => {
                let seconds = limit.as_secs_f64();
                ToolOutcome::Stopped(format!("stopped: the server {server} gave no answer within {seconds} s"))
            }
            Err(Fault::Cancelled) => ToolOutcome::Stopped("stopped before the server answered".into()),
            Err(Fault::Gone) => {
                let why = self.link.why().await;
                ToolOutcome::Failed(format!(
                    "the server {server} is gone{why}; nobody knows whether the call had its effect. It is started anew \
                     before the next turn"
                ))
            }
            Err(Fault::Away) => ToolOutcome::Failed(format!(
                "the server {server} has ended; it was not asked. It is started anew before the next turn"
            )),
            Err(Fault::Forgotten) => {
                ToolOutcome::Failed(format!("the server {server} forgets its session again and again"))
            }
            Err(Fault::Broken(why)) => ToolOutcome::Failed(format!("the server {server}: {why}")),
        }
    }
}

/// Returns an answer, in words, with a text that is not too long; the whole is in a file.
fn bounded(context: &ToolContext, result: &Value, words: &str) -> ToolOutcome {
    let mut output = Output::new(context.spill.join(format!("output-{}.log", Ulid::generate())));
    output.push(words.as_bytes());
    let (text, _) = output.render();
    let text = if text.trim().is_empty() { "(no output)".to_owned() } else { text.trim_end().to_owned() };
    let failed = result.get("isError").and_then(Value::as_bool).unwrap_or(false);
    if failed { ToolOutcome::Failed(text) } else { ToolOutcome::Done(text) }
}

/// Puts an answer into words: texts as they are, all else by name; structured content where there is no text.
fn content(result: &Value) -> String {
    let parts = result.get("content").and_then(Value::as_array).into_iter().flatten();
    let texts: Vec<String> = parts.map(part).collect();
    match result.get("structuredContent") {
        Some(structured) if texts.iter().all(|text| text.trim().is_empty()) => structured.to_string(),
        _ if texts.is_empty() && result.get("resultType").is_some_and(|kind| kind == "input_required") => {
            "the server asks for input that nobody here can give".into()
        }
        _ => texts.join("\n"),
    }
}

fn part(part: &Value) -> String {
    let word = |pointer: &str| part.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let size = |pointer: &str| word(pointer).len() / 4 * 3;
    match word("/type") {
        "text" => word("/text").to_owned(),
        kind @ ("image" | "audio") => {
            format!("[{kind} {}, about {} bytes, not shown]", word("/mimeType"), size("/data"))
        }
        "resource_link" => format!("[resource {} {}]", word("/uri"), word("/name")),
        "resource" if part.pointer("/resource/text").is_some() => {
            format!("[resource {}]\n{}", word("/resource/uri"), word("/resource/text"))
        }
        "resource" => {
            format!("[resource {}, about {} bytes, not shown]", word("/resource/uri"), size("/resource/blob"))
        }
        other => format!("[content of an unknown kind `{}`, not shown]", super::clean::text(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::content;
    use serde_json::json;

    #[test]
    fn answers_in_words() {
        for (result, expected) in [
            (json!({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}), "a\nb"),
            (
                json!({"content": [{"type": "image", "mimeType": "image/png", "data": "AAAABBBB"}]}),
                "[image image/png, about 6 bytes, not shown]",
            ),
            (
                json!({"content": [{"type": "audio", "mimeType": "audio/wav", "data": ""}]}),
                "[audio audio/wav, about 0 bytes, not shown]",
            ),
            (
                json!({"content": [{"type": "resource_link", "uri": "file:///x", "name": "x"}]}),
                "[resource file:///x x]",
            ),
            (json!({"content": [{"type": "resource", "resource": {"uri": "u", "text": "t"}}]}), "[resource u]\nt"),
            (
                json!({"content": [{"type": "resource", "resource": {"uri": "u", "blob": "AAAA"}}]}),
                "[resource u, about 3 bytes, not shown]",
            ),
            (
                json!({"content": [{"type": "x"}, 5]}),
                "[content of an unknown kind `x`, not shown]\n[content of an unknown kind ``, not shown]",
            ),
            (json!({"content": [], "structuredContent": {"a": 1}}), "{\"a\":1}"),
            (json!({"content": [{"type": "text", "text": "t"}], "structuredContent": {"a": 1}}), "t"),
            (json!({"structuredContent": [1]}), "[1]"),
            (json!({"resultType": "input_required"}), "the server asks for input that nobody here can give"),
            (json!({}), ""),
            (json!(null), ""),
        ] {
            assert_eq!(content(&result), expected, "{result}");
        }
    }
}
