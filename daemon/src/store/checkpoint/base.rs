//! The base: the records of a checkpoint, chunk by chunk, with a second way to a chunk that cannot be read.

use super::super::disk::Folder;
use super::super::journal::line::Line;
use super::super::tail::{Record, Span, Tail};
use super::chunk;
use super::manifest::Checkpoint;

/// Hands out, in order, the lines of the journal behind a number as far as they can be read.
pub type Lines<'a> = &'a mut dyn FnMut(u64, &mut dyn FnMut(Line));

/// Records that are lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// The first key among them.
    pub first: Vec<u8>,
    /// The last key among them.
    pub last: Vec<u8>,
    /// How many there were.
    pub count: u64,
}

impl std::fmt::Display for Missing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let told = super::super::keys::told;
        write!(f, "{} records from {} to {}", self.count, told(&self.first), told(&self.last))
    }
}

/// A checkpoint to read from, and what can stand in for a part of it.
pub struct Base<'a> {
    pub(super) folder: &'a dyn Folder,
    pub(super) newest: &'a Checkpoint,
    pub(super) older: Option<&'a Checkpoint>,
    pub(super) lines: Lines<'a>,
}

impl Base<'_> {
    /// Returns into how many parts the keys are cut: at least one.
    pub fn parts(&self) -> usize {
        self.newest.chunks.len().max(1)
    }

    /// Returns the chunk of a part; the one part of an empty checkpoint has none.
    pub fn chunk(&self, part: usize) -> Option<&chunk::Chunk> {
        self.newest.chunks.get(part)
    }

    /// Returns the keys of a part. Together the parts span everything.
    pub fn span(&self, part: usize) -> Span {
        let first = |part: usize| self.newest.chunks.get(part).map(|chunk| chunk.first.clone());
        let from = if part == 0 { None } else { first(part) };
        Span { from: from.unwrap_or_default(), to: first(part + 1) }
    }

    /// Returns the records of a part. What cannot be read is made again, and taken if count and sum are the same.
    pub fn records(&mut self, part: usize) -> Result<Vec<Record>, Missing> {
        let Some(chunk) = self.newest.chunks.get(part) else { return Ok(Vec::new()) };
        if let Ok(records) = chunk::read(self.folder, chunk) {
            return Ok(records);
        }
        let span = self.span(part);
        let again = self.older_records(&span).filter(|records| chunk.is_of(records));
        again.ok_or_else(|| Missing { first: chunk.first.clone(), last: chunk.last.clone(), count: chunk.count })
    }

    /// The generation before, and what the journal said from there to the newest.
    fn older_records(&mut self, span: &Span) -> Option<Vec<Record>> {
        let (older, through) = self.older.map_or((&[][..], 0), |older| (&older.chunks[..], older.through));
        let mut tail = Tail::default();
        (self.lines)(through, &mut |line| {
            if line.number <= self.newest.through {
                line.entries.into_iter().for_each(|entry| tail.take_within(span, entry));
            }
        });
        let mut records = Vec::new();
        for chunk in older.iter().filter(|chunk| span.meets(&chunk.first, &chunk.last)) {
            records.extend(chunk::read(self.folder, chunk).ok()?);
        }
        let base = records.into_iter().filter(|(key, _)| span.contains(key)).map(Ok::<_, ()>);
        tail.over(span, base).collect::<Result<_, _>>().ok()
    }
}
