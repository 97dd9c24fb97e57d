//! Damage of every kind: what can be read is as it was, and what cannot is named, the same each time.

use nano_tests::random::Random;
use proptest::prelude::proptest;

use super::super::super::SCHEMA;
use super::super::super::disk::Folder;
use super::super::super::twin::{Operation, Twin};
use super::super::line::{Line, frame};
use super::super::{Cut, Found, Journal, OpenError, look, segment};
use super::{group, read};

pub(super) fn open(disk: &Twin, aside: &Twin) -> Result<(Journal, Found), OpenError> {
    super::open(disk, aside, 4096)
}

/// Lines 1 to 4, 5 to 8 and 9 to 12 in three segments, each a group of its own but for the last two.
pub(super) fn three_segments(disk: &Twin) -> Vec<Line> {
    let (mut journal, _) = open(disk, &Twin::new(0)).unwrap();
    let (mut all, mut random) = (Vec::new(), Random::new(9));
    for count in [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2] {
        if all.len() % 4 == 0 {
            journal.seal();
        }
        let lines = group(&journal, &mut random, count);
        journal.append(&lines).unwrap();
        all.extend(lines);
    }
    assert_eq!(journal.segments, [1, 5, 9]);
    all
}

/// Where a line begins and ends in its segment.
fn place(disk: &Twin, line: &Line) -> (String, usize, usize) {
    let name = segment::name((line.number - 1) / 4 * 4 + 1);
    let (bytes, text) = (disk.get(&name), line.encode());
    let at = bytes.windows(text.len()).position(|window| window == text).unwrap();
    (name, at, at + text.len())
}

fn edit(disk: &Twin, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = disk.get(name);
    change(&mut bytes);
    disk.put(name, &bytes);
}

fn first(n: u64) -> String {
    segment::name(n)
}

/// What is expected: the newest line, what is lost, and what of the headers.
struct Expected {
    last: u64,
    lost: &'static [(u64, u64)],
    cut: bool,
    bad_headers: usize,
}

const fn expected(last: u64, lost: &'static [(u64, u64)], cut: bool, bad_headers: usize) -> Expected {
    Expected { last, lost, cut, bad_headers }
}

#[track_caller]
fn check(what: &str, damage: impl FnOnce(&Twin, &[Line]), expected: &Expected) {
    let (disk, aside) = (Twin::new(1), Twin::new(2));
    let all = three_segments(&disk);
    damage(&disk, &all);
    let writes = disk.count(Operation::Write);
    let looked = look(std::sync::Arc::new(disk.clone())).unwrap().found;
    assert_eq!(disk.count(Operation::Write), writes, "{what}: looking changed it");
    let (mut journal, found) = open(&disk, &aside).unwrap();
    let kept: Vec<Line> = all.iter().filter(|line| line.number <= expected.last).cloned().collect();
    let is_lost = |line: &Line| expected.lost.iter().any(|(from, to)| (*from..=*to).contains(&line.number));
    let kept: Vec<Line> = kept.into_iter().filter(|line| !is_lost(line)).collect();
    assert_eq!(read(&journal.reader(), 0), (kept.clone(), expected.lost.to_vec()), "{what}");
    assert_eq!((found.last, found.bad_headers.len()), (expected.last, expected.bad_headers), "{what}");
    assert_eq!(found.head, kept.last().map_or(0, |line| line.head), "{what}");
    assert_eq!(found.cut.is_some(), expected.cut, "{what}: {:?}", found.cut);
    if let Some(Cut { from, bytes, kept }) = &found.cut {
        assert_eq!((*from, aside.get(kept.as_ref().unwrap()).len() as u64), (expected.last + 1, *bytes), "{what}");
    }
    assert_eq!(looked.damaged, found.damaged, "{what}");
    let more = group(&journal, &mut Random::new(5), 2);
    journal.append(&more).unwrap();
    let after = read(&journal.reader(), 0);
    assert_eq!((&after.0[kept.len()..], after.1.as_slice()), (more.as_slice(), expected.lost), "{what}");
    disk.crash();
    let (again, found) = open(&disk, &aside).unwrap();
    assert_eq!((read(&again.reader(), 0), found.cut, found.last), (after, None, expected.last + 2), "{what}");
}

