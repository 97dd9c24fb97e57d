//! What the tests of the booter stand on.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use nano_protocol::id::{SessionId, TaskId};
use nano_protocol::session::Level;
use nanod::booters::boxlite::BoxliteBooter;
use nanod::booters::{BootRequest, Booter};
use nanod::config::{BoxliteConfig, Env, Network};
use nanod::sandbox::{Capabilities, Command, Language, Report, Sandbox, SandboxError};
use tokio_util::sync::CancellationToken;

use nano_tests::boxlite::Boxlite;

/// A limit that no test means to reach.
pub const LONG: Duration = Duration::from_mins(1);

/// Returns a configuration for this server.
pub fn config(server: &Boxlite) -> BoxliteConfig {
    BoxliteConfig { endpoint: Some(server.url()), image: Some("debian:stable".into()), ..BoxliteConfig::default() }
}

/// Returns a booter for this configuration.
pub fn booter(config: BoxliteConfig) -> BoxliteBooter {
    BoxliteBooter::new(config, PathBuf::from(env!("CARGO_BIN_EXE_nanod")), env())
}

/// Returns what programs may see.
pub fn env() -> Vec<(String, String)> {
    vec![("PATH".into(), Env::capture().get("PATH").unwrap().to_owned())]
}

/// Returns a request with this key.
pub fn request(key: &str) -> BootRequest {
    let session = SessionId("s1".into());
    BootRequest { session, key: key.into(), workspace: "/".into(), level: Level::WorkspaceWrite }
}

/// Makes and attaches a box.
pub async fn boot(booter: &BoxliteBooter) -> Result<Arc<dyn Sandbox>, SandboxError> {
    let request = request("s1");
    let handle = booter.make(&request).await?;
    booter.attach(&request, &handle).await
}

/// Boots a box at a server where nothing goes wrong.
pub async fn booted(server: &Boxlite) -> Arc<dyn Sandbox> {
    boot(&booter(config(server))).await.unwrap()
}

/// Returns a task of this test alone: boxes of the stand-in see each other's processes.
pub fn task(name: &str) -> TaskId {
    let thread = std::thread::current();
    TaskId(format!("{}-{}-{name}", std::process::id(), thread.name().unwrap_or_default()))
}

/// Returns a shell command of the task `t1`.
pub fn shell(text: &str) -> Command {
    let spill = PathBuf::from("/nowhere");
    let (language, task) = (Language::Shell, task("t1"));
    Command {
        language,
        text: text.into(),
        cwd: None,
        place: None,
        timeout: LONG,
        task,
        spool: spill.clone(),
        reach: None,
        spill,
        background: false,
    }
}

/// Runs a command to its end.
pub async fn run(sandbox: &dyn Sandbox, command: Command) -> Report {
    sandbox.run(command, &CancellationToken::new()).await.unwrap()
}

/// Returns the words of what a sandbox can do.
pub fn words(sandbox: &dyn Sandbox) -> Vec<&'static str> {
    match sandbox.capabilities() {
        Capabilities::Known(set) => set.iter().map(|one| one.as_str()).collect(),
        Capabilities::Unknown => panic!("a box says what it can do"),
    }
}

/// Returns a configuration with this network.
pub fn with_network(server: &Boxlite, network: Network) -> BoxliteConfig {
    BoxliteConfig { network, ..config(server) }
}
