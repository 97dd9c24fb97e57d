//! Folders of skills of every source below one temporary folder.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use nano_protocol::skill::SkillInfo;
use nanod::skills::library::{Changed, Library, Places, Shelves};
use nanod::skills::offer::{self, Offer};
use tempfile::TempDir;
use tokio::sync::mpsc::Receiver;

/// The folders, `config`, `w/.agents/skills`, `user` and `system`, and a library of them.
pub struct World {
    pub folder: TempDir,
    pub library: Arc<Library>,
    pub told: Receiver<Changed>,
}

/// A document with all that is needed.
pub fn text(name: &str, about: &str, body: &str) -> String {
    format!("---\nname: {name}\ndescription: {about}\n---\n{body}\n")
}

impl World {
    pub fn new() -> Self {
        Self::with(|_, _| {})
    }

    /// With other places; `change` gets the temporary folder.
    pub fn with(change: impl FnOnce(&Path, &mut Places)) -> Self {
        Self::below(tempfile::tempdir().unwrap(), change)
    }

    /// In memory where that is to be had: a disk takes minutes to remove so many folders.
    pub fn of_many_folders() -> Self {
        Self::below(tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap(), |_, _| {})
    }

    fn below(folder: TempDir, change: impl FnOnce(&Path, &mut Places)) -> Self {
        let at = |name: &str| vec![folder.path().join(name)];
        let mut places =
            Places { config: at("config"), user: at("user"), system: at("system"), trust: vec![], watch: true };
        std::fs::create_dir(folder.path().join("w")).unwrap();
        change(folder.path(), &mut places);
        let (library, told) = Library::new(places);
        Self { folder, library: library.into(), told }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, contents: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, contents).unwrap();
    }

    /// Writes `FOLDER/SKILL.md`, named as its folder; the body says which folder.
    pub fn skill(&self, folder: &str) {
        let name = folder.rsplit('/').next().unwrap();
        self.write(&format!("{folder}/SKILL.md"), text(name, "About it.", &format!("Body of {folder}.")));
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    pub fn link(&self, target: impl AsRef<Path>, name: &str) {
        std::fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(target, self.path(name)).unwrap();
    }

    pub fn workspace(&self) -> PathBuf {
        self.path("w")
    }

    pub fn look(&self) -> Shelves {
        self.library.look_now(Some(&self.workspace()))
    }

    pub fn offer(&self) -> Offer {
        Offer::new(&self.look(), None, self.library.trusts(&self.workspace()))
    }

    /// Lists all but what is shipped.
    pub fn list(&self) -> Vec<SkillInfo> {
        let all = offer::list(&self.look(), None, self.library.trusts(&self.workspace()));
        all.into_iter().filter(|one| one.source != "shipped").collect()
    }

    /// Lists paths below the temporary folder, those that cannot be used after a `!`.
    pub fn paths(&self) -> Vec<String> {
        let short = |one: &SkillInfo| {
            let path = Path::new(&one.path).strip_prefix(self.folder.path()).unwrap().display().to_string();
            if one.valid { path } else { format!("!{path}") }
        };
        let mut paths: Vec<String> = self.list().iter().map(short).collect();
        paths.sort();
        paths
    }

    /// Lists the names of what can be used.
    pub fn names(&self) -> Vec<String> {
        self.list().into_iter().filter(|one| one.valid).map(|one| one.name).collect()
    }

    /// Returns the row of the file at `path`.
    pub fn row(&self, path: &str) -> SkillInfo {
        let path = self.path(path).to_string_lossy().into_owned();
        let row = self.list().into_iter().find(|one| one.path == path);
        row.unwrap_or_else(|| panic!("{path} is not listed"))
    }

    /// Returns what is wrong with the file at `path`.
    pub fn problems(&self, path: &str) -> String {
        self.row(path).problems.iter().map(|one| one.message.clone() + "\n").collect()
    }

    /// Returns the body that a model would load.
    pub fn body(&self, name: &str) -> Option<String> {
        self.offer().get(name).map(|skill| skill.document.body.clone())
    }

    /// Returns what was told since it was last asked: names, and what became of them.
    pub fn news(&mut self) -> Vec<String> {
        let mut news: Vec<String> = std::iter::from_fn(|| self.told.try_recv().ok())
            .flat_map(|changed| changed.skills)
            .map(|(skill, became)| format!("{} {}", skill.document.name, became.as_str()))
            .collect();
        news.sort();
        news
    }
}
