//! `nanod`: flags, signals and exit status.

mod store_work;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use clap::{Parser, Subcommand};
use nanod::config::env::Env;
use nanod::config::places::{Flags, Places};
use nanod::config::{self, Config};
use nanod::sandbox::{helper, leftovers};
use nanod::shutdown::Shutdown;
use nanod::store::StoreError;
use nanod::store::offline::OfflineError;
use nanod::{Phase, RunError, Start, telemetry};
use sd_notify::NotifyState;
use store_work::StoreCommand;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

/// Keeps LLM agent sessions alive; nanoctl drives it. Runs in the foreground and logs to stderr.
#[derive(Parser)]
#[command(name = "nanod", version)]
struct Arguments {
    /// Where to listen.
    #[arg(long, value_name = "PATH", global = true)]
    socket: Option<PathBuf>,
    /// Where to keep everything.
    #[arg(long, value_name = "DIR", global = true)]
    state_dir: Option<PathBuf>,
    /// What to read the configuration from.
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    /// Check the configuration and exit.
    #[arg(long)]
    check_config: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Work on the store while no daemon runs.
    #[command(subcommand)]
    Store(StoreCommand),
}

/// Whether a SIGHUP has come.
static HUNG_UP: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// Reads the command line. A SIGHUP reloads, once there is something to reload; before that it must not end the start.
fn arguments() -> Arguments {
    drop(signal_hook::flag::register(signal_hook::consts::SIGHUP, HUNG_UP.clone()));
    Arguments::parse()
}

/// A configuration that cannot be used (sysexits.h).
const EX_CONFIG: u8 = 78;
/// A store that cannot be used (sysexits.h).
const EX_DATAERR: u8 = 65;

fn main() -> ExitCode {
    if let Some(status) = helper::run_if_asked(std::env::args_os().skip(1)) {
        return ExitCode::from(status);
    }
    keep_memory_to_itself();
    let arguments = arguments();
    let env = Env::capture();
    if let Some(Command::Store(command)) = &arguments.command {
        return store(command, &env, arguments.flags());
    }
    if let Err(why) = leftovers::step_out(env.get(leftovers::MARK), std::env::args_os()) {
        return complain(&format!("it was started by a command of another nanod and cannot start anew: {why}"), 1);
    }
    let (config, places) = match configure(&arguments, &env) {
        Ok(configured) => configured,
        Err(error) => return complain(&error.to_string(), EX_CONFIG),
    };
    if let Err(why) = nanod::check(&config) {
        return complain(&format!("{}: {why}", places.config.display()), EX_CONFIG);
    }
    if arguments.check_config {
        return ExitCode::SUCCESS;
    }
    if let Err(why) = telemetry::start(&config.daemon.log, env.get("JOURNAL_STREAM").is_some()) {
        return complain(&why, EX_CONFIG);
    }
    allow_many_descriptors();
    let helper = PathBuf::from("/proc/self/exe");
    let told = env.clone();
    let tell = Box::new(move |phase| notify(&told, &states(phase)));
    // Signals beyond that ask for nothing new.
    let start = Start { config, places, env, helper, reload: mpsc::channel(8), tell };
    // More than two: a read of the store may wait for a sync, and must not hold up all others.
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build() {
        Ok(runtime) => runtime,
        Err(why) => return complain(&format!("no threads: {why}"), 1),
    };
    let ended = runtime.block_on(serve(start));
    // Whatever still waits for a file system that hangs is not waited for.
    runtime.shutdown_timeout(Duration::from_millis(500));
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let status = match &error {
                RunError::Store(StoreError::Newer { .. } | StoreError::Open { .. } | StoreError::Damaged(_)) => {
                    EX_DATAERR
                }
                RunError::Model(_) => EX_CONFIG,
                RunError::Store(StoreError::Held { .. } | StoreError::NoRoom(_) | StoreError::Failed(_))
                | RunError::Socket { .. }
                | RunError::Tools(_) => 1,
            };
            complain(&error.to_string(), status)
        }
    }
}

/// Keeps keys and transcripts in this process: no core, and no other process of the user may read or trace it.
fn keep_memory_to_itself() {
    use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};
    let no_core = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    if let Err(why) = set_dumpable_behavior(DumpableBehavior::NotDumpable).and(no_core) {
        complain(&format!("other processes of this user may read its memory: {why}"), 0);
    }
}

