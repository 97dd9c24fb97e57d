//! Two ordered runs of records, laid side by side. Pure.

use std::cmp::Ordering;
use std::iter::Peekable;

use super::StoreError;

/// A record: its key, and its value where that can be read.
pub type Record = (Vec<u8>, Option<Vec<u8>>);

/// A key that the two sides do not agree about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Which.
    pub key: Vec<u8>,
    /// What the left one holds.
    pub left: Option<Vec<u8>>,
    /// What the right one holds; nothing also where it holds what cannot be read.
    pub right: Option<Vec<u8>>,
}

/// What the two sides have at one key.
type Pair = (Option<Record>, Option<Record>);

/// Walks both sides and stops at what differs.
pub struct Merge<L: Iterator, R: Iterator> {
    left: Peekable<L>,
    right: Peekable<R>,
}

impl<L, R> Merge<L, R>
where
    L: Iterator<Item = Result<Record, StoreError>>,
    R: Iterator<Item = Result<Record, StoreError>>,
{
    /// Takes two runs that are sorted by key.
    pub fn new(left: L, right: R) -> Self {
        Self { left: left.peekable(), right: right.peekable() }
    }

    fn step(&mut self) -> Result<Option<Pair>, StoreError> {
        let order = match (self.left.peek(), self.right.peek()) {
            (None, None) => return Ok(None),
            (Some(Ok(left)), Some(Ok(right))) => left.0.cmp(&right.0),
            (Some(_), None) | (Some(Err(_)), _) => Ordering::Less,
            (None, Some(_)) | (_, Some(Err(_))) => Ordering::Greater,
        };
        let left = if order.is_le() { self.left.next().transpose()? } else { None };
        let right = if order.is_ge() { self.right.next().transpose()? } else { None };
        Ok(Some((left, right)))
    }
}

impl<L, R> Iterator for Merge<L, R>
where
    L: Iterator<Item = Result<Record, StoreError>>,
    R: Iterator<Item = Result<Record, StoreError>>,
{
    type Item = Result<Difference, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (left, right) = match self.step() {
                Ok(step) => step?,
                Err(error) => return Some(Err(error)),
            };
            let readable = |side: &Option<Record>| side.as_ref().is_some_and(|(_, value)| value.is_some());
            if left == right && readable(&left) {
                continue;
            }
            let key = left.as_ref().or(right.as_ref()).map(|(key, _)| key.clone()).unwrap_or_default();
            let value = |side: Option<Record>| side.and_then(|(_, value)| value);
            return Some(Ok(Difference { key, left: value(left), right: value(right) }));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    type Side = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

    fn side() -> impl Strategy<Value = Side> {
        let value = prop::option::weighted(0.9, prop::collection::vec(0_u8..2, 0..2));
        prop::collection::btree_map(prop::collection::vec(0_u8..3, 1..3), value, 0..8)
    }

    proptest! {
        #[test]
        fn exactly_what_differs_is_found(left in side(), right in side()) {
            let run = |side: &Side| side.clone().into_iter().map(Ok).collect::<Vec<_>>().into_iter();
            let found: Result<Vec<Difference>, _> = Merge::new(run(&left), run(&right)).collect();
            let mut made = right.clone();
            for Difference { key, left, right: was } in found.unwrap_or_default() {
                prop_assert_eq!(&was, right.get(&key).unwrap_or(&None));
                // What neither side can read is no record any more.
                prop_assert!(left != was || left.is_none());
                match left {
                    Some(value) => made.insert(key, Some(value)),
                    None => made.remove(&key),
                };
            }
            let readable = |side: Side| -> Side { side.into_iter().filter(|(_, value)| value.is_some()).collect() };
            prop_assert_eq!(made.clone(), readable(made.clone()));
            prop_assert_eq!(made, readable(left));
        }
    }
}
