//! One folder of skills, walked: what is in it, what is wrong with it, and whether that is still so.
//!
//! The walk is bounded in depth, folders, entries, skills and bytes. Links are followed where the folder is trusted and
//! refused where they lead out of a workspace; no folder is entered twice. One bad skill never hides another, and a
//! file that is being written, or that cannot be used any more, does not replace what was read well before.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::file::{self, IsWritten, Reading, Stamp, problem, unusable};
use super::folder::{ENTRIES, Kind, entries, is_flat, is_no_folder, is_skipped, skill_file};
use super::{Skill, Source};
use crate::sandbox::workspace::{PathError, Workspace};

/// How deep below the root folders are looked at.
const DEPTH: usize = 6;
const FOLDERS: usize = 2000;
const SKILLS: usize = 1000;
/// Bytes of all bodies together.
const BYTES: usize = 32 << 20;

/// A folder that skills lie in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// The folder; it need not be there.
    pub path: PathBuf,
    /// What its skills are called on the wire.
    pub source: Source,
    /// The workspace that links must not lead out of.
    pub workspace: Option<PathBuf>,
}

/// What a root held when it was last looked at.
#[derive(Debug)]
pub struct Shelf {
    /// Which root.
    pub root: Root,
    /// In order of their folders.
    pub skills: Vec<Arc<Skill>>,
    /// Folders and files that were looked at, as they were then.
    pub(super) marks: Vec<(PathBuf, Option<Stamp>)>,
    /// How many of the marks, from the first, are folders.
    pub(super) folders: usize,
    /// Whether somebody was writing one of the files.
    pub(super) is_waiting: bool,
}

impl Shelf {
    /// Walks `root`; what has not changed since `old` is taken from there.
    pub fn read(root: &Root, old: Option<&Self>, is_written: IsWritten<'_>) -> Self {
        let mut shelf =
            Self { root: root.clone(), skills: Vec::new(), marks: Vec::new(), folders: 0, is_waiting: false };
        let opened = match &root.workspace {
            Some(workspace) => Workspace::open(workspace, true),
            None => Workspace::open(&root.path, false),
        };
        match opened {
            Ok(ground) => Walk::new(&mut shelf, &ground, old, is_written).run(),
            Err(why) => {
                shelf.mark_absent();
                if why.kind() != std::io::ErrorKind::NotFound {
                    shelf.refuse(&root.path, why.to_string());
                }
            }
        }
        shelf
    }

    /// Returns a shelf that never changes.
    pub fn fixed(root: Root, skills: Vec<Arc<Skill>>) -> Self {
        Self { root, skills, marks: Vec::new(), folders: 0, is_waiting: false }
    }

    /// Tells whether nothing has changed since.
    pub fn is_current(&self) -> bool {
        let files = self.skills.iter().filter(|skill| skill.source != Source::Shipped);
        self.marks.iter().all(|(path, stamp)| Stamp::of(path) == *stamp)
            && files.into_iter().all(|skill| Stamp::of(&skill.path) == skill.stamp)
    }

    /// Notes that there is no folder, and where above: whatever of it comes, is a change.
    fn mark_absent(&mut self) {
        let path = self.root.path.clone();
        let above = path.ancestors().skip(1).take_while(|above| Stamp::of(above).is_none());
        self.marks.push((path.clone(), Stamp::of(&path)));
        self.marks.extend(above.map(|above| (above.to_owned(), None)));
    }

    /// Lists what cannot be used, with its reason.
    fn refuse(&mut self, path: &Path, why: String) {
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
        let (path, stamp) = (path.to_owned(), Stamp::of(path));
        let document = unusable(&name, why);
        self.skills.push(Arc::new(Skill { document, path, folder: None, source: self.root.source, stamp }));
    }
}

