//! A session's actor that panics: what it had running has ended before the session is taken up again.

#![expect(clippy::expect_used, reason = "tests")]

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use nano_protocol::Object;
use nano_protocol::error::ErrorKind;
use nano_protocol::event::EventType;
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

/// A computer that has the actor panic so often when it comes up, and so often when the actor looks at its tools.
struct Panicky {
    inner: LocalBooter,
    comes_up: AtomicBool,
    fatal: Arc<Fatal>,
}

#[derive(Default)]
struct Fatal {
    up: AtomicUsize,
    look: AtomicUsize,
}

/// Panics while there is one to spend.
fn spend(panics: &AtomicUsize) {
    let spent = panics.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
    assert!(spent.is_err(), "as the test wants it");
}

impl Booter for Panicky {
    fn kind(&self) -> &'static str {
        "local"
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        Vec::new()
    }

    fn declared(&self, workspace: &Path) -> Declared {
        let fatal = &self.fatal;
        spend(if self.comes_up.swap(false, Ordering::SeqCst) { &fatal.up } else { &fatal.look });
        self.inner.declared(workspace)
    }

    fn attach<'a>(
        &'a self,
        request: &'a BootRequest,
        handle: &'a str,
    ) -> BoxFuture<'a, Result<Arc<dyn Sandbox>, SandboxError>> {
        self.comes_up.store(true, Ordering::SeqCst);
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

async fn registry(server: &ModelServer, folder: &Path, hold: Arc<Hold>, fatal: &Arc<Fatal>) -> (Registry, StateLock) {
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
        booters: vec![Arc::new(Panicky { inner, comes_up: AtomicBool::new(false), fatal: fatal.clone() })],
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

fn hold() -> Arc<Hold> {
    let input_schema = json!({"type": "object"}).as_object().cloned().expect("an object");
    let spec = ToolSpec {
        name: "hold".into(),
        description: "Holds.".into(),
        input_schema,
        source: "core".into(),
        requires: &[],
        read_only: false,
    };
    Arc::new(Hold { spec, begun: AtomicUsize::new(0), ended: AtomicUsize::new(0) })
}

fn calls_hold(n: usize) -> Turn {
    let call = Call { id: format!("c{n}"), name: "hold".into(), arguments: json!({}) };
    Turn { calls: vec![call], ..Turn::default() }
}

async fn ended(registry: Registry) {
    registry.deps().shutdown.begin(Duration::ZERO);
    registry.deps().shutdown.ended(Duration::from_secs(5)).await;
    registry.deps().store.close().await;
}

/// Its calls have ended before it is taken up again, which it is without a word from anybody.
#[tokio::test(flavor = "multi_thread")]
async fn it_goes_on_by_itself_and_its_calls_have_ended_before() {
    let hold = hold();
    let seen = hold.clone();
    // What had ended when the model was asked again.
    let ended_then = Arc::new(AtomicUsize::new(usize::MAX));
    let noted = ended_then.clone();
    let server = ModelServer::answering(move |_, n| {
        if n == 1 {
            return Some(calls_hold(n));
        }
        noted.store(seen.ended.load(Ordering::SeqCst), Ordering::SeqCst);
        Some(Turn::text("done"))
    });
    let folder = tempfile::tempdir().expect("a folder");
    let fatal = Arc::new(Fatal { up: AtomicUsize::new(1), look: AtomicUsize::new(0) });
    let (registry, _held) = registry(&server, folder.path(), hold.clone(), &fatal).await;
    let (session, task) = begin(&registry).await;
    until("the call", || hold.begun.load(Ordering::SeqCst) == 1).await;
    let refused = registry.ask(&session.id, Command::Boot).await.expect_err("the actor panics");
    assert_eq!(refused.data.kind, ErrorKind::Unavailable);
    let record = || registry.deps().store.get::<TaskRecord>(&Key::task(&task.id)).expect("a read").expect("a task");
    until("the end of the task", || record().task.state == TaskState::Succeeded).await;
    assert_eq!((ended_then.load(Ordering::SeqCst), hold.begun.load(Ordering::SeqCst)), (1, 1));
    assert_eq!(record().restarts, 1, "it is counted");
    ended(registry).await;
}

/// A task whose every step has the actor panic is held after two resumes, and everything else answers.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_is_fatal_is_held() {
    let server = ModelServer::answering(|_, n| Some(calls_hold(n)));
    let (folder, hold) = (tempfile::tempdir().expect("a folder"), hold());
    let fatal = Arc::new(Fatal { up: AtomicUsize::new(usize::MAX), look: AtomicUsize::new(0) });
    let (registry, _held) = registry(&server, folder.path(), hold.clone(), &fatal).await;
    let (session, task) = begin(&registry).await;
    let record = || registry.deps().store.get::<TaskRecord>(&Key::task(&task.id)).expect("a read").expect("a task");
    for round in 1..=3 {
        until("the call", || hold.begun.load(Ordering::SeqCst) == round).await;
        registry.ask(&session.id, Command::Boot).await.expect_err("the actor panics");
        until("the end of the call", || hold.ended.load(Ordering::SeqCst) == round).await;
    }
    registry.ask(&session.id, |reply| Command::Wake(Some(reply))).await.expect("it is read");
    let held = record();
    assert_eq!((held.task.state, held.restarts), (TaskState::Interrupted, 3), "{:?}", held.task);
    assert_eq!(hold.begun.load(Ordering::SeqCst), 3);
    ended(registry).await;
}

/// One whose very taking up panics is tried three times more, then waits for a command; then it goes on where it was.
#[tokio::test(flavor = "multi_thread")]
async fn one_that_cannot_be_taken_up_is_left_in_peace() {
    let server = ModelServer::answering(|_, n| Some(if n == 1 { calls_hold(n) } else { Turn::text("done") }));
    let (folder, hold) = (tempfile::tempdir().expect("a folder"), hold());
    let fatal = Arc::new(Fatal { up: AtomicUsize::new(1), look: AtomicUsize::new(0) });
    let (registry, _held) = registry(&server, folder.path(), hold.clone(), &fatal).await;
    let (session, task) = begin(&registry).await;
    until("the call", || hold.begun.load(Ordering::SeqCst) == 1).await;
    fatal.look.store(1000, Ordering::SeqCst);
    registry.ask(&session.id, Command::Boot).await.expect_err("the actor panics");
    let warned = || {
        let events = registry.deps().store.events(0, 1000).expect("events");
        events.iter().filter(|event| event.kind == EventType::Warning).count()
    };
    until("four falls", || warned() == 4).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(warned(), 4, "it is not tried without end");
    registry.ask(&session.id, |reply| Command::Wake(Some(reply))).await.expect_err("it is tried when asked for");
    fatal.look.store(0, Ordering::SeqCst);
    registry.ask(&session.id, |reply| Command::Wake(Some(reply))).await.expect("it is read");
    let record = || registry.deps().store.get::<TaskRecord>(&Key::task(&task.id)).expect("a read").expect("a task");
    until("the end of the task", || record().task.state == TaskState::Succeeded).await;
    ended(registry).await;
}
