//! The steering file while a task runs: watched, read, each line taken once and committed with its place in the file.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nano_protocol::event::{Data, EventType};
use nano_protocol::id::{MessageId, SessionId};
use nano_protocol::session::{Delivery, Session};
use nano_protocol::time::Timestamp;
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use serde_json::json;
use tokio::sync::mpsc;

use super::actor::{Actor, News};
use super::admission::{Keyed, SteerRequest};
use super::deps::Deps;
use super::obey::Refusal;
use super::steering_file::{self, Line, Position, Scan, SteeringLine, WrittenBy};
use crate::store::{Change, Key, StoreError};

/// How often a file is looked at that nobody tells about: a writer that lets go makes no event, and inotify may be
/// used up.
const LOOK: Duration = Duration::from_secs(2);

/// By workspace, the session that began first in front: it takes the steering file.
type AtWork = Mutex<HashMap<PathBuf, Vec<(SessionId, mpsc::Sender<News>)>>>;

/// Where sessions work just now: one watcher for all, since a user has few.
#[derive(Default)]
pub struct Workspaces {
    /// Locked first: the watcher's own thread takes the other lock, and `watch` waits for that thread.
    watcher: Mutex<Option<RecommendedWatcher>>,
    at_work: Arc<AtWork>,
}

impl Workspaces {
    fn enter(&self, folder: &Path, session: &SessionId, name: &str, news: mpsc::Sender<News>) {
        let mut held = lock(&self.watcher);
        let is_new = {
            let mut at_work = lock(&self.at_work);
            let here = at_work.entry(folder.to_owned()).or_default();
            here.push((session.clone(), news));
            here.len() == 1
        };
        if !is_new {
            return;
        }
        if held.is_none() {
            *held = watcher(&self.at_work, name.to_owned()).inspect_err(warn_of_polling).ok();
        }
        if let Some(Err(error)) = held.as_mut().map(|watcher| watcher.watch(folder, RecursiveMode::NonRecursive)) {
            warn_of_polling(&error);
        }
    }

    fn leave(&self, folder: &Path, session: &SessionId) {
        let mut held = lock(&self.watcher);
        let is_empty = {
            let mut at_work = lock(&self.at_work);
            let Some(here) = at_work.get_mut(folder) else { return };
            here.retain(|(other, _)| other != session);
            let is_empty = here.is_empty();
            if is_empty {
                at_work.remove(folder);
            }
            is_empty
        };
        if is_empty && let Some(watcher) = held.as_mut() {
            // A folder that is gone is not watched any more either.
            watcher.unwatch(folder).ok();
        }
    }

    fn is_first(&self, folder: &Path, session: &SessionId) -> bool {
        lock(&self.at_work).get(folder).and_then(|here| here.first()).is_some_and(|(first, _)| first == session)
    }
}

fn lock<T>(part: &Mutex<T>) -> MutexGuard<'_, T> {
    part.lock().unwrap_or_else(PoisonError::into_inner)
}

fn warn_of_polling(error: &notify::Error) {
    tracing::warn!(%error, "no watch can be had: steering files are looked at now and then instead");
}

fn watcher(at_work: &Arc<AtWork>, name: String) -> notify::Result<RecommendedWatcher> {
    let at_work = Arc::clone(at_work);
    notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        let Ok(event) = event else { return };
        let files = event.paths.iter().filter(|path| path.ends_with(&name));
        let at_work = lock(&at_work);
        for (_, news) in files.filter_map(|path| path.parent()).filter_map(|folder| at_work.get(folder)).flatten() {
            // A full inbox holds news enough to look again.
            news.try_send(News::SteeringFile).ok();
        }
    })
}

/// A watch on a workspace; it ends when this is dropped.
pub(super) struct SteeringWatch {
    deps: Arc<Deps>,
    folder: PathBuf,
    session: SessionId,
    /// The file's name when the task began.
    name: String,
    since: Timestamp,
    looking: tokio::task::JoinHandle<()>,
}

impl SteeringWatch {
    /// Watches the session's workspace; none: it is not there yet.
    pub fn start(deps: &Arc<Deps>, session: &Session, news: mpsc::Sender<News>) -> Option<Self> {
        let folder = PathBuf::from(&session.workspace);
        if !folder.is_dir() {
            return None;
        }
        let name = deps.configured().config.steering.file.clone();
        deps.workspaces.enter(&folder, &session.id, &name, news.clone());
        let looking = deps.shutdown.spawn("steering-file", async move {
            let mut ticks = tokio::time::interval(LOOK);
            loop {
                ticks.tick().await;
                if news.send(News::SteeringFile).await.is_err() {
                    return;
                }
            }
        });
        let (deps, session, since) = (deps.clone(), session.id.clone(), deps.clock.now());
        Some(Self { deps, folder, session, name, since, looking })
    }

