//! What one session gets of the skills there are.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use nano_protocol::skill::SkillInfo;
use nano_protocol::tool::Prompt;

use super::catalogue::{self, Line};
use super::file::problem;
use super::library::Shelves;
use super::{Skill, Source, plain};
use crate::sandbox::workspace::shown;

/// How many names an answer tells at most.
const NAMED: usize = 30;

/// Skills by name, as one session gets them.
#[derive(Debug, Default)]
pub struct Offer {
    /// By name.
    skills: Vec<Arc<Skill>>,
    /// Whether a workspace's skills may stand in the prompt unasked.
    trusted: bool,
    /// Whether its tools work on another machine.
    away: bool,
}

impl Offer {
    /// Takes of each name the one that counts, if `filter` names it; no filter: all.
    pub fn new(shelves: &Shelves, filter: Option<&[String]>, trusted: bool) -> Self {
        let chosen = |skill: &&Arc<Skill>| filter.is_none_or(|names| names.contains(&skill.document.name));
        let mut skills: Vec<Arc<Skill>> = counting(shelves).into_values().filter(chosen).cloned().collect();
        skills.sort_by(|one, other| one.document.name.cmp(&other.document.name));
        Self { skills, trusted, away: false }
    }

    /// Makes it one for tools that work on another machine, where the folders of this one mean nothing.
    #[must_use]
    pub fn away(mut self) -> Self {
        self.away = true;
        self
    }

    /// Tells whether there is a skill to load.
    pub fn is_empty(&self) -> bool {
        !self.skills.iter().any(|skill| skill.is_offerable())
    }

    /// Returns the parts of the prompt: bodies that stand there unasked, then the catalogue.
    pub fn prompts(&self) -> Vec<Prompt> {
        let Layout { mut parts, catalogue, .. } = self.layout();
        parts.push(Prompt { name: "skills".into(), source: "core".into(), text: catalogue });
        parts
    }

    /// Decides what stands in the prompt.
    fn layout(&self) -> Layout<'_> {
        let offerable = || self.skills.iter().filter(|skill| skill.is_offerable());
        let unasked: Vec<&Arc<Skill>> = offerable().filter(|skill| self.is_unasked(skill)).collect();
        let texts: Vec<String> = unasked.iter().map(|skill| self.unasked_text(skill)).collect();
        let admitted = catalogue::admitted(&texts.iter().map(String::len).collect::<Vec<_>>());
        let (mut parts, mut crowded) = (Vec::new(), Vec::new());
        for ((skill, text), fits) in unasked.iter().zip(texts).zip(admitted) {
            let name = &skill.document.name;
            if fits {
                parts.push(Prompt { source: format!("skill:{name}"), name: name.clone(), text });
            } else {
                crowded.push(name.as_str());
            }
        }
        let is_catalogued = |skill: &&Arc<Skill>| !parts.iter().any(|part| part.name == skill.document.name);
        let lines: Vec<Line<'_>> = offerable().filter(is_catalogued).map(line).collect();
        let (catalogue, left_out) = catalogue::block(&lines);
        let untold = left_out.into_iter().map(|at| lines[at].name).collect();
        Layout { parts, catalogue, crowded, untold }
    }

    /// Returns the skill with this name, if it can be loaded: one without a description can, though none is told of it.
    pub fn get(&self, name: &str) -> Option<&Arc<Skill>> {
        let name = nano_skill::normalised(name);
        let has_text = |skill: &Skill| skill.document.valid || !skill.document.body.is_empty();
        let loadable = |skill: &&Arc<Skill>| !skill.document.hidden && has_text(skill);
        self.skills.iter().filter(loadable).find(|skill| skill.document.name == name)
    }

    /// Returns what a model reads that asks for a skill there is not.
    pub fn not_found_text(&self, name: &str) -> String {
        let names: Vec<&str> =
            self.skills.iter().filter(|skill| skill.is_offerable()).map(|skill| skill.document.name.as_str()).collect();
        let wanted = nano_skill::normalised(name);
        let alike = |known: &&str| strsim::jaro_winkler(known, &wanted);
        let mut near: Vec<&str> = names.iter().copied().filter(|known| alike(known) > 0.85).collect();
        near.sort_by(|one, other| alike(other).total_cmp(&alike(one)));
        near.truncate(3);
        let there = if near.is_empty() { names.get(..names.len().min(NAMED)).unwrap_or_default() } else { &near };
        let hint = match there {
            [] => "there are none in this session".to_owned(),
            there if near.is_empty() && there.len() < names.len() => {
                format!("there is `{}` and {} more", there.join("`, `"), names.len() - there.len())
            }
            there => format!("there is `{}`", there.join("`, `")),
        };
        format!("there is no skill `{}`; {hint}", shown(name))
    }

    /// Returns the folders outside the workspace that files beside the documents are read from.
    pub fn folders(&self) -> Vec<PathBuf> {
        let outside = self.skills.iter().filter(|skill| skill.source != Source::Workspace && !skill.document.hidden);
        outside.filter_map(|skill| skill.folder.clone()).collect()
    }

    fn unasked_text(&self, skill: &Skill) -> String {
        let (name, body) = (&skill.document.name, &skill.document.body);
        let folder = match &skill.folder {
            Some(_) if self.away => {
                "\n\n(load_skill brings the files of this skill's folder and says where they are.)".into()
            }
            Some(folder) => format!("\n\n(This skill's folder: {})", plain(folder)),
            None => String::new(),
        };
        format!("## {name}\n\n{body}{folder}")
    }

    fn is_unasked(&self, skill: &Skill) -> bool {
        skill.document.always_load && (self.trusted || skill.source != Source::Workspace)
    }
}

