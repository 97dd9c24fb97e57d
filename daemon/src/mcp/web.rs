//! JSON-RPC with one server over HTTP: each message is a POST, answered as JSON or as a stream of events.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::peer::{reply_to, set_meta};
use super::{Fault, Limits, clean, lock};
use crate::config::Secret;
use crate::http::Response;
use crate::http::call::{Call, Load, Method};
use crate::model::sse::Parser;

/// The longest answer that is taken.
const LONGEST: usize = 16 << 20;
/// How much of a refusal is read, and for how long.
const REFUSAL: usize = 64 << 10;
const SOON: Duration = Duration::from_secs(5);
const SESSION: &str = "mcp-session-id";

/// One server.
pub struct Web {
    url: String,
    headers: Vec<(String, Secret)>,
    next: AtomicU64,
    /// What the server calls this session, and the form of the protocol that was agreed on.
    agreed: Mutex<BTreeMap<&'static str, String>>,
    changed: AtomicBool,
}

impl Web {
    /// Makes the way to a server.
    pub fn new(url: String, headers: Vec<(String, Secret)>) -> Self {
        Self { url, headers, next: AtomicU64::new(1), agreed: Mutex::default(), changed: AtomicBool::new(false) }
    }

    /// Has every later message say that it is of this form.
    pub fn agree(&self, version: &str) {
        lock(&self.agreed).insert("mcp-protocol-version", version.to_owned());
    }

    /// Tells, once, whether the server has said that its tools are others now.
    pub fn take_changed(&self) -> bool {
        self.changed.swap(false, Ordering::Relaxed)
    }

    /// Tells it something, as far as it listens.
    pub async fn notify(&self, method: &str, params: &Value) {
        let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        drop(tokio::time::timeout(SOON, self.post(method, &message)).await);
    }

    /// Asks it for something.
    pub async fn request(
        &self,
        method: &str,
        mut params: Value,
        limits: Limits,
        cancel: &CancellationToken,
    ) -> Result<Value, Fault> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        if limits.progress {
            set_meta(&mut params, "progressToken", id.into());
        }
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let progress = Notify::new();
        let mut exchange = Box::pin(self.exchange(id, method, &message, &progress));
        let most = Instant::now() + limits.most;
        let mut silent = Instant::now() + limits.silent;
        let fault = loop {
            tokio::select! {
                biased;
                () = cancel.cancelled() => break Fault::Cancelled,
                answer = &mut exchange => return answer,
                () = progress.notified() => silent = Instant::now() + limits.silent,
                () = sleep_until(silent.min(most)) => {
                    break Fault::Late(if silent < most { limits.silent } else { limits.most });
                }
            }
        };
        if limits.progress {
            let reason = if matches!(fault, Fault::Cancelled) { "cancelled" } else { "it took too long" };
            self.notify("notifications/cancelled", &json!({"requestId": id, "reason": reason})).await;
        }
        Err(fault)
    }

    /// Says that this session is over.
    pub async fn leave(&self) {
        if lock(&self.agreed).contains_key(SESSION) {
            drop(self.call(Method::DELETE, Load::Nothing).begin().await);
        }
    }

    fn call(&self, method: Method, load: Load) -> Call {
        let mut call = Call::new(method, self.url.clone(), SOON);
        call.load = load;
        call.headers.push(("accept", "application/json, text/event-stream".into()));
        call.headers.extend(lock(&self.agreed).iter().map(|(name, value)| (*name, value.clone())));
        call.named.extend(self.headers.iter().map(|(name, Secret(value))| (name.clone(), value.clone())));
        call
    }

    async fn post(&self, method: &str, message: &Value) -> Result<Response, Fault> {
        let mut call = self.call(Method::POST, Load::Json(message.to_string().into_bytes()));
        // How long is the business of who asks.
        call.within = Duration::from_hours(24);
        call.headers.push(("mcp-method", method.to_owned()));
        if let Some(name) = message.pointer("/params/name").and_then(Value::as_str).filter(|name| name.is_ascii()) {
            call.headers.push(("mcp-name", name.to_owned()));
        }
        call.begin().await.map_err(|error| Fault::Broken(error.message))
    }

    async fn exchange(&self, id: u64, method: &str, message: &Value, progress: &Notify) -> Result<Value, Fault> {
        let known = lock(&self.agreed).contains_key(SESSION);
        let mut response = self.post(method, message).await?;
        match response.status() {
            200..=299 => {}
            404 if known => {
                lock(&self.agreed).clear();
                return Err(Fault::Forgotten);
            }
            300..=399 => return Err(Fault::Broken("it sends elsewhere, which is not followed; write that url".into())),
            status => return Err(refusal(status, &response.start(REFUSAL, SOON).await)),
        }
        if let Some(session) = response.header(SESSION).map(str::to_owned) {
            lock(&self.agreed).insert(SESSION, session);
        }
        let is_stream = response.header("content-type").is_some_and(|kind| kind.contains("text/event-stream"));
        let (mut parser, mut body, mut count) = (Parser::default(), Vec::new(), 0);
        while let Some(bytes) = response.chunk().await.map_err(|error| Fault::Broken(error.message))? {
            count += bytes.len();
            if count > LONGEST {
                return Err(Fault::Broken(format!("it sent an answer of more than {LONGEST} bytes")));
            }
            if !is_stream {
                body.extend(bytes);
                continue;
            }
            for event in parser.push(&bytes).map_err(|why| Fault::Broken(why.to_string()))? {
                if let Some(answer) = self.hear(id, event.as_bytes(), progress).await {
                    return answer;
                }
            }
        }
        let rest = if is_stream { parser.finish().unwrap_or_default().into_bytes() } else { body };
        let answer = self.hear(id, &rest, progress).await;
        answer.unwrap_or_else(|| Err(Fault::Broken("its reply holds no answer".into())))
    }

    /// Takes what a reply holds; returns the answer where it is that.
    async fn hear(&self, id: u64, text: &[u8], progress: &Notify) -> Option<Result<Value, Fault>> {
        let messages = match serde_json::from_slice(text).ok()? {
            Value::Array(batch) => batch,
            one => vec![one],
        };
        for mut message in messages {
            let method = message.get("method").and_then(Value::as_str).map(str::to_owned);
            match (method.as_deref(), message.get("id").cloned()) {
                (None, Some(of)) if of == id => return Some(super::answer(&mut message)),
                (Some(method), Some(of)) => drop(self.post(method, &reply_to(method, &of)).await),
                (Some("notifications/progress"), None) => progress.notify_one(),
                (Some("notifications/tools/list_changed"), None) => self.changed.store(true, Ordering::Relaxed),
                _ => {}
            }
        }
        None
    }
}

/// Says why a server refused: in its own words, if they are an error's.
fn refusal(status: u16, body: &[u8]) -> Fault {
    let said =
        serde_json::from_slice::<Value>(body).ok().filter(|body| body.get("error").is_some_and(Value::is_object));
    if let Some(Err(fault)) = said.map(|mut body| super::answer(&mut body)) {
        return fault;
    }
    let text = clean::text(&String::from_utf8_lossy(body).chars().take(200).collect::<String>());
    let more = if text.is_empty() { text } else { format!(": {text}") };
    Fault::Broken(format!("it answers HTTP {status}{more}"))
}
