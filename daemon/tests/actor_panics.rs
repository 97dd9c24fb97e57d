//! A session's actor that panics: what it had running has ended before the session is taken up again.

#![expect(clippy::expect_used, reason = "tests")]

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use nano_protocol::Object;
use nano_protocol::id::TaskId;
use nano_protocol::session::{CreateParams, Session};
use nano_protocol::task::{Limits, Origin, Task, TaskState};
use nano_tests::model_server::{Call, ModelServer, Turn};
use nanod::booters::local::LocalBooter;
use nanod::booters::{BootRequest, Booter, Declared};
use nanod::clock::Clock;
use nanod::config::env::Env;
use nanod::config::{Config, load};
use nanod::mcp::Mcp;
use nanod::model::catalog::Catalog;
use nanod::model::detect::Finder;
use nanod::sandbox::private::Private;
use nanod::sandbox::{BoxFuture, Sandbox, SandboxError};
use nanod::session::actor::Command;
use nanod::session::admission::Submission;
use nanod::session::computer::Wake;
use nanod::session::configured::{Configured, Live};
use nanod::session::deps::Deps;
use nanod::session::event_log::EventLog;
use nanod::session::opening;
use nanod::session::profiles::Profiles;
use nanod::session::registry::Registry;
use nanod::session::steering_watch::Workspaces;
use nanod::shutdown::Shutdown;
use nanod::skills::library::{Library, Places};
use nanod::store::record::TaskRecord;
use nanod::store::{Key, StateLock, Store, lock};
use nanod::tools::{Tool, ToolContext, ToolFault, ToolOutcome, ToolSpec};
use serde_json::json;

const DEADLINE: Duration = Duration::from_mins(1);

/// A computer whose coming up has the actor panic, once.
struct Panicky {
    inner: LocalBooter,
    armed: AtomicBool,
}

impl Booter for Panicky {
    fn kind(&self) -> &'static str {
        "local"
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        Vec::new()
    }

    fn declared(&self, workspace: &Path) -> Declared {
        assert!(!self.armed.swap(false, Ordering::SeqCst), "as the test wants it");
        self.inner.declared(workspace)
    }

    fn attach<'a>(
        &'a self,
        request: &'a BootRequest,
        handle: &'a str,
    ) -> BoxFuture<'a, Result<Arc<dyn Sandbox>, SandboxError>> {
        self.armed.store(true, Ordering::SeqCst);
        self.inner.attach(request, handle)
    }
}

/// A tool that runs until it is stopped.
struct Hold {
    spec: ToolSpec,
    begun: AtomicUsize,
    ended: AtomicUsize,
}

impl Tool for Hold {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, context: &'a ToolContext, _: Object) -> BoxFuture<'a, Result<ToolOutcome, ToolFault>> {
        Box::pin(async {
            self.begun.fetch_add(1, Ordering::SeqCst);
            context.cancel.cancelled().await;
            self.ended.fetch_add(1, Ordering::SeqCst);
            Ok(ToolOutcome::Stopped("stopped".into()))
        })
    }
}

fn config(server: &ModelServer, folder: &Path) -> Config {
    let file = folder.join("nanod.toml");
    let text = format!("[models.m]\nbase_url = \"{}\"\nmodel = \"m\"\napi_key = \"k\"\n", server.url());
    std::fs::write(&file, text).expect("a config");
    load(&file, &Env::of(0, &[])).expect("a config")
}