/// What of an offer stands in the prompt, and what has no room there.
struct Layout<'a> {
    parts: Vec<Prompt>,
    catalogue: String,
    /// Names of those whose body was to stand in the prompt and is too much.
    crowded: Vec<&'a str>,
    /// Names that the catalogue has no room for.
    untold: Vec<&'a str>,
}

fn line(skill: &Arc<Skill>) -> Line<'_> {
    let document = &skill.document;
    Line { name: &document.name, about: &document.description, yields: skill.source == Source::Workspace }
}

/// Returns of each name the skill that counts: the first that can be used, else the first.
fn counting(shelves: &Shelves) -> HashMap<&str, &Arc<Skill>> {
    let mut counting: HashMap<&str, &Arc<Skill>> = HashMap::new();
    for skill in shelves.iter().flat_map(|shelf| &shelf.skills) {
        let known = counting.entry(&skill.document.name).or_insert(skill);
        if skill.document.valid && !known.document.valid {
            *known = skill;
        }
    }
    counting
}

/// Returns the skill that counts of those with this name.
pub fn find<'a>(shelves: &'a Shelves, name: &str) -> Option<&'a Arc<Skill>> {
    counting(shelves).remove(nano_skill::normalised(name).as_str())
}

/// Lists everything there is by name, of one name the one that counts first, with what keeps each from the model of a
/// session whose filter and trust these are.
pub fn list(shelves: &Shelves, filter: Option<&[String]>, trusted: bool) -> Vec<SkillInfo> {
    let (counting, offer) = (counting(shelves), Offer::new(shelves, filter, trusted));
    let layout = offer.layout();
    let all = shelves.iter().flat_map(|shelf| &shelf.skills);
    let mut rows: Vec<(bool, SkillInfo)> = all
        .map(|skill| {
            let mut info = skill.info();
            info.always_load &= offer.is_unasked(skill);
            let first = counting.get(skill.document.name.as_str()).copied();
            let hidden_by = first.filter(|first| first.path != skill.path);
            let told = notes(skill, hidden_by, &layout, trusted).into_iter().map(problem);
            info.problems.extend(told);
            (hidden_by.is_some(), info)
        })
        .filter(|(_, info)| filter.is_none_or(|names| names.contains(&info.name)))
        .collect();
    rows.sort_by(|(hidden, one), (also, other)| (&one.name, hidden).cmp(&(&other.name, also)));
    rows.into_iter().map(|(_, info)| info).collect()
}

/// Says what beside its own text keeps a skill from the model.
fn notes(skill: &Skill, hidden_by: Option<&Arc<Skill>>, layout: &Layout<'_>, trusted: bool) -> Vec<String> {
    let document = &skill.document;
    let mut notes = Vec::new();
    if document.hidden {
        notes.push("disable-model-invocation: no model is told of it or can load it".into());
    }
    if document.always_load && skill.source == Source::Workspace && !trusted {
        notes.push("always_load does not count: the workspace is not below skills.trust".into());
    }
    if let Some(first) = hidden_by {
        notes.push(format!("not used: {} has the same name and is used", plain(&first.path)));
        return notes;
    }
    if layout.crowded.contains(&document.name.as_str()) {
        notes.push("always_load: there is no room in the prompt for its text; it stands in the catalogue".into());
    }
    if layout.untold.contains(&document.name.as_str()) {
        notes.push("there is no room in the catalogue: no model is told of it, though it can load it".into());
    }
    notes
}
