//! How a session's actor gets its computer, looks for it again, lends it to delegates and gives it back.
//!
//! A delegate that shares its parent's computer asks the parent's actor for it.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use nano_protocol::error::{ErrorKind, RpcError};
use nano_protocol::event::EventType;
use nano_protocol::session::{Session, SessionState};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::actor::{Actor, Command, News, Reply};
use super::computer::{self, Attached};
use super::offered::{found, known, refresh_tools};
use super::reaching;
use crate::config::AgentConfig;
use crate::sandbox::seen::Seen;
use crate::sandbox::workspace::Workspace;
use crate::sandbox::{Capabilities, Capability, Sandbox, SandboxError};
use crate::store::{Change, StoreError};
use crate::tools::ToolSpec;

mod give;
mod loss;

/// How far a session is with its computer.
#[derive(Default)]
pub(super) struct Boot {
    pub sandbox: Option<Arc<dyn Sandbox>>,
    /// The files as its tools saw them last.
    pub seen: Arc<Seen>,
    /// Which of those that the session has had; empty for a computer that is this machine.
    pub key: String,
    /// Whether it is being sought.
    pub under_way: bool,
    pub stop: Option<CancellationToken>,
    /// Why it could not be had when that was last tried.
    pub failed: Option<String>,
    /// Whether the model is asked once the computer has been looked at.
    pub asking: bool,
    /// Why it is another one than the model knows.
    pub lost: Option<String>,
    /// Calls that wait for it.
    pub waiting: Vec<usize>,
    pub replies: Vec<Reply<Session>>,
    pub lends: Vec<Reply<Attached>>,
}

impl Actor {
    pub(super) fn agent(&self) -> AgentConfig {
        self.deps.agent(&self.record.session.agent)
    }

    pub(super) fn workspace(&mut self) -> Result<Arc<Workspace>, SandboxError> {
        let (path, restrict) = (Path::new(&self.record.session.workspace), self.is_restricted());
        if self.deps.is_own_workspace(path) {
            std::fs::create_dir_all(path).map_err(|why| SandboxError::io(path, why))?;
        }
        // Opened anew for each call: a workspace that was moved away or replaced is seen.
        let workspace = Workspace::open(path, restrict).map_err(|why| SandboxError::io(path, why))?;
        let reach =
            reaching::reach(&self.deps, &self.record.session, restrict, self.skills.folders(), workspace.path());
        Ok(Arc::new(workspace.with_reach(reach).with_seen(self.boot.seen.clone())))
    }

    /// Gets the computer, or looks for it again, unless that is under way.
    pub(super) fn start_boot(&mut self) {
        if std::mem::replace(&mut self.boot.under_way, true) {
            return;
        }
        self.boot.failed = None;
        let (deps, registry, news) = (self.deps.clone(), self.registry.clone(), self.news.clone());
        let (record, stop) = (self.record.clone(), CancellationToken::new());
        let doubt = self.boot.waiting.iter().any(|&at| self.open.get(at).is_some_and(|open| open.again));
        let doubt = doubt.then(|| self.boot.key.clone());
        self.boot.stop = Some(stop.clone());
        self.deps.shutdown.spawn("boot", async move {
            let obtained = async {
                match record.session.parent.as_ref().filter(|_| record.shares) {
                    Some(parent) => registry
                        .ask(parent, |reply| Command::Lend(doubt, reply))
                        .await
                        .map_err(|why| failed(why.message)),
                    None => computer::obtain(&deps, &record.session).await,
                }
            };
            let booted = tokio::select! {
                biased;
                () = stop.cancelled() => Err(failed("the session, or the daemon, came to its end".into())),
                // What is on record by now is looked for by the next daemon.
                () = deps.shutdown.cutting().cancelled() => Err(failed("the daemon is going down".into())),
                booted = obtained => booted,
            };
            // The actor may be gone; then the daemon is going down.
            drop(news.send(News::Booted(booted)).await);
        });
    }

    /// Tells whether a tool runs in the computer, or brings files there.
    pub(super) fn needs_computer(&self, spec: &ToolSpec) -> bool {
        let remote = || self.deps.booter(&self.record.session.booter).is_some_and(|booter| booter.is_remote());
        let own = spec.source.starts_with("booter:") || !spec.requires.is_empty();
        own || (spec.source == "skill" && self.boot.failed.is_none() && remote())
    }

    /// Asks the model, once the computer of before has been looked at: what it can do may have changed.
    pub(super) async fn ask(&mut self) -> Result<(), StoreError> {
        if known(&self.deps, &self.record).booted && self.boot.sandbox.is_none() && self.boot.failed.is_none() {
            self.generation += 1;
            self.boot.asking = true;
            self.start_boot();
            return Ok(());
        }
        if self.prepares() { Ok(()) } else { self.ask_now().await }
    }

    pub(super) async fn ask_now(&mut self) -> Result<(), StoreError> {
        self.tell_loss().await?;
        self.look_at_tools().await?;
        self.start_model_call();
        Ok(())
    }

