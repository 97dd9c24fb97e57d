//! Calls of Bay v1: every one goes through here.
//!
//! A `503` that says when is waited for; what broke is tried again where that is safe: always for `GET`, `PUT` and
//! `DELETE`, else only with an idempotency key or where the request never left. All of it ends with the call's
//! allowance, but for a file that keeps coming. The key goes to the endpoint only, and into no text.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::time::Duration;

use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::time::{Instant, sleep, timeout};

use super::fault::{Fault, looks_like_html, wrong_server};
use super::paths::LONGEST;
use crate::config::Secret;
use crate::http::call::{Call, Load, Method, Reply};
use crate::http::{self, HttpError, Response};

/// How long Bay may take to start a sandbox's compute before a call runs.
pub const COLD_START: Duration = Duration::from_mins(2);
/// How long a call may take beyond what the server may take: the way there and back, and a browser to start.
pub const SLACK: Duration = Duration::from_secs(30);
/// How long a call may take that only looks at records.
pub const RECORDS: Duration = Duration::from_secs(30);
/// The longest reply.
const MOST: usize = 16 << 20;
/// The largest file that is taken from a sandbox.
const MOST_FILE: u64 = 100 << 20;
/// How often a call is tried again that broke.
const AGAIN: u32 = 3;
const FIRST_WAIT: Duration = Duration::from_millis(200);
/// How long a download may pause.
const PAUSE: Duration = Duration::from_mins(1);

/// A server, and what it lets us in by.
#[derive(Debug)]
pub struct Bay {
    endpoint: String,
    token: Secret,
}

/// What to ask of it.
#[derive(Debug)]
pub struct Ask {
    method: Method,
    /// Below `/v1/`.
    path: String,
    query: Vec<(&'static str, String)>,
    body: Body,
    key: Option<String>,
    /// Whether making it twice is making it once.
    is_safe: bool,
    within: Duration,
}

#[derive(Debug)]
enum Body {
    Nothing,
    Json(Vec<u8>),
    File(File, String),
}

impl Ask {
    /// Makes a request without a body.
    pub fn new(method: Method, path: impl Into<String>) -> Self {
        let is_safe = [Method::GET, Method::PUT, Method::DELETE].contains(&method);
        Self { method, path: path.into(), query: Vec::new(), body: Body::Nothing, key: None, is_safe, within: RECORDS }
    }

    /// Asks for something.
    pub fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path)
    }

    /// Posts a JSON object.
    pub fn post(path: impl Into<String>, body: &Value) -> Self {
        Self::new(Method::POST, path).json(body)
    }

    /// Carries a JSON object.
    pub fn json(self, body: &Value) -> Self {
        Self { body: Body::Json(body.to_string().into_bytes()), ..self }
    }

    /// Carries a file for the place `path`.
    pub fn file(self, file: File, path: &str) -> Self {
        Self { body: Body::File(file, path.to_owned()), ..self }
    }

    /// Carries a query parameter, if there is a value.
    pub fn query(mut self, name: &'static str, value: Option<String>) -> Self {
        self.query.extend(value.map(|value| (name, value)));
        self
    }

    /// Names the request, so that it has its effect once however often it is made.
    pub fn key(self, key: &str) -> Self {
        Self { key: Some(key.to_owned()), ..self }.twice_is_once()
    }

    /// Says that making the call twice is making it once.
    pub fn twice_is_once(self) -> Self {
        Self { is_safe: true, ..self }
    }

    /// Says how long the server may take for the work itself; starting compute comes on top.
    pub fn taking(self, time: Duration) -> Self {
        Self { within: time + COLD_START + SLACK, ..self }
    }

    /// Returns the name of a text that is too long for an address.
    pub fn too_long(&self) -> Option<&'static str> {
        self.query.iter().find(|(_, value)| value.len() > LONGEST).map(|(name, _)| *name)
    }

    /// Tells whether it changes nothing.
    pub fn is_read(&self) -> bool {
        self.method == Method::GET
    }

    fn load(&self) -> Result<Load, HttpError> {
        Ok(match &self.body {
            Body::Nothing => Load::Nothing,
            Body::Json(body) => Load::Json(body.clone()),
            Body::File(file, path) => {
                // Opened anew: an attempt that broke off may still be reading from the file's old place.
                let again = File::open(format!("/proc/self/fd/{}", file.as_raw_fd()));
                let unreadable = |why: std::io::Error| HttpError {
                    message: format!("the file cannot be read: {why}"),
                    transient: false,
                    sent: false,
                };
                let name = path.rsplit('/').next().unwrap_or_default().to_owned();
                let texts = vec![("path", path.clone())];
                Load::Form { field: "file", name, file: again.map_err(unreadable)?, texts }
            }
        })
    }
}

impl Bay {
    /// Names a server.
    pub fn new(endpoint: String, token: Secret) -> Self {
        Self { endpoint, token }
    }

    /// Returns the server as it may be shown.
    pub fn shown(&self) -> String {
        http::shown(&self.endpoint).trim_end_matches('/').to_owned()
    }

