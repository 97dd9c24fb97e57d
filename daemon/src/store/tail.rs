//! The tail: what lines of the journal come to, folded, and laid over the older records below them.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, btree_map};
use std::iter::Peekable;
use std::ops::Bound;

use super::journal::line::Entry;

/// A key and its value, as stored.
pub type Record = (Vec<u8>, Vec<u8>);

/// A range of keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// Where it begins.
    pub from: Vec<u8>,
    /// The first key that lies behind it; none where it goes on to the end.
    pub to: Option<Vec<u8>>,
}

impl Span {
    /// Returns the range of all keys.
    pub fn all() -> Self {
        Self { from: Vec::new(), to: None }
    }

    /// Tells whether `key` lies in it.
    pub fn contains(&self, key: &[u8]) -> bool {
        key >= self.from.as_slice() && self.to.as_deref().is_none_or(|to| key < to)
    }

    /// Tells whether a key from `first` to `last`, both included, can lie in it.
    pub fn meets(&self, first: &[u8], last: &[u8]) -> bool {
        last >= self.from.as_slice() && self.to.as_deref().is_none_or(|to| first < to)
    }

    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        let from = self.from.as_slice();
        // A map panics at a range that ends before it begins.
        (Bound::Included(from), self.to.as_deref().map_or(Bound::Unbounded, |to| Bound::Excluded(to.max(from))))
    }
}

/// What a part of the journal does to the records before it.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Tail {
    records: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    /// What was removed by prefix. None of them begins with another.
    prefixes: BTreeSet<Vec<u8>>,
}

impl Tail {
    /// Takes the next change of the journal.
    pub fn take(&mut self, entry: Entry) {
        match entry {
            Entry::Put(key, value) => _ = self.records.insert(key, Some(value)),
            Entry::Delete(key) => _ = self.records.insert(key, None),
            Entry::DeleteAll(prefix) => self.take_prefix(prefix),
        }
    }

    /// Takes the next change as far as it is about `span`.
    pub fn take_within(&mut self, span: &Span, entry: Entry) {
        match &entry {
            Entry::Put(key, _) | Entry::Delete(key) if !span.contains(key) => {}
            _ => self.take(entry),
        }
    }

    fn take_prefix(&mut self, prefix: Vec<u8>) {
        let from = (Bound::Included(prefix.as_slice()), Bound::Unbounded);
        let below = self.records.range::<[u8], _>(from).map(|(key, _)| key);
        let below: Vec<_> = below.take_while(|key| key.starts_with(&prefix)).cloned().collect();
        for key in below {
            self.records.remove(&key);
        }
        if !self.is_removed(&prefix) {
            self.prefixes.retain(|longer| !longer.starts_with(&prefix));
            self.prefixes.insert(prefix);
        }
    }

    /// Tells whether a prefix that was removed covers `key`: since none begins with another, only the nearest can.
    fn is_removed(&self, key: &[u8]) -> bool {
        let upto = (Bound::Unbounded, Bound::Included(key));
        self.prefixes.range::<[u8], _>(upto).next_back().is_some_and(|prefix| key.starts_with(prefix))
    }

    /// Returns what it says of `key`: its value, that it is gone, or nothing.
    #[expect(clippy::option_option, reason = "three answers: it is this, it is gone, it is as it was")]
    pub fn says(&self, key: &[u8]) -> Option<Option<&[u8]>> {
        self.records.get(key).map(Option::as_deref).or_else(|| self.is_removed(key).then_some(None))
    }

    /// Tells whether it says anything of a key in `span`.
    pub fn touches(&self, span: &Span) -> bool {
        self.records.range::<[u8], _>(span.bounds()).next().is_some()
            || self.prefixes.range::<[u8], _>(span.bounds()).next().is_some()
            || self.is_removed(&span.from)
    }

    /// Lays it over `base`, the older records of `span` in order.
    pub fn over<I, E>(&self, span: &Span, base: I) -> Over<'_, I::IntoIter>
    where
        I: IntoIterator<Item = Result<Record, E>>,
    {
        let changes = self.records.range::<[u8], _>(span.bounds()).peekable();
        Over { tail: self, base: base.into_iter().peekable(), changes }
    }
}

/// The records that a tail and the older ones below it come to.
pub struct Over<'a, I: Iterator> {
    tail: &'a Tail,
    base: Peekable<I>,
    changes: Peekable<btree_map::Range<'a, Vec<u8>, Option<Vec<u8>>>>,
}

impl<I: Iterator<Item = Result<Record, E>>, E> Iterator for Over<'_, I> {
    type Item = Result<Record, E>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let changed = self.changes.peek().map(|(key, _)| *key);
            match (self.base.peek(), changed) {
                (Some(Err(_)), _) => return self.base.next(),
                (Some(Ok((key, _))), changed) if changed.is_none_or(|changed| key < changed) => {
                    let is_removed = self.tail.is_removed(key);
                    let record = self.base.next();
                    if !is_removed {
                        return record;
                    }
                }
                (base, _) => {
                    if base.is_some_and(|record| record.as_ref().is_ok_and(|(key, _)| Some(key) == changed)) {
                        self.base.next();
                    }
                    let (key, value) = self.changes.next()?;
                    if let Some(value) = value {
                        return Some(Ok((key.clone(), value.clone())));
                    }
                }
            }
        }
    }
}
