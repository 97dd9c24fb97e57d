//! `nanod`: keeps LLM agent sessions alive.
//!
//! # The house
//!
//! Each module imports only from those above it (held by `tests/architecture.rs`):
//!
//! ```text
//! clock  config  telemetry
//! policy              what of a model's calls a person is asked about; pure
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
//! beside              what goes on while requests are answered
//! ending              what is waited for at the end, and how long
//! reload              beside the assembly: makes anew what that made of the configuration
//! ```
//!
//! A request walks down once: `rpc::connection` reads a line, `rpc::dispatch` finds the method, `session::registry` the
//! actor; the actor feeds `session::task`, records its effects through `store` in one commit, answers, and only then
//! acts. Events walk up: `store::writer` publishes what is durable to `session::event_log`, from which `rpc::events`
//! pulls for each subscriber at its own pace.

mod beside;
pub mod booters;
pub mod clock;
pub mod config;
pub mod crash;
mod ending;
pub mod http;
mod json_schema;
pub mod mcp;
pub mod model;
pub mod policy;
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

use clock::Clock;
use config::env::Env;
use config::places::Places;
use config::{Config, ModelConfig};
use mcp::Mcp;
use model::catalog::Catalog;
use model::detect::Finder;
use reload::Reload;
use rpc::listener::Socket;
use rpc::{Server, Started};
use sandbox::private::Private;
use sandbox::{adopted, leftovers};
use schedule::scheduler::Scheduler;
use session::configured::{Asked, Configured, Live};
use session::deps::Deps;
use session::event_log::EventLog;
use session::profiles::{self, Profiles};
use session::registry::Registry;
use session::steering_watch::Workspaces;
use shutdown::Shutdown;
use skills::library::{Changed, Library};
use store::{StateLock, Store, StoreError};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tools::custom;
use tools::web::Settings;

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
    let mut all = booters::tools(
        &booters::all(&config.booters, &Arc::new(library), PathBuf::new(), Vec::new()),
        &Settings::default(),
    )?;
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
    adopted::watch();
    let lock = store::lock(&places.state_dir).await?;
    config::places::make_own(&places.config, &env);
    let mark = leftovers::end_all(&places.state_dir).await;
    let opened = open_store(&places.state_dir, &lock).await?;
    let group = socket_group(&config, &places);
    let (deps, changed) = assemble(config, opened, (&places, &env, helper), mark.clone(), &shutdown).await?;
    let registry = Registry::load(deps.clone())?;
    deps.skills.look(None).await; // Looked at once, it is known what changes are.
    let scheduler = Scheduler::load(registry.clone())?;
    let _later = scheduler.offer_to_agents();
    let socket = Socket::bind(&places.socket, group)
        .await
        .map_err(|source| RunError::Socket { path: places.socket.clone(), source })?;
    let started = Started { places: places.clone(), notifies: env.get("NOTIFY_SOCKET").is_some() };
    let server = Arc::new(Server::new(registry.clone(), scheduler.clone(), started, ask));
    let closing = CancellationToken::new();
    let serving = tokio::spawn(socket.serve(server, mark, shutdown.stopping().clone(), closing.clone()));
    if !shutdown.stopping().is_cancelled() {
        tell(Phase::Ready);
    }
    tracing::info!(socket = %places.socket.display(), state = %places.state_dir.display(), "ready");
    let watched = deps.clone();
    tokio::spawn(async move { watched.store_failed(&watched.store.failed().await) });
    beside::attend(&deps, changed);
    shutdown.spawn("reload", Reload { deps: deps.clone(), places, env, tell }.serve(asked));
    // Not tracked: on a full disk it waits for room, and the end does not wait for it.
    let begun = tokio::spawn(registry.clone().begin());
    tokio::select! {
        _ = begun => {}
        () = shutdown.stopping().cancelled() => {}
    }
    shutdown.spawn("scheduler", scheduler.run());
    ending::end(&deps, &registry, serving, &closing).await.map_or(Ok(()), |error| Err(error.into()))
}

/// Makes what sessions stand on, and what tells of changes of skills.
async fn assemble(
    config: Config,
    (store, events): (Store, EventLog),
    (places, env, helper): (&Places, &Env, PathBuf),
    mark: Option<(String, String)>,
    shutdown: &Shutdown,
) -> Result<(Arc<Deps>, mpsc::Receiver<Changed>), RunError> {
    let clock = Clock::default();
    let (finder, web) = (Finder::new(env), Settings::new(config.web.clone()));
    let models = models(&config.models, &finder).await?;
    let private = private(&config, places, env);
    let (library, changed) = library(&config, env);
    let env_of_tools = [env.for_tools(), mark.into_iter().collect()].concat();
    let mcp = Mcp::new(helper.clone(), booters::local::allowed(env_of_tools.clone()), store.clone());
    let booters = booters::all(&config.booters, &library, helper, env_of_tools);
    let live = Live::new(Configured::new(config, private, models));
    let profiles = Profiles::load(live.clone(), &store)?;
    let deps = Arc::new(Deps {
        store,
        events,
        started_at: clock.now(),
        clock,
        live,
        profiles,
        finder,
        builtin: booters::tools(&booters, &web).map_err(RunError::Tools)?,
        mcp,
        web,
        skills: library,
        booters,
        computers: session::computer::Wake::default(),
        processes: session::processes::Processes::default(),
        shutdown: shutdown.clone(),
        state: places.state_dir.clone(),
        workspaces: Workspaces::default(),
        later: OnceLock::new(),
        failed: Mutex::new(None),
    });
    Ok((deps, changed))
}

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
fn private(config: &Config, places: &Places, env: &Env) -> Private {
    let further = config.secret_files.iter().chain(&config.booters.shipyard_neo.credentials).cloned();
    Private::new(&places.config, &places.state_dir, further).with_credentials(env.folder("CREDENTIALS_DIRECTORY"))
}

/// Returns the group that may connect to the socket.
fn socket_group(config: &Config, places: &Places) -> Option<u32> {
    let shared = (places.socket == Path::new(SYSTEM_SOCKET)).then_some("nanod");
    config.daemon.socket_group.as_deref().or(shared).and_then(rpc::listener::group_id)
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
