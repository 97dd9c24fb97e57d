//! A watch on the folders that skills lie in: changes are noticed while nobody asks for skills.
//!
//! What a session is offered does not depend on it: before each request the folders are looked at anyway. Where the
//! kernel gives no more watches, the folders are looked at now and then.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use notify::event::{AccessKind, AccessMode, ModifyKind};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;

use super::file::Stamp;
use super::shelf::Shelf;

/// A change is taken up when nothing has changed for so long.
const QUIET: Duration = Duration::from_millis(150);
/// But not later than this.
const LATEST: Duration = Duration::from_secs(2);
/// How often is looked where no watch can be had.
const LOOK: Duration = Duration::from_secs(2);

/// Of so many files is remembered that somebody writes them.
const MOST_WRITTEN: usize = 1000;

/// What a path was when it was watched: a folder that was made anew, perhaps with its old inode, is watched anew.
type Watched = HashMap<PathBuf, Stamp>;

/// A watch on folders of skills.
///
/// What is to be watched is only noted by who looks: the kernel's thread may be busy with a storm of events, and a
/// session's request must not wait for that. Who waits for changes carries it out.
pub struct Watch {
    /// By root, what it was last found to be; none: nothing more is watched for it.
    orders: Mutex<HashMap<PathBuf, Option<Arc<Shelf>>>>,
    /// Locked first: the watcher's own thread takes the other lock, and `watch` waits for that thread.
    held: Mutex<Held>,
    heard: Arc<Heard>,
}

#[derive(Default)]
struct Held {
    watcher: Option<RecommendedWatcher>,
    /// By root, the folders that are watched for it.
    by_root: HashMap<PathBuf, Watched>,
}

#[derive(Default)]
struct Heard {
    roots: RwLock<Vec<PathBuf>>,
    something: Notify,
    polling: AtomicBool,
    /// Files that were written to and not closed since: where no lease can be had, nothing else tells.
    written: Mutex<HashSet<PathBuf>>,
}

impl Default for Watch {
    /// Makes one that watches nothing yet.
    fn default() -> Self {
        let heard = Arc::new(Heard::default());
        let watcher = watcher(&heard).inspect_err(|why| heard.poll(why)).ok();
        Self { orders: Mutex::default(), held: Mutex::new(Held { watcher, by_root: HashMap::new() }), heard }
    }
}

impl Watch {
    /// Tells whether folders are looked at now and then because the kernel gives no watches.
    pub fn is_polling(&self) -> bool {
        self.heard.polling.load(Ordering::Relaxed)
    }

    /// Notes that exactly the folders of `shelf` are to be watched, or what stands above its root while that is not there.
    pub fn follow(&self, shelf: Arc<Shelf>) {
        self.orders().insert(shelf.root.path.clone(), Some(shelf));
        self.heard.something.notify_one();
    }

    /// Notes that nothing more is to be watched for the root at `path`.
    pub fn forget(&self, path: &Path) {
        self.orders().insert(path.to_owned(), None);
    }

    /// Carries out what was noted; it waits for the kernel.
    pub fn obey(&self) {
        let orders = std::mem::take(&mut *self.orders());
        for (root, shelf) in orders {
            match shelf {
                Some(shelf) => self.watch(&shelf),
                None => self.unwatch(&root),
            }
        }
    }

