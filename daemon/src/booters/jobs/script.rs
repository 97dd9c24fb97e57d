//! The shell text that a job is made, watched and ended with, and what it says back. Pure text.
//!
//! A job is a folder `.nanod/jobs/ID` in the computer's workspace: `cmd` is its text, `out` what it printed, `pid` its
//! process group, `rc` its exit status once it has ended. Whatever it started carries its id in the environment, by
//! which all of it is found again, and the workspace with the daemon's run. `job.sh` needs a POSIX shell and its usual company; `setsid` helps, but may be missing.

use std::path::PathBuf;
use std::time::Duration;

use crate::sandbox::output::{HEAD, Output, TAIL};
pub use crate::sandbox::service::quoted;

/// How many bytes of a text go into one command line, of which Linux takes 128 KiB: quoting makes at most four of one.
const PIECE: usize = 24 * 1024;
const SCRIPT: &str = include_str!("job.sh");

/// Cuts a text into pieces, one or more, that each fit into a command line.
pub fn pieces(text: &str) -> Vec<&str> {
    let (mut rest, mut pieces) = (text, Vec::new());
    while rest.len() > PIECE {
        let (piece, behind) = rest.split_at(rest.floor_char_boundary(PIECE));
        pieces.push(piece);
        rest = behind;
    }
    pieces.push(rest);
    pieces
}

/// Adds a piece to the text of a job.
pub fn put(id: &str, piece: &str) -> String {
    script(id, &format!("put {}", quoted(piece)))
}

/// What is done before a job starts.
#[derive(Debug)]
pub struct Before<'a> {
    /// The jobs whose folders are thrown away.
    pub over: &'a [String],
    /// Whether what other daemons left running is ended.
    pub sweep: bool,
}

/// Starts a job in `cwd` with the last piece of its text, and looks at it; what it starts carries the mark `run` too.
pub fn launch(id: &str, run: &str, piece: &str, cwd: &str, before: &Before<'_>, wait: Duration, show: bool) -> String {
    let over: Vec<String> = before.over.iter().map(|id| format!(" .nanod/jobs/{id}")).collect();
    let (over, piece, cwd) = (over.concat(), quoted(piece), quoted(cwd));
    let sweep = if before.sweep { "sweep\n" } else { "" };
    let look = look_line(wait, show);
    script(id, &format!("run={run}\n{sweep}rm -rf{over}\nput {piece} || exit\nlaunch {cwd}\n{look}"))
}

/// Waits so long for a job's end and looks at it.
pub fn look(id: &str, wait: Duration) -> String {
    script(id, &look_line(wait, false))
}

/// Ends a job with all that it started, keeps one from starting that has not yet, and looks at it.
pub fn stop(id: &str) -> String {
    script(id, &format!("stop\n{}", look_line(Duration::ZERO, true)))
}

fn look_line(wait: Duration, show: bool) -> String {
    format!("look {} {}", wait.as_millis() / 100, if show { "show" } else { "-" })
}

fn script(id: &str, acts: &str) -> String {
    format!("id={id} head={HEAD} tail={TAIL}\n{SCRIPT}{acts}\n")
}

/// How far a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It runs.
    Running,
    /// It ended with this status.
    Exited(i32),
    /// It is not there any more, and left no status.
    Dead,
    /// The folder that it was to start in is not there.
    Nowhere,
}

/// One look at a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// How far it is.
    pub state: State,
    /// How many of the processes that it started are alive.
    pub left: usize,
    /// The file over there that it prints into.
    pub out: PathBuf,
    size: u64,
    head: Vec<u8>,
    tail: Vec<u8>,
}

impl Look {
    /// Reads what the script about the job `id` said; none where it is not that.
    pub fn read(id: &str, said: &str) -> Option<Self> {
        let mark = format!("nanod-{id} ");
        let mut pieces = said.split(mark.as_str()).skip(1);
        let mut words = pieces.next()?.trim_end_matches('\n').splitn(4, ' ');
        let state = match words.next()? {
            "running" => State::Running,
            "dead" => State::Dead,
            "nowhere" => State::Nowhere,
            code => State::Exited(code.parse().ok()?),
        };
        let (left, size) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let mut look = Self { state, left, out: words.next()?.into(), size, head: Vec::new(), tail: Vec::new() };
        for (kind, bytes) in pieces.filter_map(part) {
            *(if kind == "tail" { &mut look.tail } else { &mut look.head }) = bytes;
        }
        Some(look)
    }

    /// Makes one of a job that is gone, of which there is only this to say.
    pub fn nothing(words: String) -> Self {
        let (size, head) = (words.len() as u64, words.into_bytes());
        Self { state: State::Dead, left: 0, out: PathBuf::new(), size, head, tail: Vec::new() }
    }

    /// Returns what it printed, as far as it was told.
    pub fn output(&self) -> Output {
        // A short output is told whole; then its parts count, whatever the server did to them on the way.
        let told = (self.head.len() + self.tail.len()) as u64;
        let total = if self.size <= (HEAD + TAIL) as u64 { told } else { self.size };
        Output::elsewhere(self.out.clone(), &self.head, &self.tail, total)
    }
}

/// Reads a part of the output: which it is, and its bytes.
fn part(piece: &str) -> Option<(&str, Vec<u8>)> {
    let (first, body) = piece.split_once('\n')?;
    let (kind, form) = first.split_once(' ')?;
    let body = body.strip_suffix('\n').unwrap_or(body);
    Some((kind, if form == "hex" { unhexed(body)? } else { body.as_bytes().to_vec() }))
}

fn unhexed(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u32> = text.trim().chars().map(|one| one.to_digit(16)).collect::<Option<_>>()?;
    digits.chunks(2).map(|pair| u8::try_from(pair.iter().fold(0, |sum, digit| sum * 16 + digit)).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::{Look, PIECE, State, pieces, quoted, unhexed};

    #[test]
    fn looks_are_read() {
        let check = |said: &str, expected: Option<(State, usize, &str)>| {
            let look = Look::read("A", said);
            let found = look.map(|look| (look.state, look.left, look.output().render().0));
            assert_eq!(found, expected.map(|(state, left, text)| (state, left, text.to_owned())), "{said}");
        };
        let whole = |body: &str| format!("nanod-A 3 0 5 /w o/out\nnanod-A head {body}\nnanod-A end");
        check(&whole("text\nhi\n\n"), Some((State::Exited(3), 0, "hi\n\n")));
        check(&whole("text\n"), Some((State::Exited(3), 0, "")));
        check(&whole("hex\nc3a40a"), Some((State::Exited(3), 0, "ä\n")));
        check(
            "nanod-A running 2 900000 /o\nnanod-A end",
            Some((State::Running, 2, "\n[… 900000 bytes left out; the whole output is in /o …]\n")),
        );
        check("nanod-A nowhere 0 0 x", Some((State::Nowhere, 0, "")));
        for bad in ["", "sh: not found", "nanod-B 0 0 0 /o", "nanod-A x 0 0 /o", "nanod-A 0"] {
            check(bad, None);
        }
    }

    #[test]
    fn words_survive_the_shell() {
        assert_eq!(quoted("a'b $x"), r"'a'\''b $x'");
        let text = "ä'".repeat(PIECE);
        let cut = pieces(&text);
        assert!(cut.len() > 1 && cut.iter().all(|piece| quoted(piece).len() < 128 * 1024) && cut.concat() == text);
        assert_eq!(pieces(""), [""]);
        assert_eq!(unhexed("ff0"), Some(vec![255, 0]));
        assert_eq!(unhexed("zz"), None);
    }
}