async fn registry(server: &ModelServer, folder: &Path, hold: Arc<Hold>) -> (Registry, StateLock) {
    let events = EventLog::default();
    let told = events.clone();
    let held = lock(folder).await.expect("the folder");
    let publish = Box::new(move |fresh: &[_]| told.publish(fresh));
    let store = Store::open(&folder.join("store"), &held, publish).await.expect("a store");
    events.start(store.opened().head);
    let config = config(server, folder);
    let models = Catalog::new(&config.models).expect("models");
    let live = Live::new(Configured::new(config, Private::default(), models));
    let profiles = Profiles::load(live.clone(), &store).expect("profiles");
    let clock = Clock::default();
    let (library, _) = Library::new(Places::default());
    let inner = LocalBooter::new("/nonexistent".into(), Vec::new());
    let registry = Registry::load(Arc::new(Deps {
        mcp: Mcp::new("/nonexistent".into(), Vec::new(), store.clone()),
        store,
        events,
        started_at: clock.now(),
        clock,
        live,
        profiles,
        finder: Finder::new(&Env::of(0, &[])),
        builtin: vec![hold],
        skills: Arc::new(library),
        booters: vec![Arc::new(Panicky { inner, armed: AtomicBool::new(false) })],
        computers: Wake::default(),
        processes: nanod::session::processes::Processes::default(),
        web: nanod::tools::web::Settings::new(Config::default().web),
        shutdown: Shutdown::default(),
        state: folder.to_owned(),
        workspaces: Workspaces::default(),
        later: OnceLock::new(),
        failed: Mutex::new(None),
    }))
    .expect("a registry");
    registry.clone().begin().await;
    (registry, held)
}

/// Opens a session that is offered `hold`, and gives it a task.
async fn begin(registry: &Registry) -> (Session, Task) {
    let params = CreateParams { tools: Some(vec!["hold".into()]), ..CreateParams::default() };
    let session = opening::open(registry, 0, params, None).await.expect("a session");
    let submission = Submission {
        id: TaskId::from_ulid(&registry.deps().clock.ulid()),
        origin: Origin::User,
        source: None,
        content: "p".into(),
        metadata: Object::new(),
        limits: Limits::default(),
        keyed: None,
        with: Vec::new(),
        made_by: None,
        rounds: 0,
    };
    let task = registry.ask(&session.id, |reply| Command::Submit(Box::new(submission), reply)).await.expect("a task");
    (session, task)
}

async fn until(what: &str, fits: impl Fn() -> bool) {
    let waits = async {
        while !fits() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(tokio::time::timeout(DEADLINE, waits).await.is_ok(), "waited in vain for {what}");
}

#[tokio::test(flavor = "multi_thread")]
async fn its_calls_have_ended_before_it_is_taken_up_again() {
    let input_schema = json!({"type": "object"}).as_object().cloned().expect("an object");
    let spec = ToolSpec {
        name: "hold".into(),
        description: "Holds.".into(),
        input_schema,
        source: "core".into(),
        requires: &[],
        read_only: false,
    };
    let hold = Arc::new(Hold { spec, begun: AtomicUsize::new(0), ended: AtomicUsize::new(0) });
    let seen = hold.clone();
    // What had ended when the model was asked again.
    let ended_then = Arc::new(AtomicUsize::new(usize::MAX));
    let noted = ended_then.clone();
    let server = ModelServer::answering(move |_, n| {
        if n == 1 {
            let call = Call { id: "c1".into(), name: "hold".into(), arguments: json!({}) };
            return Some(Turn { calls: vec![call], ..Turn::default() });
        }
        noted.store(seen.ended.load(Ordering::SeqCst), Ordering::SeqCst);
        Some(Turn::text("done"))
    });
    let folder = tempfile::tempdir().expect("a folder");
    let (registry, _held) = registry(&server, folder.path(), hold.clone()).await;
    let (session, task) = begin(&registry).await;
    until("the call", || hold.begun.load(Ordering::SeqCst) == 1).await;
    registry.ask(&session.id, Command::Boot).await.expect_err("the actor panics");
    assert_eq!(hold.ended.load(Ordering::SeqCst), 0, "nobody has stopped it");
    // The first may still reach the actor that is falling.
    while registry.ask(&session.id, |reply| Command::Wake(Some(reply))).await.is_err() {}
    let record = || registry.deps().store.get::<TaskRecord>(&Key::task(&task.id)).expect("a read").expect("a task");
    until("the end of the task", || record().task.state == TaskState::Succeeded).await;
    assert_eq!((ended_then.load(Ordering::SeqCst), hold.begun.load(Ordering::SeqCst)), (1, 1));
    registry.deps().shutdown.begin(Duration::ZERO);
    registry.deps().shutdown.ended(Duration::from_secs(5)).await;
}
