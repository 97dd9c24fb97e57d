//! `nanod`: flags, signals, exit status, and work on a store that no daemon holds.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
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
use nanod::store::offline::{self, OfflineError};
use nanod::{Phase, RunError, Start, telemetry};
use sd_notify::NotifyState;
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

#[derive(Subcommand)]
enum StoreCommand {
    /// Say how the store is; 65 if something of it is damaged. Journal and checkpoints are only read, and the memory is
    /// looked at in a copy.
    Check,
    /// Write all that the store holds as JSON Lines.
    Export {
        /// Where to; standard output without it.
        file: Option<PathBuf>,
    },
    /// Take an export into a state directory that has no store.
    Import {
        /// Where from; - is standard input.
        file: PathBuf,
    },
    /// Set aside what is bad, bring back what can be had, and say what was done.
    Repair,
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
    match runtime.block_on(offline_work(command, state)) {
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

async fn offline_work(command: &StoreCommand, state: &Path) -> Result<String, OfflineError> {
    match command {
        StoreCommand::Check => offline::check(state, &std::env::temp_dir()).await,
        StoreCommand::Export { file: None } => {
            offline::export(state, BufWriter::new(io::stdout().lock())).await.map(|_| String::new())
        }
        StoreCommand::Export { file: Some(file) } => {
            let count = export(state, file).await?;
            Ok(format!("{count} records written to {}", file.display()))
        }
        StoreCommand::Import { file } => {
            let input: Box<dyn Read> = if file.as_os_str() == "-" {
                Box::new(io::stdin().lock())
            } else {
                Box::new(File::open(file).map_err(|source| unusable(file, source))?)
            };
            let count = offline::import(state, BufReader::new(input)).await?;
            Ok(format!("{count} records taken in; the next start of nanod goes on from there"))
        }
        StoreCommand::Repair => offline::repair(state).await,
    }
}

/// Exports into a file: beside it first, so that what is there stays until all of the export is.
async fn export(state: &Path, file: &Path) -> Result<u64, OfflineError> {
    let is_special = std::fs::metadata(file).is_ok_and(|found| !found.is_file());
    let beside = if is_special { file.to_owned() } else { PathBuf::from(format!("{}.new", file.display())) };
    // All that people have said to agents is in it.
    let made = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside);
    let out = made.map_err(|source| unusable(&beside, source))?;
    let exported = offline::export(state, BufWriter::new(&out)).await;
    if is_special {
        return exported;
    }
    let whole = !matches!(exported, Err(OfflineError::Refused(_) | OfflineError::Io { .. } | OfflineError::Store(_)));
    let kept = if whole { out.sync_all().and_then(|()| std::fs::rename(&beside, file)) } else { Ok(()) };
    drop(std::fs::remove_file(&beside));
    kept.map_err(|source| unusable(file, source))?;
    exported
}

fn unusable(file: &Path, source: io::Error) -> OfflineError {
    OfflineError::Io { what: file.display().to_string(), source }
}

fn say(what: &str) -> ExitCode {
    if what.is_empty() || writeln!(io::stdout(), "{what}").is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn complain(what: &str, status: u8) -> ExitCode {
    // With stderr gone there is nobody to tell; the status still does.
    drop(writeln!(io::stderr(), "nanod: {what}"));
    ExitCode::from(status)
}
