//! Power cuts, kills and failing disks: what was acknowledged is there and in order, the rest whole or not at all.

use std::io::ErrorKind;

use nano_tests::random::Random;
use proptest::prelude::{ProptestConfig, proptest};

use super::super::super::twin::{Fault, Operation, Twin};
use super::super::line::Line;
use super::super::{AppendError, Found, Journal, OpenError, segment};
use super::{group, read};

/// Room for some three lines.
const SIZE: u64 = 600;

fn open(disk: &Twin, aside: &Twin) -> Result<(Journal, Found), OpenError> {
    super::open(disk, aside, SIZE)
}

/// A journal on a disk, and what it has promised.
struct World {
    disk: Twin,
    aside: Twin,
    random: Random,
    acked: Vec<Line>,
    dropped: u64,
    /// What was being appended when the journal ended.
    unsure: Vec<Line>,
}

#[derive(Clone, Copy, PartialEq)]
enum End {
    Kill,
    PowerCut,
}

impl World {
    fn new(seed: u64) -> Self {
        Self {
            disk: Twin::new(seed),
            aside: Twin::new(!seed),
            random: Random::new(seed.rotate_left(32)),
            acked: Vec::new(),
            dropped: 0,
            unsure: Vec::new(),
        }
    }

    /// Opens, appends `groups` groups with what goes on beside that, until the disk ends it.
    fn live(&mut self, groups: u64) {
        let Ok((mut journal, _)) = open(&self.disk, &self.aside) else { return };
        for _ in 0..groups {
            let count = 1 + self.random.below(3);
            let lines = group(&journal, &mut self.random, count);
            match journal.append(&lines) {
                Ok(()) => self.acked.extend(lines),
                Err(AppendError::Write(_)) => assert_eq!(journal.last(), self.last()),
                Err(AppendError::Sync(_)) => {
                    assert!(matches!(journal.append(&lines), Err(AppendError::Sync(_))), "it went on");
                    self.unsure = lines;
                    return;
                }
            }
            match self.random.below(12) {
                0 => journal.seal(),
                1 => {
                    // They may be gone also where that fails.
                    self.dropped = self.dropped.max(journal.last().saturating_sub(5));
                    drop(journal.drop_through(self.dropped));
                }
                _ => {}
            }
        }
    }

    fn last(&self) -> u64 {
        self.acked.last().map_or(0, |line| line.number)
    }

    fn end(&self, how: End) {
        match how {
            End::Kill => self.disk.restart(),
            End::PowerCut => self.disk.crash(),
        }
    }

    /// Opens the journal twice: all that was acknowledged is there, and behind it at most what was being appended.
    #[track_caller]
    fn check(&mut self) {
        let (journal, found) = open(&self.disk, &self.aside).unwrap();
        assert!(found.damaged.iter().all(|damage| damage.last <= self.dropped), "{found:?}");
        let (lines, lost) = read(&journal.reader(), self.dropped);
        assert!(lost.is_empty(), "{lost:?}");
        let acked: Vec<_> = self.acked.iter().filter(|line| line.number > self.dropped).cloned().collect();
        assert!(lines.starts_with(&acked), "{lines:?}\n{acked:?}");
        assert!(self.unsure.starts_with(&lines[acked.len()..]), "{:?}", &lines[acked.len()..]);
        let came = lines[acked.len()..].to_vec();
        self.acked.extend(came);
        self.unsure.clear();
        let (again, found) = open(&self.disk, &self.aside).unwrap();
        assert_eq!(found.cut, None);
        assert_eq!(read(&again.reader(), self.dropped), (lines, lost));
        assert_eq!((found.last, again.last(), journal.last()), (self.last(), self.last(), self.last()));
    }
}

/// Returns how many operations, writes and syncs a run without failure has.
fn clean(seed: u64) -> (u64, u64, u64) {
    let mut world = World::new(seed);
    world.live(12);
    assert_eq!(world.unsure, []);
    world.end(End::PowerCut);
    world.check();
    let (writes, syncs) = (world.disk.count(Operation::Write), world.disk.count(Operation::Sync));
    (writes + syncs, writes, syncs)
}

#[test]
fn the_power_may_go_at_any_operation() {
    for seed in 0..3 {
        let (operations, ..) = clean(seed);
        assert!(operations > 30, "{operations}");
        for at in 0..operations {
            for how in [End::PowerCut, End::Kill] {
                let mut world = World::new(seed);
                world.disk.stop_after(at);
                world.live(12);
                world.end(how);
                world.check();
                world.live(3);
                world.end(End::PowerCut);
                world.check();
            }
        }
    }
}