struct Walk<'a> {
    shelf: &'a mut Shelf,
    ground: &'a Workspace,
    is_written: IsWritten<'a>,
    old: HashMap<&'a Path, &'a Arc<Skill>>,
    entered: HashSet<(u64, u64)>,
    /// Links come after all real folders, so that these keep their own names.
    folders: VecDeque<(PathBuf, usize)>,
    links: VecDeque<(PathBuf, usize)>,
    /// Folders of skills: a link in one is no skill that failed.
    taken: HashSet<PathBuf>,
    /// Files directly in the root that may be skills; these come last.
    flat: Vec<PathBuf>,
    /// How long all bodies are that were read, those of notes too.
    bytes: usize,
    files: Vec<(PathBuf, Option<Stamp>)>,
    /// The limits that were met.
    over: BTreeSet<String>,
}

impl<'a> Walk<'a> {
    fn new(shelf: &'a mut Shelf, ground: &'a Workspace, old: Option<&'a Shelf>, is_written: IsWritten<'a>) -> Self {
        let old = old.iter().flat_map(|old| &old.skills).map(|skill| (skill.path.as_path(), skill)).collect();
        let folders = VecDeque::from([(shelf.root.path.clone(), 0)]);
        let (entered, links, over) = (HashSet::new(), VecDeque::new(), BTreeSet::new());
        Self {
            shelf,
            ground,
            is_written,
            old,
            entered,
            folders,
            links,
            taken: HashSet::new(),
            flat: Vec::new(),
            bytes: 0,
            files: Vec::new(),
            over,
        }
    }

    fn run(mut self) {
        let mut tried = 0;
        while let Some((path, depth)) = self.folders.pop_front().or_else(|| self.links.pop_front()) {
            if tried == FOLDERS {
                self.over.insert(format!("more than {FOLDERS} folders: the others are not looked at"));
                break;
            }
            tried += 1;
            match self.ground.folder_at(&path.to_string_lossy(), &path) {
                Ok(folder) => self.folder(&folder, &path, depth),
                Err(PathError::Io { source, .. }) if is_no_folder(&source) => {
                    // A link to what is no folder, or not yet.
                    self.files.push((path.clone(), Stamp::of(&path)));
                }
                Err(_) if path.parent().is_some_and(|above| self.taken.contains(above)) => {}
                Err(why) => self.refuse(&path, why.to_string()),
            }
        }
        self.flats();
        self.shelf.folders = self.shelf.marks.len();
        if self.shelf.folders == 0 {
            self.shelf.mark_absent();
        }
        self.shelf.marks.append(&mut self.files);
        let root = self.shelf.root.path.clone();
        for limit in self.over {
            self.shelf.refuse(&root, limit);
        }
        self.shelf.skills.sort_by(|one, other| one.path.cmp(&other.path));
    }

    fn refuse(&mut self, path: &Path, why: String) {
        if !self.is_full() {
            self.shelf.refuse(path, why);
        }
    }

    /// Tells whether nothing more is taken.
    fn is_full(&mut self) -> bool {
        let limit = match () {
            () if self.shelf.skills.len() >= SKILLS => format!("more than {SKILLS} skills: the others are not taken"),
            () if self.bytes > BYTES => format!("more than {BYTES} bytes together: the others are not taken"),
            () => return false,
        };
        self.over.insert(limit);
        true
    }

