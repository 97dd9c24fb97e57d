//! Commands and words, by recursive descent.

use super::{Item, Known, Script, Simple, Word};

/// Deeper nesting is not read.
pub(super) const DEPTH: usize = 24;

/// So often is read again what began as a computation and was none: within another one that doubles the work.
const AGAIN: usize = 8;

/// A here-document whose text is still to come.
struct Pending {
    end: String,
    quoted: bool,
    tabs: bool,
}

pub(super) struct Reader {
    pub(super) chars: Vec<char>,
    pub(super) at: usize,
    pub(super) depth: usize,
    pub(super) script: Script,
    /// Whether what is read now stands behind `time`.
    pub(super) timed: bool,
    /// In how many `case` commands it stands.
    pub(super) cases: usize,
    /// How often something may yet be read again.
    pub(super) again: usize,
    pending: Vec<Pending>,
}

impl Reader {
    pub(super) fn new(text: &str, depth: usize) -> Self {
        let script = Script::default();
        let chars = text.chars().collect();
        Self { chars, at: 0, depth, script, timed: false, cases: 0, again: AGAIN, pending: Vec::new() }
    }

    pub(super) fn read(mut self) -> Script {
        self.list(None);
        self.script
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let next = self.peek();
        self.at += usize::from(next.is_some());
        next
    }

    pub(super) fn eat(&mut self, text: &str) -> bool {
        let found = text.chars().enumerate().all(|(at, c)| self.chars.get(self.at + at) == Some(&c));
        self.at += if found { text.chars().count() } else { 0 };
        found
    }

    pub(super) fn is_obscure(&mut self, why: &'static str) {
        self.script.obscure.get_or_insert(why);
    }

    /// Reads a shell of its own up to its closing parenthesis.
    pub(super) fn shell_in_parentheses(&mut self) {
        self.script.items.push(Item::Enter);
        self.depth += 1;
        if self.depth > DEPTH {
            self.is_obscure("it is nested too deep");
            self.at = self.chars.len();
        } else {
            self.list(Some(')'));
        }
        self.depth -= 1;
        self.script.items.push(Item::Leave);
    }

    /// Reads commands until `end`, or the end of the text.
    pub(super) fn list(&mut self, end: Option<char>) {
        let mut command = Simple::default();
        loop {
            while self.eat(" ") || self.eat("\t") || self.eat("\\\n") {}
            let Some(c) = self.peek() else {
                if end.is_some() {
                    self.is_obscure("a parenthesis is not closed");
                }
                return self.flush(&mut command);
            };
            match c {
                '\n' => {
                    self.at += 1;
                    self.flush(&mut command);
                    self.documents();
                }
                '#' => while self.peek().is_some_and(|c| c != '\n') && self.next().is_some() {},
                '&' if self.eat("&>>") || self.eat("&>") => self.redirect(&mut command, true),
                ';' if self.cases > 0 && [";;&", ";;", ";&"].into_iter().any(|end| self.eat(end)) => {
                    self.flush(&mut command);
                    self.patterns();
                }
                ';' | '&' | '|' => {
                    self.at += 1;
                    self.flush(&mut command);
                }
                ')' => {
                    self.at += 1;
                    self.flush(&mut command);
                    if end == Some(')') {
                        return;
                    }
                    self.is_obscure("a parenthesis has no beginning");
                }
                '(' => self.parenthesis(&mut command),
                '<' | '>' => self.angle(&mut command),
                _ => self.word_of(&mut command),
            }
        }
    }

    fn flush(&mut self, command: &mut Simple) {
        let (mut command, timed) = (std::mem::take(command), std::mem::take(&mut self.timed));
        if command == Simple::default() {
            return;
        }
        if timed {
            command.alters = true;
            let is_option = |word: &Word| word.known != Known::Plain || word.text.starts_with('-');
            // Then it is the program, as some shells have no such word.
            if command.words.first().is_some_and(is_option) {
                command.words.insert(0, Word { text: "time".into(), known: Known::Plain });
            }
        }
        self.script.items.push(Item::Run(command));
    }

    fn parenthesis(&mut self, command: &mut Simple) {
        if *command == Simple::default() && self.computes() {
            self.is_obscure("it computes");
        } else if *command == Simple::default() {
            self.at += 1;
            self.shell_in_parentheses();
        } else if self.at.checked_sub(1).and_then(|before| self.chars.get(before)) == Some(&'=') {
            self.at += 1;
            self.words_until_closed();
        } else {
            self.at += 1;
            self.is_obscure("it defines a function");
            while self.eat(" ") || self.eat("\t") {}
            // What it names is not run here; it is not said where that stands alone.
            if command.words.len() == 1 && !command.alters && self.peek() == Some(')') {
                self.at += 1;
                *command = Simple::default();
            }
            self.flush(command);
        }
    }

