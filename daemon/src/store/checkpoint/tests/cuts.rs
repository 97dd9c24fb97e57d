//! How records are cut into chunks, and what is read and held for that.

use std::cell::Cell;
use std::sync::Arc;

use super::super::super::disk::RealFolder;
use super::super::super::journal::line::{Entry, Line};
use super::super::super::tail::{Record, Span, Tail};
use super::super::super::truth::Truth;
use super::super::{Checkpoints, sum_of};
use super::disk::Disk;
use super::world::{World, open, put, puts};

#[track_caller]
fn check(lines: Vec<Vec<Entry>>, counts: &[u64], written_for: &[u64]) {
    let world = World::of(lines);
    assert_eq!((world.counts(), world.written_for()), (counts.to_vec(), written_for.to_vec()));
    world.is_whole();
    world.is_clean();
}

fn deletes(numbers: impl IntoIterator<Item = u32>) -> Vec<Entry> {
    numbers.into_iter().map(|number| Entry::Delete(format!("{number:03}").into())).collect()
}

#[test]
fn only_what_has_changes_is_written_anew() {
    check(vec![vec![]], &[], &[]);
    check(vec![puts(0..1)], &[1], &[1]);
    check(vec![puts(0..45)], &[10, 10, 10, 10, 5], &[1, 1, 1, 1, 1]);
    check(vec![puts(0..45), vec![]], &[10, 10, 10, 10, 5], &[1, 1, 1, 1, 1]);
    check(vec![puts(0..45), puts(12..13)], &[10, 10, 10, 10, 5], &[1, 2, 1, 1, 1]);
    check(vec![puts(0..45), puts(45..47)], &[10, 10, 10, 10, 7], &[1, 1, 1, 1, 2]);
    check(vec![puts(1..45), puts(0..1)], &[11, 10, 10, 14], &[2, 1, 1, 1]);
    check(vec![puts(0..45), deletes([7, 44])], &[9, 10, 10, 10, 4], &[2, 1, 1, 1, 2]);
    check(vec![puts(0..45), deletes(10..20)], &[10, 10, 10, 5], &[1, 1, 1, 1]);
    check(vec![puts(0..45), vec![Entry::DeleteAll(b"0".into())]], &[], &[]);
    // The prefix itself lies among the keys of the chunk before.
    check(vec![puts(0..45), vec![Entry::DeleteAll(b"02".into())]], &[10, 10, 10, 5], &[1, 2, 1, 1]);
}

#[test]
fn what_grows_is_split_and_what_shrinks_is_joined() {
    let between = |number: u32| put(&format!("{number:03}+"), "1234");
    check(vec![puts(0..45), (0..10).map(between).collect()], &[10, 10, 10, 10, 10, 5], &[2, 2, 1, 1, 1, 1]);
    check(vec![puts(0..45), (0..5).map(between).collect()], &[10, 5, 10, 10, 10, 5], &[2, 2, 1, 1, 1, 1]);
    check(vec![puts(0..45), (0..3).map(between).collect()], &[13, 10, 10, 10, 5], &[2, 1, 1, 1, 1]);
    check(vec![puts(0..45), deletes(11..20)], &[10, 11, 10, 5], &[1, 2, 1, 1]);
    check(vec![puts(0..45), deletes(13..20)], &[10, 3, 10, 10, 5], &[1, 2, 1, 1, 1]);
    check(vec![puts(0..45), deletes((1..10).chain(11..20))], &[12, 10, 5], &[2, 1, 1]);
    check(vec![puts(0..45), deletes(41..45)], &[10, 10, 10, 10, 1], &[1, 1, 1, 1, 2]);
}

#[test]
fn a_record_larger_than_a_chunk_is_one_of_its_own() {
    let large = |key: &str| vec![put(key, &"x".repeat(300))];
    check(vec![[large("005"), puts((0..5).chain(6..12))].concat()], &[5, 1, 6], &[1, 1, 1]);
    check(vec![puts(0..20), large("005")], &[5, 1, 4, 10], &[2, 2, 2, 1]);
    check(vec![large("a"), large("b"), large("a")], &[1, 1], &[3, 2]);
}

#[test]
fn a_part_says_what_the_checkpoint_has_there() {
    let mut world = World::of([puts(0..25)]);
    world.line(puts(12..13));
    let parts = world.truth(|truth| truth.parts());
    let spans: Vec<_> = parts.iter().map(|part| (part.span.from.as_slice(), part.span.to.as_deref())).collect();
    assert_eq!(spans, [(&b""[..], Some(&b"010"[..])), (b"010", Some(b"020")), (b"020", None)]);
    assert_eq!(parts.iter().map(|part| part.is_touched).collect::<Vec<_>>(), [false, true, false]);
    let whole = World::of([puts(0..25)]);
    for (part, touched) in parts.iter().zip(world.truth(|truth| truth.parts())) {
        let records: Vec<Record> = whole.read(&part.span).into_iter().map(Result::unwrap).collect();
        let sum = records.iter().fold(0_u64, |sum, (key, value)| sum.wrapping_add(sum_of(key, value)));
        assert_eq!((part.count, part.sum), (records.len() as u64, sum));
        assert_eq!(*part, touched);
    }
    assert_eq!(
        World::new().truth(|truth| truth.parts()).iter().map(|part| (&part.span, part.count)).collect::<Vec<_>>(),
        [(&Span::all(), 0)]
    );
}