    /// Tells whether this session began first in its workspace.
    fn is_first(&self) -> bool {
        self.deps.workspaces.is_first(&self.folder, &self.session)
    }
}

impl Drop for SteeringWatch {
    fn drop(&mut self) {
        self.looking.abort();
        self.deps.workspaces.leave(&self.folder, &self.session);
    }
}

impl Actor {
    /// Takes what is new in the steering file.
    pub(super) async fn take_steering_file(&mut self) -> Result<(), StoreError> {
        let Some(watch) = self.watch.as_ref().filter(|watch| watch.is_first()) else { return Ok(()) };
        let (folder, name, since) = (watch.folder.clone(), watch.name.clone(), watch.since);
        let owner = self.record.session.owner;
        let key = Key::position(&self.record.session.workspace);
        let mut position: Option<Position> = self.deps.store.get(&key)?;
        loop {
            let scan = blocking({
                let (folder, name, from) = (folder.clone(), name.clone(), position.clone());
                move || steering_file::scan(&folder, &name, owner, since, from.as_ref())
            });
            let Some(Scan { lines, position: after, more, refused }) = scan.await else { return Ok(()) };
            if let Some(why) = refused {
                tracing::debug!(why, "the steering file is left alone");
            }
            for line in lines {
                if !self.take_line(&folder, &name, &key, line).await? {
                    return Ok(());
                }
            }
            if after != position.unwrap_or_default() && after != Position::default() {
                self.commit(vec![Change::put(key.clone(), &after)]).await?;
            }
            if !more {
                let now = self.deps.clock.now();
                blocking(move || steering_file::retire(&folder, &name, &after, now)).await;
                return Ok(());
            }
            position = Some(after);
        }
    }

    /// Takes one line; false: it has to wait.
    async fn take_line(&mut self, folder: &Path, name: &str, key: &Key, line: Line) -> Result<bool, StoreError> {
        let place = Change::put(key.clone(), &line.end);
        if self.machine.running().is_none() {
            // A line never starts a task.
            return Ok(false);
        }
        match line.parsed {
            Ok(parsed) => {
                let request = self.line_request(parsed, place)?;
                let Some(request) = request else { return Ok(true) };
                match self.steer(request).await {
                    Ok((_, input)) => match input {
                        Some(input) => self.feed(input).await.map(|()| true),
                        None => Ok(true),
                    },
                    Err(Refusal::Store(error)) => Err(error),
                    Err(Refusal::Caller(error)) => {
                        tracing::warn!(%error, "the steering file waits");
                        Ok(false)
                    }
                }
            }
            Err(reason) => {
                let (folder, name, now) = (folder.to_owned(), name.to_owned(), self.deps.clock.now());
                let event = self.draft(EventType::SteeringRejected, json!({"line": line.raw, "reason": reason}));
                // Set aside first: a crash in between sets it aside twice rather than never.
                blocking(move || steering_file::reject(&folder, &name, &line.raw, &reason, now)).await;
                self.commit(vec![event, place]).await?;
                Ok(true)
            }
        }
    }

    /// Makes a message of a line; none: its id was taken before.
    fn line_request(&self, line: SteeringLine, place: Change) -> Result<Option<SteerRequest>, StoreError> {
        let session = &self.record.session;
        let keyed = line.id.map(|id| Keyed {
            key: Key::idempotency(session.owner, "steering.file", &format!("{}/{id}", session.id)),
            params: String::new(),
        });
        if let Some(keyed) = &keyed
            && self.deps.store.get::<Data>(&keyed.key)?.is_some()
        {
            return Ok(None);
        }
        let source = match line.role.unwrap_or_default() {
            WrittenBy::Steering => "steering file",
            WrittenBy::User => "steering file, the user's words",
        };
        Ok(Some(SteerRequest {
            id: MessageId::from_ulid(&self.deps.clock.ulid()),
            content: line.content,
            delivery: line.delivery.unwrap_or(Delivery::Note),
            source: Some(source.into()),
            metadata: line.metadata,
            keyed,
            with: vec![place],
        }))
    }
}

/// Does file work beside the event loop; a failure is logged and means "nothing for now".
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> std::io::Result<T> + Send + 'static) -> Option<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(Ok(done)) => Some(done),
        Ok(Err(error)) => {
            tracing::warn!(%error, "the steering file cannot be read");
            None
        }
        Err(error) => {
            tracing::error!(%error, "reading the steering file panicked");
            None
        }
    }
}
