//! A workspace in a temporary folder, and calls of tools in it.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]
#![expect(dead_code, reason = "each test binary uses a part of it")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use nano_protocol::id::{SessionId, TaskId};
use nano_protocol::session::Level;
use nanod::booters::local::LocalBooter;
use nanod::booters::{BootRequest, Booter};
use nanod::sandbox::Sandbox;
use nanod::sandbox::reach::Reach;
use nanod::sandbox::workspace::Workspace;
use nanod::tools::registry;
use nanod::tools::{ToolContext, ToolOutcome};
use serde_json::Value;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// A workspace with something secret beside it.
pub struct Fixture {
    pub folder: TempDir,
    pub context: ToolContext,
}

impl Fixture {
    pub fn new() -> Self {
        Self::with(true, None)
    }

    pub fn unrestricted() -> Self {
        Self::with(false, None)
    }

    /// With the local booter's computer.
    pub async fn with_computer() -> Self {
        let sandbox = local().attach(&request(), "").await.unwrap();
        Self::with(true, Some(sandbox))
    }

    /// With the same within `reach`, which is made from the widest one that is not `host`.
    pub async fn within(booter: LocalBooter, reach: impl FnOnce(Reach) -> Reach) -> Self {
        let sandbox = booter.attach(&request(), "").await.unwrap();
        let mut fixture = Self::with(true, Some(sandbox));
        let own = Reach::clone(&fixture.context.workspace.reach().unwrap());
        let reach = reach(own);
        let workspace = Workspace::open(&reach.workspace, !reach.elsewhere).unwrap();
        fixture.context.workspace = Arc::new(workspace.with_reach(reach));
        fixture
    }

    fn with(restrict: bool, sandbox: Option<Arc<dyn Sandbox>>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("w")).unwrap();
        std::fs::write(folder.path().join("secret"), "secret\n").unwrap();
        let workspace = Workspace::open(&folder.path().join("w"), restrict).unwrap();
        let reach = Reach::of(workspace.path().to_owned(), folder.path().canonicalize().unwrap().join("spill/tmp"));
        let reach = Reach { elsewhere: !restrict, ..reach };
        let context = ToolContext {
            session: SessionId("ses_1".into()),
            task: TaskId("tsk_1".into()),
            place: None,
            call: "call_1".into(),
            workspace: Arc::new(workspace.with_reach(reach)),
            skills: Arc::default(),
            private: Arc::default(),
            sandbox,
            unbootable: None,
            exec_timeout: Duration::from_mins(1),
            exec_timeout_max: Duration::from_mins(10),
            spill: folder.path().join("spill"),
            time_zone: "UTC".into(),
            later: None,
            delegator: None,
            background: None,
            intents: None,
            cancel: CancellationToken::new(),
        };
        Self { folder, context }
    }

    /// Returns the place of `name` in the workspace.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("w").join(name)
    }

    /// Returns the place of `name` beside the workspace.
    pub fn outside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, contents: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, contents).unwrap();
    }

    #[must_use]
    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    pub fn link(&self, target: impl AsRef<Path>, name: &str) {
        std::os::unix::fs::symlink(target, self.path(name)).unwrap();
    }

    #[must_use]
    pub async fn call(&self, tool: &str, arguments: Value) -> ToolOutcome {
        let Value::Object(arguments) = arguments else { panic!("no object") };
        let tool = registry::core().into_iter().chain(registry::local()).find(|one| one.spec().name == tool).unwrap();
        tool.call(&self.context, arguments).await.unwrap()
    }

    #[must_use]
    pub async fn done(&self, tool: &str, arguments: Value) -> String {
        match self.call(tool, arguments.clone()).await {
            ToolOutcome::Done(text) => text,
            other => panic!("{tool} {arguments}: {other:?}"),
        }
    }

    #[must_use]
    pub async fn failed(&self, tool: &str, arguments: Value) -> String {
        match self.call(tool, arguments.clone()).await {
            ToolOutcome::Failed(text) => text,
            other => panic!("{tool} {arguments}: {other:?}"),
        }
    }
}

/// Returns a text made of one piece for each number.
pub fn lines(numbers: std::ops::RangeInclusive<usize>, piece: impl Fn(usize) -> String) -> String {
    numbers.map(piece).collect::<Vec<_>>().concat()
}

/// The booter of this machine.
pub fn local() -> LocalBooter {
    LocalBooter::new(env!("CARGO_BIN_EXE_nanod").into(), environment())
}

/// A request for a computer.
pub fn request() -> BootRequest {
    let session = SessionId("ses_1".into());
    BootRequest { session, key: "key".into(), workspace: "/".into(), level: Level::WorkspaceWrite }
}

#[expect(clippy::disallowed_methods, reason = "the test's own environment")]
/// What a daemon would have, and more than it may pass on.
pub fn environment() -> Vec<(String, String)> {
    let path = std::env::var("PATH").unwrap();
    let home = std::env::var("HOME").unwrap_or_else(|_| "/".into());
    [("PATH", path.as_str()), ("HOME", &home), ("OPENAI_API_KEY", "sk-secret"), ("NOTIFY_SOCKET", "@x")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
}
