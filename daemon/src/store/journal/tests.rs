#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod damage;
mod power;
mod text;

use std::sync::Arc;

use nano_tests::random::Random;

use super::super::disk::{Folder, RealFolder};
use super::super::twin::Twin;
use super::line::{Entry, Line};
use super::reader::Reader;
use super::{Found, Journal, OpenError};

fn open(disk: &Twin, aside: &Twin, segment_size: u64) -> Result<(Journal, Found), OpenError> {
    Journal::open(Arc::new(disk.clone()), aside, segment_size)
}

/// Lines that follow the newest, with values that no others have.
fn group(journal: &Journal, random: &mut Random, count: u64) -> Vec<Line> {
    let mut entry = || {
        let value = format!("{{\"x\":\"{}\"}}", "v".repeat(random.below(60) as usize));
        let unique = random.below(u64::MAX).to_be_bytes().to_vec();
        match random.below(4) {
            0 => Entry::Delete(unique),
            1 => Entry::DeleteAll(unique),
            _ => Entry::Put(unique, value.into_bytes()),
        }
    };
    let last = journal.last();
    (last + 1..=last + count)
        .map(|number| Line { number, synced: last, head: number * 2, entries: vec![entry(), entry()] })
        .collect()
}

/// Returns the lines that can be read and the ranges that cannot.
fn read(reader: &Reader, after: u64) -> (Vec<Line>, Vec<(u64, u64)>) {
    let (mut lines, mut lost) = (Vec::new(), Vec::new());
    for line in reader.lines(after, u64::MAX) {
        match line {
            Ok(line) => lines.push(line),
            Err(damage) => lost.push((damage.first, damage.last)),
        }
    }
    (lines, lost)
}

#[test]
fn a_journal_on_a_real_disk_goes_on_where_it_ended() {
    let folder = tempfile::tempdir().unwrap();
    let disk: Arc<dyn Folder> = Arc::new(RealFolder::open(&folder.path().join("journal")).unwrap());
    let aside = RealFolder::open(&folder.path().join("aside")).unwrap();
    let mut random = Random::new(1);
    let mut all = Vec::new();
    for life in 0..3 {
        let (mut journal, found) = Journal::open(disk.clone(), &aside, 2048).unwrap();
        assert_eq!((found.last, journal.last(), found.head), (life * 10, life * 10, life * 20));
        for count in [1, 2, 3, 4] {
            let lines = group(&journal, &mut random, count);
            journal.append(&lines).unwrap();
            all.extend(lines);
        }
        assert_eq!(read(&journal.reader(), 0), (all.clone(), vec![]));
    }
    let lengths = disk.list().unwrap().iter().map(|name| disk.open(name).unwrap().len().unwrap()).collect::<Vec<_>>();
    assert!(lengths.len() > 2 && lengths.iter().all(|length| *length == 2048), "{lengths:?}");
}

#[test]
fn what_is_larger_than_a_segment_has_one_that_is_larger() {
    let disk = Twin::new(1);
    let (mut journal, _) = open(&disk, &disk, 4096).unwrap();
    let mut all = Vec::new();
    for length in [10, 9000, 10, 9000, 9000, 10] {
        let mut lines = group(&journal, &mut Random::new(length), 1);
        lines[0].entries.push(Entry::Put(b"a".to_vec(), format!("\"{}\"", "x".repeat(length as usize)).into_bytes()));
        journal.append(&lines).unwrap();
        all.extend(lines);
    }
    assert_eq!(journal.segments, [1, 2, 3, 4, 5, 6]);
    let (mut journal, _) = open(&disk, &disk, 4096).unwrap();
    assert_eq!(read(&journal.reader(), 0), (all, vec![]));
    let last = group(&journal, &mut Random::new(1), 1);
    journal.append(&last).unwrap();
    assert_eq!(journal.segments.len(), 6);
}
