//! The booter `shipyard` against a server that speaks its wire, and against some that do not.
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

#[path = "shipyard/boots.rs"]
mod boots;
#[path = "shipyard/ends.rs"]
mod ends;
#[path = "shipyard/files.rs"]
mod files;
#[path = "shipyard/python.rs"]
mod python;
#[path = "shipyard/runs.rs"]
mod runs;
#[path = "shipyard/server.rs"]
mod server;

use std::sync::Arc;
use std::time::Duration;

use nano_protocol::id::{SessionId, TaskId};
use nano_protocol::session::Level;
use nanod::booters::shipyard::ShipyardBooter;
use nanod::booters::{BootRequest, Booter};
use nanod::config::{Secret, ShipyardConfig};
use nanod::sandbox::{Command, Language, Report, Sandbox, SandboxError};
use server::{Server, TOKEN};
use tokio_util::sync::CancellationToken;

fn booter(url: &str) -> ShipyardBooter {
    ShipyardBooter::new(ShipyardConfig {
        endpoint: Some(url.to_owned()),
        access_token: Some(Secret(TOKEN.to_owned())),
        ..ShipyardConfig::default()
    })
}

fn request(key: &str) -> BootRequest {
    let session = SessionId("ses_01KBB0000000000000000000AA".into());
    BootRequest { session, key: key.into(), workspace: "/w".into(), level: Level::WorkspaceWrite }
}

async fn boot(server: &Server) -> Arc<dyn Sandbox> {
    let booter = booter(&server.url);
    let handle = booter.make(&request("k")).await.unwrap();
    booter.attach(&request("k"), &handle).await.unwrap()
}

fn command(text: &str, seconds: u64) -> Command {
    Command {
        language: Language::Shell,
        text: text.into(),
        cwd: None,
        place: None,
        timeout: Duration::from_secs(seconds),
        task: TaskId("tsk_1".into()),
        spill: "/nowhere/spill".into(),
        spool: "/nowhere/spool".into(),
        reach: None,
        background: false,
    }
}

fn program(text: &str, seconds: u64) -> Command {
    Command { language: Language::Python, ..command(text, seconds) }
}

async fn run(sandbox: &dyn Sandbox, command: Command) -> Result<Report, SandboxError> {
    sandbox.run(command, &CancellationToken::new()).await
}

/// Waits until something is so; what never happens fails the test.
async fn until(what: impl Fn() -> bool) {
    for _ in 0..500 {
        if what() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("it did not happen");
}
