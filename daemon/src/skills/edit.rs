//! Skills made, changed and removed: one at a time, each file replaced in one step, shipped ones never.

use std::path::{Path, PathBuf};

use nano_protocol::Object;
use nano_skill::{Document, MAX_FILE};
use sha2::{Digest, Sha256};

use super::disk::{ground, is_closed, remove, write_new};
use super::library::{Library, Shelves};
use super::shelf::{Root, Shelf};
use super::{Skill, Source, offer, shipped};
use crate::sandbox::workspace::PathError;

/// Why a skill was not made, changed or removed.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// What was asked for makes no skill.
    #[error("{0}")]
    Invalid(String),
    /// There is none.
    #[error("{0}")]
    Gone(String),
    /// Somebody was there before.
    #[error("{0}")]
    Conflict(String),
    /// It may not be written, and what to do instead.
    #[error("{0}")]
    Denied(String, &'static str),
    /// It does not fit.
    #[error("{0}")]
    TooLarge(String),
    /// The system failed.
    #[error(transparent)]
    Path(#[from] PathError),
}

/// What a file is to become.
#[derive(Debug, Default)]
pub struct Edit {
    /// The whole new text.
    pub text: Option<String>,
    /// The new description.
    pub description: Option<String>,
    /// The new body.
    pub body: Option<String>,
}

/// A skill's file as it is now.
#[derive(Debug, Default)]
pub struct Text {
    /// What is in it.
    pub text: String,
    /// Its SHA-256, in hex.
    pub digest: String,
}

impl Library {
    /// Makes a skill in the workspace, or in the first folder of the daemon's that may be written; returns its file.
    /// What lies in the daemon's own folders serves everybody: only who may change it `everywhere` can write there.
    pub fn create(
        &self,
        everywhere: bool,
        workspace: Option<&Path>,
        (name, description): (&str, &str),
        metadata: &Object,
        body: &str,
    ) -> Result<PathBuf, EditError> {
        let text = nano_skill::compose(name, description, metadata, body);
        let wrong = nano_skill::name_problem(name).or_else(|| problem_of(&Document::read(text.as_bytes(), name)));
        if text.len() as u64 > MAX_FILE {
            return Err(EditError::TooLarge(format!("the file would be larger than {MAX_FILE} bytes")));
        }
        if let Some(wrong) = wrong {
            return Err(EditError::Invalid(wrong));
        }
        let _turn = self.editing();
        let shelves = self.look_now(workspace);
        let roots = match workspace {
            Some(workspace) => vec![self.root_of(workspace)],
            None => self.writable(),
        };
        let mut refused = Vec::new();
        for root in &roots {
            may_write(root, everywhere)?;
            free(&shelves, root, name)?;
            match write_new(root, name, text.as_bytes()) {
                Ok(path) => {
                    self.wrote(root);
                    return Ok(path);
                }
                Err(EditError::Path(why)) if is_closed(&why) => refused.push(why.to_string()),
                Err(why) => return Err(why),
            }
        }
        let none = "there is no folder for skills; name one in skills.paths".to_owned();
        let why = if refused.is_empty() { none } else { refused.join("; ") };
        Err(EditError::Denied(
            why,
            "name a folder that can be written in skills.paths, or make it in a session's workspace",
        ))
    }

    /// Changes a skill, if its file still has `digest`.
    pub fn update(
        &self,
        everywhere: bool,
        workspace: Option<&Path>,
        name: &str,
        edit: Edit,
        digest: Option<&str>,
    ) -> Result<PathBuf, EditError> {
        let _turn = self.editing();
        let shelves = self.look_now(workspace);
        let (root, skill) = editable(&shelves, name, everywhere)?;
        let now = read(root, skill)?;
        unchanged(&now, digest, name)?;
        let text = match edit {
            Edit { text: Some(text), description: None, body: None } => text,
            Edit { text: None, .. } if now.digest != digest_of(now.text.as_bytes()) => {
                return Err(EditError::Invalid("the file is not UTF-8; give the whole text".into()));
            }
            Edit { text: None, description, body } => {
                nano_skill::rewrite(&now.text, description.as_deref(), body.as_deref())
                    .map_err(|why| EditError::Invalid(why.message))?
            }
            Edit { .. } => return Err(EditError::Invalid("give either text, or description and content".into())),
        };
        let folder = skill.folder.as_deref().map_or_else(|| skill.path.file_stem(), Path::file_name);
        let document = Document::read(text.as_bytes(), &folder.unwrap_or_default().to_string_lossy());
        if text.len() as u64 > MAX_FILE {
            return Err(EditError::TooLarge(format!("the file would be larger than {MAX_FILE} bytes")));
        }
        if let Some(wrong) = problem_of(&document) {
            return Err(EditError::Invalid(wrong));
        }
        if document.name != skill.document.name {
            let renamed = format!("the text names `{}`, not `{name}`: make a new skill for that", document.name);
            return Err(EditError::Invalid(renamed));
        }
        ground(root)?.place(&skill.path.to_string_lossy(), false)?.replace(text.as_bytes())?;
        self.wrote(root);
        Ok(skill.path.clone())
    }

    /// Removes a skill with its folder, if its file still has `digest`; returns what it was.
    pub fn delete(
        &self,
        everywhere: bool,
        workspace: Option<&Path>,
        name: &str,
        digest: Option<&str>,
    ) -> Result<Skill, EditError> {
        let _turn = self.editing();
        let shelves = self.look_now(workspace);
        let (root, skill) = editable(&shelves, name, everywhere)?;
        if digest.is_some() {
            unchanged(&read(root, skill)?, digest, name)?;
        }
        let what = match &skill.folder {
            Some(folder) if *folder != root.path => folder,
            _ => &skill.path,
        };
        let is_below = |other: &Skill| other.path != skill.path && other.path.starts_with(what);
        if let Some(other) = shelves.iter().flat_map(|shelf| &shelf.skills).find(|other| is_below(other)) {
            let holds = format!("its folder holds another skill, {}; remove that first", other.path.display());
            return Err(EditError::Conflict(holds));
        }
        remove(&ground(root)?, what)?;
        self.wrote(root);
        Ok(Skill::clone(skill))
    }
}

/// Returns the file of a skill as it is now.
pub fn read(root: &Root, skill: &Skill) -> Result<Text, EditError> {
    let bytes = match shipped::text(&skill.document.name).filter(|_| skill.source == Source::Shipped) {
        Some(text) => text.as_bytes().to_vec(),
        None => super::file::bytes(&ground(root)?, &skill.path)?,
    };
    let digest = digest_of(&bytes);
    Ok(Text { text: String::from_utf8_lossy(&bytes).into_owned(), digest })
}

fn digest_of(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}

/// Returns the skill at `path`, else the one with this name that counts, with its root.
pub fn find<'a>(shelves: &'a Shelves, name: &str, path: Option<&Path>) -> Result<(&'a Root, &'a Skill), EditError> {
    let gone = || EditError::Gone(format!("there is no skill {}", name.escape_debug()));
    let mut all = shelves.iter().flat_map(|shelf| &shelf.skills);
    let there = path.and_then(|path| all.find(|skill| skill.path == path));
    let skill = there.or_else(|| offer::find(shelves, name)).ok_or_else(gone)?;
    let holds = |shelf: &&std::sync::Arc<Shelf>| shelf.skills.iter().any(|one| one.path == skill.path);
    let shelf = shelves.iter().find(holds).ok_or_else(gone)?;
    Ok((&shelf.root, skill))
}