    /// Stops a model call; one that waits for the computer never began.
    pub(super) fn stop_model(&mut self) {
        if let Some(stop) = &self.model_stop {
            stop.cancel();
        }
        if std::mem::take(&mut self.boot.asking) {
            let (news, generation) = (self.news.clone(), self.generation);
            self.deps.shutdown.spawn("model-call", async move {
                drop(news.send(News::ModelStopped(generation)).await);
            });
        }
    }

    async fn take(&mut self, attached: Attached) -> Result<(), StoreError> {
        let Attached { sandbox, key, lost } = attached;
        let can = sandbox.capabilities().clone();
        (self.boot.sandbox, self.boot.key) = (Some(sandbox), key);
        let (session, new) = (&self.record.session, self.record.computer != self.boot.key);
        if new && !self.record.computer.is_empty() {
            self.boot.lost = Some(lost.unwrap_or_else(|| "another one took its place".into()));
        }
        let known = session.booted && found(session.capabilities.as_deref()) == can;
        if !known || (new && self.boot.lost.is_none()) {
            self.record_boot(&can).await?;
        }
        Ok(())
    }

    /// Takes the booted computer: what it can do is recorded, then what waited for it goes on.
    pub(super) async fn booted(&mut self, booted: Result<Attached, SandboxError>) -> Result<(), StoreError> {
        (self.boot.under_way, self.boot.stop) = (false, None);
        let asking = std::mem::take(&mut self.boot.asking);
        let waiting = std::mem::take(&mut self.boot.waiting);
        match booted {
            Ok(attached) => {
                self.take(attached.clone()).await?;
                self.boot.replies.drain(..).for_each(|reply| drop(reply.send(Ok(self.record.session.clone()))));
                self.boot.lends.drain(..).for_each(|reply| drop(reply.send(Ok(attached.clone()))));
                for at in waiting {
                    self.start_call(at);
                }
            }
            Err(error) => self.not_booted(&error, waiting).await?,
        }
        if asking {
            self.ask().await?;
        }
        self.answer_close().await
    }

    async fn not_booted(&mut self, error: &SandboxError, waiting: Vec<usize>) -> Result<(), StoreError> {
        let text = error.to_string();
        tracing::warn!(session = %self.record.session.id, error = text, "the computer is not there");
        self.boot.failed = Some(text.clone());
        let refusal = || RpcError::new(ErrorKind::Unavailable, text.clone());
        self.boot.replies.drain(..).for_each(|reply| drop(reply.send(Err(refusal()))));
        self.boot.lends.drain(..).for_each(|reply| drop(reply.send(Err(refusal()))));
        for at in waiting {
            let toolset = self.offered();
            let name = self.open.get(at).map(|open| open.call.name.clone()).unwrap_or_default();
            if toolset.get(&name).is_some_and(|tool| self.needs_computer(tool.spec())) {
                self.call_ended(at, Err(failed(text.clone()).into())).await?;
            } else {
                // What a skill says is worth something without its files.
                self.start_call(at);
            }
        }
        Ok(())
    }

    async fn record_boot(&mut self, found: &Capabilities) -> Result<(), StoreError> {
        let words = |set: &BTreeSet<Capability>| set.iter().map(|one| one.as_str().to_owned()).collect();
        let session = &mut self.record.session;
        let first = !std::mem::replace(&mut session.booted, true);
        session.capabilities = match found {
            Capabilities::Known(set) => Some(words(set)),
            Capabilities::Unknown => None,
        };
        session.updated_at = self.deps.clock.now();
        if self.record.computer.is_empty() {
            self.record.computer.clone_from(&self.boot.key);
        }
        let mut changes = Vec::new();
        changes.extend(
            refresh_tools(&self.deps, &mut self.record, &self.skills)
                .map(|data| self.draft(EventType::SessionToolsChanged, data)),
        );
        if first {
            changes.insert(0, self.draft(EventType::SessionBooted, json!({"session": self.record.session})));
        }
        changes.push(Change::session(&self.record));
        // The calls of this turn still mean the old list; the next request gets the new one.
        self.toolset = None;
        self.commit(changes).await.map(|_| ())
    }

    pub(super) fn boot_for(&mut self, reply: Reply<Session>) {
        if let Err(closed) = self.may_boot() {
            drop(reply.send(Err(closed)));
        } else if self.boot.sandbox.is_some() {
            drop(reply.send(Ok(self.record.session.clone())));
        } else {
            self.boot.replies.push(reply);
            self.start_boot();
        }
    }

    fn may_boot(&self) -> Result<(), RpcError> {
        if self.record.session.state != SessionState::Closed {
            return Ok(());
        }
        Err(RpcError::new(ErrorKind::Conflict, format!("session {} is closed", self.record.session.id)))
    }
}

fn failed(why: String) -> SandboxError {
    SandboxError::Failed(why)
}
