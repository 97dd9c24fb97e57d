//! What a shell expands: variables, substitutions and double quotes.

use super::reader::{DEPTH, Reader};
use super::{Known, Word};

impl Reader {
    /// Reads on from a `$`.
    pub(super) fn dollar(&mut self, word: &mut Word, in_quotes: bool) {
        self.at += 1;
        word.known = Known::Expands;
        word.text.push('\0');
        self.depth += 1;
        if self.depth > DEPTH {
            self.is_obscure("it is nested too deep");
            self.at = self.chars.len();
        }
        self.expansion(in_quotes);
        self.depth -= 1;
    }

    fn expansion(&mut self, in_quotes: bool) {
        match self.peek() {
            Some('(') if self.computes() => {}
            Some('(') => {
                self.at += 1;
                self.shell_in_parentheses();
            }
            Some('[') if !in_quotes => {
                // Shells differ in how they read this, too; this is how bash does.
                self.is_obscure("it computes in brackets");
                while self.peek().is_some_and(|c| c != ']') && self.piece_of_text(None).is_some() {}
            }
            Some('{') => {
                self.at += 1;
                self.braces();
            }
            Some('\'') if !in_quotes => {
                // Shells differ in how they read this.
                self.is_obscure("it has a quote behind a $");
                self.at += 1;
                while let Some(c) = self.next().filter(|c| *c != '\'') {
                    self.at += usize::from(c == '\\');
                }
            }
            Some(c) if c.is_ascii_alphanumeric() || c == '_' => {
                while self.peek().is_some_and(|c| c.is_ascii_alphanumeric() || c == '_') {
                    self.at += 1;
                }
            }
            Some('?' | '!' | '#' | '@' | '*' | '-' | '$') => self.at += 1,
            _ => {}
        }
    }

    /// Reads a computation in double parentheses; where they do not close as one, nothing: they are two shells then.
    pub(super) fn computes(&mut self) -> bool {
        let from = self.at;
        if !self.eat("((") {
            return false;
        }
        let mut open = 2;
        while open > 0 {
            match self.peek() {
                Some('$') => self.dollar(&mut Word::unknown(), true),
                Some('`') => self.backticks(&mut Word::unknown()),
                Some(')') if open == 2 => {
                    if !self.eat("))") {
                        break;
                    }
                    open = 0;
                }
                Some(c) => {
                    self.at += 1;
                    open += i32::from(c == '(') - i32::from(c == ')');
                }
                None => break,
            }
        }
        if open > 0 && self.again == 0 {
            self.is_obscure("it is nested too deep");
            self.at = self.chars.len();
            return true;
        }
        if open > 0 {
            (self.at, self.again) = (from, self.again - 1);
        }
        open == 0
    }

    /// Reads `${…}` to its end.
    fn braces(&mut self) {
        while self.peek() != Some('}') {
            if self.piece_of_text(Some('}')).is_none() {
                self.is_obscure("a brace is not closed");
                break;
            }
        }
        self.at += 1;
    }

    /// Reads what may be expanded within a text, or one character of it; none at its end.
    pub(super) fn piece_of_text(&mut self, end: Option<char>) -> Option<()> {
        match self.peek()? {
            '$' => self.dollar(&mut Word::unknown(), true),
            '`' => self.backticks(&mut Word::unknown()),
            '"' if end.is_some() => {
                self.at += 1;
                self.double(&mut Word::unknown());
            }
            '\'' if end.is_some() => {
                // Whether it quotes depends on what stands around the braces and in them.
                self.is_obscure("it has a quote in braces");
                self.at += 1;
            }
            '\\' => self.at += 2,
            _ => self.at += 1,
        }
        Some(())
    }

    /// Reads a text in double quotes, from behind the first.
    pub(super) fn double(&mut self, word: &mut Word) {
        loop {
            match self.peek() {
                Some('"') => {
                    self.at += 1;
                    return;
                }
                Some('$') => self.dollar(word, true),
                Some('`') => self.backticks(word),
                Some('\\') => {
                    self.at += 1;
                    match self.next() {
                        Some('\n') => {}
                        Some(c @ ('$' | '`' | '"' | '\\')) => word.text.push(c),
                        other => word.text.extend(std::iter::once('\\').chain(other)),
                    }
                }
                Some(c) => {
                    self.at += 1;
                    word.text.push(c);
                }
                None => return self.is_obscure("a quote is not closed"),
            }
        }
    }

    /// Reads a command in backticks.
    pub(super) fn backticks(&mut self, word: &mut Word) {
        self.at += 1;
        word.known = Known::Expands;
        word.text.push('\0');
        let mut text = String::new();
        loop {
            match self.next() {
                Some('`') => break,
                Some('\\') => match self.next() {
                    Some(c @ ('`' | '\\' | '$')) => text.push(c),
                    other => text.extend(std::iter::once('\\').chain(other)),
                },
                Some(c) => text.push(c),
                None => {
                    self.is_obscure("a backtick is not closed");
                    break;
                }
            }
        }
        self.apart(&text, |reader| reader.list(None));
    }
}
