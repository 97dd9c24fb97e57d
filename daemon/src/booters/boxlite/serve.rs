//! Where `boxlite serve` is: at the configured address, or started here when it is first needed.
//!
//! There is one for the daemon. It listens on a free port of loopback and takes a key that nobody else knows; one that
//! died is started again by the next call, after a while that grows from start to start.

use std::fs::File;
use std::io::Read;
use std::net::TcpListener;
use std::path::PathBuf;
use std::time::Duration;

use data_encoding::HEXLOWER;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, sleep_until};

use super::KIND;
use super::client::{Api, Fault};
use crate::booters::program::{on_path, runs};
use crate::config::{BoxliteConfig, Secret};
use crate::sandbox::SandboxError;
use crate::sandbox::service::{Program, Service};

/// How long a started server may take until it answers.
const UP: Duration = Duration::from_secs(30);
/// How often it is asked meanwhile.
const ASK: Duration = Duration::from_millis(50);
/// How long after a start the next one may be; doubles from start to start.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// A server that lived so long starts anew without a pause.
const SETTLED: Duration = Duration::from_mins(1);
/// The variable from which the program takes its key: an argument would be there for everybody to see.
const KEY: &str = "BOXLITE_SERVE_API_KEY";

/// The one server.
#[derive(Debug)]
pub struct Server {
    config: BoxliteConfig,
    helper: PathBuf,
    env: Vec<(String, String)>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    running: Option<Running>,
    started: Option<Instant>,
    pause: Duration,
}

#[derive(Debug)]
struct Running {
    service: Service,
    api: Api,
}

impl Server {
    /// Makes it: `helper` is the executable of `nanod`, `env` what the program may see.
    pub fn new(config: BoxliteConfig, helper: PathBuf, env: Vec<(String, String)>) -> Self {
        Self { config, helper, env, state: Mutex::default() }
    }

    /// Returns the program that would be started, where it is.
    pub fn program(&self) -> Option<PathBuf> {
        let command = self.config.command.as_deref()?;
        if command.contains('/') {
            return Some(PathBuf::from(command)).filter(|file| runs(file));
        }
        on_path(command, &self.config.path)
    }

    /// Returns what the program may see of the environment.
    pub fn env(&self) -> &[(String, String)] {
        &self.env
    }

    /// Returns the server, started where that has to be done first.
    pub async fn api(&self) -> Result<Api, SandboxError> {
        if let Some(base) = &self.config.endpoint {
            return Ok(Api { base: base.clone(), key: None });
        }
        let mut state = self.state.lock().await;
        if let Some(running) = state.running.as_ref().filter(|running| !running.service.ended().is_cancelled()) {
            return Ok(running.api.clone());
        }
        if let Some(dead) = state.running.take() {
            tracing::warn!(last_words = dead.service.last_words(), "boxlite serve ended; it is started again");
        }
        state.rest().await;
        let running = self.start().await?;
        let api = running.api.clone();
        state.running = Some(running);
        Ok(api)
    }

    async fn start(&self) -> Result<Running, SandboxError> {
        let cannot = |why: String| SandboxError::Boot { kind: KIND, why };
        let command = self.config.command.as_deref().unwrap_or_default();
        let path = self.program().ok_or_else(|| cannot(format!("there is no program {command}")))?;
        let port = free_port().map_err(|why| cannot(format!("no port of loopback is free: {why}")))?;
        let key = fresh_key().map_err(|why| cannot(format!("no key can be made: {why}")))?;
        let args = ["serve", "--host", "127.0.0.1", "--port", &port.to_string()].map(str::to_owned).to_vec();
        let env = self.env.iter().cloned().chain([(KEY.to_owned(), key.clone())]).collect();
        let program = Program { path, args, env, secrets: vec![key.clone()] };
        let service = Service::start(&self.helper, program).await.map_err(|why| cannot(why.to_string()))?;
        let api = Api { base: format!("http://127.0.0.1:{port}"), key: Some(Secret(key)) };
        answers(&api, &service).await.map_err(|why| cannot(format!("`{command} serve` {why}")))?;
        tracing::info!(port, "boxlite serve is up");
        Ok(Running { service, api })
    }
}

impl State {
    /// Waits where the last start was not long ago.
    async fn rest(&mut self) {
        let settled = self.started.is_none_or(|at| at.elapsed() >= SETTLED);
        if settled {
            self.pause = Duration::ZERO;
        } else {
            self.pause = (self.pause * 2).clamp(PAUSE, LONGEST_PAUSE);
            sleep_until(self.started.unwrap_or_else(Instant::now) + self.pause).await;
        }
        self.started = Some(Instant::now());
    }
}

async fn answers(api: &Api, service: &Service) -> Result<(), String> {
    let deadline = Instant::now() + UP;
    loop {
        let asked = tokio::select! {
            // Who answers on the port of one that ended is somebody else.
            biased;
            () = service.ended().cancelled() => return Err(format!("ended at once: {}", service.last_words())),
            asked = api.serves() => asked,
        };
        match asked {
            Ok(()) => return Ok(()),
            Err(Fault::Refused(why) | Fault::Missing(why)) => return Err(format!("is not BoxLite's: {why}")),
            Err(Fault::Broken(why)) if Instant::now() >= deadline => {
                return Err(format!("does not answer ({why}): {}", service.last_words()));
            }
            Err(Fault::Broken(_)) => sleep(ASK).await,
        }
    }
}

fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

fn fresh_key() -> std::io::Result<String> {
    let mut bytes = [0; 32];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(HEXLOWER.encode(&bytes))
}
