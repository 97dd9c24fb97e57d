//! The commands that a command line comes to: those it names, and those that others of them run.

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

/// What a command runs.
enum Inner {
    Nothing,
    Command(Vec<Word>),
    Script(String),
    Unseen(&'static str),
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
                    if let ("cd" | "pushd" | "popd", Some(last)) = (name(&words), folders.last_mut()) {
                        *last = moved(here.as_deref(), &words);
                    }
                    self.command(Command { words, stands: !alters, targets, folder: here }, depth);
                }
            }
        }
    }

    fn command(&mut self, mut command: Command, depth: usize) {
        let inner = inner(&command.words);
        command.stands &= matches!(inner, Inner::Nothing) && !command.words.is_empty();
        let folder = command.folder.clone();
        if command.words.first().is_some_and(|first| first.known != Known::Plain) {
            self.obscure.get_or_insert("what it runs is not written out");
        }
        self.commands.push(command);
        match inner {
            Inner::Nothing => {}
            _ if depth >= DEPTH => self.obscure = self.obscure.or(Some("it is nested too deep")),
            Inner::Command(words) => {
                let inner = Command { words, stands: false, targets: Vec::new(), folder };
                self.command(inner, depth + 1);
            }
            Inner::Script(text) => {
                let before = self.commands.len();
                self.script(&text, folder, depth + 1);
                self.commands.iter_mut().skip(before).for_each(|command| command.stands = false);
            }
            Inner::Unseen(why) => self.obscure = self.obscure.or(Some(why)),
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

/// Programs that run another one: its options that take a value, and how many operands stand before the command.
const RUNNERS: &[(&str, &str, usize)] = &[
    ("env", "-u --unset -C --chdir", 0),
    ("sudo", "-u -g -h -p -C -r -t -D -R -T -U", 0),
    ("doas", "-u -C", 0),
    ("command", "", 0),
    ("builtin", "", 0),
    ("exec", "-a", 0),
    ("time", "-f -o", 0),
    ("nohup", "", 0),
    ("setsid", "", 0),
    ("nice", "-n", 0),
    ("ionice", "-c -n -p", 0),
    ("chrt", "", 1),
    ("taskset", "", 1),
    ("timeout", "-s -k --signal --kill-after", 1),
    ("stdbuf", "-i -o -e", 0),
    ("chroot", "", 1),
    ("unshare", "", 0),
    ("strace", "-e -o -p -s", 0),
    ("watch", "-n", 0),
    ("xargs", "-I -n -P -L -d -a -E -s", 0),
    ("parallel", "-j", 0),
    ("busybox", "", 0),
    ("toybox", "", 0),
];
const SHELLS: [&str; 8] = ["sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish"];

fn inner(words: &[Word]) -> Inner {
    let name = name(words);
    if let Some((_, takes, skip)) = RUNNERS.iter().find(|(runner, ..)| *runner == name) {
        return run_by(name, takes, *skip, words);
    }
    match name {
        "find" => found(words),
        "eval" => script_of(words.get(1..).unwrap_or_default()),
        "source" | "." => Inner::Unseen("it reads a script"),
        "alias" | "trap" => Inner::Unseen("it defines commands"),
        _ if SHELLS.contains(&name) => shell(words),
        _ => Inner::Nothing,
    }
}

fn run_by(name: &str, takes: &str, skip: usize, words: &[Word]) -> Inner {
    let mut rest = words.get(1..).unwrap_or_default();
    let mut skip = skip;
    while let Some((first, behind)) = rest.split_first() {
        let text = first.plain().unwrap_or("\0");
        let split = text.strip_prefix("--split-string=").or(text.strip_prefix("-S")).filter(|_| name == "env");
        if let Some(text) = split {
            let all = [text].into_iter().map(str::to_owned);
            let all: Vec<String> = all.chain(behind.iter().map(|word| word.text.clone())).collect();
            return Inner::Script(all.join(" "));
        }
        let is_option = text.starts_with('-');
        let sets = name == "env" && text.contains('=');
        if !is_option && !sets && skip == 0 {
            break;
        }
        skip -= usize::from(!is_option && !sets);
        rest = if takes.split(' ').any(|option| option == text) { behind.get(1..).unwrap_or_default() } else { behind };
    }
    if rest.is_empty() {
        return Inner::Unseen("it may run another program");
    }
    let mut words = rest.to_vec();
    if matches!(name, "xargs" | "parallel") {
        words.push(Word::unknown());
    }
    Inner::Command(words)
}

fn found(words: &[Word]) -> Inner {
    let runs = |word: &Word| matches!(word.text.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir");
    let Some(at) = words.iter().position(runs) else {
        let writes = |word: &Word| word.text.starts_with("-fprint") || word.text == "-fls" || word.text == "-delete";
        let why = "it changes files";
        return if words.iter().any(writes) { Inner::Unseen(why) } else { Inner::Nothing };
    };
    let behind = words.get(at + 1..).unwrap_or_default();
    let end = behind.iter().position(|word| word.text == ";" || word.text == "+").unwrap_or(behind.len());
    Inner::Command(behind.iter().take(end).cloned().collect())
}

fn shell(words: &[Word]) -> Inner {
    let mut rest = words.iter().skip(1);
    while let Some(word) = rest.next() {
        let text = word.plain().unwrap_or("\0");
        if text.starts_with('-') && !text.starts_with("--") && text.contains('c') {
            return script_of(&rest.next().cloned().into_iter().collect::<Vec<_>>());
        }
        if !text.starts_with(['-', '+']) {
            break;
        }
    }
    Inner::Unseen("a shell reads what is not seen here")
}

fn script_of(words: &[Word]) -> Inner {
    if words.iter().any(|word| word.known == Known::Expands) {
        return Inner::Unseen("a shell reads what is not seen here");
    }
    Inner::Script(words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" "))
}
