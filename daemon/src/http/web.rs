//! The web as agents reach it: the one way out for addresses that a model chose, or that a server of the web named.
//!
//! An address is checked before anything is sent, and each one that a redirect leads to in the same way: http or https,
//! no user, and a host that is out on the internet. Its name is resolved once, all of what that gives must be public, and
//! the connection goes to just that; the address it came to is looked at again. No proxy, no cookies, no reuse. What a
//! person allowed by name or range is reached wherever it lies.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use reqwest::dns::{Name, Resolve, Resolving};
use reqwest::{Client, Method, header};
use url::{Host, Url};

use super::body::Body;
use super::public::is_public;
use super::{HttpError, Response, build, explain, rules};
use crate::config::web::Allowed;

/// How many redirects are followed.
const REDIRECTS: usize = 5;
/// Names that mean this machine, or what a cloud tells its machines; with all below them.
const NAMES: [&str; 7] =
    ["localhost", "localdomain", "metadata", "metadata.google.internal", "metadata.goog", "instance-data", "local"];

/// How far a request may go.
#[derive(Debug, Clone, Copy)]
pub enum Reach<'a> {
    /// To what is public, and to these hosts; where there is a second list, to hosts of that alone.
    Web(&'a [Allowed], Option<&'a [Allowed]>),
    /// To this server, which a person named, wherever it lies, and to no other.
    Server(&'a Url),
}

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Request {
    /// `GET` and `HEAD` follow redirects.
    pub method: Method,
    /// Where to.
    pub url: String,
    /// Headers; no other server gets them.
    pub headers: Vec<(String, String)>,
    /// What it carries; no other server gets it.
    pub body: Option<Vec<u8>>,
    /// How long all of it may take.
    pub within: Duration,
    /// How many bytes of the reply's body are read.
    pub limit: usize,
}

/// A reply.
#[derive(Debug, Clone)]
pub struct Page {
    /// The status code.
    pub status: u16,
    /// The address that gave it.
    pub url: String,
    /// Its headers, those that are text.
    pub headers: Vec<(String, String)>,
    /// Its body, decompressed.
    pub body: Vec<u8>,
    /// Whether the body goes on.
    pub cut: bool,
}

impl Page {
    /// Returns the first header called `name`, which is in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(one, _)| one == name).map(|(_, value)| value.as_str())
    }
}

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
pub enum WebError {
    /// It is no address to ask.
    #[error("bad url: {0}")]
    Bad(String),
    /// It is none that may be asked.
    #[error("refused: {0}")]
    Refused(String),
    /// One redirect led to the next.
    #[error("too many redirects: more than {REDIRECTS}, the last to {0}")]
    Redirects(String),
    /// It took too long.
    #[error("timeout: there was no whole reply within {} s", .0.as_secs())]
    Late(Duration),
    /// It did not work out.
    #[error("the request failed: {0}")]
    Failed(String),
}

impl From<HttpError> for WebError {
    fn from(error: HttpError) -> Self {
        Self::Failed(error.message)
    }
}

/// Asks, and follows redirects where that repeats nothing that could have an effect.
pub async fn fetch(reach: Reach<'_>, request: Request) -> Result<Page, WebError> {
    static CLIENTS: LazyLock<Result<Clients, HttpError>> = LazyLock::new(|| Clients::new(Arc::new(System)));
    let (clients, within) = (CLIENTS.as_ref().map_err(HttpError::clone)?, request.within);
    tokio::time::timeout(within, clients.follow(reach, request)).await.unwrap_or(Err(WebError::Late(within)))
}

/// Two clients, since it is a client that resolves names.
struct Clients {
    /// Goes to public addresses.
    public: Client,
    /// Goes to what was allowed.
    open: Client,
}

impl Clients {
    fn new(system: Arc<dyn Resolve>) -> Result<Self, HttpError> {
        let client = |resolver: Arc<dyn Resolve>| {
            build(|| rules().no_proxy().pool_max_idle_per_host(0).dns_resolver(Arc::clone(&resolver)))
        };
        Ok(Self { public: client(Arc::new(Public(Arc::clone(&system))))?, open: client(system)? })
    }

    async fn follow(&self, reach: Reach<'_>, mut request: Request) -> Result<Page, WebError> {
        let mut url = Url::parse(&request.url).map_err(|why| WebError::Bad(why.to_string()))?;
        for _ in 0..=REDIRECTS {
            let response = self.ask(reach, &url, &request).await?;
            let Some(next) = next(&url, &request.method, &response) else {
                return page(response, url, request.limit).await;
            };
            let next = next.map_err(|why| WebError::Bad(format!("it redirects to no address: {why}")))?;
            if next.origin() != url.origin() {
                request.headers.clear();
                request.body = None;
            }
            url = next;
        }
        Err(WebError::Redirects(super::shown(url.as_str())))
    }

