//! What a call is when it is looked at: what rules judge, and what an approval is bound to.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nano_protocol::Object;
use nano_protocol::approval::{Approval, Place};
use nano_protocol::event::Data;
use nano_protocol::message::ToolCall;
use sha2::{Digest, Sha256};

use super::policies;
use crate::policy::rules::PATHS;
use crate::policy::{Call, Level, Policy, Subject, Verdict, commands, judge};
use crate::session::actor::Actor;

/// Longer texts in arguments are cut where a person sees them.
const SHOWN: usize = 2048;
/// More arguments than this are not shown.
const ARGUMENTS: usize = 16 * 1024;
/// What a call is about is told so long.
const WHAT: usize = 400;

/// A call as it would run now.
pub(super) struct Bound {
    workspace: PathBuf,
    folder: PathBuf,
    is_here: bool,
    path: Option<PathBuf>,
    names_path: bool,
    /// The same for two calls that ask for the same.
    pub text: String,
    /// All arguments, paths in them with their links followed.
    arguments: String,
    pub arguments_sha256: String,
    pub argv: Option<Vec<String>>,
    pub cwd: Option<Place>,
    pub environment_sha256: Option<String>,
}

impl Actor {
    /// Looks at a call as it would run now.
    pub(super) fn bound(&mut self, call: &ToolCall) -> Bound {
        let toolset = self.offered();
        let source = toolset.get(&call.name).map(|tool| tool.spec().source.clone()).unwrap_or_default();
        let booter = self.deps.booter(&self.record.session.booter).filter(|_| source.starts_with("booter:"));
        let is_here = booter.is_none_or(|booter| !booter.is_remote());
        let environment = booter.map(|booter| booter.environment()).filter(|all| !all.is_empty());
        let workspace = self.workspace().map(|workspace| workspace.path().to_owned());
        let workspace = workspace.unwrap_or_else(|_| PathBuf::from(&self.record.session.workspace));
        let folder = text(call, "cwd").map_or_else(|| workspace.clone(), |cwd| workspace.join(cwd));
        let folder = if is_here { fs::canonicalize(&folder).unwrap_or(folder) } else { folder };
        let place = fs::metadata(&folder).ok().filter(|_| is_here).map(|meta| Place {
            path: folder.to_string_lossy().into_owned(),
            device: meta.dev(),
            inode: meta.ino(),
        });
        let given = text(call, "path").unwrap_or(".");
        let path = if is_here { resolved(&workspace.join(given)) } else { lexical(&workspace.join(given)) };
        let mut bound = Bound {
            workspace,
            folder,
            is_here,
            path,
            names_path: PATHS.contains(&call.name.as_str()),
            text: String::new(),
            arguments: String::new(),
            arguments_sha256: hash(&[&call.name, &canonical(&call.arguments)]),
            argv: text(call, "command").filter(|_| call.name == "exec").and_then(argv),
            cwd: place,
            environment_sha256: environment.map(|all| hash(&all.iter().map(String::as_str).collect::<Vec<_>>())),
        };
        bound.text = bound.text_of(call);
        bound.arguments = bound.arguments_of(call);
        bound
    }

    /// Says why an allowed call is not the one that was allowed any more, if so.
    pub(super) fn has_changed(&mut self, approval: &Approval, call: &ToolCall) -> Option<String> {
        let now = self.bound(call);
        let what = match () {
            () if now.arguments_sha256 != approval.arguments_sha256 => "its arguments are other ones",
            () if now.leads_to() != approval.leads_to => "where its path leads is another place",
            () if now.cwd != approval.cwd => "the folder it works in is another one",
            () if now.environment_sha256 != approval.environment_sha256 => "the environment of programs is another one",
            () => return self.denies(call, Level::Ask),
        };
        Some(format!("{what} than when a person was asked"))
    }

    /// Says why a call is not to run, where rules say more by now than `most`.
    pub(super) fn denies(&mut self, call: &ToolCall, most: Level) -> Option<String> {
        let verdict = self.bound(call).judged(&policies(&self.deps, &self.record), call);
        let word = verdict.level.as_str();
        (verdict.level > most).then(|| format!("what becomes of it is another thing by now: {word} ({})", verdict.why))
    }
}

impl Bound {
    fn subject<'a>(&'a self, call: &'a ToolCall) -> Subject<'a> {
        match call.name.as_str() {
            "exec" => Subject::Command(text(call, "command").unwrap_or_default()),
            _ if self.names_path => match self.path.as_deref().and_then(Path::to_str) {
                Some(absolute) => Subject::Path { relative: self.relative(), absolute },
                None => Subject::Unclear,
            },
            "web_fetch" | "http_request" => Subject::Address(text(call, "url").unwrap_or_default()),
            _ => Subject::Other,
        }
    }

    /// Returns where the path leads that the call is about, if it is about one.
    pub fn leads_to(&self) -> Option<String> {
        self.names_path
            .then(|| self.path.as_ref().map_or_else(|| "?".into(), |path| path.to_string_lossy().into_owned()))
    }

