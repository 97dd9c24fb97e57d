//! `nanod`: keeps LLM agent sessions alive.
//!
//! # The house
//!
//! Each module imports only from those above it (held by `tests/architecture.rs`):
//!
//! ```text
//! clock  config  telemetry
//! shutdown            going down, one deadline
//! store               what must not be forgotten: journal and checkpoints, and sled as the memory that answers
//! http                one client
//! sandbox             the computers of sessions; processes start here
//! skills              documents that inform a model: folders, offers
//! tools               what a model can have done; `tools::set` decides which
//! booters             how a session gets its computer, one kind a file
//! model               providers, cassettes, retries
//! mcp                 servers that bring tools
//! session             the double loop: registry → actor → pure machine → one commit → acts
//! schedule            follow-ups: pure calendar, one scheduler
//! rpc                 the socket: frame → dispatch → typed method
//! reload              beside the assembly: makes anew what that made of the configuration
//! ```
//!
//! A request walks down once: `rpc::connection` reads a line, `rpc::dispatch` finds the method, `session::registry` the
//! actor; the actor feeds `session::task`, records its effects through `store` in one commit, answers, and only then
//! acts. Events walk up: `store::writer` publishes what is durable to `session::event_log`, from which `rpc::events`
//! pulls for each subscriber at its own pace.

pub mod booters;
pub mod clock;
pub mod config;
pub mod crash;
pub mod http;
mod json_schema;
pub mod mcp;
pub mod model;
mod reload;
pub mod rpc;
pub mod sandbox;
pub mod schedule;
pub mod session;
pub mod shutdown;
pub mod skills;
pub mod store;
pub mod telemetry;
pub mod tools;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use clock::Clock;
use config::env::Env;
use config::places::Places;
use config::{Config, ModelConfig};
use mcp::Mcp;
use model::catalog::Catalog;
use model::detect::Finder;
use reload::Reload;
use rpc::Server;
use rpc::listener::Socket;
use sandbox::leftovers;
use sandbox::private::Private;
use schedule::scheduler::Scheduler;
use session::configured::{Asked, Configured, Live};
use session::deps::Deps;
use session::event_log::{self, EventLog};
use session::profiles::{self, Profiles};
use session::registry::Registry;
use session::steering_watch::Workspaces;
use shutdown::Shutdown;
use skills::library::{Changed, Library};
use store::{StateLock, Store, StoreError};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tools::custom;

/// Why the daemon ends in a disorderly way.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The store cannot be opened, or stopped taking anything.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The socket cannot be had.
    #[error("the socket {}: {source}", path.display())]
    Socket {
        /// Where.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A configured model cannot be made.
    #[error(transparent)]
    Model(#[from] model::catalog::CatalogError),
    /// Two tools have one name.
    #[error("{0}")]
    Tools(String),
}

/// The socket of the system service: those in the group `nanod` may connect to it.
const SYSTEM_SOCKET: &str = "/run/nanod/nanod.sock";

/// Checks what only the assembled daemon can know of a configuration: cassettes, tool names, the log filter, the group.
pub fn check(config: &Config) -> Result<(), String> {
    Catalog::new(&config.models).map_err(|why| why.to_string())?;
    telemetry::filter(&config.daemon.log)?;
    let (library, _) = Library::new(skills::library::Places::default());
    let mut all = booters::tools(&booters::all(&config.booters, &Arc::new(library), PathBuf::new(), Vec::new()))?;
    custom::join(&mut all, &config.tools)?;
    for (name, agent) in &config.agents {
        profiles::check_tools(&all, agent).map_err(|why| format!("agents.{name}: {why}"))?;
    }
    match &config.daemon.socket_group {
        Some(group) if rpc::listener::group_id(group).is_none() => {
            Err(format!("daemon.socket_group: no group {group}"))
        }
        _ => Ok(()),
    }
}

/// How long what was cut may take to end: TERM, two seconds, KILL, and some air.
const ENDING: Duration = Duration::from_secs(4);

/// What the daemon is started with.
pub struct Start {
    /// What was configured.
    pub config: Config,
    /// Where things are.
    pub places: Places,
    /// The environment it was started in.
    pub env: Env,
    /// The executable of `nanod`, for the helper that commands run under.
    pub helper: PathBuf,
    /// What asks for a reload, and those requests.
    pub reload: (mpsc::Sender<Asked>, mpsc::Receiver<Asked>),
    /// Hears how far the daemon is.
    pub tell: Box<dyn Fn(Phase) + Send + Sync>,
}

/// How far the daemon is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The store and the socket are there, and the configuration serves.
    Ready,
    /// It reads its configuration anew.
    Reloading,
}

