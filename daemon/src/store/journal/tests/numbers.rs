//! Which numbers a journal has: they can go on later, and the oldest can go.

use nano_tests::random::Random;

use super::super::super::twin::Twin;
use super::super::Journal;
use super::damage::{open, three_segments};
use super::{group, read};

#[test]
fn numbers_can_go_on_later() {
    let disk = Twin::new(1);
    let all = three_segments(&disk);
    let (mut journal, _) = open(&disk, &Twin::new(2)).unwrap();
    journal.number_on_from(5);
    assert_eq!(journal.last(), 12);
    journal.number_on_from(30);
    let lines = group(&journal, &mut Random::new(1), 2);
    journal.append(&lines).unwrap();
    let expected = ([all, lines].concat(), vec![(13, 30)]);
    assert_eq!(read(&journal.reader(), 0), expected);
    let (mut journal, found) = open(&disk, &Twin::new(2)).unwrap();
    assert_eq!((read(&journal.reader(), 0), found.last), (expected, 32));
    let wrong = group(&journal, &mut Random::new(1), 3).split_off(1);
    assert!(journal.append(&wrong).is_err());
    assert_eq!(journal.last(), 32);
}

#[test]
fn segments_that_are_not_needed_are_dropped() {
    let numbers = |journal: &Journal| -> Vec<(u64, u64)> {
        journal.sealed().unwrap().iter().map(|sealed| (sealed.first, sealed.last)).collect()
    };
    for (through, left, when_sealed) in [
        (3, vec![1, 5, 9], vec![(1, 4), (5, 8), (9, 12)]),
        (4, vec![5, 9], vec![(5, 8), (9, 12)]),
        (7, vec![5, 9], vec![(5, 8), (9, 12)]),
        (u64::MAX, vec![9], vec![(9, 12)]),
    ] {
        let disk = Twin::new(1);
        let all = three_segments(&disk);
        let (mut journal, _) = open(&disk, &Twin::new(2)).unwrap();
        let reader = journal.reader();
        let mut beside = reader.lines(8, 10);
        assert_eq!(journal.drop_through(through).unwrap(), 3 - left.len());
        assert_eq!(numbers(&journal), when_sealed[..when_sealed.len() - 1]);
        journal.seal();
        assert_eq!((numbers(&journal), journal.segments.clone()), (when_sealed, left));
        disk.crash();
        let (journal, found) = open(&disk, &Twin::new(2)).unwrap();
        assert_eq!((found.last, found.damaged), (12, vec![]));
        assert_eq!(read(&journal.reader(), 8), (all[8..].to_vec(), vec![]));
        assert_eq!(beside.next(), Some(Ok(all[8].clone())));
        assert_eq!((beside.next(), beside.next()), (Some(Ok(all[9].clone())), None));
    }
}
