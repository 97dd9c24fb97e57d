//! Booting, and the tool list that follows from it: wide before, exact after, from one function for every agent.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use nano_protocol::error::{ErrorKind, RpcError};
use nano_protocol::event::{Data, EventType};
use nano_protocol::session::{Session, SessionState};
use nano_protocol::tool::{Prompt, Tool as WireTool};
use serde_json::json;

use super::actor::{Actor, News, Reply};
use super::deps::Deps;
use crate::booters::BootRequest;
use crate::config::AgentConfig;
use crate::sandbox::workspace::Workspace;
use crate::sandbox::{Capabilities, Capability, Sandbox, SandboxError};
use crate::skills::offer::Offer;
use crate::store::record::SessionRecord;
use crate::store::{Change, StoreError};
use crate::tools::set::{Choice, Machine, ToolSet};

/// Returns what a session is offered now: the one source of tools for every agent.
pub fn offered(deps: &Deps, record: &SessionRecord, skills: &Offer) -> ToolSet {
    let session = &record.session;
    let agent = deps.agent(&session.agent);
    let booter = deps.booter(&session.booter);
    let declared = booter.map(|booter| booter.declared(Path::new(&session.workspace))).unwrap_or_default();
    let found = stored_capabilities(session);
    let capabilities = if session.booted { found } else { Capabilities::Known(declared.capabilities) };
    let gone = || format!("the booter {} is not there", session.booter);
    let lacking = |capability| booter.map_or_else(gone, |booter| booter.lacking(capability));
    let (kind, booted) = (session.booter.as_str(), session.booted);
    let fixed = declared.fixed;
    let machine = Machine { kind, booted, capabilities: &capabilities, fixed, lacking: &lacking };
    let gone = deps.agent_is_gone(&session.agent);
    let barred = super::children::barred(deps, record);
    let choice = Choice {
        mode: session.tool_mode,
        tools: if gone { Some(&[]) } else { session.tools.as_deref() },
        enable_exec: agent.enable_exec,
        enable_followup: agent.enable_followup,
        delegate_barred: barred.as_deref(),
        skills_offered: !skills.is_empty(),
    };
    ToolSet::assemble(&deps.tools, machine, choice)
}

/// Returns the booter's parts of the prompt.
pub fn booter_prompts(deps: &Deps, session: &Session) -> Vec<Prompt> {
    let declared = deps.booter(&session.booter).map(|booter| booter.declared(Path::new(&session.workspace)));
    declared.map(|declared| declared.prompts).unwrap_or_default()
}

fn stored_capabilities(session: &Session) -> Capabilities {
    match &session.capabilities {
        Some(words) => Capabilities::Known(words.iter().filter_map(|word| Capability::parse(word)).collect()),
        None => Capabilities::Unknown,
    }
}

