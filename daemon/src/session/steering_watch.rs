//! The steering file while a task runs: watched, read, each line taken once and committed with its place in the file.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use nano_protocol::event::{Data, EventType};
use nano_protocol::id::{MessageId, SessionId};
use nano_protocol::session::{Delivery, Session};
use nano_protocol::time::Timestamp;
use notify::{RecursiveMode, Watcher};
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

/// A watch on a workspace; it ends when this is dropped.
pub(super) struct SteeringWatch {
    deps: Arc<Deps>,
    folder: PathBuf,
    session: SessionId,
    since: Timestamp,
    looking: tokio::task::JoinHandle<()>,
    /// Lives as long as the watch does.
    _watcher: Option<notify::RecommendedWatcher>,
}

impl SteeringWatch {
    /// Watches the session's workspace; none: it is the daemon's own folder of a session without one.
    pub fn start(deps: &Arc<Deps>, session: &Session, news: mpsc::Sender<News>) -> Option<Self> {
        let folder = PathBuf::from(&session.workspace);
        if !folder.is_dir() {
            return None;
        }
        let mut at_work = deps.at_work.lock().unwrap_or_else(PoisonError::into_inner);
        at_work.entry(folder.clone()).or_default().push(session.id.clone());
        drop(at_work);
        let watcher = watch(&folder, deps.config.steering.file.clone(), news.clone());
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
        Some(Self { deps, folder, session, since, looking, _watcher: watcher })
    }

    /// Tells whether this session began first in its workspace.
    fn is_first(&self) -> bool {
        let at_work = self.deps.at_work.lock().unwrap_or_else(PoisonError::into_inner);
        at_work.get(&self.folder).and_then(|sessions| sessions.first()) == Some(&self.session)
    }
}

impl Drop for SteeringWatch {
    fn drop(&mut self) {
        self.looking.abort();
        let mut at_work = self.deps.at_work.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sessions) = at_work.get_mut(&self.folder) {
            sessions.retain(|session| *session != self.session);
            if sessions.is_empty() {
                at_work.remove(&self.folder);
            }
        }
    }
}

fn watch(folder: &Path, name: String, news: mpsc::Sender<News>) -> Option<notify::RecommendedWatcher> {
    let tell = move |event: notify::Result<notify::Event>| {
        let ours = |event: &notify::Event| event.paths.iter().any(|path| path.ends_with(&name));
        if event.as_ref().is_ok_and(ours) {
            // A full inbox holds news enough to look again.
            drop(news.try_send(News::SteeringFile));
        }
    };
    let watcher = notify::recommended_watcher(tell).and_then(|mut watcher| {
        watcher.watch(folder, RecursiveMode::NonRecursive)?;
        Ok(watcher)
    });
    watcher.inspect_err(|error| tracing::warn!(%error, "the steering file is polled: no watch can be had")).ok()
}

impl Actor {
    /// Takes what is new in the steering file.
    pub(super) async fn take_steering_file(&mut self) -> Result<(), StoreError> {
        let Some(watch) = self.watch.as_ref().filter(|watch| watch.is_first()) else { return Ok(()) };
        let (folder, since) = (watch.folder.clone(), watch.since);
        let (name, owner) = (self.deps.config.steering.file.clone(), self.record.session.owner);
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