fn editable<'a>(shelves: &'a Shelves, name: &str, everywhere: bool) -> Result<(&'a Root, &'a Skill), EditError> {
    let (root, skill) = find(shelves, name, None)?;
    if skill.source == Source::Shipped {
        let why = format!("{name} is shipped with nanod and stays as it is");
        return Err(EditError::Denied(why, "make one of the same name: it hides the shipped one"));
    }
    may_write(root, everywhere)?;
    Ok((root, skill))
}

/// Refuses the daemon's own folders, which serve everybody, to who may not change them.
fn may_write(root: &Root, everywhere: bool) -> Result<(), EditError> {
    if everywhere || root.workspace.is_some() {
        return Ok(());
    }
    let why = format!("{} serves everybody here: root and the daemon's own user may change it", root.path.display());
    Err(EditError::Denied(why, "make the skill in a session's workspace"))
}

fn unchanged(now: &Text, digest: Option<&str>, name: &str) -> Result<(), EditError> {
    if digest.is_none_or(|digest| digest == now.digest) {
        return Ok(());
    }
    Err(EditError::Conflict(format!("{name} was changed meanwhile; look at it again")))
}

/// Refuses a name that the root already has.
fn free(shelves: &Shelves, root: &Root, name: &str) -> Result<(), EditError> {
    let here = shelves.iter().filter(|shelf| shelf.root == *root).flat_map(|shelf| &shelf.skills);
    match here.into_iter().find(|skill| skill.document.name == name) {
        Some(taken) => Err(EditError::Conflict(format!("{name} is there already: {}", taken.path.display()))),
        None => Ok(()),
    }
}

fn problem_of(document: &Document) -> Option<String> {
    let first = document.problems.first().filter(|_| !document.valid)?;
    let place = first.line.map_or_else(String::new, |line| format!("line {line}: "));
    Some(format!("{place}{}", first.message))
}