    fn folder(&mut self, folder: &OwnedFd, path: &Path, depth: usize) {
        let stamp = rustix::fs::fstat(folder).ok().map(|stat| Stamp::new(&stat));
        if !stamp.is_some_and(|stamp| self.entered.insert(stamp.inode)) {
            // Where another link leads may change all the same.
            return self.files.push((path.to_owned(), stamp));
        }
        self.shelf.marks.push((path.to_owned(), stamp.map(Stamp::unless_racy)));
        let mut entries = match entries(folder) {
            Ok(entries) => entries,
            Err(why) => return self.refuse(path, format!("it cannot be listed: {why}")),
        };
        if entries.len() > ENTRIES {
            self.refuse(path, format!("more than {ENTRIES} entries: the others are not looked at"));
        }
        entries.sort_unstable();
        let document = skill_file(&entries).map(OsStr::to_owned);
        if let Some(name) = &document {
            self.skill(&path.join(name), path);
        }
        if document.is_some() || path.parent().is_some_and(|above| self.taken.contains(above)) {
            self.taken.insert(path.to_owned());
        }
        for (name, kind) in entries {
            let below = path.join(&name);
            match kind {
                _ if depth == 0 && is_flat(&name, kind) => self.flat.push(below),
                _ if depth == DEPTH || is_skipped(&name) => {}
                Kind::Link if document.as_ref() == Some(&name) => {}
                Kind::Folder => self.folders.push_back((below, depth + 1)),
                Kind::Link => self.links.push_back((below, depth + 1)),
                Kind::File | Kind::Other => {}
            }
        }
    }

    /// Takes the SKILL.md at `path` in `folder`.
    fn skill(&mut self, path: &Path, folder: &Path) {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let renamed = (!path.ends_with("SKILL.md")).then(|| problem("the file is to be called SKILL.md"));
        self.take(path, Some(folder), &name, renamed, |_| true);
    }

    /// Takes each NAME.md that lies directly in the root.
    fn flats(&mut self) {
        let flat = std::mem::take(&mut self.flat);
        if flat.len() > SKILLS {
            self.over.insert(format!("more than {SKILLS} files directly in it: the others are not looked at"));
        }
        flat.iter().take(SKILLS).for_each(|path| self.flat(path));
    }

    /// Takes one if it has front matter, or cannot be read: all else is somebody's notes.
    fn flat(&mut self, path: &Path) {
        let is_unread = |skill: &Skill| skill.document.problems.first().is_some_and(|first| first.line.is_none());
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let what = problem(format!("a skill is a folder with a SKILL.md in it: move this to {name}/SKILL.md"));
        self.take(path, None, &name, Some(what), |skill| !skill.document.metadata.is_empty() || is_unread(skill));
    }

    fn take(
        &mut self,
        path: &Path,
        folder: Option<&Path>,
        name: &str,
        odd: Option<nano_protocol::skill::Problem>,
        wanted: impl Fn(&Skill) -> bool,
    ) {
        if self.is_full() {
            return;
        }
        let old = self.old.get(path).copied();
        let skill = match file::read(self.ground, path, name, old.and_then(|old| old.stamp), self.is_written) {
            Reading::Same => old.cloned(),
            Reading::Busy => {
                self.shelf.is_waiting = true;
                old.cloned()
            }
            Reading::Read(mut document, stamp) => {
                document.problems.extend(odd);
                let (path, source) = (path.to_owned(), self.shelf.root.source);
                let read = Skill { document: *document, path, folder: folder.map(Path::to_owned), source, stamp };
                Some(Arc::new(kept(read, old)))
            }
        };
        // One that is being written for the first time has to be looked at again.
        let Some(skill) = skill else { return self.files.push((path.to_owned(), None)) };
        self.bytes += skill.document.body.len();
        if !wanted(&skill) {
            self.files.push((path.to_owned(), skill.stamp));
        } else if !self.is_full() {
            self.shelf.skills.push(skill);
        }
    }
}

/// Returns what serves: what was read, or what was read well before, if this is no better than half a file.
fn kept(read: Skill, old: Option<&Arc<Skill>>) -> Skill {
    let good = old.filter(|old| old.document.valid && !old.document.unclosed);
    let Some(good) = good.filter(|_| !read.document.valid || read.document.unclosed) else { return read };
    let why = read.document.problems.first().map(|problem| problem.message.as_str()).unwrap_or_default();
    let mut document = good.document.clone();
    document.problems.retain(|problem| !problem.message.starts_with(STALE));
    document.problems.insert(0, problem(format!("{STALE} ({why}): what it said before serves on")));
    Skill { document, ..read }
}

/// Begins the problem of a file that got worse.
const STALE: &str = "the file cannot be used as it is now";
