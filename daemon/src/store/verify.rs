//! Comparing the memory with the truth, and putting right what differs.
//!
//! A part of the keys that the journal has not touched is compared by count and sum alone, which costs one walk over the
//! memory; any other is laid beside the truth record by record.

use super::StoreError;
use super::checkpoint::{Missing, sum_of};
use super::journal::line::Entry;
use super::keys::one_line;
use super::memory::Memory;
use super::merge::{Difference, Merge};
use super::tail::{Record, Span};
use super::truth::{Part, Truth};

/// At most so many changes, and so many bytes, are made at once.
const MOST_AT_ONCE: usize = 1000;
const MOST_BYTES: usize = 1024 * 1024;

/// Who is believed where the two differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Believe {
    /// The truth: the memory is put right.
    Truth,
    /// The memory, which opened well and knows lines that the journal has lost.
    Memory,
    /// Each of them for what only it knows.
    Both,
}

/// What a comparison came to.
#[derive(Debug, Default)]
pub struct Compared {
    /// How many records of the memory were put right.
    pub put_right: u64,
    /// What the memory knows and the truth has lost: the journal is to take it.
    pub adopted: Vec<Entry>,
    /// What the truth has of the records that count as removed.
    pub removed: Vec<Record>,
    /// What the checkpoint has lost.
    pub missing: Vec<Missing>,
}

/// Compares all of `memory` with `truth`, and puts the memory right where the truth is believed.
pub fn verify(memory: &Memory, truth: &mut Truth<'_>, believe: Believe) -> Result<Compared, StoreError> {
    let mut compared = Compared::default();
    let parts = truth.parts();
    let mut told = 0;
    for (at, part) in parts.iter().enumerate() {
        if believe == Believe::Memory || part.is_touched || !is_as_counted(memory, part)? {
            compare(memory, truth, &part.span, believe, &mut compared)?;
        }
        if compared.put_right > told + 100_000 {
            told = compared.put_right;
            tracing::info!(records = told, part = at + 1, of = parts.len(), "the memory is being put right");
        }
    }
    Ok(compared)
}

/// Tells whether the memory says of a part what the checkpoint says.
fn is_as_counted(memory: &Memory, part: &Part) -> Result<bool, StoreError> {
    let (mut count, mut sum) = (0_u64, 0_u64);
    for record in memory.records(part.span.from.clone(), part.span.to.clone()) {
        let (key, Some(value)) = record? else { return Ok(false) };
        count += 1;
        sum = sum.wrapping_add(sum_of(&key, &value));
    }
    Ok((count, sum) == (part.count, part.sum))
}

/// Tells whether the memory says of a part what the truth says, changing nothing.
pub fn is_same(memory: &Memory, truth: &mut Truth<'_>, part: &Part) -> Result<bool, StoreError> {
    if !part.is_touched {
        return is_as_counted(memory, part);
    }
    // What the checkpoint has lost is named by who looks at that.
    let records = truth.records(&part.span).filter_map(Result::ok);
    let known = memory.records(part.span.from.clone(), part.span.to.clone());
    let mut merge = Merge::new(records.map(|(key, value)| Ok((key, Some(value)))), known);
    merge.next().transpose().map(|difference| difference.is_none())
}

fn compare(
    memory: &Memory,
    truth: &mut Truth<'_>,
    span: &Span,
    believe: Believe,
    compared: &mut Compared,
) -> Result<(), StoreError> {
    let (mut records, mut lost) = (Vec::new(), Vec::new());
    truth.records(span).for_each(|record| match record {
        Ok(record) => records.push(record),
        Err(missing) => lost.push(missing),
    });
    let believe = if lost.is_empty() || believe == Believe::Memory { believe } else { Believe::Both };
    compared.missing.extend(lost);
    let known = memory.records(span.from.clone(), span.to.clone());
    let left = records.into_iter().map(|(key, value): Record| Ok((key, Some(value))));
    let mut changes = Changes { memory, entries: Vec::new(), bytes: 0 };
    for difference in Merge::new(left, known) {
        let Difference { key, left, right } = difference?;
        let right = right.filter(|value| one_line(value).is_some());
        let adopts = match believe {
            Believe::Truth => false,
            Believe::Both => left.is_none() && right.is_some(),
            // What the memory holds and cannot read it does not know better.
            Believe::Memory => right.is_some() || (left.is_some() && memory.get(&key).is_ok()),
        };
        if adopts {
            compared.removed.extend(left.filter(|_| right.is_none()).map(|value| (key.clone(), value)));
            compared.adopted.push(entry(key, right));
        } else {
            compared.put_right += 1;
            changes.make(entry(key, left))?;
        }
    }
    changes.finish()
}

fn entry(key: Vec<u8>, value: Option<Vec<u8>>) -> Entry {
    match value {
        Some(value) => Entry::Put(key, value),
        None => Entry::Delete(key),
    }
}

/// Changes of the memory, made in bounded groups.
struct Changes<'a> {
    memory: &'a Memory,
    entries: Vec<Entry>,
    bytes: usize,
}

impl Changes<'_> {
    fn make(&mut self, entry: Entry) -> Result<(), StoreError> {
        self.bytes += size(&entry);
        self.entries.push(entry);
        if self.entries.len() < MOST_AT_ONCE && self.bytes < MOST_BYTES {
            return Ok(());
        }
        self.bytes = 0;
        self.memory.apply(&std::mem::take(&mut self.entries), None)
    }

    fn finish(mut self) -> Result<(), StoreError> {
        self.memory.apply(&std::mem::take(&mut self.entries), None)
    }
}

/// Cuts changes into groups that make a line each.
pub fn groups(entries: Vec<Entry>) -> Vec<Vec<Entry>> {
    let (mut groups, mut group, mut bytes) = (Vec::new(), Vec::new(), 0);
    for entry in entries {
        bytes += size(&entry);
        group.push(entry);
        if bytes > MOST_BYTES || group.len() >= MOST_AT_ONCE {
            bytes = 0;
            groups.push(std::mem::take(&mut group));
        }
    }
    groups.extend((!group.is_empty()).then_some(group));
    groups
}

fn size(entry: &Entry) -> usize {
    match entry {
        Entry::Put(key, value) => key.len() + value.len(),
        Entry::Delete(key) | Entry::DeleteAll(key) => key.len(),
    }
}
