//! The way to one server, once it is known which form of the protocol it speaks.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::peer::{Peer, set_meta};
use super::{Fault, Limits, METHOD_NOT_FOUND, Place, lock};
use crate::config::{McpConfig, Reach, Secret};
use crate::sandbox::service::{Program, Service};

/// The form that is asked for, and those that are taken.
const VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// The form that knows no `initialize`.
const STATELESS: &str = "2026-07-28";
/// How long a server whose input has closed may take to end by itself.
const LEAVING: Duration = Duration::from_secs(2);

/// A server that runs.
pub struct Link {
    peer: Mutex<Option<std::sync::Arc<Peer>>>,
    service: Service,
    stateless: AtomicBool,
    busy: AtomicUsize,
    used: Mutex<Instant>,
}

/// Counts a request that is under way.
struct Busy<'a>(&'a Link);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.busy.fetch_sub(1, Ordering::Relaxed);
        *lock(&self.0.used) = Instant::now();
    }
}

impl Link {
    /// Starts a server's program; nothing was said yet.
    pub async fn start(
        config: &McpConfig,
        place: &Place,
        helper: &std::path::Path,
        common: &[(String, String)],
    ) -> Result<Self, String> {
        let Reach::Program { command, args, env } = &config.reach else {
            return Err("servers that are reached by url are not spoken to by this version yet".into());
        };
        let own = |(name, Secret(value)): &(String, Secret)| (name.clone(), value.clone());
        let shared = common.iter().filter(|(name, _)| !env.iter().any(|(own, _)| own == name)).cloned();
        let program = Program {
            path: command.into(),
            args: args.iter().map(|arg| arg.replace("{workspace}", &place.workspace)).collect(),
            env: shared.chain(env.iter().map(own)).collect(),
            secrets: env.iter().map(|(_, Secret(value))| value.clone()).collect(),
        };
        let (service, stream) = Service::start_talking(helper, program).await.map_err(|why| why.to_string())?;
        let (peer, used) = (Mutex::new(Some(std::sync::Arc::new(Peer::new(stream)))), Mutex::new(Instant::now()));
        Ok(Self { peer, service, stateless: AtomicBool::new(false), busy: AtomicUsize::new(0), used })
    }

    /// Agrees with the server on a form of the protocol.
    pub async fn greet(&self, limits: Limits) -> Result<(), Fault> {
        let client = json!({"name": "nanod", "version": env!("CARGO_PKG_VERSION")});
        let params = json!({"protocolVersion": VERSIONS[0], "capabilities": {}, "clientInfo": client});
        match self.request("initialize", params, limits, &CancellationToken::new()).await {
            Ok(result) => {
                let version = result.get("protocolVersion").and_then(Value::as_str).unwrap_or_default();
                if !VERSIONS.contains(&version) {
                    let version = super::clean::text(version);
                    return Err(Fault::Broken(format!("it speaks the version `{version}`, which is not known here")));
                }
                if let Some(peer) = self.peer() {
                    peer.notify("notifications/initialized", &json!({}));
                }
                Ok(())
            }
            Err(Fault::Refused(METHOD_NOT_FOUND, _)) => {
                self.stateless.store(true, Ordering::Relaxed);
                Ok(())
            }
            Err(fault) => Err(fault),
        }
    }

    /// Asks the server for something.
    pub async fn request(
        &self,
        method: &str,
        mut params: Value,
        limits: Limits,
        cancel: &CancellationToken,
    ) -> Result<Value, Fault> {
        self.busy.fetch_add(1, Ordering::Relaxed);
        let _busy = Busy(self);
        if self.stateless.load(Ordering::Relaxed) {
            set_meta(&mut params, "io.modelcontextprotocol/protocolVersion", STATELESS.into());
            set_meta(&mut params, "io.modelcontextprotocol/clientCapabilities", json!({}));
            let client = json!({"name": "nanod", "version": env!("CARGO_PKG_VERSION")});
            set_meta(&mut params, "io.modelcontextprotocol/clientInfo", client);
        }
        let peer = self.peer().ok_or(Fault::Gone)?;
        peer.request(method, params, limits, cancel).await
    }

    fn peer(&self) -> Option<std::sync::Arc<Peer>> {
        lock(&self.peer).clone()
    }

    /// Tells whether it can be asked for something.
    pub fn is_alive(&self) -> bool {
        self.peer().is_some_and(|peer| !peer.ended().is_cancelled())
    }

    /// Tells, once, whether the server has said that its tools are others now.
    pub fn take_changed(&self) -> bool {
        self.peer().is_some_and(|peer| peer.take_changed())
    }

    /// Tells whether nothing was asked for that long.
    pub fn is_idle(&self, since: Duration) -> bool {
        self.busy.load(Ordering::Relaxed) == 0 && lock(&self.used).elapsed() > since
    }

    /// Says, as the end of a sentence, why the server is gone, as far as that is known.
    pub fn why(&self) -> String {
        let own = self.peer().map(|peer| peer.why()).unwrap_or_default();
        let last = self.service.last_words();
        match (own.as_str(), last.as_str()) {
            ("", "") => String::new(),
            ("", last) => format!(" (it said: {})", super::clean::text(last)),
            (own, _) => format!(" ({own})"),
        }
    }

    /// Ends the server: its input closes, then it is made to.
    pub async fn end(&self) {
        drop(lock(&self.peer).take());
        drop(tokio::time::timeout(LEAVING, self.service.ended().cancelled()).await);
        self.service.end().await;
    }
}
