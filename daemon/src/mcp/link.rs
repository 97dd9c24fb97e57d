//! The way to one server, once it is known which form of the protocol it speaks.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::peer::{Peer, set_meta};
use super::web::Web;
use super::{Fault, Limits, METHOD_NOT_FOUND, Place, lock};
use crate::config::{McpConfig, Reach, Secret};
use crate::sandbox::service::{Program, Service};

/// The form that is asked for, and those that are taken.
const VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// The form that knows no `initialize`.
const STATELESS: &str = "2026-07-28";
/// How long a server whose input has closed may take to end by itself.
const LEAVING: Duration = Duration::from_secs(2);

/// A value of fewer bytes is no key: hiding it would hide words that happen to be the same.
const SHORTEST: usize = 6;

/// A server that can be asked.
pub struct Link {
    way: Way,
    stateless: AtomicBool,
    busy: AtomicUsize,
    used: Mutex<Instant>,
    keys: Vec<String>,
}

enum Way {
    /// A program of ours; the peer goes first.
    Program(Mutex<Option<Arc<Peer>>>, Service),
    Http(Web),
}

/// Counts a request that is under way.
struct Busy<'a>(&'a Link);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.busy.fetch_sub(1, Ordering::Relaxed);
        self.0.touch();
    }
}

impl Link {
    /// Makes the way to a server, whose program is started if it has one; nothing was said yet.
    pub async fn start(
        config: &McpConfig,
        place: &Place,
        helper: &Path,
        common: &[(String, String)],
    ) -> Result<Self, String> {
        let way = match &config.reach {
            Reach::Http { url, headers } => Way::Http(Web::new(url.clone(), headers.clone())),
            Reach::Program { command, args, env } => {
                let own = |(name, Secret(value)): &(String, Secret)| (name.clone(), value.clone());
                let shared = common.iter().filter(|(name, _)| !env.iter().any(|(own, _)| own == name)).cloned();
                let program = Program {
                    path: command.into(),
                    args: args.iter().map(|arg| arg.replace("{workspace}", &place.workspace)).collect(),
                    env: shared.chain(env.iter().map(own)).collect(),
                    secrets: env.iter().map(|(_, Secret(value))| value.clone()).collect(),
                };
                let talking = Service::start_talking(helper, program).await;
                let (service, stream) = talking.map_err(|why| why.to_string())?;
                Way::Program(Mutex::new(Some(Arc::new(Peer::new(stream)))), service)
            }
        };
        let (stateless, busy, used) = (AtomicBool::new(false), AtomicUsize::new(0), Mutex::new(Instant::now()));
        let (Reach::Program { env: given, .. } | Reach::Http { headers: given, .. }) = &config.reach;
        // `Bearer KEY` is told as well where the key stands alone.
        let of = |(_, Secret(value)): &(String, Secret)| {
            [Some(value.clone()), value.split_whitespace().last().map(str::to_owned)]
        };
        let keys = given.iter().flat_map(of).flatten().filter(|value| value.len() >= SHORTEST).collect();
        Ok(Self { way, stateless, busy, used, keys })
    }

    /// Agrees with the server on a form of the protocol.
    pub async fn greet(&self, limits: Limits) -> Result<(), Fault> {
        let client = json!({"name": "nanod", "version": env!("CARGO_PKG_VERSION")});
        let params = json!({"protocolVersion": VERSIONS[0], "capabilities": {}, "clientInfo": client});
        match self.send("initialize", params, limits, &CancellationToken::new()).await {
            Ok(result) => {
                let version = result.get("protocolVersion").and_then(Value::as_str).unwrap_or_default();
                if !VERSIONS.contains(&version) {
                    let version = self.without_keys(super::clean::text(version));
                    return Err(Fault::Broken(format!("it speaks the version `{version}`, which is not known here")));
                }
                match &self.way {
                    Way::Program(..) => {
                        if let Some(peer) = self.peer() {
                            peer.notify("notifications/initialized", &json!({}));
                        }
                    }
                    Way::Http(web) => {
                        web.agree(version);
                        web.notify("notifications/initialized", &json!({})).await;
                    }
                }
                Ok(())
            }
            Err(Fault::Refused(METHOD_NOT_FOUND, _)) => {
                self.stateless.store(true, Ordering::Relaxed);
                if let Way::Http(web) = &self.way {
                    web.agree(STATELESS);
                }
                Ok(())
            }
            Err(fault) => Err(fault),
        }
    }

