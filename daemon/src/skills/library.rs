//! Every folder of skills that the daemon knows, in order of precedence, as it was last looked at.

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use tokio::sync::mpsc;

use super::named::Named;
use super::shelf::{Root, Shelf};
use super::watch::Watch;
use super::{Skill, Source, shipped};

/// How many workspaces' shelves are kept and watched; beyond, the one that was not looked at for longest goes.
const WORKSPACES: usize = 256;
/// How many changes wait to be told at most; who misses one gets the skills of now all the same.
const TOLD: usize = 1024;
/// Where a workspace has its skills.
const BELOW: &str = ".agents/skills";

/// What became of a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Became {
    /// It was not there before.
    Added,
    /// It says something else, or has other problems.
    Changed,
    /// It is not there any more.
    Removed,
}

impl Became {
    /// Returns the word in events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Changed => "changed",
            Self::Removed => "removed",
        }
    }
}

/// What changed in one root.
#[derive(Debug, Clone)]
pub struct Changed {
    /// Which.
    pub root: Root,
    /// Each skill, and what became of it.
    pub skills: Vec<(Arc<Skill>, Became)>,
}

/// The shelves that one session can see, the first counts first.
pub type Shelves = Vec<Arc<Shelf>>;

/// Every folder of skills that the daemon knows.
pub struct Library {
    named: RwLock<Arc<Named>>,
    /// After a workspace's.
    then: Vec<Root>,
    shipped: Arc<Shelf>,
    watch: Option<Watch>,
    stock: Mutex<Stock>,
    /// Edits take turns.
    turn: Mutex<()>,
    changed: mpsc::Sender<Changed>,
}

/// A root's shelf, once it was read; locked while it is read, so that a folder that hangs keeps no other waiting.
type Slot = Arc<Mutex<Option<Arc<Shelf>>>>;

#[derive(Default)]
struct Stock {
    shelves: HashMap<PathBuf, (Root, Slot)>,
    /// Workspaces' roots, the newest last.
    recent: VecDeque<PathBuf>,
}

/// What a library is made of.
#[derive(Default)]
pub struct Places {
    /// `skills.paths`.
    pub config: Vec<PathBuf>,
    /// Folders of the daemon's user.
    pub user: Vec<PathBuf>,
    /// Folders of the machine.
    pub system: Vec<PathBuf>,
    /// `skills.trust`.
    pub trust: Vec<PathBuf>,
    /// `skills.watch`.
    pub watch: bool,
}

impl Library {
    /// Makes a library, and where it tells what changed; nothing is read yet.
    pub fn new(places: Places) -> (Self, mpsc::Receiver<Changed>) {
        let (changed, told) = mpsc::channel(TOLD);
        let root = |source| move |path| Root { path, source, workspace: None };
        let user = places.user.into_iter().map(root(Source::User));
        let system = places.system.into_iter().map(root(Source::System));
        let shipped = Root { path: PathBuf::from("nanod:"), source: Source::Shipped, workspace: None };
        let library = Self {
            named: RwLock::new(Named::new(places.config, places.trust)),
            then: user.chain(system).collect(),
            shipped: Arc::new(Shelf::fixed(shipped, shipped::all())),
            watch: places.watch.then(Watch::default),
            stock: Mutex::default(),
            turn: Mutex::default(),
            changed,
        };
        (library, told)
    }

    /// Returns the watch on the folders, where changes are to be taken up.
    pub fn watch(&self) -> Option<&Watch> {
        self.watch.as_ref()
    }

    /// Has other folders and trusted places serve from the next look on.
    pub fn rename(&self, paths: Vec<PathBuf>, trust: Vec<PathBuf>) {
        let next = Named::new(paths, trust);
        let old = std::mem::replace(&mut *self.named.write().unwrap_or_else(PoisonError::into_inner), next);
        let serving: Vec<PathBuf> = self.writable().into_iter().map(|root| root.path).collect();
        for gone in old.first.iter().filter(|root| !serving.contains(&root.path)) {
            self.stock().shelves.remove(&gone.path);
            self.watch.iter().for_each(|watch| watch.forget(&gone.path));
        }
    }