#[test]
fn the_sum_of_a_record_tells_key_and_value_apart() {
    assert_eq!(sum_of(b"a", b"1"), u64::from(crc32fast::hash(b"a\x001")));
    assert_ne!(sum_of(b"ab", b"1"), sum_of(b"a", b"b1"));
}

fn stream(count: u32) -> impl Iterator<Item = Result<Record, String>> {
    (0..count).map(|number| Ok((format!("{number:06}").into(), b"1234".to_vec())))
}

#[test]
fn a_generation_is_built_of_a_stream() {
    let disk = Disk::default();
    let mut checkpoints = open(&disk);
    let seen = Cell::new(0);
    let counted = stream(1000).inspect(|_| {
        seen.set(seen.get() + 1);
        let written = disk.files().keys().filter(|name| name.contains(".chunk")).count();
        // Ten to a chunk: one and a half of them are held, and one record comes.
        assert!(seen.get() <= written * 10 + 16, "{} of {written}", seen.get());
    });
    assert_eq!(checkpoints.build(counted, 5, 77).unwrap(), 0);
    let newest = open(&disk).newest().clone();
    assert_eq!((newest.generation, newest.through, newest.head, newest.chunks.len()), (1, 5, 77, 100));
    assert_eq!(&newest, checkpoints.newest());
    assert_eq!(checkpoints.build(stream(10), 9, 78).unwrap(), 5);
    assert_eq!(open(&disk).newest().chunks.len(), 1);
}

#[test]
fn it_lies_in_a_folder_of_the_file_system() {
    let folder = tempfile::tempdir().unwrap();
    let read = || Checkpoints::read(Arc::new(RealFolder::open(folder.path()).unwrap())).unwrap();
    let expected: Vec<Record> = (0..2000_u32).map(|n| (n.to_be_bytes().to_vec(), vec![b'1'; 300])).collect();
    read().build(expected.iter().cloned().map(Ok::<_, String>), 1, 1).unwrap();
    let mut checkpoints = read();
    assert_eq!(checkpoints.newest().chunks.len(), 2);
    checkpoints.next(&Tail::default(), &mut |_, _| {}, 2, 2).unwrap();
    let (checkpoints, tail) = (read(), Tail::default());
    assert_eq!((checkpoints.newest().generation, checkpoints.through()), (2, 1));
    let mut lines = |_, _: &mut dyn FnMut(Line)| {};
    let records: Result<Vec<_>, _> = Truth::new(&checkpoints, &tail, &mut lines).records(&Span::all()).collect();
    assert_eq!(records, Ok(expected));
}

#[test]
fn a_stream_that_ends_badly_builds_nothing() {
    let disk = Disk::default();
    let mut checkpoints = open(&disk);
    let bad = || stream(30).chain([Err("line 7: it is torn".to_owned())]);
    let twice = || stream(30).chain(stream(30).skip(29));
    for (error, expected) in [
        (checkpoints.build(bad(), 1, 1), "no checkpoint was made: line 7: it is torn"),
        (checkpoints.build(twice(), 1, 1), "no checkpoint was made: 000029 is out of order"),
        (checkpoints.build([Ok::<_, String>((vec![1], vec![1]))], 1, 1), "is not one line of JSON"),
    ] {
        let error = error.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    assert_eq!(disk.files().len(), 0);
}

#[test]
fn a_reader_holds_one_chunk_at_a_time() {
    let mut world = World::of([puts(0..100)]);
    world.line(puts(95..120));
    world.disk.opened();
    world.truth(|truth| {
        for (seen, record) in truth.records(&Span::all()).enumerate() {
            record.unwrap();
            if seen % 10 == 0 {
                let opened = world.disk.opened().len();
                assert!(opened <= 2, "{opened} at {seen}");
            }
        }
    });
    world.truth(|truth| truth.records(&Span { from: b"035".into(), to: Some(b"041".into()) }).for_each(drop));
    assert_eq!(world.disk.opened(), ["0000000000000001-000003.chunk", "0000000000000001-000004.chunk"]);
    world.line(puts(35..36));
    world.next().unwrap();
    let opened = world.disk.opened();
    assert!(opened.iter().filter(|name| *name < &"0000000000000002".to_owned()).count() <= 10, "{opened:?}");
}
