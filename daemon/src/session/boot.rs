//! How a session's actor gets its computer, looks for it again, lends it to delegates and gives it back.
//!
//! A delegate that shares its parent's computer asks the parent's actor for it.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use nano_protocol::error::{ErrorKind, RpcError};
use nano_protocol::event::EventType;
use nano_protocol::message::{Message, Role};
use nano_protocol::session::{Session, SessionState};
use nano_protocol::tool::Prompt;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::actor::{Actor, Command, News, Reply};
use super::computer::{self, Attached};
use super::offered::{booter_prompts, found, known, offered, refresh_tools};
use crate::config::AgentConfig;
use crate::sandbox::workspace::Workspace;
use crate::sandbox::{Capabilities, Capability, SandboxError};
use crate::store::record::ComputerRecord;
use crate::store::{Change, StoreError};
use crate::tools::ToolSpec;
use crate::tools::set::ToolSet;

/// How long a session waits for work on its computer when a task, or itself, ends; after that it is done beside it.
const FIRST_ATTEMPT: Duration = Duration::from_secs(5);

impl Actor {
    pub(super) fn agent(&self) -> AgentConfig {
        self.deps.agent(&self.record.session.agent)
    }

    pub(super) fn booter_prompts(&self) -> Vec<Prompt> {
        booter_prompts(&self.deps, &self.record.session)
    }

    /// Returns the tools of now, made once until something changes.
    pub(super) fn offered(&mut self) -> Arc<ToolSet> {
        self.toolset.get_or_insert_with(|| Arc::new(offered(&self.deps, &self.record, &self.skills))).clone()
    }

    pub(super) fn workspace(&mut self) -> Result<Arc<Workspace>, SandboxError> {
        let (path, restrict) = (Path::new(&self.record.session.workspace), self.is_restricted());
        if self.deps.is_own_workspace(path) {
            std::fs::create_dir_all(path).map_err(|why| SandboxError::io(path, why))?;
        }
        // Opened anew for each call: a workspace that was moved away or replaced is seen.
        let workspace = Workspace::open(path, restrict).map_err(|why| SandboxError::io(path, why))?;
        // A result that was too long names a file there, and a skill the files beside it.
        let mut readable = self.skills.folders();
        readable.push(self.deps.spill(&self.record.session.id));
        Ok(Arc::new(workspace.with_readable(readable)))
    }

    /// Gets the computer, or looks for it again, unless that is under way.
    pub(super) fn start_boot(&mut self) {
        if std::mem::replace(&mut self.booting, true) {
            return;
        }
        self.unbootable = None;
        let (deps, registry, news) = (self.deps.clone(), self.registry.clone(), self.news.clone());
        let (record, stop) = (self.record.clone(), CancellationToken::new());
        let doubt = self.awaiting_boot.iter().any(|&at| self.open.get(at).is_some_and(|open| open.again));
        self.boot_stop = Some(stop.clone());
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
                () = stop.cancelled() => Err(failed("the session was closed".into())),
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
        spec.source.starts_with("booter:") || (spec.source == "skill" && self.unbootable.is_none() && remote())
    }

    /// Asks the model, once the computer of before has been looked at: what it can do may have changed.
    pub(super) async fn ask(&mut self) -> Result<(), StoreError> {
        if known(&self.deps, &self.record).booted && self.sandbox.is_none() && self.unbootable.is_none() {
            self.generation += 1;
            self.asking = true;
            self.start_boot();
            return Ok(());
        }
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
        if std::mem::take(&mut self.asking) {
            let (news, generation) = (self.news.clone(), self.generation);
            self.deps.shutdown.spawn("model-call", async move {
                drop(news.send(News::ModelStopped(generation)).await);
            });
        }
    }

    /// Tells the model that the computer is another one, in one step with the record that it knows.
    async fn tell_loss(&mut self) -> Result<(), StoreError> {
        let Some(why) = self.lost.take() else { return Ok(()) };
        let text =
            format!("The sandbox of before is gone ({why}). There is a new one; files and variables may be gone.");
        let mut changes = Vec::new();
        let source = |message: &mut Message| message.source = Some("sandbox".into());
        self.add_message(Role::Steering, text, source, &mut changes);
        if let Some(told) = computer::current(&self.deps, &self.record.session.id)? {
            changes.push(Change::computer(&ComputerRecord { lost: None, ..told }));
        }
        self.commit(changes).await.map(|_| ())
    }

    /// Looks at skills and tools anew before a request: files, or the profile, may have changed since the last one.
    pub(super) async fn look_at_tools(&mut self) -> Result<(), StoreError> {
        self.skills = super::skills::offer(&self.deps, &self.record.session).await;
        self.toolset = None;
        let Some(data) = refresh_tools(&self.deps, &mut self.record, &self.skills) else { return Ok(()) };
        let changes = vec![self.draft(EventType::SessionToolsChanged, data), Change::session(&self.record)];
        self.commit(changes).await.map(|_| ())
    }