#[test]
fn the_power_may_go_again_while_it_opens() {
    for seed in 0..40 {
        let (operations, ..) = clean(seed);
        for again in 0..12 {
            let mut world = World::new(seed);
            let at = world.random.below(operations);
            world.disk.stop_after(at);
            world.live(12);
            world.end(End::PowerCut);
            world.disk.stop_after(again);
            drop(open(&world.disk, &world.aside));
            world.end(if again % 2 == 0 { End::PowerCut } else { End::Kill });
            world.check();
        }
    }
}

#[test]
fn any_write_or_sync_may_fail() {
    let kinds = [ErrorKind::StorageFull, ErrorKind::Other];
    for seed in 0..2 {
        let (_, writes, syncs) = clean(seed);
        let all = (1..=writes).map(|at| (Operation::Write, at)).chain((1..=syncs).map(|at| (Operation::Sync, at)));
        for (of, at) in all {
            for (lasting, how) in [(false, End::PowerCut), (true, End::PowerCut), (false, End::Kill)] {
                let mut world = World::new(seed);
                world.disk.fail([Fault { of, at, lasting, kind: kinds[at as usize % 2] }]);
                world.live(12);
                // What a sync has failed to write stays unwritten.
                world.end(how);
                world.disk.fail([]);
                world.check();
                world.end(End::PowerCut);
                world.check();
                world.live(3);
                world.check();
            }
        }
    }
}

#[test]
fn a_failed_append_does_not_come_back() {
    for seed in 0..100 {
        let mut world = World::new(seed);
        let (mut journal, _) = super::open(&world.disk, &world.aside, 4096).unwrap();
        world.acked = group(&journal, &mut world.random, 2);
        journal.append(&world.acked).unwrap();
        let lines = group(&journal, &mut world.random, 5);
        let at = world.disk.count(Operation::Write) + 1;
        world.disk.fail([Fault { of: Operation::Write, at, lasting: false, kind: ErrorKind::StorageFull }]);
        assert!(matches!(journal.append(&lines), Err(AppendError::Write(_))));
        world.end(if seed % 2 == 0 { End::PowerCut } else { End::Kill });
        world.check();
    }
}

#[test]
fn the_old_segment_is_done_with_once_a_new_one_was_begun() {
    let mut world = World::new(1);
    let (mut journal, _) = open(&world.disk, &world.aside).unwrap();
    let first = group(&journal, &mut world.random, 1);
    journal.append(&first).unwrap();
    let large = group(&journal, &mut world.random, 9);
    world.disk.limit(SIZE);
    assert!(matches!(journal.append(&large), Err(AppendError::Write(_))));
    // It was not told so, but there it is.
    world.disk.limit(u64::MAX);
    segment::make(&world.disk, 2, SIZE).map(drop).unwrap();
    let small = group(&journal, &mut world.random, 1);
    journal.append(&small).unwrap();
    world.acked = [first, small].concat();
    world.check();
}

#[test]
fn the_first_failed_sync_is_the_last() {
    let (disk, aside) = (Twin::new(1), Twin::new(2));
    let (mut journal, _) = open(&disk, &aside).unwrap();
    let lines = group(&journal, &mut Random::new(3), 1);
    let at = disk.count(Operation::Sync) + 1;
    disk.fail([Fault { of: Operation::Sync, at, lasting: false, kind: ErrorKind::StorageFull }]);
    for _ in 0..3 {
        assert!(matches!(journal.append(&lines), Err(AppendError::Sync(_))));
    }
    assert!(matches!(journal.drop_through(0), Err(AppendError::Sync(_))));
    assert_eq!((disk.count(Operation::Sync), journal.last()), (at, 0));
}

#[test]
fn a_full_disk_is_left_behind_without_opening_again() {
    for room in (0..4 * SIZE).step_by(37) {
        let mut world = World::new(room);
        world.disk.limit(room);
        let (mut journal, _) = open(&world.disk, &world.aside).unwrap();
        let mut refused = 0;
        for _ in 0..40 {
            let lines = group(&journal, &mut world.random, 2);
            match journal.append(&lines) {
                Ok(()) => world.acked.extend(lines),
                Err(AppendError::Write(why)) => {
                    assert_eq!(why.kind(), ErrorKind::StorageFull);
                    refused += 1;
                    if refused == 3 {
                        world.disk.limit(u64::MAX);
                    }
                }
                Err(why) => panic!("{why}"),
            }
        }
        assert_eq!(refused, 3);
        world.end(End::PowerCut);
        world.check();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn many_lives_lose_nothing(seed: u64) {
        let mut world = World::new(seed);
        for _ in 0..8 {
            if world.random.below(3) > 0 {
                let at = world.random.below(60);
                world.disk.stop_after(at);
            }
            world.live(15);
            let how = if world.random.below(2) == 0 { End::Kill } else { End::PowerCut };
            world.end(how);
            world.check();
        }
    }
}
