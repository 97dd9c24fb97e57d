//! One rule: how it is written, and which calls it means.

use globset::{GlobBuilder, GlobMatcher};

use super::address::Address;
use super::commands::{self, Command};
use super::shell::{self, Item, Known, Word};
use super::{Call, Level, Subject};

/// Tools whose rules may name commands, or addresses.
const COMMANDS: [&str; 1] = ["exec"];
const ADDRESSES: [&str; 2] = ["web_fetch", "http_request"];
/// Tools whose rules may name paths.
pub const PATHS: [&str; 6] = ["read_file", "write_file", "edit_file", "list_dir", "grep", "search"];
/// Stands for a tool in the rule that says what becomes of dangerous commands.
pub const DANGEROUS: &str = "dangerous";

/// A rule.
#[derive(Debug, Clone)]
pub struct Rule {
    /// It as it was written.
    pub text: String,
    /// What it says.
    pub level: Level,
    tool: String,
    pattern: Option<Pattern>,
}

#[derive(Debug, Clone)]
enum Pattern {
    /// Words, `*` being any number of them.
    Words(Vec<String>),
    Path(GlobMatcher),
    Address(Address),
    /// The whole of what is asked for.
    Exactly(String),
    /// All arguments.
    Call(String),
}

/// How surely a rule means something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Means {
    /// Not at all.
    No,
    /// It might.
    Perhaps,
    /// It does.
    Surely,
}

impl Rule {
    /// Reads a rule; says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: String| format!("the rule \"{}\" {why}", text.escape_debug());
        let form = "must be \"TOOL: LEVEL\" or \"TOOL PATTERN: LEVEL\", LEVEL one of allow, ask, deny";
        let (what, level) = text.rsplit_once(':').ok_or_else(|| wrong(form.into()))?;
        let level = level.trim();
        let known = || wrong(format!("has the level \"{}\"; there is allow, ask, deny", level.escape_debug()));
        let level = Level::parse(level).ok_or_else(known)?;
        let what = what.trim();
        let (tool, pattern) = what.split_once(char::is_whitespace).unwrap_or((what, ""));
        if !is_tool(tool) {
            let why = "must begin with a tool's name: A-Z a-z 0-9 _ -, with * for any of these";
            return Err(wrong(why.into()));
        }
        let pattern = pattern.trim();
        let pattern = (!pattern.is_empty()).then(|| Pattern::parse(tool, pattern)).transpose().map_err(wrong)?;
        Ok(Self { text: text.to_owned(), level, tool: tool.to_owned(), pattern })
    }

    /// Returns the tool's name, where the rule means a single tool.
    pub fn tool(&self) -> Option<&str> {
        (!self.tool.contains('*') && self.tool != DANGEROUS).then_some(&self.tool)
    }

    /// Tells whether it is about calls of this tool.
    pub fn is_about(&self, tool: &str) -> bool {
        fits(&self.tool, tool)
    }

    /// Tells whether it means some calls of its tool only.
    pub fn has_pattern(&self) -> bool {
        self.pattern.is_some()
    }

    /// Tells whether it means just this call.
    pub fn is_exactly(&self, call: &Call<'_>) -> bool {
        let is = match &self.pattern {
            Some(Pattern::Exactly(text)) => *text == call.text,
            Some(Pattern::Call(arguments)) => *arguments == call.arguments,
            _ => false,
        };
        is && self.tool == call.tool
    }

    /// Tells whether it means just one call, whichever.
    pub fn is_exact(&self) -> bool {
        matches!(self.pattern, Some(Pattern::Exactly(_) | Pattern::Call(_)))
    }

    /// Tells whether it says what becomes of dangerous commands.
    pub fn is_dangerous(&self) -> bool {
        self.tool == DANGEROUS
    }

    /// Tells how surely it means one command of a command line. What allows means what stands there and nothing else;
    /// what does not means a program wherever it lies, and what may come to be it.
    pub fn means_command(&self, command: &Command) -> Means {
        let Some(Pattern::Words(pattern)) = &self.pattern else { return Means::No };
        let found = |is: bool| if is { Means::Surely } else { Means::No };
        if self.level == Level::Allow {
            return found(command.stands && surely(pattern, &command.words, covers));
        }
        let bare = Word { text: commands::name(&command.words).to_owned(), known: Known::Plain };
        let rest = command.words.get(1..).unwrap_or_default();
        let named = [std::slice::from_ref(&bare), rest].concat();
        let forms = [Some(&command.words), Some(&named).filter(|_| !bare.text.is_empty())];
        let is_known = command.words.iter().all(|word| word.known == Known::Plain);
        // Behind the words that a last `*` follows may stand what will.
        let begins = |words: &[Word]| match pattern.split_last() {
            Some((last, first)) if last == "*" => words.get(..first.len()).is_some_and(|all| surely(first, all, fits)),
            _ => false,
        };
        if forms.iter().flatten().any(|words| begins(words) || is_known && surely(pattern, words, fits)) {
            return Means::Surely;
        }
        if forms.iter().flatten().any(|words| perhaps(pattern, words)) { Means::Perhaps } else { Means::No }
    }

    /// Tells how surely it means a call that is no command line.
    pub fn means(&self, subject: &Subject<'_>) -> Means {
        let found = |is: bool| if is { Means::Surely } else { Means::No };
        match (&self.pattern, subject) {
            (Some(Pattern::Path(glob)), Subject::Path { relative, absolute }) => {
                found(glob.is_match(absolute) || relative.is_some_and(|path| glob.is_match(path)))
            }
            (Some(Pattern::Path(_)), Subject::Unclear) => Means::Perhaps,
            (Some(Pattern::Address(pattern)), Subject::Address(address)) => {
                pattern.means(address, self.level == Level::Allow)
            }
            _ => Means::No,
        }
    }

    /// Tells whether its pattern names commands.
    pub fn names_commands(&self) -> bool {
        matches!(self.pattern, Some(Pattern::Words(_)))
    }
}

