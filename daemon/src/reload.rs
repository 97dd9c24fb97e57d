//! Reading the configuration anew while the daemon runs: all that a good file says, nothing of a bad one.
//!
//! One task takes requests, by signal or over RPC, one after the other. What cannot change in a running daemon keeps its
//! old value, and the log and a `warning` event name it.

use std::sync::Arc;
use std::time::Duration;

use nano_protocol::event::EventType;
use serde_json::json;
use tokio::sync::mpsc;

use crate::config::env::Env;
use crate::config::places::Places;
use crate::config::{self, Config};
use crate::session::configured::{Asked, Configured};
use crate::session::deps::Deps;
use crate::{Phase, check, models, private, telemetry};

/// How long reading may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Reloads what `deps` stands on.
pub(crate) struct Reload {
    pub deps: Arc<Deps>,
    pub places: Places,
    pub env: Env,
    pub tell: Box<dyn Fn(Phase) + Send + Sync>,
}

impl Reload {
    /// Serves requests until the daemon goes down.
    pub async fn serve(self, mut requests: mpsc::Receiver<Asked>) {
        let stopping = self.deps.shutdown.stopping().clone();
        loop {
            let asked = tokio::select! {
                biased;
                () = stopping.cancelled() => return,
                Some(asked) = requests.recv() => asked,
            };
            (self.tell)(Phase::Reloading);
            let done = tokio::select! {
                biased;
                () = stopping.cancelled() => return,
                done = self.reload() => done,
            };
            if stopping.is_cancelled() {
                return;
            }
            (self.tell)(Phase::Ready);
            let by_signal = asked.is_none();
            if let Err(why) = &done {
                tracing::error!("the config was not reloaded, the old one goes on serving: {why}");
                if by_signal {
                    self.warn(format!("the config was not reloaded, the old one goes on serving: {why}"), &[]).await;
                }
            }
            // Whoever asked may be gone.
            drop(asked.map(|asked| asked.send(done)));
        }
    }

    async fn reload(&self) -> Result<(), String> {
        let (places, env) = (self.places.clone(), self.env.clone());
        let reading = tokio::task::spawn_blocking(move || read(&places, &env));
        // What it names may lie on a disk that does not answer.
        let read = tokio::time::timeout(PATIENCE, reading).await;
        let read = read.map_err(|_| format!("reading it, or a file that it names, takes longer than {PATIENCE:?}"))?;
        let mut next =
            read.map_err(|_| "reading it failed inside the daemon; its log has the details".to_owned())??;
        let models = models(&next.models, &self.deps.finder).await.map_err(|why| why.to_string())?;
        let old = self.deps.configured();
        let kept = keep(&old.config, &mut next);
        // What was a key once is one still, and what keeps its old value its old key.
        next.secret_files.extend(old.config.secret_files.iter().cloned());
        next.secret_files.sort();
        next.secret_files.dedup();
        telemetry::change(&next.daemon.log)?;
        self.deps.shutdown.set_drain(next.daemon.drain);
        self.deps.skills.rename(next.skills.paths.clone(), next.skills.trust.clone());
        self.deps.web.replace(next.web.clone());
        let private = private(&next, &self.places, &self.env);
        self.deps.live.replace(Configured::new(next, private, models));
        tracing::info!(config = %self.places.config.display(), "the config was reloaded");
        if !kept.is_empty() {
            let message = format!("{}: needs a restart; all else was reloaded", kept.join(", "));
            tracing::warn!("{message}");
            self.warn(message, &kept).await;
        }
        Ok(())
    }

    async fn warn(&self, message: String, needs_restart: &[&str]) {
        let data = json!({"message": message, "config": self.places.config, "needs_restart": needs_restart});
        if let Err(error) = self.deps.record(None, None, EventType::Warning, data).await {
            drop(self.deps.store_failed(&error));
        }
    }
}

fn read(places: &Places, env: &Env) -> Result<Config, String> {
    let load = if places.config_named { config::load } else { config::load_if_there };
    let config = load(&places.config, env).map_err(|why| why.problems.join("; "))?;
    check(&config).map_err(|why| format!("{}: {why}", places.config.display()))?;
    Ok(config)
}

/// Keeps of `old` what cannot change in a running daemon, and returns the keys that differ.
fn keep(old: &Config, next: &mut Config) -> Vec<&'static str> {
    let mut kept = Vec::new();
    keep_one("daemon.socket_group", &old.daemon.socket_group, &mut next.daemon.socket_group, &mut kept);
    keep_one("skills.watch", &old.skills.watch, &mut next.skills.watch, &mut kept);
    let (before, after) = (&old.booters, &mut next.booters);
    keep_one("booters.shipyard", &before.shipyard, &mut after.shipyard, &mut kept);
    keep_one("booters.shipyard_neo", &before.shipyard_neo, &mut after.shipyard_neo, &mut kept);
    keep_one("booters.boxlite", &before.boxlite, &mut after.boxlite, &mut kept);
    kept
}

fn keep_one<T: Clone + PartialEq>(key: &'static str, old: &T, next: &mut T, kept: &mut Vec<&'static str>) {
    if old != next {
        kept.push(key);
        next.clone_from(old);
    }
}