/// Runs the daemon until `shutdown` has ended it.
pub async fn run(start: Start, shutdown: Shutdown) -> Result<(), RunError> {
    let Start { config, places, env, helper, reload: (ask, asked), tell } = start;
    let lock = store::lock(&places.state_dir).await?;
    let mark = leftovers::end_all(&places.state_dir).await;
    let (store, events) = open_store(&places.state_dir, &lock).await?;
    let clock = Clock::default();
    let (started_at, finder) = (clock.now(), Finder::new(&env));
    let models = models(&config.models, &finder).await?;
    let (group, private) = (socket_group(&config, &places), private(&config, &places));
    let (library, changed) = library(&config, &env);
    let env_of_tools = [env.for_tools(), mark.into_iter().collect()].concat();
    let mcp = Mcp::new(helper.clone(), booters::local::allowed(env_of_tools.clone()), store.clone());
    let booters = booters::all(&config.booters, &library, helper, env_of_tools);
    let live = Live::new(Configured::new(config, private, models));
    let profiles = Profiles::load(live.clone(), &store)?;
    let deps = Arc::new(Deps {
        store,
        events,
        clock,
        live,
        profiles,
        finder,
        builtin: booters::tools(&booters).map_err(RunError::Tools)?,
        mcp,
        skills: library,
        booters,
        computers: session::computer::Wake::default(),
        started_at,
        shutdown: shutdown.clone(),
        state: places.state_dir.clone(),
        workspaces: Workspaces::default(),
        later: OnceLock::new(),
        failed: Mutex::new(None),
    });
    let registry = Registry::load(deps.clone())?;
    deps.skills.look(None).await; // Looked at once, it is known what changes are.
    let scheduler = Scheduler::load(registry.clone())?;
    let _later = scheduler.offer_to_agents();
    let socket = Socket::bind(&places.socket, group)
        .await
        .map_err(|source| RunError::Socket { path: places.socket.clone(), source })?;
    // Nobody reads a session before this; and who has no socket did not die of a session.
    let left = tokio::select! {
        left = registry.count() => Some(left?),
        () = shutdown.stopping().cancelled() => None,
    };
    let server = Arc::new(Server::new(registry.clone(), scheduler.clone(), started_at, ask));
    let closing = CancellationToken::new();
    let serving = tokio::spawn(socket.serve(server, shutdown.stopping().clone(), closing.clone()));
    tell(Phase::Ready);
    tracing::info!(socket = %places.socket.display(), state = %places.state_dir.display(), "ready");
    tokio::select! {
        () = registry.wake(left.unwrap_or_default()) => {}
        () = shutdown.stopping().cancelled() => {}
    }
    shutdown.spawn("scheduler", scheduler.run());
    attend(&deps, changed);
    shutdown.spawn("reload", Reload { deps: deps.clone(), places, env, tell }.serve(asked));
    end(&deps, &registry, serving, closing).await
}

/// Ends in order: waits for what runs, then lets connections go.
async fn end(
    deps: &Deps,
    registry: &Registry,
    serving: JoinHandle<()>,
    closing: CancellationToken,
) -> Result<(), RunError> {
    deps.shutdown.stopping().cancelled().await;
    tracing::info!("going down");
    deps.shutdown.ended(ENDING).await;
    deps.mcp.end_all().await;
    deps.shutdown.finish();
    closing.cancel();
    if serving.await.is_err() {
        tracing::error!("the listener panicked");
    }
    let last = async {
        registry.stopped().await;
        deps.store.close().await;
    };
    if tokio::time::timeout(LAST_WRITES, last).await.is_err() {
        tracing::warn!("the store was still writing; it goes on with that at the next start");
    }
    deps.failure().or_else(|| deps.store.failure()).map_or(Ok(()), |error| Err(error.into()))
}

/// How long the store may tidy up at the end; nothing is lost without that.
const LAST_WRITES: Duration = Duration::from_secs(10);

/// Opens the store, which tells of what it records.
async fn open_store(state: &Path, lock: &StateLock) -> Result<(Store, EventLog), StoreError> {
    let events = EventLog::default();
    let told = events.clone();
    let publish = move |fresh: &[_]| told.publish(fresh);
    let store = Store::open(&state.join("store"), lock, Box::new(publish)).await?;
    events.start(store.opened().head);
    Ok((store, events))
}

/// Returns what of all files is the daemon's own.
fn private(config: &Config, places: &Places) -> Private {
    let further = config.secret_files.iter().chain(&config.booters.shipyard_neo.credentials).cloned();
    Private::new(&places.config, &places.state_dir, further)
}

/// Returns the group that may connect to the socket.
fn socket_group(config: &Config, places: &Places) -> Option<u32> {
    let shared = (places.socket == Path::new(SYSTEM_SOCKET)).then_some("nanod");
    config.daemon.socket_group.as_deref().or(shared).and_then(rpc::listener::group_id)
}

/// Starts what goes on beside requests: taking up changed skills, forgetting old events, noticing a failed store.
fn attend(deps: &Arc<Deps>, changed: mpsc::Receiver<Changed>) {
    let shutdown = &deps.shutdown;
    let few = deps.clone();
    shutdown.spawn("mcp", async move { few.mcp.keep_few(few.shutdown.stopping()).await });
    shutdown.spawn("skills", session::skills::keep_watch(deps.clone()));
    shutdown.spawn("computers", session::computer::keep_giving_back(deps.clone()));
    shutdown.spawn("skills-changed", session::skills::announce(deps.clone(), changed));
    let watched = deps.clone();
    tokio::spawn(async move { watched.store_failed(&watched.store.failed().await) });
    let (store, clock, live) = (deps.store.clone(), deps.clock.clone(), deps.live.clone());
    shutdown.spawn("keep-events", event_log::keep_short(store, clock, live, shutdown.stopping().clone()));
}

/// Returns the skills there are, and what tells of their changes.
fn library(config: &Config, env: &Env) -> (Arc<Library>, mpsc::Receiver<Changed>) {
    let (user, system) = config::places::skills(env);
    let config::SkillsConfig { paths, watch, trust } = config.skills.clone();
    let (library, changed) = Library::new(skills::library::Places { config: paths, user, system, trust, watch });
    (Arc::new(library), changed)
}

/// Makes the configured models, or those that are found where none is.
async fn models(configured: &[ModelConfig], finder: &Finder) -> Result<Catalog, RunError> {
    if configured.is_empty() { Ok(finder.find().await) } else { Ok(Catalog::new(configured)?) }
}
