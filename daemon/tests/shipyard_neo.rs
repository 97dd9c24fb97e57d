//! The booter `shipyard_neo` against a server that speaks Bay v1, and against some that do not.
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

#[path = "shipyard_neo/asked.rs"]
mod asked;
#[path = "shipyard_neo/boots.rs"]
mod boots;
#[path = "shipyard_neo/faults.rs"]
mod faults;
#[path = "shipyard_neo/history.rs"]
mod history;
#[path = "shipyard_neo/keys.rs"]
mod keys;
#[path = "shipyard_neo/lifecycle.rs"]
mod lifecycle;
#[path = "shipyard_neo/offers.rs"]
mod offers;
#[path = "shipyard_neo/promotion.rs"]
mod promotion;
#[path = "shipyard_neo/records.rs"]
mod records;
#[path = "shipyard_neo/runs.rs"]
mod runs;
#[path = "shipyard_neo/server.rs"]
mod server;
mod support;

use std::sync::Arc;
use std::time::Duration;

use nano_protocol::id::TaskId;
use nanod::booters::Booter;
use nanod::booters::shipyard_neo::NeoBooter;
use nanod::config::{NeoConfig, Secret};
use nanod::sandbox::{Command, Language, Report, Sandbox, SandboxError};
use nanod::skills::library::{Library, Places};
use nanod::tools::ToolOutcome;
use serde_json::Value;
use server::{Server, TOKEN};
use support::{Fixture, request};
use tokio_util::sync::CancellationToken;

fn config(url: &str) -> NeoConfig {
    NeoConfig { endpoint: Some(url.to_owned()), access_token: Some(Secret(TOKEN.to_owned())), ..NeoConfig::default() }
}

fn with(config: NeoConfig) -> NeoBooter {
    NeoBooter::new(config, Arc::new(Library::new(Places::default()).0))
}

fn booter(url: &str) -> NeoBooter {
    with(config(url))
}

async fn boot(server: &Server) -> Arc<dyn Sandbox> {
    attach(&booter(&server.url)).await
}

async fn attach(booter: &NeoBooter) -> Arc<dyn Sandbox> {
    let handle = booter.make(&request()).await.unwrap();
    booter.attach(&request(), &handle).await.unwrap()
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

/// A session's tools in a sandbox of its own.
struct Session {
    fixture: Fixture,
    booter: NeoBooter,
}

impl Session {
    async fn new(server: &Server) -> Self {
        let (mut fixture, booter) = (Fixture::new(), booter(&server.url));
        fixture.context.sandbox = Some(attach(&booter).await);
        Self { fixture, booter }
    }

    /// Calls a tool; returns whether it was done, and what it said.
    async fn call(&self, name: &str, arguments: Value) -> (bool, String) {
        let tool = self.booter.tools().into_iter().find(|tool| tool.spec().name == name).unwrap();
        let arguments = arguments.as_object().unwrap().clone();
        match tool.call(&self.fixture.context, arguments).await.unwrap() {
            ToolOutcome::Done(text) => (true, text),
            ToolOutcome::Failed(text) | ToolOutcome::Stopped(text) => (false, text),
            settled @ ToolOutcome::Settles(..) => (false, format!("{settled:?}")),
        }
    }

    async fn done(&self, name: &str, arguments: Value) -> Value {
        let (done, text) = self.call(name, arguments).await;
        assert!(done, "{name}: {text}");
        serde_json::from_str(&text).unwrap()
    }

    async fn failed(&self, name: &str, arguments: Value) -> String {
        let (done, text) = self.call(name, arguments).await;
        assert!(!done, "{name}: {text}");
        text
    }
}

/// Waits until something is so; what never happens fails the test.
async fn until(what: impl Fn() -> bool) {
    for _ in 0..1000 {
        if what() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("it did not happen");
}
