//! Reads a command line as a POSIX shell would: which simple commands it holds, and how much of each word is certain.
//!
//! It reads more than one has to run: commands in `$(…)`, in backticks, in `<(…)` and in the text of a here-document are
//! found too. Quoted text is text. What it cannot read for certain it calls obscure, it never guesses.

mod expand;
mod reader;
mod reserved;

/// How much of a word is known before the shell has expanded it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Known {
    /// All of it: it is what it says.
    Plain,
    /// The names of files, or several words, take its place.
    Globs,
    /// A variable's value or a command's output is in it.
    Expands,
}

/// A word with its quotes removed; a NUL stands for what is not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// Its text.
    pub text: String,
    /// How much of that is certain.
    pub known: Known,
}

impl Word {
    /// Makes a word that may be anything.
    pub fn unknown() -> Self {
        Self { text: "\0".into(), known: Known::Expands }
    }

    /// Returns the text where all of it is certain.
    pub fn plain(&self) -> Option<&str> {
        (self.known == Known::Plain).then_some(self.text.as_str())
    }
}

/// A command without operators.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Simple {
    /// Its words; empty for a lone assignment.
    pub words: Vec<Word>,
    /// Whether it sets variables or redirects anything.
    pub alters: bool,
    /// The files that it is redirected into.
    pub targets: Vec<Word>,
}

/// A step of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// A shell of its own begins: what it changes of itself ends with it.
    Enter,
    /// It ends.
    Leave,
    /// A command.
    Run(Simple),
}

/// A command line as it was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Script {
    /// What it does, in order.
    pub items: Vec<Item>,
    /// Why its commands are not certain to be all there are.
    pub obscure: Option<&'static str>,
}

/// Reads a command line.
pub fn read(text: &str) -> Script {
    reader::Reader::new(text, 0).read()
}

#[cfg(test)]
mod tests;