    fn orders(&self) -> MutexGuard<'_, HashMap<PathBuf, Option<Arc<Shelf>>>> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watch(&self, shelf: &Shelf) {
        let mut held = self.held();
        let root = &shelf.root.path;
        if !held.by_root.contains_key(root) {
            self.heard.roots.write().unwrap_or_else(PoisonError::into_inner).push(root.clone());
        }
        let wanted = wanted(shelf);
        let before = held.by_root.insert(root.clone(), wanted.clone()).unwrap_or_default();
        for path in before.keys().filter(|path| !wanted.contains_key(*path)) {
            held.unwatch(path);
        }
        for (path, _) in wanted.iter().filter(|(path, stamp)| before.get(*path) != Some(*stamp)) {
            if let Some(Err(why)) = held.watcher.as_mut().map(|it| it.watch(path, RecursiveMode::NonRecursive)) {
                // One that has just gone is no lack of watches.
                if path.exists() {
                    self.heard.poll(&why);
                }
            }
        }
    }

    fn unwatch(&self, path: &Path) {
        let mut held = self.held();
        self.heard.roots.write().unwrap_or_else(PoisonError::into_inner).retain(|root| root != path);
        for path in held.by_root.remove(path).unwrap_or_default().keys() {
            held.unwatch(path);
        }
    }

    /// Tells whether somebody has written to the file and not closed it since.
    pub fn is_written(&self, path: &Path) -> bool {
        self.heard.written().contains(path)
    }

    /// Waits until something may have changed and is quiet again.
    pub async fn something(&self) {
        if self.is_polling() {
            return tokio::time::sleep(LOOK).await;
        }
        self.heard.something.notified().await;
        let quiet = async { while tokio::time::timeout(QUIET, self.heard.something.notified()).await.is_ok() {} };
        // One that never is quiet is looked at all the same.
        tokio::time::timeout(LATEST, quiet).await.ok();
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    /// Gives a watch back unless another root has it too.
    fn unwatch(&mut self, path: &Path) {
        let is_shared = self.by_root.values().any(|watched| watched.contains_key(path));
        if let Some(watcher) = self.watcher.as_mut().filter(|_| !is_shared) {
            // A folder that is gone is not watched any more either.
            watcher.unwatch(path).ok();
        }
    }
}

impl Heard {
    fn poll(&self, why: &notify::Error) {
        if !self.polling.swap(true, Ordering::Relaxed) {
            tracing::warn!(%why, "no watch can be had: skills are looked at every {} s instead", LOOK.as_secs());
            self.something.notify_one();
        }
    }

    fn written(&self) -> MutexGuard<'_, HashSet<PathBuf>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, event: &Event) {
        let mut written = self.written();
        for path in &event.paths {
            match event.kind {
                EventKind::Modify(ModifyKind::Data(_)) if written.len() < MOST_WRITTEN => written.insert(path.clone()),
                EventKind::Access(AccessKind::Close(AccessMode::Write))
                | EventKind::Remove(_)
                | EventKind::Create(_)
                | EventKind::Modify(ModifyKind::Name(_)) => written.remove(path),
                _ => false,
            };
        }
        drop(written);
        // Opening and reading, our own too, changes nothing.
        let idle = matches!(event.kind, EventKind::Access(kind) if kind != AccessKind::Close(AccessMode::Write));
        let roots = self.roots.read().unwrap_or_else(PoisonError::into_inner);
        let matters = |path: &PathBuf| roots.iter().any(|root| path.starts_with(root) || root.starts_with(path));
        if !idle && (event.need_rescan() || event.paths.iter().any(matters)) {
            self.something.notify_one();
        }
    }
}

fn watcher(heard: &Arc<Heard>) -> notify::Result<RecommendedWatcher> {
    let heard = heard.clone();
    notify::recommended_watcher(move |event: notify::Result<Event>| match event {
        Ok(event) => heard.take(&event),
        Err(why) => tracing::warn!(%why, "the watch on skills stumbled"),
    })
}

/// Returns the folders to watch for a shelf: those it has, else the nearest that is there above its root.
fn wanted(shelf: &Shelf) -> Watched {
    let folders = shelf.marks.iter().take(shelf.folders);
    let wanted: Watched = folders.filter_map(|(path, stamp)| Some((path.clone(), (*stamp)?))).collect();
    let above = || shelf.root.path.ancestors().skip(1).find_map(|path| Some((path.to_owned(), Stamp::of(path)?)));
    if wanted.is_empty() { above().into_iter().collect() } else { wanted }
}
