//! What a session is offered: the tools and prompts of its computer, wide before boot and exact after it, from one
//! function for every agent.
//!
//! A delegate that shares its parent's computer shows what the parent's can do.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use nano_protocol::event::{Data, EventType};
use nano_protocol::tool::{Prompt, Tool as WireTool};
use serde_json::json;

use super::actor::Actor;
use super::deps::Deps;
use crate::sandbox::{Capabilities, Capability};
use crate::skills::offer::Offer;
use crate::store::record::SessionRecord;
use crate::store::{Change, Key, StoreError};
use crate::tools::Tool;
use crate::tools::set::{Choice, Machine, ToolSet};

/// What is known of the computer that a session uses.
pub(super) struct Known {
    pub booted: bool,
    pub capabilities: Option<Vec<String>>,
}

/// Looks at the session itself, or at the one above it whose computer it shares.
pub(super) fn known(deps: &Deps, record: &SessionRecord) -> Known {
    let (mut shares, mut session) = (record.shares, record.session.clone());
    while let Some(parent) = session.parent.clone().filter(|_| shares) {
        let Ok(Some(above)) = deps.store.get::<SessionRecord>(&Key::session(&parent)) else { break };
        (shares, session) = (above.shares, above.session);
    }
    Known { booted: session.booted, capabilities: session.capabilities }
}

/// Returns the record with what is known of its computer by now.
pub fn seen(deps: &Deps, record: &SessionRecord) -> SessionRecord {
    let (mut record, known) = (record.clone(), known(deps, record));
    (record.session.booted, record.session.capabilities) = (known.booted, known.capabilities);
    record
}

/// Returns what a session is offered now: the one source of tools for every agent.
pub fn offered(deps: &Deps, record: &SessionRecord, skills: &Offer) -> ToolSet {
    offered_of(deps, record, skills, &deps.tools_of(record))
}

/// Returns what a session is offered of certain tools.
pub(super) fn offered_of(deps: &Deps, record: &SessionRecord, skills: &Offer, all: &[Arc<dyn Tool>]) -> ToolSet {
    let (session, known) = (&record.session, known(deps, record));
    let agent = deps.agent(&session.agent);
    let booter = deps.booter(&session.booter);
    let declared = booter.map(|booter| booter.declared(Path::new(&session.workspace))).unwrap_or_default();
    let (booted, fixed) = (known.booted, declared.fixed);
    let found = match found(known.capabilities.as_deref()) {
        Capabilities::Known(none) if none.is_empty() => Capabilities::Known(declared.bare),
        found => found,
    };
    let capabilities = if booted { found } else { Capabilities::Known(declared.capabilities) };
    let gone = || format!("the booter {} is not there", session.booter);
    let lacking = |capability| booter.map_or_else(gone, |booter| booter.lacking(capability));
    let machine = Machine { kind: &session.booter, booted, capabilities: &capabilities, fixed, lacking: &lacking };
    let gone = deps.agent_is_gone(&session.agent);
    let barred = super::children::withheld(deps, record);
    let choice = Choice {
        mode: session.tool_mode,
        tools: if gone { Some(&[]) } else { session.tools.as_deref() },
        enable_exec: agent.enable_exec && !record.no_exec,
        enable_followup: agent.enable_followup,
        delegate_barred: barred.as_deref(),
        skills_offered: !skills.is_empty(),
    };
    ToolSet::assemble(all, machine, choice)
}

/// Returns the booter's parts of the prompt.
pub fn booter_prompts(deps: &Deps, record: &SessionRecord) -> Vec<Prompt> {
    let session = &record.session;
    let Some(booter) = deps.booter(&session.booter) else { return Vec::new() };
    let (workspace, level) = (Path::new(&session.workspace), session.level);
    let elsewhere = !record.restricted && !deps.agent(&session.agent).restrict_to_workspace;
    let mut prompts = booter.declared(workspace).prompts;
    if let (Some(last), Some(bounds)) = (prompts.last_mut(), booter.bounds(level, workspace, elsewhere)) {
        last.text = format!("{}\n\n{bounds}", last.text);
    }
    prompts
}

pub(super) fn found(words: Option<&[String]>) -> Capabilities {
    match words {
        Some(words) => Capabilities::Known(words.iter().filter_map(|word| Capability::parse(word)).collect()),
        None => Capabilities::Unknown,
    }
}

/// Brings a record's tool list up to date; returns what changed, if anything did.
pub fn refresh_tools(deps: &Deps, record: &mut SessionRecord, skills: &Offer) -> Option<Data> {
    *record = seen(deps, record);
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

impl Actor {
    pub(super) fn booter_prompts(&self) -> Vec<Prompt> {
        booter_prompts(&self.deps, &self.record)
    }

    /// Returns the tools of now, made once until something changes.
    pub(super) fn offered(&mut self) -> Arc<ToolSet> {
        self.toolset.get_or_insert_with(|| Arc::new(offered(&self.deps, &self.record, &self.skills))).clone()
    }

    /// Looks at skills and tools anew before a request: files, or the profile, may have changed since the last one.
    pub(super) async fn look_at_tools(&mut self) -> Result<(), StoreError> {
        self.skills = super::skills::offer(&self.deps, &self.record.session).await;
        self.toolset = None;
        let Some(data) = refresh_tools(&self.deps, &mut self.record, &self.skills) else { return Ok(()) };
        let changes = vec![self.draft(EventType::SessionToolsChanged, data), Change::session(&self.record)];
        self.commit(changes).await.map(|_| ())
    }
}