impl Pattern {
    fn parse(tool: &str, text: &str) -> Result<Self, String> {
        if let Some(exactly) = text.strip_prefix("= ") {
            return Ok(Self::Exactly(exactly.trim().to_owned()));
        }
        if let Some(arguments) = text.strip_prefix("== ") {
            return Ok(Self::Call(arguments.trim().to_owned()));
        }
        match () {
            () if COMMANDS.contains(&tool) => words(text).map(Self::Words),
            () if PATHS.contains(&tool) => {
                let text = text.strip_prefix("./").unwrap_or(text);
                let glob = GlobBuilder::new(text).literal_separator(true).build();
                let glob = glob.map_err(|why| format!("has a bad glob: {}", why.kind()))?;
                Ok(Self::Path(glob.compile_matcher()))
            }
            () if ADDRESSES.contains(&tool) => Address::parse(text).map(Self::Address),
            () => {
                let all = [&COMMANDS[..], &PATHS, &ADDRESSES].concat().join(", ");
                Err(format!("has a pattern; only rules of {all} can have one"))
            }
        }
    }
}

/// Reads the words of a pattern: quoted as for a shell.
fn words(text: &str) -> Result<Vec<String>, String> {
    let bad = || "must hold one command: words, quoted as for a shell, with * for any number of them".to_owned();
    let whole = shell::read(text);
    let [Item::Run(command)] = whole.items.as_slice() else { return Err(bad()) };
    let is_known = command.words.iter().all(|word| word.known != Known::Expands);
    if whole.obscure.is_some() || command.alters || !is_known || command.words.is_empty() {
        return Err(bad());
    }
    Ok(command.words.iter().map(|word| word.text.clone()).collect())
}

fn is_tool(name: &str) -> bool {
    (1..=64).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-*".contains(&b))
}

/// Tells whether a text fits a pattern in which `*` stands for any text.
pub(super) fn fits(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    if pattern == first {
        return rest.is_empty();
    }
    let parts: Vec<&str> = parts.collect();
    let Some((last, between)) = parts.split_last() else { return true };
    for part in between {
        let Some(at) = rest.find(part) else { return false };
        rest = rest.get(at + part.len()..).unwrap_or_default();
    }
    rest.ends_with(last)
}

/// Tells whether a word that is allowed is one of the pattern's: an address is matched as such, and in a path `*` stays
/// within a folder and never leads up.
fn covers(pattern: &str, text: &str) -> bool {
    if pattern == text || !pattern.contains('*') {
        return pattern == text;
    }
    if pattern.contains("://") {
        return Address::parse(pattern).is_ok_and(|pattern| pattern.means(text, true) == Means::Surely);
    }
    let up = |text: &str| text.split(['/', '=', ':', ',']).filter(|part| *part == "..").count();
    let (patterns, parts): (Vec<_>, Vec<_>) = (pattern.split('/').collect(), text.split('/').collect());
    let is = match patterns.as_slice() {
        [_] => fits(pattern, text),
        _ => patterns.len() == parts.len() && patterns.iter().zip(&parts).all(|(pattern, part)| fits(pattern, part)),
    };
    is && up(text) <= up(pattern)
}

/// Tells whether words are those of the pattern, whatever the shell makes of them: what it expands stands in a `*` alone.
fn surely(pattern: &[String], words: &[Word], is: fn(&str, &str) -> bool) -> bool {
    let Some((one, rest)) = pattern.split_first() else { return words.is_empty() };
    if one == "*" {
        let known = words.iter().take_while(|word| word.known != Known::Expands).count();
        return ends(words, known).any(|left| surely(rest, left, is));
    }
    let Some((word, behind)) = words.split_first() else { return false };
    word.plain().is_some_and(|text| is(one, text)) && surely(rest, behind, is)
}

/// Tells whether words may come to be those of the pattern.
fn perhaps(pattern: &[String], words: &[Word]) -> bool {
    // What is expanded may come to nothing.
    let Some((one, rest)) = pattern.split_first() else { return words.iter().all(|word| word.known == Known::Expands) };
    if words.first().is_some_and(|word| word.known != Known::Plain) {
        return true;
    }
    if one == "*" {
        return ends(words, words.len()).any(|left| perhaps(rest, left));
    }
    words.split_first().is_some_and(|(word, behind)| fits(one, &word.text) && perhaps(rest, behind))
}

/// Returns what is left of words behind so many of them, for each number up to `most`, from the end on.
fn ends(words: &[Word], most: usize) -> impl Iterator<Item = &[Word]> {
    (0..=most).rev().filter_map(|count| words.get(count..))
}