    fn angle(&mut self, command: &mut Simple) {
        if self.eat("<(") || self.eat(">(") {
            self.shell_in_parentheses();
            command.words.push(Word::unknown());
        } else if self.eat("<<<") {
            self.redirect(command, false);
        } else if self.eat("<<-") {
            self.document(command, true);
        } else if self.eat("<<") {
            self.document(command, false);
        } else if let Some(how) = ["<>", "<&", "<", ">>", ">|", ">&", ">"].into_iter().find(|how| self.eat(how)) {
            self.redirect(command, !["<&", "<"].contains(&how));
        }
    }

    fn redirect(&mut self, command: &mut Simple, writes: bool) {
        command.alters = true;
        while self.eat(" ") || self.eat("\t") || self.eat("\\\n") {}
        let (target, _) = self.word();
        if writes {
            command.targets.push(target);
        }
    }

    fn document(&mut self, command: &mut Simple, tabs: bool) {
        command.alters = true;
        while self.eat(" ") || self.eat("\t") {}
        let (end, quoted) = self.word();
        self.pending.push(Pending { end: end.text, quoted, tabs });
    }

    /// Reads the here-documents that begin behind this line.
    fn documents(&mut self) {
        for Pending { end, quoted, tabs } in std::mem::take(&mut self.pending) {
            let mut body = String::new();
            loop {
                if self.peek().is_none() {
                    self.is_obscure("a here-document has no end");
                    break;
                }
                let mut line = String::new();
                while let Some(c) = self.next().filter(|c| *c != '\n') {
                    line.push(c);
                }
                if (if tabs { line.trim_start_matches('\t') } else { &line }) == end {
                    break;
                }
                body.extend([&line, "\n"]);
            }
            if !quoted {
                self.apart(&body, |reader| while reader.piece_of_text(None).is_some() {});
            }
        }
    }

    /// Reads a text of its own as part of this one.
    pub(super) fn apart(&mut self, text: &str, read: impl FnOnce(&mut Self)) {
        let mut inner = Self::new(text, self.depth + 1);
        if inner.depth > DEPTH {
            return self.is_obscure("it is nested too deep");
        }
        inner.again = self.again;
        read(&mut inner);
        self.again = inner.again;
        self.script.items.push(Item::Enter);
        self.script.items.append(&mut inner.script.items);
        self.script.items.push(Item::Leave);
        self.script.obscure = self.script.obscure.or(inner.script.obscure);
    }

    /// Reads one word; says whether any of it was quoted.
    pub(super) fn word(&mut self) -> (Word, bool) {
        let mut word = Word { text: String::new(), known: Known::Plain };
        let mut quoted = false;
        while let Some(c) = self.peek().filter(|c| !" \t\n;&|()<>".contains(*c)) {
            match c {
                '\'' => {
                    self.at += 1;
                    quoted = true;
                    self.single(&mut word);
                }
                '"' => {
                    self.at += 1;
                    quoted = true;
                    self.double(&mut word);
                }
                '\\' => {
                    self.at += 1;
                    quoted = true;
                    // At a line's end it joins the next one to it.
                    word.text.extend(self.next().filter(|c| *c != '\n'));
                }
                '$' => self.dollar(&mut word, false),
                '`' => self.backticks(&mut word),
                _ => self.bare(c, &mut word),
            }
        }
        if matches!(word.text.as_str(), "[" | "[[") {
            word.known = Known::Plain;
        }
        // In a script that is an argument, as well: what was expanded there is not known here.
        if word.text.contains('\0') {
            word.known = Known::Expands;
        }
        (word, quoted)
    }

    fn bare(&mut self, c: char, word: &mut Word) {
        let begins = word.text.is_empty();
        self.at += 1;
        // The program `find` has `{}` stand for a name; alone, a brace groups commands.
        let is_brace = c == '{' && !matches!(self.peek(), None | Some('}' | ' ' | '\t' | '\n'));
        if is_brace || matches!(c, '*' | '?' | '[') || (c == '~' && begins) {
            word.known = word.known.max(Known::Globs);
        }
        if c.is_control() && c != '\0' {
            self.is_obscure("it holds a control character");
        }
        word.text.push(c);
    }

    fn single(&mut self, word: &mut Word) {
        loop {
            match self.next() {
                Some('\'') => return,
                Some(c) => word.text.push(c),
                None => return self.is_obscure("a quote is not closed"),
            }
        }
    }
}
