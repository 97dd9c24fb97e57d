//! HTTP: the only place that makes requests, with one set of rules for all of them.
//!
//! Redirects are never followed (a key must not travel on), loopback addresses are never asked through a proxy, and
//! TLS is rustls with ring. Waiting is bounded by the caller, connecting is bounded here.

mod body;
pub mod call;
pub mod public;
pub mod socket;
pub mod wait;
pub mod web;

use std::error::Error;
use std::sync::LazyLock;
use std::time::Duration;

use reqwest::{Client, ClientBuilder, RequestBuilder, Url, header, redirect};
use tokio::time::{Instant, timeout_at};

pub use crate::config::origin::is_same_origin;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Below the 5 s after which llama.cpp's server closes an idle connection: one that is just being closed is not reused.
const POOL_IDLE: Duration = Duration::from_secs(4);

/// A request that got no reply, or whose reply broke off.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct HttpError {
    /// One line, without the address.
    pub message: String,
    /// Whether the same request may succeed.
    pub transient: bool,
    /// Whether the server may have got the request, so that it may have had its effect.
    pub sent: bool,
}

/// A reply whose body is still to be read.
#[derive(Debug)]
pub struct Response(reqwest::Response);

impl Response {
    /// Returns the status code.
    pub fn status(&self) -> u16 {
        self.0.status().as_u16()
    }

    /// Returns a header's value, if it is there and text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.0.headers().get(name)?.to_str().ok()
    }

    /// Returns the next bytes of the body, `None` at its end.
    pub async fn chunk(&mut self) -> Result<Option<Vec<u8>>, HttpError> {
        Ok(self.0.chunk().await.map_err(|error| explain(&error))?.map(Vec::from))
    }

    /// Reads the body until it ends, breaks off, holds `limit` bytes or took as long as `within`.
    pub async fn start(&mut self, limit: usize, within: Duration) -> Vec<u8> {
        let (mut body, end) = (Vec::new(), Instant::now() + within);
        while body.len() < limit
            && let Ok(Ok(Some(bytes))) = timeout_at(end, self.chunk()).await
        {
            body.extend(bytes);
        }
        body.truncate(limit);
        body
    }
}

/// Returns an address as anybody may see it: without a user, a password or a query, which may be keys.
pub fn shown(url: &str) -> String {
    let Ok(mut url) = Url::parse(url) else { return "(not an address)".into() };
    let hidden = url.set_username("").and_then(|()| url.set_password(None));
    url.set_query(None);
    if hidden.is_err() { "(hidden)".into() } else { url.to_string() }
}

/// Asks for `url`.
pub async fn get(url: &str) -> Result<Response, HttpError> {
    let url = parse(url)?;
    send(client(&url)?.get(url)).await
}

/// Posts a JSON text to `url`, with a bearer token where one is given.
pub async fn post_json(url: &str, bearer: Option<&str>, body: Vec<u8>) -> Result<Response, HttpError> {
    let url = parse(url)?;
    let request = client(&url)?.post(url).header(header::CONTENT_TYPE, "application/json").body(body);
    send(match bearer {
        Some(token) => request.bearer_auth(token),
        None => request,
    })
    .await
}

async fn send(request: RequestBuilder) -> Result<Response, HttpError> {
    request.send().await.map(Response).map_err(|error| explain(&error))
}

fn parse(url: &str) -> Result<Url, HttpError> {
    let bad = |why: String| HttpError { message: format!("not a web address: {why}"), transient: false, sent: false };
    let url = Url::parse(url).map_err(|error| bad(error.to_string()))?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        scheme => Err(bad(format!("`{scheme}` is neither http nor https"))),
    }
}

/// Returns the client for `url`; there are two, because a proxy is a client's and not a request's.
fn client(url: &Url) -> Result<&'static Client, HttpError> {
    static DIRECT: LazyLock<Result<Client, HttpError>> = LazyLock::new(|| build(|| rules().no_proxy()));
    static PROXIED: LazyLock<Result<Client, HttpError>> = LazyLock::new(|| build(rules));
    let client = if is_loopback(url) { &DIRECT } else { &PROXIED };
    client.as_ref().map_err(HttpError::clone)
}

fn rules() -> ClientBuilder {
    Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(POOL_IDLE)
        .redirect(redirect::Policy::none())
        .user_agent(concat!("nanod/", env!("CARGO_PKG_VERSION")))
}

/// Builds a client; a machine without CA certificates gets one that still speaks plain HTTP.
fn build(rules: impl Fn() -> ClientBuilder) -> Result<Client, HttpError> {
    // It fails where a provider is installed already, which serves as well.
    drop(rustls::crypto::ring::default_provider().install_default());
    let plain_only = |_| rules().tls_certs_only([]).build();
    rules().build().or_else(plain_only).map_err(|error| explain(&error))
}

/// Tells whether an address is on this machine.
pub fn is_local(url: &str) -> bool {
    Url::parse(url).is_ok_and(|url| is_loopback(&url))
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    match bare.parse::<std::net::IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    }
}

/// Says what broke: the innermost cause, which is the one that names it.
fn explain(error: &reqwest::Error) -> HttpError {
    let mut cause: Option<&dyn Error> = None;
    while let Some(inner) = cause.map_or_else(|| error.source(), Error::source) {
        cause = Some(inner);
    }
    let message = cause.map_or_else(|| "the request failed".to_owned(), ToString::to_string);
    if message.contains("certificate") {
        let message = format!("{message}; are CA certificates installed (package ca-certificates)?");
        return HttpError { message, transient: false, sent: false };
    }
    let sent = !error.is_builder() && !error.is_connect();
    HttpError { message, transient: !error.is_builder(), sent }
}

#[cfg(test)]
pub mod scripted;

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::{get, is_loopback};

    #[test]
    fn loopback_goes_without_a_proxy() {
        for (url, expected) in [
            ("http://127.0.0.1:8080/v1", true),
            ("http://127.9.9.9", true),
            ("http://[::1]:1", true),
            ("http://[::ffff:127.0.0.1]", true),
            ("http://localhost:11434", true),
            ("http://LOCALHOST", true),
            ("http://a.localhost", true),
            ("https://api.openai.com/v1", false),
            ("http://10.0.0.1", false),
            ("http://127.0.0.1.example.com", false),
            ("http://localhost.example.com", false),
        ] {
            assert_eq!(is_loopback(&url.parse().unwrap()), expected, "{url}");
        }
    }

    #[tokio::test]
    async fn addresses_that_are_none_are_permanent() {
        for url in ["", "127.0.0.1", "ftp://localhost/x", "http://"] {
            let error = get(url).await.unwrap_err();
            assert!(!error.transient && error.message.starts_with("not a web address"), "{url}: {error}");
        }
    }
}