#[test]
fn what_is_behind_the_last_line_that_counts_is_cut() {
    let cut_to = |disk: &Twin, line: &Line, more: &[u8], keep: usize| {
        let (name, at, _) = place(disk, line);
        edit(disk, &name, |bytes| {
            bytes.truncate(at + keep);
            bytes.extend_from_slice(more);
        });
    };
    check("nothing", |_, _| {}, &expected(12, &[], false, 0));
    check("no zeros", |disk, all| cut_to(disk, &all[11], b"", all[11].encode().len()), &expected(12, &[], false, 0));
    check("torn", |disk, all| cut_to(disk, &all[11], b"", 20), &expected(11, &[], true, 0));
    check("torn, zeros", |disk, all| cut_to(disk, &all[11], &[0; 99], 20), &expected(11, &[], true, 0));
    check(
        "no end of line",
        |disk, all| cut_to(disk, &all[11], b"", all[11].encode().len() - 1),
        &expected(11, &[], true, 0),
    );
    check("zeros", |disk, all| cut_to(disk, &all[11], &[0; 99], 0), &expected(11, &[], false, 0));
    check("garbage", |disk, all| cut_to(disk, &all[11], b"\x01\n\xff\n", 0), &expected(11, &[], true, 0));
    check(
        "zeros, then a line that nothing covers",
        |disk, all| {
            let (name, at, end) = place(disk, &all[10]);
            edit(disk, &name, |bytes| bytes[at..end].fill(0));
        },
        &expected(10, &[], true, 0),
    );
    check("its lines", |disk, all| cut_to(disk, &all[8], b"", 0), &expected(8, &[], false, 0));
    check("its lines, torn", |disk, all| cut_to(disk, &all[8], b"", 5), &expected(8, &[], true, 0));
}

#[test]
fn what_a_later_line_covers_is_damage() {
    let zero = |disk: &Twin, line: &Line| {
        let (name, at, end) = place(disk, line);
        edit(disk, &name, |bytes| bytes[at..end].fill(0));
    };
    let flip = |disk: &Twin, line: &Line, from_end: usize| {
        let (name, _, end) = place(disk, line);
        edit(disk, &name, |bytes| bytes[end - from_end] ^= 1);
    };
    check("zeros", |disk, all| zero(disk, &all[1]), &expected(12, &[(2, 2)], false, 0));
    check(
        "zeros at both ends",
        |disk, all| [0, 7].iter().for_each(|n| zero(disk, &all[*n])),
        &expected(12, &[(1, 1), (8, 8)], false, 0),
    );
    check("across segments", |disk, all| (3..6).for_each(|n| zero(disk, &all[n])), &expected(12, &[(4, 6)], false, 0));
    check("in the newest", |disk, all| (8..10).for_each(|n| zero(disk, &all[n])), &expected(12, &[(9, 10)], false, 0));
    check("a bit", |disk, all| flip(disk, &all[5], 9), &expected(12, &[(6, 6)], false, 0));
    check("an end of line", |disk, all| flip(disk, &all[4], 1), &expected(12, &[(5, 6)], false, 0));
    check("a bit of the newest", |disk, all| flip(disk, &all[9], 9), &expected(12, &[(10, 10)], false, 0));
    check(
        "what covers is cut itself",
        |disk, all| {
            flip(disk, &all[9], 9);
            flip(disk, &all[10], 9);
        },
        &expected(10, &[(10, 10)], true, 0),
    );
}

#[test]
fn segments_may_be_missing_or_empty() {
    check("the middle", |disk, _| disk.take(&first(5)), &expected(12, &[(5, 8)], false, 0));
    check("the first", |disk, _| disk.take(&first(1)), &expected(12, &[(1, 4)], false, 0));
    check("the newest", |disk, _| disk.take(&first(9)), &expected(8, &[], false, 0));
    check("an empty one", |disk, _| disk.put(&first(5), b""), &expected(12, &[(5, 8)], false, 1));
    check("zeros", |disk, _| disk.put(&first(5), &[0; 5000]), &expected(12, &[(5, 8)], false, 1));
    check("the newest is empty", |disk, _| disk.put(&first(9), b""), &expected(8, &[], false, 1));
    check("the newest is garbage", |disk, _| disk.put(&first(9), b"{}\n\n\0x"), &expected(8, &[], true, 1));
    check(
        "only a later name",
        |disk, _| {
            disk.take(&first(9));
            disk.put(&first(21), b"x");
        },
        &expected(20, &[(9, 20)], true, 1),
    );
    check(
        "unreadable",
        |disk, all| {
            let (name, _, end) = place(disk, &all[5]);
            disk.make_unreadable(&name, end as u64);
        },
        &expected(12, &[(5, 8)], false, 1),
    );
    check(
        "unfinished and other files",
        |disk, _| {
            disk.put("0000000000000013.jnl.new", b"x");
            disk.put("notes", b"x");
            disk.put("13.jnl", b"x");
            disk.put("0000000000000000.jnl", b"x");
        },
        &expected(12, &[], false, 0),
    );
}