    fn named(&self) -> Arc<Named> {
        self.named.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Tells whether the workspace's skills may stand in the prompt unasked.
    pub fn trusts(&self, workspace: &Path) -> bool {
        self.named().trust.iter().any(|root| real(workspace).starts_with(real(root)))
    }

    /// Returns where a workspace has its skills; one of the daemon's own roots where it is that, as in its user's home.
    pub(super) fn root_of(&self, workspace: &Path) -> Root {
        let place = real(workspace);
        let is_home =
            |root: &Root| root.path.ends_with(BELOW) && root.path.ancestors().nth(2).map(real) == Some(place.clone());
        self.writable().into_iter().find(is_home).unwrap_or_else(|| workspace_root(workspace))
    }

    /// Returns the roots that skills can be made in without a workspace, the first counts first.
    pub fn writable(&self) -> Vec<Root> {
        self.named().first.iter().chain(&self.then).cloned().collect()
    }

    /// Looks at every folder that a session in `workspace` can see, and returns what is there now.
    pub async fn look(self: &Arc<Self>, workspace: Option<&Path>) -> Shelves {
        let (library, workspace) = (self.clone(), workspace.map(Path::to_owned));
        let looked = tokio::task::spawn_blocking(move || library.look_now(workspace.as_deref())).await;
        looked.unwrap_or_else(|why| {
            tracing::error!(%why, "looking at the skills panicked");
            Vec::new()
        })
    }

    /// The same, here and now; it waits for the file system.
    pub fn look_now(&self, workspace: Option<&Path>) -> Shelves {
        let own = workspace.map(|workspace| self.root_of(workspace)).filter(|own| own.workspace.is_some());
        let mut seen = HashSet::new();
        let mut is_new = |root: &&Root| seen.insert(real(&root.path));
        let mut shelves = Shelves::new();
        shelves.extend(self.named().first.iter().filter(&mut is_new).map(|root| self.shelf(root)));
        if let Some(own) = own {
            shelves.push(self.shelf(&own));
            self.keep_recent(own.path);
        }
        shelves.extend(self.then.iter().filter(&mut is_new).map(|root| self.shelf(root)));
        shelves.push(self.shipped.clone());
        shelves
    }

    /// Looks at everything that was looked at before, so that what changed is told.
    pub fn look_again(&self) {
        // Watched first: what came after it was read and before it was watched would go unnoticed.
        self.watch.iter().for_each(Watch::obey);
        let roots: Vec<Root> = self.stock().shelves.values().map(|(root, _)| root.clone()).collect();
        for root in roots {
            self.shelf(&root);
        }
    }

    /// Takes up what this daemon has just written itself, watched or not.
    pub fn wrote(&self, root: &Root) {
        self.read(root, Shelf::is_current);
    }

    /// Returns the root's shelf as it is now; without a watch, as it was when nobody was writing in it.
    fn shelf(&self, root: &Root) -> Arc<Shelf> {
        self.read(root, |old| (self.watch.is_none() && !old.is_waiting) || old.is_current())
    }

    /// Reads the root's shelf unless the one of before `serves`.
    fn read(&self, root: &Root, serves: impl Fn(&Shelf) -> bool) -> Arc<Shelf> {
        let new = || (root.clone(), Slot::default());
        let slot = self.stock().shelves.entry(root.path.clone()).or_insert_with(new).1.clone();
        let mut held = slot.lock().unwrap_or_else(PoisonError::into_inner);
        let old = held.clone();
        if let Some(old) = old.as_ref().filter(|old| serves(old)) {
            return old.clone();
        }
        let is_written = |path: &Path| self.watch.as_ref().is_some_and(|watch| watch.is_written(path));
        let fresh = Arc::new(Shelf::read(root, old.as_deref(), &is_written));
        if let Some(watch) = &self.watch {
            watch.follow(fresh.clone());
        }
        *held = Some(fresh.clone());
        if let Some(old) = old {
            self.tell(&old, &fresh);
        }
        fresh
    }

    fn tell(&self, old: &Shelf, fresh: &Shelf) {
        let skills = differences(&old.skills, &fresh.skills);
        if !skills.is_empty() {
            let changed = Changed { root: fresh.root.clone(), skills };
            if let Err(mpsc::error::TrySendError::Full(_)) = self.changed.try_send(changed) {
                tracing::warn!(root = %fresh.root.path.display(), "skills change faster than it can be told");
            }
        }
    }

    fn keep_recent(&self, path: PathBuf) {
        let mut stock = self.stock();
        stock.recent.retain(|known| *known != path);
        stock.recent.push_back(path);
        if stock.recent.len() > WORKSPACES
            && let Some(oldest) = stock.recent.pop_front()
        {
            stock.shelves.remove(&oldest);
            if let Some(watch) = &self.watch {
                watch.forget(&oldest);
            }
        }
    }

    /// Tells whether, as far as is known, a skill of another root hides the one of this name in `root` from the sessions
    /// of a workspace.
    pub fn is_hidden(&self, root: &Root, name: &str, workspace: &Path) -> bool {
        let (own, named) = (self.root_of(workspace), self.named());
        let stock = self.stock();
        let order = named.first.iter().chain(std::iter::once(&own)).chain(&self.then);
        let before = order.take_while(|one| one.path != root.path);
        let holds =
            |shelf: &Arc<Shelf>| shelf.skills.iter().any(|skill| skill.document.valid && skill.document.name == name);
        // One that is being read just now says nothing.
        let known = before.filter_map(|one| stock.shelves.get(&one.path)?.1.try_lock().ok()?.clone());
        known.into_iter().any(|shelf| holds(&shelf))
    }

    /// Waits until no other edit is under way.
    pub(super) fn editing(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stock(&self) -> MutexGuard<'_, Stock> {
        self.stock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns where `path` leads, links followed.
fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Returns the root below a workspace.
fn workspace_root(workspace: &Path) -> Root {
    let path = workspace.join(BELOW);
    Root { path, source: Source::Workspace, workspace: Some(workspace.to_owned()) }
}

fn differences(old: &[Arc<Skill>], fresh: &[Arc<Skill>]) -> Vec<(Arc<Skill>, Became)> {
    let by_path = |skills: &[Arc<Skill>]| {
        skills.iter().map(|skill| (skill.path.clone(), skill.clone())).collect::<HashMap<_, _>>()
    };
    let (before, now) = (by_path(old), by_path(fresh));
    let came = fresh.iter().filter_map(|skill| match before.get(&skill.path) {
        None => Some((skill.clone(), Became::Added)),
        Some(known) if known.document != skill.document => Some((skill.clone(), Became::Changed)),
        Some(_) => None,
    });
    let went = old.iter().filter(|skill| !now.contains_key(&skill.path));
    came.chain(went.map(|skill| (skill.clone(), Became::Removed))).collect()
}
