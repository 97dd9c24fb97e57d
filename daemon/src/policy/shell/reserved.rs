//! Words that mean something to the shell itself where a command would begin.

use super::Simple;
use super::reader::Reader;

/// Words that begin a compound command: they stand before commands and are none.
const RESERVED: [&str; 9] = ["if", "then", "elif", "else", "fi", "while", "until", "do", "done"];
/// The word behind which no plain command follows.
const STRANGE: &str = "[[";
/// What may follow a name that `coproc` gives.
const COMPOUND: [&str; 9] = ["{", "(", "if", "while", "until", "for", "select", "case", "[["];

impl Reader {
    pub(super) fn word_of(&mut self, command: &mut Simple) {
        let (word, quoted) = self.word();
        let bare = word.plain().filter(|_| !quoted).unwrap_or_default();
        let is_first = command.words.is_empty();
        if is_number(bare) && matches!(self.peek(), Some('<' | '>')) {
            return;
        }
        if is_first && self.is_reserved(bare, !command.alters) {
            return;
        }
        if is_first && assigns(&word.text) {
            command.alters = true;
        } else {
            command.words.push(word);
        }
    }

    /// Tells whether a first word is none of a command; `begins`: nothing else of that stands before it.
    fn is_reserved(&mut self, bare: &str, begins: bool) -> bool {
        match bare {
            "{" | "}" | "!" => return begins,
            "-p" | "--" => return begins && self.timed,
            "time" if begins => {
                self.timed = true;
                return true;
            }
            "function" | "for" | "select" => drop(self.next_word()),
            "coproc" => self.coprocess(),
            "case" => {
                self.cases += 1;
                drop(self.next_word());
                self.skip_lines();
                drop(self.next_word());
                self.patterns();
            }
            "esac" => self.cases = self.cases.saturating_sub(1),
            _ if RESERVED.contains(&bare) => {}
            STRANGE => {
                self.is_obscure("it is a compound command");
                return false;
            }
            _ => return false,
        }
        self.is_obscure("it is a compound command");
        true
    }

    /// Skips the patterns of what comes next in a `case`, unless it ends there.
    pub(super) fn patterns(&mut self) {
        self.skip_lines();
        let before = self.at;
        if self.word().0.plain() == Some("esac") {
            self.at = before;
            return;
        }
        self.at = before;
        self.eat("(");
        self.words_until_closed();
    }

    /// Reads words that are no commands, a list's or the patterns of a `case`, to behind the closing parenthesis.
    pub(super) fn words_until_closed(&mut self) {
        loop {
            match self.peek() {
                Some(')') => {
                    self.at += 1;
                    return;
                }
                Some(' ' | '\t' | '\n' | '|') => self.at += 1,
                Some(c) if !";&<>(".contains(c) => drop(self.word()),
                _ => return self.is_obscure("a list of words is not closed"),
            }
        }
    }

    fn skip_lines(&mut self) {
        while self.peek().is_some_and(char::is_whitespace) {
            self.at += 1;
        }
    }

    fn next_word(&mut self) -> String {
        while self.eat(" ") || self.eat("\t") || self.eat("\\\n") {}
        self.word().0.text
    }

    /// Skips the name of a coprocess, if it has one.
    fn coprocess(&mut self) {
        let before = self.at;
        self.next_word();
        let behind = self.at;
        let next = self.next_word();
        let is_compound = COMPOUND.contains(&next.as_str()) || (next.is_empty() && self.peek() == Some('('));
        self.at = if is_compound { behind } else { before };
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// Tells whether a first word sets a variable.
fn assigns(text: &str) -> bool {
    let Some((name, _)) = text.split_once('=') else { return false };
    let name = name.trim_end_matches('+').split('[').next().unwrap_or_default();
    let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    !name.is_empty() && name.bytes().all(fits) && !name.as_bytes()[0].is_ascii_digit()
}