    async fn take(&mut self, attached: Attached) -> Result<(), StoreError> {
        let can = attached.sandbox.capabilities().clone();
        self.sandbox = Some(attached.sandbox);
        self.lost = attached.lost.or(self.lost.take());
        let session = &self.record.session;
        if !session.booted || found(session.capabilities.as_deref()) != can {
            self.record_boot(&can).await?;
        }
        Ok(())
    }

    /// Takes the booted computer: what it can do is recorded, then what waited for it goes on.
    pub(super) async fn booted(&mut self, booted: Result<Attached, SandboxError>) -> Result<(), StoreError> {
        (self.booting, self.boot_stop) = (false, None);
        let asking = std::mem::take(&mut self.asking);
        let waiting = std::mem::take(&mut self.awaiting_boot);
        match booted {
            Ok(attached) => {
                self.take(attached.clone()).await?;
                self.boot_replies.drain(..).for_each(|reply| drop(reply.send(Ok(self.record.session.clone()))));
                self.lend_replies.drain(..).for_each(|reply| drop(reply.send(Ok(attached.clone()))));
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
        self.unbootable = Some(text.clone());
        let refusal = || RpcError::new(ErrorKind::Unavailable, text.clone());
        self.boot_replies.drain(..).for_each(|reply| drop(reply.send(Err(refusal()))));
        self.lend_replies.drain(..).for_each(|reply| drop(reply.send(Err(refusal()))));
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

    /// Looks for the computer again that a call found gone; the call is made once more with what is there then.
    pub(super) fn look_again(&mut self, at: usize) {
        self.sandbox = None;
        self.awaiting_boot.push(at);
        self.start_boot();
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
        } else if self.sandbox.is_some() {
            drop(reply.send(Ok(self.record.session.clone())));
        } else {
            self.boot_replies.push(reply);
            self.start_boot();
        }
    }

    /// Lends the computer to a delegate, who may `doubt` that it is still there.
    pub(super) fn lend(&mut self, doubt: bool, reply: Reply<Attached>) {
        if doubt {
            self.sandbox = None;
        }
        match (self.may_boot(), &self.sandbox) {
            (Err(closed), _) => drop(reply.send(Err(closed))),
            (Ok(()), Some(sandbox)) => drop(reply.send(Ok(Attached { sandbox: sandbox.clone(), lost: None }))),
            (Ok(()), None) => {
                self.lend_replies.push(reply);
                self.start_boot();
            }
        }
    }

    fn may_boot(&self) -> Result<(), RpcError> {
        if self.record.session.state != SessionState::Closed {
            return Ok(());
        }
        Err(RpcError::new(ErrorKind::Conflict, format!("session {} is closed", self.record.session.id)))
    }

    /// Tells whether there is a computer that nobody will come for again.
    pub(super) fn is_over(&self) -> bool {
        let session = &self.record.session;
        let over = match session.state {
            SessionState::Closed => !self.record.closing,
            _ => self.record.ephemeral && !self.works_below(),
        };
        over && (session.booted || self.sandbox.is_some())
    }

    /// Waits for work on the computer, but not for long: then it is done beside the session, which others wait for.
    pub(super) async fn patiently(&self, name: &'static str, work: impl Future<Output = ()> + Send + 'static) {
        let working = self.deps.shutdown.spawn(name, work);
        drop(tokio::time::timeout(FIRST_ATTEMPT, working).await);
    }

    /// Gives the computer back: on record first, then to its server.
    pub(super) async fn free_computer(&mut self) -> Result<(), StoreError> {
        if let Some(sandbox) = self.sandbox.take().filter(|_| !self.record.shares) {
            self.patiently("shutdown", async move { sandbox.shutdown().await }).await;
        }
        let mut changes = computer::released(&self.deps, &self.record.session.id)?;
        if changes.is_empty() {
            return Ok(());
        }
        if self.record.session.state != SessionState::Closed {
            (self.record.session.booted, self.record.session.capabilities) = (false, None);
            let changed = refresh_tools(&self.deps, &mut self.record, &self.skills);
            changes.extend(changed.map(|data| self.draft(EventType::SessionToolsChanged, data)));
            changes.push(Change::session(&self.record));
        }
        self.commit(changes).await?;
        let given = computer::give_back(&self.deps, &self.record.session.id);
        if tokio::time::timeout(FIRST_ATTEMPT, given).await.is_err() {
            self.deps.computers.notify_one();
        }
        Ok(())
    }
}

fn failed(why: String) -> SandboxError {
    SandboxError::Failed(why)
}
