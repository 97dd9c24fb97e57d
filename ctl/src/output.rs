//! Where words go: the answer to stdout, everything else to stderr; how each looks depends on who reads it.

use std::io::{self, IsTerminal as _, Write as _};

use nano_protocol::event::EventType;

use crate::cli::Global;
use crate::visible::{one_line, visible};

/// What is known about stdout and stderr, and what the person asked for.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "seven independent facts, each read on its own")]
pub struct Output {
    /// Whether the daemon's answers are passed on as they are.
    pub json: bool,
    /// Whether stdout is a terminal.
    pub terminal: bool,
    /// Whether a line of stderr may be drawn over.
    pub live: bool,
    /// Whether a person reads stderr, and could answer.
    pub person: bool,
    /// Whether nothing but the answer is wanted.
    pub quiet: bool,
    /// Whether more is wanted.
    pub verbose: bool,
    colour: bool,
}

/// How a piece of text stands out.
#[derive(Debug, Clone, Copy)]
pub enum Style {
    /// It went well.
    Good,
    /// It did not.
    Bad,
    /// It is beside the point.
    Faint,
}

impl Output {
    /// Looks at stdout, stderr and the flags.
    pub fn new(global: &Global) -> Self {
        let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let stderr_terminal = io::stderr().is_terminal();
        let person = stderr_terminal && !global.quiet && !global.json;
        Self {
            json: global.json,
            terminal: io::stdout().is_terminal(),
            live: person && !dumb,
            person,
            quiet: global.quiet,
            verbose: global.verbose,
            colour: stderr_terminal && !dumb && !global.no_color && !set("NO_COLOR"),
        }
    }

    /// Returns the types of events to ask for: who names that of questions says that somebody is there to answer.
    pub fn types(&self) -> Option<Vec<EventType>> {
        self.person.then(|| EventType::ALL.to_vec())
    }

    /// Writes `text` to stdout, ending with a line feed: in one write, so that two programs with one pipe never mix lines.
    pub fn answer(&self, text: &str) -> io::Result<()> {
        if text.ends_with('\n') { self.piece(text) } else { self.piece(&format!("{text}\n")) }
    }

    /// Writes `text` to stdout at once: as it is where a program reads, made harmless on a terminal.
    pub fn piece(&self, text: &str) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        if self.terminal {
            stdout.write_all(visible(text).as_bytes())?;
        } else {
            stdout.write_all(text.as_bytes())?;
        }
        stdout.flush()
    }

    /// Writes one line to stderr, unless quiet.
    pub fn note(&self, text: &str) {
        if !self.quiet && !self.json {
            raw_note(&format!("{}\n", one_line(text)));
        }
    }

    /// Writes one line to stderr, unless quiet: something that the answer does not tell, not even as JSON.
    pub fn warn(&self, text: &str) {
        if !self.quiet {
            raw_note(&format!("{}\n", one_line(text)));
        }
    }

    /// Writes one line with a coloured mark before it to stderr, unless quiet.
    pub fn marked(&self, style: Style, mark: &str, text: &str) {
        if !self.quiet && !self.json {
            raw_note(&format!("{} {}\n", self.paint(style, mark), one_line(text)));
        }
    }

    /// Draws `text` over the current line of stderr; empty text wipes it.
    pub fn redraw(&self, text: &str) {
        raw_note(&format!("\r\x1b[K{}", self.paint(Style::Faint, &one_line(text))));
    }

    fn paint(&self, style: Style, text: &str) -> String {
        if !self.colour || text.is_empty() {
            return text.to_owned();
        }
        let code = match style {
            Style::Good => 32,
            Style::Bad => 31,
            Style::Faint => 2,
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

/// Writes one line of an error to stderr, whatever was asked for: it stands before the line that says what became of it.
pub fn complain(text: &str) {
    raw_note(&format!("{}\n", one_line(text)));
}

/// Returns how many columns the terminal on stdout or stderr has.
pub fn columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).or_else(|_| rustix::termios::tcgetwinsize(io::stderr()));
    size.ok().map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// A stderr that is gone is no reason to fail: the answer and the exit code still count.
fn raw_note(text: &str) {
    drop(io::stderr().lock().write_all(text.as_bytes()));
}