impl Arguments {
    fn flags(&self) -> Flags {
        Flags { socket: self.socket.clone(), state_dir: self.state_dir.clone(), config: self.config.clone() }
    }
}

fn configure(arguments: &Arguments, env: &Env) -> Result<(Config, Places), config::ConfigError> {
    let places = Places::find(env, &arguments.flags())?;
    let load = if places.config_named { config::load } else { config::load_if_there };
    let config = load(&places.config, env)?;
    Ok((config, places))
}

async fn serve(start: Start) -> Result<(), RunError> {
    let shutdown = Shutdown::default();
    shutdown.set_drain(start.config.daemon.drain);
    tokio::spawn(end_by_signal(shutdown.clone()));
    let ask = start.reload.0.clone();
    tokio::spawn(async move {
        let Ok(mut hangup) = signal(SignalKind::hangup()) else { return tracing::error!("SIGHUP cannot be caught") };
        // One that came before this was heard of may have come after the config was read.
        let mut came = HUNG_UP.load(Ordering::Relaxed);
        while came || hangup.recv().await.is_some() {
            came = false;
            // Where the queue is full enough reloads are to come.
            ask.try_send(None).ok();
        }
    });
    let (stopping, notified) = (shutdown.stopping().clone(), start.env.clone());
    tokio::spawn(async move {
        stopping.cancelled().await;
        notify(&notified, &[NotifyState::Stopping]);
    });
    nanod::run(start, shutdown).await
}

async fn end_by_signal(ending: Shutdown) {
    let [Ok(mut term), Ok(mut int)] = [SignalKind::terminate(), SignalKind::interrupt()].map(signal) else {
        return tracing::error!("signals cannot be caught");
    };
    let mut patient = true;
    loop {
        tokio::select! {
            _ = term.recv() => {}
            _ = int.recv() => {}
        }
        // Who asks twice does not want to wait.
        ending.begin(if std::mem::take(&mut patient) { ending.drain() } else { Duration::ZERO });
    }
}

fn states(phase: Phase) -> Vec<NotifyState<'static>> {
    match phase {
        Phase::Ready => vec![NotifyState::Ready],
        Phase::Reloading => std::iter::once(NotifyState::Reloading).chain(NotifyState::monotonic_usec_now()).collect(),
    }
}

/// Tells systemd, where it asked to be told.
fn notify(env: &Env, states: &[NotifyState]) {
    if env.get("NOTIFY_SOCKET").is_some()
        && let Err(error) = sd_notify::notify(states)
    {
        tracing::warn!(%error, "systemd could not be told");
    }
}

/// Raises the soft limit of descriptors to the hard one: a thousand connections need more than the usual 1,024.
fn allow_many_descriptors() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }) {
        tracing::warn!(%error, "the limit of descriptors stays as it is");
    }
}

/// Works on the store. Neither the configuration nor a place for the socket: a store must be within reach whatever
/// those are.
fn store(command: &StoreCommand, env: &Env, flags: Flags) -> ExitCode {
    let none = Some(PathBuf::from("/dev/null"));
    match Places::find(env, &Flags { socket: none.clone(), config: none, ..flags }) {
        Ok(places) => work_offline(command, &places.state_dir),
        Err(error) => complain(&error.to_string(), EX_CONFIG),
    }
}

/// Does it and returns the exit status.
fn work_offline(command: &StoreCommand, state: &Path) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(why) => return complain(&format!("no threads: {why}"), 1),
    };
    match runtime.block_on(store_work::run(command, state)) {
        Ok(said) => say(&said),
        Err(error) => {
            let status = match &error {
                OfflineError::Damaged(_)
                | OfflineError::Store(StoreError::Newer { .. } | StoreError::Open { .. } | StoreError::Damaged(_)) => {
                    EX_DATAERR
                }
                OfflineError::Store(StoreError::Held { .. } | StoreError::NoRoom(_) | StoreError::Failed(_))
                | OfflineError::Refused(_)
                | OfflineError::Io { .. } => 1,
            };
            complain(&error.to_string(), status)
        }
    }
}

fn say(what: &str) -> ExitCode {
    if what.is_empty() || writeln!(io::stdout(), "{what}").is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn complain(what: &str, status: u8) -> ExitCode {
    // With stderr gone there is nobody to tell; the status still does.
    drop(writeln!(io::stderr(), "nanod: {what}"));
    ExitCode::from(status)
}