    /// Asks the server for something; one that has forgotten the session is greeted anew, once.
    pub async fn request(
        &self,
        method: &str,
        params: Value,
        limits: Limits,
        cancel: &CancellationToken,
    ) -> Result<Value, Fault> {
        self.busy.fetch_add(1, Ordering::Relaxed);
        let _busy = Busy(self);
        match self.send(method, params.clone(), limits, cancel).await {
            Err(Fault::Forgotten) => {
                self.greet(Limits::within(limits.silent)).await?;
                self.send(method, params, limits, cancel).await
            }
            answer => answer,
        }
    }

    async fn send(
        &self,
        method: &str,
        mut params: Value,
        limits: Limits,
        cancel: &CancellationToken,
    ) -> Result<Value, Fault> {
        if self.stateless.load(Ordering::Relaxed) {
            set_meta(&mut params, "io.modelcontextprotocol/protocolVersion", STATELESS.into());
            set_meta(&mut params, "io.modelcontextprotocol/clientCapabilities", json!({}));
            let client = json!({"name": "nanod", "version": env!("CARGO_PKG_VERSION")});
            set_meta(&mut params, "io.modelcontextprotocol/clientInfo", client);
        }
        let answer = match &self.way {
            Way::Program(..) => self.peer().ok_or(Fault::Away)?.request(method, params, limits, cancel).await,
            Way::Http(web) => web.request(method, params, limits, cancel).await,
        };
        answer.map_err(|fault| match fault {
            Fault::Refused(code, why) => Fault::Refused(code, self.without_keys(why)),
            Fault::Broken(why) => Fault::Broken(self.without_keys(why)),
            fault => fault,
        })
    }

    fn peer(&self) -> Option<Arc<Peer>> {
        match &self.way {
            Way::Program(peer, _) => lock(peer).clone(),
            Way::Http(_) => None,
        }
    }

    /// Tells whether it can be asked for something.
    pub fn is_alive(&self) -> bool {
        matches!(self.way, Way::Http(_)) || self.peer().is_some_and(|peer| !peer.ended().is_cancelled())
    }

    /// Tells, once, whether the server has said that its tools are others now.
    pub fn take_changed(&self) -> bool {
        match &self.way {
            Way::Program(..) => self.peer().is_some_and(|peer| peer.take_changed()),
            Way::Http(web) => web.take_changed(),
        }
    }

    /// Says that it is needed.
    pub fn touch(&self) {
        *lock(&self.used) = Instant::now();
    }

    /// Returns a text without what the server was given and nobody else is to know.
    pub fn without_keys(&self, text: String) -> String {
        self.keys.iter().fold(text, |text, key| text.replace(key, "(key)"))
    }

    /// Tells whether nothing was asked for that long.
    pub fn is_idle(&self, since: Duration) -> bool {
        self.busy.load(Ordering::Relaxed) == 0 && lock(&self.used).elapsed() > since
    }

    /// Says, as the end of a sentence, why the server is gone, as far as that is known.
    pub async fn why(&self) -> String {
        let own = self.peer().map(|peer| peer.why()).unwrap_or_default();
        let last = match &self.way {
            Way::Program(_, service) => {
                // Its output may close before what it complained of was read.
                drop(tokio::time::timeout(LEAVING, service.ended().cancelled()).await);
                service.last_words()
            }
            Way::Http(_) => String::new(),
        };
        self.without_keys(match (own.as_str(), last.as_str()) {
            ("", "") => String::new(),
            ("", last) => format!(" (it said: {})", super::clean::text(last)),
            (own, _) => format!(" ({own})"),
        })
    }

    /// Ends the server: its input closes, then it is made to; one that is not ours is told that it is not needed.
    pub async fn end(&self) {
        match &self.way {
            Way::Program(peer, service) => {
                drop(lock(peer).take());
                drop(tokio::time::timeout(LEAVING, service.ended().cancelled()).await);
                service.end().await;
            }
            Way::Http(web) => drop(tokio::time::timeout(LEAVING, web.leave()).await),
        }
    }
}
