//! The truth: what the store holds by its newest checkpoint and the journal behind it, whatever sled says.

use super::checkpoint::{Base, Checkpoints, Lines, Missing};
use super::tail::{Record, Span, Tail};

/// All records, from the newest checkpoint that can be read and the journal behind it.
pub struct Truth<'a> {
    base: Base<'a>,
    tail: &'a Tail,
}

/// A part of the keys, and what the checkpoint says of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Its keys. The parts together span everything.
    pub span: Span,
    /// How many records the checkpoint has there.
    pub count: u64,
    /// Their sum, see `sum_of`.
    pub sum: u64,
    /// Whether the journal behind the checkpoint has changes there.
    pub is_touched: bool,
}

impl<'a> Truth<'a> {
    /// Lays `tail`, the journal behind the newest checkpoint, over it; `lines` can stand in for what is damaged.
    pub fn new(checkpoints: &'a Checkpoints, tail: &'a Tail, lines: Lines<'a>) -> Self {
        Self { base: checkpoints.base(lines), tail }
    }

    /// Returns the parts that the checkpoint is made of, in order: at least one.
    pub fn parts(&self) -> Vec<Part> {
        (0..self.base.parts()).map(|part| self.part(part)).collect()
    }

    fn part(&self, part: usize) -> Part {
        let span = self.base.span(part);
        let (count, sum) = self.base.chunk(part).map_or((0, 0), |chunk| (chunk.count, chunk.sum));
        Part { is_touched: self.tail.touches(&span), span, count, sum }
    }

    /// Returns the records of `span` in order. Where some are lost it names them and goes on with what is known.
    pub fn records(&mut self, span: &Span) -> impl Iterator<Item = Result<Record, Missing>> {
        let Self { base, tail } = self;
        let within = span.clone();
        let holds = |part: &usize| base.chunk(*part).is_some_and(|chunk| span.meets(&chunk.first, &chunk.last));
        let parts: Vec<_> = (0..base.parts()).filter(holds).collect();
        let records = parts.into_iter().flat_map(move |part| match base.records(part) {
            Ok(records) => records.into_iter().map(Ok).collect(),
            Err(missing) => vec![Err(missing)],
        });
        let records = records.filter(move |record| record.as_ref().map_or(true, |(key, _)| within.contains(key)));
        tail.over(span, records)
    }
}