    /// Makes a call and returns its reply, a JSON value; null for an empty one.
    pub async fn call(&self, ask: &Ask) -> Result<Value, Fault> {
        let mut tries = Tries::new(ask);
        loop {
            let reply = match self.request(ask, tries.left()) {
                Ok(call) => call.whole(MOST).await,
                Err(why) => Err(why),
            };
            match reply.map_err(|why| Fault::of_http(&why, &self.shown())).and_then(|reply| self.value(reply)) {
                Ok(value) => return Ok(value),
                Err(fault) => tries.again(fault).await?,
            }
        }
    }

    /// Makes a call and writes its reply into a file; returns how many bytes it has.
    pub async fn download(&self, ask: &Ask, into: File) -> Result<u64, Fault> {
        let mut tries = Tries::new(ask);
        loop {
            match self.open(ask, tries.left()).await {
                Ok(reply) => return Self::copy(reply, into).await,
                Err(fault) => tries.again(fault).await?,
            }
        }
    }

    fn request(&self, ask: &Ask, within: Duration) -> Result<Call, HttpError> {
        let url = format!("{}/v1/{}", self.endpoint, ask.path);
        let mut call = Call::new(ask.method.clone(), url, within);
        call.bearer = Some(self.token.0.clone());
        call.query.clone_from(&ask.query);
        call.headers.extend(ask.key.iter().map(|key| ("Idempotency-Key", key.clone())));
        call.load = ask.load()?;
        Ok(call)
    }

    fn value(&self, reply: Reply) -> Result<Value, Fault> {
        if !(200..300).contains(&reply.status) {
            return Err(self.refusal(reply));
        }
        if reply.body.trim_ascii().is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&reply.body).map_err(|why| {
            let words = if looks_like_html(&reply.body) {
                wrong_server(&self.shown())
            } else {
                format!("the reply of {} is not JSON: {why}", self.shown())
            };
            Fault { may_have_run: true, ..Fault::plain(words) }
        })
    }

    async fn open(&self, ask: &Ask, within: Duration) -> Result<Response, Fault> {
        let of_http = |why: HttpError| Fault::of_http(&why, &self.shown());
        let mut response = self.request(ask, within).map_err(of_http)?.begin().await.map_err(of_http)?;
        let status = response.status();
        if (200..300).contains(&status) {
            return Ok(response);
        }
        let body = response.start(64 << 10, RECORDS).await;
        Err(self.refusal(Reply { status, body }))
    }

    async fn copy(mut reply: Response, into: File) -> Result<u64, Fault> {
        let (mut count, mut into) = (0, tokio::fs::File::from_std(into));
        let unwritten = |why: std::io::Error| Fault::plain(format!("the file could not be written: {why}"));
        let broken = |why: &HttpError| Fault::plain(format!("the file broke off: {why}; try again"));
        let slow = |_| Fault::plain("the file stopped coming; try again");
        while let Some(bytes) = timeout(PAUSE, reply.chunk()).await.map_err(slow)?.map_err(|why| broken(&why))? {
            count += bytes.len() as u64;
            if count > MOST_FILE {
                let most = MOST_FILE >> 20;
                return Err(Fault::plain(format!("it has more than {most} MiB: split or compress it")));
            }
            into.write_all(&bytes).await.map_err(unwritten)?;
        }
        into.flush().await.map_err(unwritten)?;
        Ok(count)
    }

    /// Reads a reply that is no success; a key that it repeats is taken out before anything is cut.
    fn refusal(&self, mut reply: Reply) -> Fault {
        if !self.token.0.is_empty() {
            reply.body = String::from_utf8_lossy(&reply.body).replace(&self.token.0, "(the key)").into_bytes();
        }
        Fault::of_reply(&reply, &self.shown())
    }
}

/// How often and how long one call has been tried.
struct Tries {
    is_safe: bool,
    is_read: bool,
    count: u32,
    end: Instant,
}

impl Tries {
    fn new(ask: &Ask) -> Self {
        Self { is_safe: ask.is_safe, is_read: ask.is_read(), count: 0, end: Instant::now() + ask.within }
    }

    /// Returns how long the next attempt may take.
    fn left(&self) -> Duration {
        self.end.saturating_duration_since(Instant::now())
    }

    /// Waits until the call may be made again; an error where it may not.
    async fn again(&mut self, fault: Fault) -> Result<(), Fault> {
        let may = fault.transient && (self.is_safe || !fault.may_have_run && fault.status == 0) && self.count < AGAIN;
        let backoff = may.then(|| FIRST_WAIT * 2_u32.pow(self.count));
        self.count += u32::from(fault.wait.is_none());
        match fault.wait.or(backoff) {
            Some(wait) if Instant::now() + wait < self.end => {
                sleep(wait).await;
                Ok(())
            }
            _ if self.is_read => Err(fault.of_read()),
            _ => Err(fault.of_change()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Ask, Fault, RECORDS, Tries};

    #[tokio::test(start_paused = true)]
    async fn all_attempts_share_one_allowance() {
        let mut tries = Tries::new(&Ask::get("x"));
        let wait = Duration::from_secs(20);
        let busy = Fault { wait: Some(wait), ..Fault::plain("busy") };
        assert_eq!(tries.left(), RECORDS);
        assert!(tries.again(busy.clone()).await.is_ok() && tries.left() <= RECORDS.saturating_sub(wait));
        assert!(tries.again(busy).await.is_err());
    }
}