#[test]
fn a_cut_may_be_cut_short() {
    for (stop, kill) in (0..16).flat_map(|stop| [(stop, false), (stop, true)]) {
        let (disk, aside) = (Twin::new(stop), Twin::new(2));
        let all = three_segments(&disk);
        let (name, at, end) = place(&disk, &all[10]);
        edit(&disk, &name, |bytes| bytes[at..end].fill(0));
        disk.stop_after(stop);
        drop(open(&disk, &aside));
        if kill {
            disk.restart();
        } else {
            disk.crash();
        }
        let (mut journal, _) = open(&disk, &aside).unwrap();
        let more = group(&journal, &mut Random::new(5), 1);
        journal.append(&more).unwrap();
        let (journal, _) = open(&disk, &aside).unwrap();
        assert_eq!(read(&journal.reader(), 0), ([&all[..10], &more].concat(), vec![]), "{stop} {kill}");
        assert!(aside.list().unwrap().iter().any(|name| aside.get(name).ends_with(&all[11].encode())), "{stop}");
    }
}

#[test]
fn a_bad_header_costs_no_line() {
    for (n, byte) in [(1, 0), (5, 20), (9, 12)] {
        check("a header", |disk, _| edit(disk, &first(n), |bytes| bytes[byte] ^= 1), &expected(12, &[], false, 1));
    }
}

#[test]
fn unfinished_segments_are_removed() {
    let disk = Twin::new(1);
    three_segments(&disk);
    disk.put("0000000000000013.jnl.new", b"x");
    open(&disk, &Twin::new(2)).unwrap();
    assert_eq!(disk.get("0000000000000013.jnl.new"), b"");
}

#[test]
fn a_newer_schema_is_refused_untouched() {
    for n in [1, 9] {
        let disk = Twin::new(1);
        three_segments(&disk);
        disk.put("0000000000000013.jnl.new", b"x");
        let header = frame(&format!(r#"{{"format":"nano journal","schema":{},"first":{n},"more":1}}"#, SCHEMA + 1));
        edit(&disk, &first(n), |bytes| bytes[..header.len()].copy_from_slice(&header));
        let counts = [Operation::Write, Operation::Sync].map(|of| disk.count(of));
        let refused = open(&disk, &Twin::new(2)).err().unwrap();
        let OpenError::Newer { segment, found } = refused else { panic!("{refused}") };
        assert_eq!((segment, found), (first(n), SCHEMA + 1));
        assert_eq!([Operation::Write, Operation::Sync].map(|of| disk.count(of)), counts);
    }
}

#[test]
fn an_unreadable_end_is_no_reason_to_cut() {
    let disk = Twin::new(1);
    three_segments(&disk);
    disk.make_unreadable(&first(9), 0);
    let writes = disk.count(Operation::Write);
    assert!(matches!(open(&disk, &Twin::new(2)), Err(OpenError::Disk { .. })));
    assert_eq!(disk.count(Operation::Write), writes);
}

proptest! {
    #[test]
    fn flipped_bits_are_never_believed(seed: u64, count in 1..40_u64) {
        let (disk, aside, mut random) = (Twin::new(seed), Twin::new(!seed), Random::new(seed));
        let all = three_segments(&disk);
        for _ in 0..count {
            let name = first(*random.pick(&[1, 5, 9]));
            edit(&disk, &name, |bytes| {
                let at = random.below(bytes.len() as u64) as usize;
                bytes[at] ^= 1 << random.below(8);
            });
        }
        let (journal, found) = open(&disk, &aside).unwrap();
        let (lines, lost) = read(&journal.reader(), 0);
        assert!(lines.iter().all(|line| all.contains(line)));
        let mut numbers: Vec<u64> = lines.iter().map(|line| line.number).collect();
        numbers.extend(lost.iter().flat_map(|(from, to)| *from..=*to));
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(1..=found.last));
        // That the newest group is lost shows nowhere but in what is cut.
        assert!(found.last >= 8 && (found.last == 12 || found.cut.is_some()), "{found:?}");
        assert_eq!(found.damaged.iter().map(|damage| (damage.first, damage.last)).collect::<Vec<_>>(), lost);
        disk.crash();
        let (again, found_again) = open(&disk, &aside).unwrap();
        assert_eq!((read(&again.reader(), 0), found_again.last, found_again.cut), ((lines, lost), found.last, None));
    }
}
