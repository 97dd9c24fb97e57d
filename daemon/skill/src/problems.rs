//! What a reader is told, in the order of the file and never too much of it.

use nano_protocol::skill::Problem;

/// A line and a character in a file, both from 1.
pub type At = (usize, usize);

/// How many problems a document can have.
const MOST: usize = 50;
/// How many are gathered before the last ones are thrown away.
const GATHERED: usize = 2000;

/// The problems of one document while it is read.
#[derive(Debug, Default)]
pub struct Problems {
    list: Vec<Problem>,
    dropped: usize,
}

/// Returns a problem with its place.
pub fn problem((line, column): At, message: impl Into<String>) -> Problem {
    let number = |value: usize| Some(u32::try_from(value).unwrap_or(u32::MAX));
    Problem { line: number(line), column: number(column), message: message.into() }
}

impl Problems {
    /// Adds one; those furthest down the file give way.
    pub fn add(&mut self, at: At, message: impl Into<String>) {
        self.list.push(problem(at, message));
        if self.list.len() >= GATHERED {
            self.cut(MOST);
        }
    }

    /// Returns all: `reason` first, then by place.
    pub fn finish(mut self, reason: Option<Problem>) -> Vec<Problem> {
        let room = MOST - usize::from(reason.is_some());
        if self.list.len() + self.dropped > room {
            self.cut(room - 1);
            let more = format!("there are {} more problems", self.dropped);
            self.list.push(Problem { line: None, column: None, message: more });
        } else {
            self.cut(room);
        }
        reason.into_iter().chain(self.list).collect()
    }

    fn cut(&mut self, most: usize) {
        self.list.sort_by_key(|problem| (problem.line, problem.column));
        self.dropped += self.list.len().saturating_sub(most);
        self.list.truncate(most);
    }
}
