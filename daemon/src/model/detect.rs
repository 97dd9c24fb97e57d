//! Finds a model where none is configured: a key in the environment, or a server on this machine.

use std::time::Duration;

use serde_json::Value;
use tokio::time::timeout;

use super::catalog::Catalog;
use crate::config::env::Env;
use crate::config::{Api, ModelConfig, Secret};
use crate::http::{self, HttpError};

/// Where Ollama and llama.cpp's server listen unless told otherwise, as name and address.
pub const LOCAL: [(&str, &str); 2] =
    [("ollama", "http://127.0.0.1:11434/v1"), ("llama-cpp", "http://127.0.0.1:8080/v1")];

const OPENAI: &str = "https://api.openai.com/v1";
/// Not asked for at the start, so that a start needs no network.
const OPENAI_MODEL: &str = "gpt-4.1-mini";
const IDLE: Duration = Duration::from_mins(1);
/// For the whole question to a local server.
const PROBE: Duration = Duration::from_millis(500);
const MAX_LIST: usize = 1024 * 1024;

/// Looks for models with what the environment says.
pub struct Finder {
    openai: Option<Secret>,
    anthropic: Option<Secret>,
}

impl Finder {
    /// Takes the keys of `env`.
    pub fn new(env: &Env) -> Self {
        let key = |name| env.get(name).map(|key| Secret(key.to_owned()));
        Self { openai: key("OPENAI_API_KEY"), anthropic: key("ANTHROPIC_API_KEY") }
    }

    /// Returns the models that serve now, told in the log.
    pub async fn find(&self) -> Catalog {
        let found = detect(self.openai.clone(), self.anthropic.clone(), &LOCAL).await;
        for note in &found.notes {
            tracing::warn!("{note}");
        }
        for model in &found.models {
            tracing::info!(model = model.name, source = model.source, "no model is configured; this one was found");
        }
        Catalog::new(&found.models).unwrap_or_default()
    }
}

/// What was found.
#[derive(Debug, Default)]
pub struct Detected {
    /// Models that serve, the best first.
    pub models: Vec<ModelConfig>,
    /// What was found and does not serve, one line each.
    pub notes: Vec<String>,
}

/// Looks at the keys and asks each candidate server (name, address) for its first model.
pub async fn detect(
    openai_key: Option<Secret>,
    anthropic_key: Option<Secret>,
    candidates: &[(&str, &str)],
) -> Detected {
    let mut found = Detected::default();
    if let Some(key) = openai_key {
        found.models.push(model("openai", OPENAI, OPENAI_MODEL, Some(key), "OPENAI_API_KEY"));
    }
    if anthropic_key.is_some() {
        found.notes.push("ANTHROPIC_API_KEY is set, but this version does not speak Anthropic's API".to_owned());
    }
    for (name, base_url) in candidates {
        if let Ok(Ok(Some(id))) = timeout(PROBE, first_model(base_url)).await {
            found.models.push(model(name, base_url, &id, None, &format!("found at {base_url}")));
        }
    }
    found
}

async fn first_model(base_url: &str) -> Result<Option<String>, HttpError> {
    let mut response = http::get(&format!("{base_url}/models")).await?;
    let list = serde_json::from_slice::<Value>(&response.start(MAX_LIST, PROBE).await).unwrap_or_default();
    let id = list.pointer("/data/0/id").and_then(Value::as_str).filter(|id| !id.is_empty());
    Ok(id.filter(|_| response.status() == 200).map(str::to_owned))
}

fn model(name: &str, base_url: &str, model: &str, api_key: Option<Secret>, source: &str) -> ModelConfig {
    ModelConfig {
        name: name.to_owned(),
        api: Api::OpenAi,
        base_url: base_url.to_owned(),
        model: model.to_owned(),
        api_key,
        context_window: None,
        max_output: None,
        stream: true,
        idle_timeout: IDLE,
        price_input: None,
        price_output: None,
        fallback: Vec::new(),
        cassette: None,
        source: source.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::scripted::{Server, Step};

    async fn check(head: &str, body: &str, expected: Option<&str>) {
        let mut server = Server::answering(head, body).await;
        let url = format!("{}/v1", server.url);
        let found = detect(None, None, &[("local", &url)]).await;
        let models: Vec<&str> = found.models.iter().map(|model| model.model.as_str()).collect();
        assert_eq!(models, expected.into_iter().collect::<Vec<_>>(), "{head} {body}");
        assert!(server.requests().concat().starts_with("GET /v1/models HTTP/1.1\r\n"));
    }

    #[tokio::test]
    async fn servers() {
        let list = r#"{"object":"list","data":[{"id":"first"},{"id":"second"}]}"#;
        check("200 OK", list, Some("first")).await;
        check("404 Not Found", list, None).await;
        check("302 Found\r\nlocation: /", list, None).await;
        for other in
            [r#"{"object":"list","data":[]}"#, r#"{"data":null}"#, r#"{"data":[{"id":""}]}"#, "<html>", "", "[]"]
        {
            check("200 OK", other, None).await;
        }
    }

    #[tokio::test]
    async fn a_server_that_does_not_answer_is_not_waited_for() {
        let server = Server::start(vec![Step::Hold]).await;
        let found = detect(None, None, &[("silent", &server.url), ("none", "http://127.0.0.1:9")]).await;
        assert!(found.models.is_empty() && found.notes.is_empty());
    }

    #[tokio::test]
    async fn keys_come_first() {
        let key = |text: &str| Some(Secret(text.to_owned()));
        let server = Server::answering("200 OK", r#"{"data":[{"id":"m"}]}"#).await;
        let found = detect(key("sk-a"), key("sk-b"), &[("local", &server.url)]).await;
        let models: Vec<_> = found.models.iter().map(|m| (m.name.as_str(), m.source.as_str(), &m.api_key)).collect();
        let at = format!("found at {}", server.url);
        assert_eq!(models, [("openai", "OPENAI_API_KEY", &key("sk-a")), ("local", at.as_str(), &None)]);
        let [note] = found.notes.as_slice() else { unreachable!("{:?}", found.notes) };
        assert!(note.starts_with("ANTHROPIC_API_KEY") && !note.contains("sk-b"), "{note}");
    }
}
