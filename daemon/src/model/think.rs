//! Reasoning that a model prints as `<think>…</think>` at the very start of its text, told apart from the answer.

use super::Delta;

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";
/// How long a blank start is held back; beyond, it is the answer's.
const MAX_START: usize = 64;

/// Splits text that comes in pieces; tags may be split over them.
#[derive(Debug, Default)]
pub struct Splitter {
    state: State,
    /// The answer, without the reasoning.
    text: String,
    /// What was read before the answer began: the start until it is known what it is, then the reasoning.
    held: String,
    /// How much of `held` was given away.
    given: usize,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing but what may become the tag.
    #[default]
    Start,
    /// Between the tags.
    Thinking,
    /// Behind the closing tag, only blanks so far.
    After,
    /// In the answer.
    Answer,
}

impl Splitter {
    /// Takes a piece and returns what can be shown now.
    pub fn push(&mut self, piece: &str) -> Vec<Delta> {
        match self.state {
            State::Start => self.start(piece),
            State::Thinking => self.think(piece),
            State::After => self.after(piece),
            State::Answer => self.answer(piece),
        }
    }

    /// Returns the answer; reasoning that was never closed is one, so that nothing is lost.
    pub fn finish(self) -> String {
        match self.state {
            State::Start | State::Thinking => self.held,
            State::After | State::Answer => self.text,
        }
    }

    fn start(&mut self, piece: &str) -> Vec<Delta> {
        self.held.push_str(piece);
        let head = self.held.trim_start();
        if head.starts_with(OPEN) {
            self.state = State::Thinking;
            self.given = self.held.len() - head.len() + OPEN.len();
            return self.think("");
        }
        if OPEN.starts_with(head) && self.held.len() <= MAX_START {
            return Vec::new();
        }
        self.state = State::Answer;
        let held = std::mem::take(&mut self.held);
        self.answer(&held)
    }

    fn think(&mut self, piece: &str) -> Vec<Delta> {
        self.held.push_str(piece);
        let open = self.held.get(self.given..).unwrap_or_default();
        let (thought, rest) = match open.split_once(CLOSE) {
            Some((thought, rest)) => (thought, Some(rest.to_owned())),
            None => (open.strip_suffix(tag_at_end(open)).unwrap_or(open), None),
        };
        self.given += thought.len();
        let thought = thought.to_owned();
        let mut deltas: Vec<Delta> = (!thought.is_empty()).then_some(Delta::Reasoning(thought)).into_iter().collect();
        if let Some(rest) = rest {
            self.state = State::After;
            deltas.extend(self.after(&rest));
        }
        deltas
    }

    fn after(&mut self, piece: &str) -> Vec<Delta> {
        let piece = piece.trim_start();
        if !piece.is_empty() {
            self.state = State::Answer;
        }
        self.answer(piece)
    }

    fn answer(&mut self, piece: &str) -> Vec<Delta> {
        self.text.push_str(piece);
        (!piece.is_empty()).then(|| Delta::Text(piece.to_owned())).into_iter().collect()
    }
}

/// Returns the end of `text` that may be the beginning of the closing tag.
fn tag_at_end(text: &str) -> &str {
    let tail = |start: &usize| text.get(*start..).filter(|tail| CLOSE.starts_with(tail));
    (text.len().saturating_sub(CLOSE.len() - 1)..text.len()).find_map(|start| tail(&start)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{Delta, Splitter};

    fn check(pieces: &[&str], reasoning: &str, answer: &str) {
        let mut splitter = Splitter::default();
        let (mut thought, mut text) = (String::new(), String::new());
        for delta in pieces.iter().flat_map(|piece| splitter.push(piece)) {
            match delta {
                Delta::Reasoning(piece) => thought += &piece,
                Delta::Text(piece) => text += &piece,
            }
        }
        assert_eq!((thought.as_str(), splitter.finish().as_str()), (reasoning, answer), "{pieces:?}");
        assert!(answer.ends_with(&text), "{pieces:?} showed {text:?}");
    }

    #[test]
    fn reasoning_and_answer() {
        for (text, reasoning, answer) in [
            ("plain", "", "plain"),
            ("<think>hm</think>\n\nyes", "hm", "yes"),
            ("\n <think>hm</think>yes", "hm", "yes"),
            ("<think></think>yes", "", "yes"),
            ("<think>a < b </thin </think> x</think>", "a < b </thin ", "x</think>"),
            ("see <think>x</think>", "", "see <think>x</think>"),
            ("<thin", "", "<thin"),
            ("<thing>", "", "<thing>"),
            ("<think>cut", "cut", "<think>cut"),
            ("<think>é技</think>é", "é技", "é"),
            ("  two", "", "  two"),
            ("", "", ""),
        ] {
            check(&[text], reasoning, answer);
            let letters: Vec<String> = text.chars().map(String::from).collect();
            check(&letters.iter().map(String::as_str).collect::<Vec<_>>(), reasoning, answer);
        }
    }
}
