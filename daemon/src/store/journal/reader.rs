//! Reading the journal back, line by line; what is missing is told by its numbers.

use std::fmt;
use std::sync::Arc;

use super::super::disk::Folder;
use super::line::Line;
use super::segment::{self, SegmentLines};

/// Lines that are lost: they were on disk once and cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The number of the first.
    pub first: u64,
    /// The number of the last.
    pub last: u64,
    /// What the system says, or where they would be.
    pub why: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, to: &mut fmt::Formatter) -> fmt::Result {
        write!(to, "lines {} to {} of the journal: {}", self.first, self.last, self.why)
    }
}

/// Reads a journal as it was when this was made; it does not hold the writer, and may go on while more is appended.
#[derive(Clone)]
pub struct Reader {
    pub(super) folder: Arc<dyn Folder>,
    /// The number of the first line of each segment.
    pub(super) segments: Vec<u64>,
    pub(super) last: u64,
}

impl Reader {
    /// Returns the number of the newest line.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Returns the lines after line `after` up to line `through`, one in memory at a time.
    pub fn lines(&self, after: u64, through: u64) -> Lines {
        let (next, through) = (after.saturating_add(1), through.min(self.last));
        let limits = self.segments.iter().skip(1).copied().chain([u64::MAX]).map(|limit| limit.min(through + 1));
        let spans = self.segments.iter().copied().zip(limits);
        let spans: Vec<_> = spans.filter(|(first, limit)| first < limit && *limit > next).collect();
        Lines {
            folder: self.folder.clone(),
            spans: spans.into_iter(),
            segment: None,
            next,
            through,
            waiting: None,
            why: None,
        }
    }
}

/// Lines of the journal in order, with what is missing between them.
pub struct Lines {
    folder: Arc<dyn Folder>,
    /// The segments to come: first line, and the first that is not in it any more.
    spans: std::vec::IntoIter<(u64, u64)>,
    segment: Option<SegmentLines>,
    next: u64,
    through: u64,
    /// A line before which others are missing.
    waiting: Option<Line>,
    why: Option<String>,
}

impl Iterator for Lines {
    type Item = Result<Line, Damage>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next > self.through {
            return None;
        }
        match self.waiting.take().or_else(|| self.read()) {
            Some(line) if line.number == self.next => {
                self.next += 1;
                self.why = None;
                Some(Ok(line))
            }
            Some(line) => {
                let last = line.number - 1;
                self.waiting = Some(line);
                Some(Err(self.lost(last)))
            }
            None => Some(Err(self.lost(self.through))),
        }
    }
}

impl Lines {
    fn lost(&mut self, last: u64) -> Damage {
        let why = self.why.take().unwrap_or_else(|| "no segment has them whole".into());
        let first = std::mem::replace(&mut self.next, last + 1);
        Damage { first, last, why }
    }

    /// Returns the next line that can be read.
    fn read(&mut self) -> Option<Line> {
        loop {
            match self.segment.as_mut().map(SegmentLines::next) {
                Some(Ok(Some(placed))) => return Some(placed.line),
                Some(Err(why)) => self.why = Some(why.to_string()),
                Some(Ok(None)) | None => {}
            }
            let (first, limit) = self.spans.next()?;
            self.segment = match self.folder.open(&segment::name(first)) {
                Ok(file) => Some(SegmentLines::new(file, self.next.max(first), limit)),
                Err(why) => {
                    self.why = Some(format!("{}: {why}", segment::name(first)));
                    None
                }
            };
        }
    }
}
