//! What every session stands on; made once at assembly.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use nano_protocol::error::{ErrorKind, RpcError};
use nano_protocol::event::{Data, EventType};
use nano_protocol::id::{SessionId, TaskId};
use nano_protocol::session::Level;
use nano_protocol::time::Timestamp;

use crate::booters::Booter;
use crate::clock::Clock;
use crate::config::AgentConfig;
use crate::mcp::{self, Mcp};
use crate::model::catalog::Catalog;
use crate::model::detect::Finder;
use crate::session::computer::Wake;
use crate::session::configured::{Configured, Live};
use crate::session::event_log::EventLog;
use crate::session::processes::Processes;
use crate::session::profiles::Profiles;
use crate::session::steering_watch::Workspaces;
use crate::shutdown::Shutdown;
use crate::skills::library::Library;
use crate::store::record::{Draft, SessionRecord};
use crate::store::{Change, Commit, Store, StoreError};
use crate::tools::Tool;
use crate::tools::schedule_followup::Later;

/// What every session stands on.
pub struct Deps {
    /// Everything that must not be forgotten.
    pub store: Store,
    /// What happened.
    pub events: EventLog,
    /// Time and ids.
    pub clock: Clock,
    /// What is configured now.
    pub live: Live,
    /// How far the web tools reach now.
    pub web: crate::tools::web::Settings,
    /// Agent profiles.
    pub profiles: Profiles,
    /// Looks for models where none is configured.
    pub finder: Finder,
    /// Every tool that is built in.
    pub builtin: Vec<Arc<dyn Tool>>,
    /// The MCP servers of sessions.
    pub mcp: Mcp,
    /// The skills there are.
    pub skills: Arc<Library>,
    /// Every kind of computer.
    pub booters: Vec<Arc<dyn Booter>>,
    /// Wakes what gives computers back.
    pub computers: Wake,
    /// Background processes that run.
    pub processes: Processes,
    /// When this daemon began.
    pub started_at: Timestamp,
    /// The daemon's end.
    pub shutdown: Shutdown,
    /// The state directory.
    pub state: PathBuf,
    /// Where sessions work just now.
    pub workspaces: Workspaces,
    /// What makes follow-ups; it stands above sessions, and is there once all is put together.
    pub later: OnceLock<Weak<dyn Later>>,
    /// Why the store does not serve any more, once it does not.
    pub failed: Mutex<Option<StoreError>>,
}

impl Deps {
    /// Returns what is configured now.
    pub fn configured(&self) -> Arc<Configured> {
        self.live.now()
    }

    /// Returns every registered tool: those that are built in, then those that the configuration of now has.
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let configured = self.configured();
        self.builtin.iter().chain(&configured.tools).cloned().collect()
    }

    /// Returns every tool that a list may name: a server's are known by what stands for them.
    pub fn named(&self) -> Vec<Arc<dyn Tool>> {
        let configured = self.configured();
        let servers = configured.config.mcp.iter().map(|server| mcp::standin(&server.name, None));
        self.tools().into_iter().chain(servers).collect()
    }

    /// Returns every tool that there is for a session, offered or not.
    pub fn tools_of(&self, record: &SessionRecord) -> Vec<Arc<dyn Tool>> {
        let configured = self.configured();
        [self.tools(), self.mcp.tools(&record.session.id, &configured.config.mcp)].concat()
    }

    /// Tells whether the profile has gone: its sessions must not get another one's rights.
    pub fn agent_is_gone(&self, name: &str) -> bool {
        self.profiles.get(name).is_none()
    }

    /// Returns the agent profile; where it has gone, the default one with as few rights as there are: it may have had
    /// fewer than that.
    pub fn agent(&self, name: &str) -> AgentConfig {
        if let Some(profile) = self.profiles.get(name) {
            return profile.agent;
        }
        let usual = self.profiles.get("default").map(|profile| profile.agent).unwrap_or_default();
        let bounds = AgentConfig { enable_exec: false, enable_steering: false, enable_followup: false, ..usual };
        AgentConfig { restrict_to_workspace: true, level: Level::ReadOnly, ..bounds }
    }

    /// Returns the booter of this kind.
    pub fn booter(&self, kind: &str) -> Option<&Arc<dyn Booter>> {
        self.booters.iter().find(|booter| booter.kind() == kind)
    }

    /// Returns the models of now.
    pub fn models(&self) -> Arc<Catalog> {
        self.configured().models()
    }

    /// Returns the models of now, after another look where there was none: a server may have come up since.
    pub async fn look_for_models(&self) -> Arc<Catalog> {
        let now = self.configured();
        if now.models().default().is_none() && now.config.models.is_empty() {
            now.found(self.finder.find().await);
        }
        now.models()
    }

    /// Returns the folder for a session's long outputs.
    pub fn spill(&self, session: &SessionId) -> PathBuf {
        self.state.join("spill").join(session.as_str())
    }

    /// Returns the folder for what a session's commands need for a while.
    pub fn temporary(&self, session: &SessionId) -> PathBuf {
        self.state.join("tmp").join(session.as_str())
    }

    /// Returns the folder of a session that was given none.
    pub fn own_workspace(&self, session: &str) -> PathBuf {
        self.state.join("workspaces").join(session)
    }

    /// Tells whether a workspace is one that this daemon made.
    pub fn is_own_workspace(&self, workspace: &Path) -> bool {
        workspace.starts_with(self.state.join("workspaces"))
    }

    /// Records a lone event.
    pub async fn record(
        &self,
        session: Option<SessionId>,
        task: Option<TaskId>,
        kind: EventType,
        data: Data,
    ) -> Result<(), StoreError> {
        let draft = Draft { session, task, kind, data };
        self.store.commit(Commit::owed(vec![Change::Event(draft)])).await.map(|_| ())
    }

    /// Adds to the text of a stopped call why it was, where that was the daemon's own doing.
    pub fn stopped(&self, text: String) -> String {
        let cut = self.shutdown.cutting().is_cancelled();
        if cut { format!("{text}\n[nanod was being shut down]") } else { text }
    }

    /// Returns why the store does not serve any more.
    pub fn failure(&self) -> Option<StoreError> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends the daemon because the store does not serve any more.
    pub fn store_failed(&self, error: &StoreError) -> RpcError {
        match error {
            StoreError::NoRoom(_) => return unavailable(error),
            StoreError::Damaged(_) => {
                tracing::error!(%error, "a record cannot be read; what needs it does not go on, all else does");
                return unavailable(error);
            }
            StoreError::Held { .. } | StoreError::Newer { .. } | StoreError::Open { .. } | StoreError::Failed(_) => {}
        }
        tracing::error!(%error, "the store failed; the daemon ends");
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| error.clone());
        self.shutdown.begin(std::time::Duration::ZERO);
        unavailable(error)
    }
}

/// Turns a store error into what a caller reads.
pub fn unavailable(error: &StoreError) -> RpcError {
    let hint = match error {
        StoreError::NoRoom(_) => "free some space there and ask again; reading goes on, and what runs waits for room",
        _ => "see the daemon's log",
    };
    RpcError::new(ErrorKind::Unavailable, error.to_string()).hint(hint)
}
