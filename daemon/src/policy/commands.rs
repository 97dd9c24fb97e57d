//! The commands that a command line comes to: those it names, and those that others of them run.

use super::runners::{self, Inner};
use super::shell::{self, Item, Known, Simple, Word};

/// Scripts within scripts are read so deep.
const DEPTH: usize = 8;

/// A command that is run, by the shell or by another command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// Its program and arguments.
    pub words: Vec<Word>,
    /// Whether the shell runs it just as it stands: nothing is set, redirected or run by it.
    pub stands: bool,
    /// Files that it is redirected into.
    pub targets: Vec<Word>,
    /// The folder it runs in, relative to that of the command line or absolute, where that is known.
    pub folder: Option<String>,
}

impl Command {
    /// Returns the program's name without its folder; empty where it is not known.
    pub fn name(&self) -> &str {
        name(&self.words)
    }
}

/// Returns a command's name without its folder.
pub fn name(words: &[Word]) -> &str {
    let first = words.first().and_then(Word::plain).unwrap_or_default();
    first.rsplit('/').next().unwrap_or_default()
}

/// A command line as it was understood.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reading {
    /// Every command that is known to be run.
    pub commands: Vec<Command>,
    /// Why there may be others.
    pub obscure: Option<&'static str>,
}

/// Reads a command line.
pub fn read(text: &str) -> Reading {
    let mut reading = Reading::default();
    reading.script(text, Some(String::new()), 0);
    reading
}

impl Reading {
    fn script(&mut self, text: &str, folder: Option<String>, depth: usize) {
        let script = shell::read(text);
        self.obscure = self.obscure.or(script.obscure);
        let mut folders = vec![folder];
        for item in script.items {
            let here = folders.last().cloned().flatten();
            match item {
                Item::Enter => folders.push(here),
                Item::Leave => drop(folders.pop()),
                Item::Run(simple) => {
                    let Simple { words, alters, targets } = simple;
                    let bare = words.iter().position(|word| !matches!(word.text.as_str(), "command" | "builtin"));
                    let moves = words.get(bare.unwrap_or_default()..).unwrap_or_default();
                    if let ("cd" | "pushd" | "popd", Some(last)) = (name(moves), folders.last_mut()) {
                        *last = moved(here.as_deref(), moves);
                    }
                    self.command(Command { words, stands: !alters, targets, folder: here }, depth);
                }
            }
        }
    }

    fn command(&mut self, mut command: Command, depth: usize) {
        let inner = runners::inner(&command.words);
        command.stands &= inner.is_empty() && !command.words.is_empty();
        let folder = command.folder.clone();
        if command.words.first().is_some_and(|first| first.known != Known::Plain) {
            self.obscure.get_or_insert("what it runs is not written out");
        }
        self.commands.push(command);
        for inner in inner {
            self.inner(inner, folder.clone(), depth + 1);
        }
    }

    fn inner(&mut self, inner: Inner, folder: Option<String>, depth: usize) {
        match inner {
            Inner::Unseen(why) => self.obscure = self.obscure.or(Some(why)),
            _ if depth > DEPTH => self.obscure = self.obscure.or(Some("it is nested too deep")),
            Inner::Command { words, moves } => {
                let folder = folder.filter(|_| !moves);
                self.command(Command { words, stands: false, targets: Vec::new(), folder }, depth);
            }
            Inner::Script(text) => {
                let before = self.commands.len();
                self.script(&text, folder, depth);
                self.commands.iter_mut().skip(before).for_each(|command| command.stands = false);
            }
        }
    }
}

/// Returns where `cd` leads.
fn moved(from: Option<&str>, words: &[Word]) -> Option<String> {
    let [_, to] = words else { return None };
    let to = to.plain().filter(|to| !to.starts_with('-') && !to.is_empty())?;
    if to.starts_with('/') { Some(to.to_owned()) } else { from.map(|from| joined(from, to)) }
}

/// Returns `path` as seen from a folder.
pub fn joined(folder: &str, path: &str) -> String {
    if folder.is_empty() || path.starts_with('/') { path.to_owned() } else { format!("{folder}/{path}") }
}