fn boot_request(session: &Session) -> BootRequest {
    let workspace = session.workspace.clone().into();
    BootRequest { session: session.id.clone(), key: session.id.0.clone(), workspace, level: session.level }
}

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
        let (path, restrict) = (Path::new(&self.record.session.workspace), self.agent().restrict_to_workspace);
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

    /// Boots the computer, or takes it up again after a restart, unless that is under way.
    pub(super) fn start_boot(&mut self) {
        if std::mem::replace(&mut self.booting, true) {
            return;
        }
        let session = &self.record.session;
        let (kind, request, news) = (session.booter.clone(), boot_request(session), self.news.clone());
        let found = session.booted.then(|| stored_capabilities(session));
        let deps = self.deps.clone();
        self.deps.shutdown.spawn("boot", async move {
            let booted = match (deps.booter(&kind), found) {
                (Some(booter), _) => booter.attach(&request, "").await,
                (None, _) => Err(SandboxError::Start(format!("the booter {kind} is not configured"))),
            };
            // The actor may be gone; then the daemon is going down.
            drop(news.send(News::Booted(booted)).await);
        });
    }

    /// Looks at skills and tools anew before a request: files, or the profile, may have changed since the last one.
    pub(super) async fn look_at_tools(&mut self) -> Result<(), StoreError> {
        self.skills = super::skills::offer(&self.deps, &self.record.session).await;
        self.toolset = None;
        let Some(data) = refresh_tools(&self.deps, &mut self.record, &self.skills) else { return Ok(()) };
        let changes = vec![self.draft(EventType::SessionToolsChanged, data), Change::session(&self.record)];
        self.commit(changes).await.map(|_| ())
    }

    /// Takes up the computer of before the restart, and looks what it can do now.
    pub(super) async fn rejoin(&mut self) -> Result<(), StoreError> {
        let session = &self.record.session;
        let Some(booter) = self.deps.booter(&session.booter).cloned() else { return Ok(()) };
        match booter.attach(&boot_request(session), "").await {
            Ok(sandbox) => self.take(sandbox).await,
            // The first call of a computer tool tries again and tells the model.
            Err(error) => {
                tracing::warn!(session = %self.record.session.id, %error, "the computer is not there");
                Ok(())
            }
        }
    }

    async fn take(&mut self, sandbox: Arc<dyn Sandbox>) -> Result<(), StoreError> {
        let found = sandbox.capabilities().clone();
        self.sandbox = Some(sandbox);
        let session = &self.record.session;
        if !session.booted || stored_capabilities(session) != found {
            self.record_boot(&found).await?;
        }
        Ok(())
    }

    /// Takes the booted computer: what it can do is recorded, then the waiting calls start.
    pub(super) async fn booted(&mut self, booted: Result<Arc<dyn Sandbox>, SandboxError>) -> Result<(), StoreError> {
        self.booting = false;
        let waiting = std::mem::take(&mut self.awaiting_boot);
        match booted {
            Ok(sandbox) => {
                self.take(sandbox).await?;
                for reply in self.boot_replies.drain(..) {
                    drop(reply.send(Ok(self.record.session.clone())));
                }
                for at in waiting {
                    self.start_call(at);
                }
            }
            Err(error) => {
                for reply in self.boot_replies.drain(..) {
                    drop(reply.send(Err(RpcError::new(ErrorKind::Unavailable, error.to_string()))));
                }
                let text = error.to_string();
                for at in waiting {
                    self.call_ended(at, Err(SandboxError::Start(text.clone()).into())).await?;
                }
            }
        }
        self.answer_close().await
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
        if self.record.session.state == SessionState::Closed {
            let closed = format!("session {} is closed", self.record.session.id);
            drop(reply.send(Err(RpcError::new(ErrorKind::Conflict, closed))));
        } else if self.sandbox.is_some() || self.record.session.booted {
            drop(reply.send(Ok(self.record.session.clone())));
        } else {
            self.boot_replies.push(reply);
            self.start_boot();
        }
    }

    /// Gives the computer back where nobody will come for it again.
    pub(super) async fn free_sandbox(&mut self) {
        let over = self.record.ephemeral || self.record.session.state == SessionState::Closed;
        if let Some(sandbox) = self.sandbox.take().filter(|_| over) {
            sandbox.shutdown().await;
        }
    }
}

/// Brings a record's tool list up to date; returns what changed, if anything did.
pub fn refresh_tools(deps: &Deps, record: &mut SessionRecord, skills: &Offer) -> Option<Data> {
    let set = offered(deps, record, skills);
    let (tools, exact) = (set.wire(), set.exact);
    record.exact = exact;
    if record.tools == tools {
        return None;
    }
    let names = |tools: &[WireTool]| tools.iter().map(|tool| tool.name.clone()).collect::<BTreeSet<_>>();
    let (old, new) = (names(&record.tools), names(&tools));
    (record.tools, record.revision) = (tools, record.revision + 1);
    let (added, removed): (Vec<_>, Vec<_>) = (new.difference(&old).collect(), old.difference(&new).collect());
    Some(json!({"added": added, "removed": removed, "revision": record.revision}))
}