    /// Returns all arguments as a text, with paths as they lead.
    fn arguments_of(&self, call: &ToolCall) -> String {
        let mut arguments = call.arguments.clone();
        let places = [("path", self.path.as_ref().filter(|_| self.names_path)), ("cwd", Some(&self.folder))];
        for (name, place) in places {
            if let (Some(_), Some(place)) = (text(call, name), place) {
                arguments.insert(name.into(), place.to_string_lossy().into_owned().into());
            }
        }
        let text = canonical(&arguments);
        if text.len() <= SHOWN { text } else { format!("sha256:{}", hash(&[&text])) }
    }

    /// Returns the rule that allows just this call, and no other of the same tool.
    pub fn always(&self, call: &ToolCall) -> String {
        match text(call, "command").filter(|_| call.name == "exec" && call.arguments.len() == 1) {
            Some(_) => format!("exec = {}: allow", self.text),
            None => format!("{} == {}: allow", call.name, self.arguments),
        }
    }

    fn relative(&self) -> Option<&str> {
        let below = self.path.as_deref()?.strip_prefix(&self.workspace).ok()?.to_str()?;
        Some(if below.is_empty() { "." } else { below })
    }

    fn text_of(&self, call: &ToolCall) -> String {
        let text = match self.subject(call) {
            Subject::Command(_) if call.arguments.get("background").is_some_and(|it| *it != Data::Bool(false)) => {
                canonical(&call.arguments)
            }
            Subject::Command(line) => match text(call, "cwd") {
                Some(cwd) => format!("cd {cwd} && {line}"),
                None => line.to_owned(),
            },
            Subject::Path { relative, absolute } => relative.unwrap_or(absolute).to_owned(),
            Subject::Address(address) => address.to_owned(),
            Subject::Unclear | Subject::Other => canonical(&call.arguments),
        };
        text.trim().to_owned()
    }

    /// Says what policies make of the call.
    pub fn judged(&self, policies: &[Policy], call: &ToolCall) -> Verdict {
        let inside = |path: &str| {
            let path = self.folder.join(path);
            let real = if self.is_here { resolved(&path) } else { lexical(&path) };
            real.is_some_and(|path| path.starts_with(&self.workspace))
        };
        let (subject, text, arguments) = (self.subject(call), &self.text, &self.arguments);
        judge(policies, &Call { tool: &call.name, subject, text, arguments, inside: &inside })
    }

    /// Returns, on one line, what the call is about.
    pub fn what(&self, call: &ToolCall) -> String {
        let mut line = String::new();
        for c in self.text.chars().take(WHAT) {
            if c.is_control() { line.extend(c.escape_default()) } else { line.push(c) }
        }
        let more = if self.text.chars().nth(WHAT).is_some() { " …" } else { "" };
        format!("{} {line}{more}", call.name)
    }
}

fn text<'a>(call: &'a ToolCall, name: &str) -> Option<&'a str> {
    call.arguments.get(name).and_then(Data::as_str).filter(|text| !text.is_empty())
}

/// Returns arguments as a text that does not depend on their order.
fn canonical(arguments: &Object) -> String {
    let mut arguments = Data::Object(arguments.clone());
    arguments.sort_all_objects();
    arguments.to_string()
}

fn hash(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.len().to_le_bytes());
        hash.update(part);
    }
    format!("{:x}", hash.finalize())
}

fn argv(line: &str) -> Option<Vec<String>> {
    let reading = commands::read(line);
    let [command] = reading.commands.as_slice() else { return None };
    let words: Option<Vec<String>> = command.words.iter().map(|word| word.plain().map(str::to_owned)).collect();
    words.filter(|_| command.stands && reading.obscure.is_none())
}

/// Returns arguments with their long texts cut.
pub(super) fn shortened(arguments: &Object) -> Object {
    let shorten = |(name, value): (&String, &Data)| {
        let value = match value {
            Data::String(text) if text.len() > SHOWN => {
                let start = text.get(..text.floor_char_boundary(SHOWN)).unwrap_or_default();
                Data::String(format!("{start}… [{} bytes in all]", text.len()))
            }
            value => value.clone(),
        };
        (name.clone(), value)
    };
    let shown: Object = arguments.iter().map(shorten).collect();
    if Data::Object(shown.clone()).to_string().len() <= ARGUMENTS { shown } else { Object::new() }
}

/// Returns where a path leads, links followed; its last parts need not be there.
fn resolved(path: &Path) -> Option<PathBuf> {
    let (mut at, mut missing) = (path.to_owned(), Vec::new());
    loop {
        match fs::canonicalize(&at) {
            Ok(real) => return Some(missing.iter().rev().fold(real, |path: PathBuf, name| path.join(name))),
            // A link that leads nowhere, or a way back from what is not there: that may be anywhere tomorrow.
            Err(why) if why.kind() != ErrorKind::NotFound || at.is_symlink() => return None,
            Err(_) => missing.push(at.file_name()?.to_owned()),
        }
        at.pop();
    }
}

/// Returns a path of another machine without its `.` and, as links there are not known, with no `..`.
fn lexical(path: &Path) -> Option<PathBuf> {
    let up = path.components().any(|part| part == std::path::Component::ParentDir);
    (!up).then(|| path.components().collect())
}