    async fn ask(&self, reach: Reach<'_>, url: &Url, request: &Request) -> Result<Response, WebError> {
        let open = is_open(reach, url)?;
        let client = if open { &self.open } else { &self.public };
        let mut builder = client.request(request.method.clone(), url.clone()).header(header::ACCEPT_ENCODING, "gzip");
        for (name, value) in &request.headers {
            builder = builder.header(name, value);
        }
        if let Some(body) = &request.body {
            builder = builder.body(body.clone());
        }
        let response = builder.send().await.map_err(|error| failed(&error))?;
        match response.remote_addr() {
            _ if open => Ok(Response(response)),
            Some(peer) if is_public(peer.ip()) => Ok(Response(response)),
            Some(peer) => Err(not_public(&peer.ip().to_string())),
            None => Err(not_public("a connection to nobody knows where")),
        }
    }
}

/// Checks an address; true: a person allowed it, so that it need not be public.
fn is_open(reach: Reach<'_>, url: &Url) -> Result<bool, WebError> {
    if !["http", "https"].contains(&url.scheme()) {
        return Err(WebError::Bad(format!("`{}` is neither http nor https", url.scheme())));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(WebError::Bad("it names a user".into()));
    }
    let Reach::Web(allow, only) = reach else {
        return if is_server(reach, url) { Ok(true) } else { Err(elsewhere(url)) };
    };
    if only.is_some_and(|hosts| !hosts.iter().any(|host| host.fits(url))) {
        return Err(unlisted(url, only.unwrap_or_default()));
    }
    if allow.iter().any(|host| host.fits(url)) {
        return Ok(true);
    }
    let public = match url.host() {
        Some(Host::Domain(name)) => !is_inner(name),
        Some(Host::Ipv4(one)) => is_public(one.into()),
        Some(Host::Ipv6(one)) => is_public(one.into()),
        None => false,
    };
    if public { Ok(false) } else { Err(not_public(url.host_str().unwrap_or("a place without a host"))) }
}

fn is_server(reach: Reach<'_>, url: &Url) -> bool {
    matches!(reach, Reach::Server(server) if server.origin() == url.origin())
}

fn is_inner(name: &str) -> bool {
    let name = name.trim_end_matches('.');
    NAMES.iter().any(|inner| name.strip_suffix(inner).is_some_and(|before| before.is_empty() || before.ends_with('.')))
}

fn not_public(what: &str) -> WebError {
    let hint = "a person can allow it with allow in [web] of nanod's config";
    WebError::Refused(format!("{what} is not public (SSRF protection); {hint}"))
}

fn elsewhere(url: &Url) -> WebError {
    WebError::Refused(format!("the server redirects to another one, {}", super::shown(url.as_str())))
}

fn unlisted(url: &Url, hosts: &[Allowed]) -> WebError {
    let hosts: Vec<String> = hosts.iter().map(ToString::to_string).collect();
    let host = url.host_str().unwrap_or_default();
    WebError::Refused(format!("{host} is not among the hosts of [http_request]: {}", hosts.join(", ")))
}

/// Returns where a reply sends the one who asked, if it does and may.
fn next(url: &Url, method: &Method, response: &Response) -> Option<Result<Url, url::ParseError>> {
    let redirects =
        matches!(response.status(), 301 | 302 | 303 | 307 | 308) && [Method::GET, Method::HEAD].contains(method);
    response.header(header::LOCATION.as_str()).filter(|_| redirects).map(|place| url.join(place))
}

async fn page(mut response: Response, url: Url, limit: usize) -> Result<Page, WebError> {
    let status = response.status();
    let text = |(name, value): (&header::HeaderName, &header::HeaderValue)| {
        Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
    };
    let headers: Vec<_> = response.0.headers().iter().filter_map(text).collect();
    let mut body = Body::new(response.header(header::CONTENT_ENCODING.as_str()), limit).map_err(WebError::Failed)?;
    while !body.is_full()
        && let Some(bytes) = response.chunk().await?
    {
        body.push(&bytes).map_err(WebError::Failed)?;
    }
    let (body, cut) = body.end().map_err(WebError::Failed)?;
    Ok(Page { status, url: url.into(), headers, body, cut })
}

/// Says why there is no reply; what the resolver refused is told as such.
fn failed(error: &reqwest::Error) -> WebError {
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    while let Some(one) = cause {
        if let Some(NotPublic(name)) = one.downcast_ref() {
            return not_public(name);
        }
        cause = one.source();
    }
    explain(error).into()
}

/// A name that leads to what is not public.
#[derive(Debug, thiserror::Error)]
#[error("{0} is not public")]
struct NotPublic(String);

/// Asks the system.
struct System;

impl Resolve for System {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let all: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            Ok(Box::new(all.into_iter()) as _)
        })
    }
}

/// Gives the addresses of a name that leads to public ones alone.
struct Public(Arc<dyn Resolve>);

impl Resolve for Public {
    fn resolve(&self, name: Name) -> Resolving {
        let told = name.as_str().to_owned();
        let looked = self.0.resolve(name);
        Box::pin(async move {
            let all: Vec<SocketAddr> = looked.await?.collect();
            let inner = |one: &SocketAddr| -> Option<IpAddr> { (!is_public(one.ip())).then_some(one.ip()) };
            match all.iter().find_map(inner) {
                Some(address) => Err(NotPublic(format!("{told}, which leads to {address},")).into()),
                None => Ok(Box::new(all.into_iter()) as _),
            }
        })
    }
}

#[cfg(test)]
mod tests;
