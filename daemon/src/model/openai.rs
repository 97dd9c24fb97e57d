//! Speaks chat completions, to the company that made them and to the many servers that took over the form.

use std::collections::HashSet;
use std::time::Duration;

use serde_json::Value;
use tokio::time::timeout;

use super::body::{self, Settings};
use super::failure::{class_of, describe, one_line, transient};
use super::intake::Intake;
use super::retry::MAX_WAIT;
use super::{Answer, ChatMessage, Class, Provider, ProviderError, Request, Sink};
use crate::config::{ModelConfig, Secret};
use crate::http::wait::asked;
use crate::http::{self, HttpError, Response};
use crate::sandbox::BoxFuture;

/// How much of an error's body is read.
const MAX_ERROR: usize = 64 * 1024;
/// The longest reason and the longest message that are passed on, in characters: what to try comes last.
const MAX_REASON: usize = 300;
const MAX_MESSAGE: usize = 500;
/// How long to wait for more once what matters is known: usage and end after the reason to end, the body of an error.
const AFTER_END: Duration = Duration::from_secs(5);

/// One model of one server.
#[derive(Debug)]
pub struct OpenAi {
    url: String,
    /// The server without what may be secret in its address.
    server: String,
    key: Option<Secret>,
    idle: Duration,
    settings: Settings,
}

impl OpenAi {
    /// Makes the provider that `config` describes; nothing is sent yet.
    pub fn new(config: &ModelConfig) -> Self {
        let server = server_of(&config.base_url);
        // The newer name, without which its newer models refuse; the others know the older one.
        let limit = if server == "api.openai.com" { "max_completion_tokens" } else { "max_tokens" };
        Self {
            url: format!("{}/chat/completions", config.base_url.trim_end_matches('/')),
            server,
            key: config.api_key.clone(),
            idle: config.idle_timeout,
            settings: Settings {
                model: config.model.clone(),
                stream: config.stream,
                limit: config.max_output.map(|tokens| (limit, tokens)),
            },
        }
    }

    async fn reply(&self, request: &Request, sink: Sink<'_>) -> Result<Answer, ProviderError> {
        let post = http::post_json(&self.url, self.key(), body::text(&self.settings, request));
        let response = match timeout(self.idle, post).await {
            Err(_) => return Err(self.silent()),
            Ok(Err(error)) => return Err(self.unreachable(&error)),
            Ok(Ok(response)) => response,
        };
        match response.status() {
            200..300 => self.read(response, request, sink).await,
            _ => Err(self.refused(response).await),
        }
    }

    async fn read(&self, mut response: Response, request: &Request, sink: Sink<'_>) -> Result<Answer, ProviderError> {
        let mut intake = Intake::default();
        loop {
            let wait = if intake.has_ended() { self.idle.min(AFTER_END) } else { self.idle };
            match timeout(wait, response.chunk()).await {
                Ok(Ok(Some(bytes))) => {
                    if intake.push(&bytes, sink)? {
                        break;
                    }
                }
                Ok(Ok(None)) => break,
                // The reply itself is whole.
                Ok(Err(_)) | Err(_) if intake.has_ended() => break,
                Ok(Err(error)) => return Err(transient(format!("{} broke off the reply: {error}", self.server))),
                Err(_) => return Err(self.silent()),
            }
        }
        intake.finish(sink, request.replies, &ids(&request.messages))
    }

    /// Reads an answer that is not 200.
    async fn refused(&self, mut response: Response) -> ProviderError {
        let body = response.start(MAX_ERROR, self.idle.min(AFTER_END)).await;
        let status = response.status();
        let report = serde_json::from_slice::<Value>(&body).ok().map(|value| describe(&value));
        let why = match &report {
            Some(report) => format!(": {}", one_line(&report.reason, self.key(), MAX_REASON)),
            None => format!(" (non-JSON body, {} bytes)", body.len()),
        };
        let class = report.map_or_else(|| class_of(status), |report| report.class(status));
        let now = crate::clock::seconds();
        let text = String::from_utf8_lossy(&body);
        let retry_after = asked(|name| response.header(name), &text, now).filter(|_| class == Class::Transient);
        let message = format!("{} answered HTTP {status}{why}{}", self.server, hint(status, retry_after));
        ProviderError { class, message, retry_after }
    }

    fn unreachable(&self, error: &HttpError) -> ProviderError {
        let class = if error.transient { Class::Transient } else { Class::Permanent };
        let message = format!("cannot reach {}: {error}; check base_url and that the server runs", self.server);
        ProviderError { class, message, retry_after: None }
    }

    fn silent(&self) -> ProviderError {
        let seconds = self.idle.as_secs_f64();
        transient(format!("{} was silent for {seconds} s; a slow model needs a longer idle_timeout", self.server))
    }

    fn key(&self) -> Option<&str> {
        self.key.as_ref().map(|key| key.0.as_str())
    }
}

impl Provider for OpenAi {
    fn stream<'a>(&'a self, request: &'a Request, sink: Sink<'a>) -> BoxFuture<'a, Result<Answer, ProviderError>> {
        Box::pin(async move {
            let reply = self.reply(request, sink).await;
            // The one way out: whatever a server sent along, no key and no second line passes.
            reply.map_err(|error| {
                let message = one_line(&error.message, self.key(), MAX_MESSAGE);
                ProviderError { message, ..error }
            })
        })
    }
}

/// Returns the ids of calls that the session knows.
fn ids(messages: &[ChatMessage]) -> HashSet<&str> {
    messages
        .iter()
        .flat_map(|message| match message {
            ChatMessage::Assistant { calls, .. } => calls.as_slice(),
            ChatMessage::User(_) | ChatMessage::Tool { .. } => &[],
        })
        .map(|call| call.id.as_str())
        .collect()
}

/// Returns host and port of an address.
fn server_of(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.rsplit('@').next().unwrap_or_default().to_owned()
}

fn hint(status: u16, retry_after: Option<Duration>) -> String {
    match (status, retry_after) {
        (_, Some(wait)) if wait > MAX_WAIT => format!("; it asks to wait {} s, too long to wait for", wait.as_secs()),
        (401 | 403, _) => "; check the model's api_key".to_owned(),
        (404, _) => "; check base_url and the model's name".to_owned(),
        (300..=399, _) => "; check base_url: redirects are not followed".to_owned(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests;
