//! Lines cut into checkpoints anywhere, with a failure or a power cut at any effect.

use std::io::ErrorKind;

use proptest::collection::vec;
use proptest::prelude::*;

use super::super::super::journal::line::Entry;
use super::super::super::tail::Span;
use super::super::super::twin::{Fault, Operation};
use super::world::{World, files, puts};

#[derive(Debug, Clone, Copy)]
enum Death {
    Kill,
    PowerCut,
}

#[derive(Debug, Clone)]
enum Step {
    Line(Vec<Entry>),
    Next,
    Fails(Operation, u64),
    Dies(u64, Death),
    Reopen,
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    vec(prop::sample::select(vec![0, b'a', b'b', 0xff]), 0..4)
}

fn entry() -> impl Strategy<Value = Entry> {
    // Some are larger than a chunk.
    let value = (any::<u8>(), prop_oneof![6 => Just(8_usize), 1 => Just(150)]);
    let value = value.prop_map(|(byte, length)| format!("\"{}\"", format!("{byte:02x}").repeat(length)).into_bytes());
    prop_oneof![
        6 => (key(), value).prop_map(|(key, value)| Entry::Put(key, value)),
        2 => key().prop_map(Entry::Delete),
        1 => key().prop_filter("not everything each time", |key| key.len() > 1).prop_map(Entry::DeleteAll),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => vec(entry(), 0..8).prop_map(Step::Line),
        3 => Just(Step::Next),
        1 => (0_u64..20).prop_map(|at| Step::Fails(Operation::Write, at)),
        1 => (0_u64..10).prop_map(|at| Step::Fails(Operation::Sync, at)),
        1 => (0_u64..40).prop_map(|at| Step::Dies(at, Death::Kill)),
        2 => (0_u64..40).prop_map(|at| Step::Dies(at, Death::PowerCut)),
        1 => Just(Step::Reopen),
    ]
}

/// Tries a checkpoint that fails at an operation, counted from 0, if it gets so far.
fn fails(world: &mut World, of: Operation, at: u64) -> bool {
    let before = files(&world.disk);
    let at = world.disk.count(of) + at + 1;
    world.disk.fail([Fault { of, at, lasting: false, kind: ErrorKind::StorageFull }]);
    let made = world.next();
    world.disk.fail([]);
    if made.is_err() {
        // What an interrupted one before it had left may be gone.
        let after = files(&world.disk);
        assert!(after.iter().all(|(name, data)| before.get(name) == Some(data)), "{:?}", after.keys());
    }
    made.is_err()
}

/// Dies after some operations of a checkpoint.
fn dies(world: &mut World, after: u64, death: Death) {
    // What it said is not heard by the next process; the journal drops nothing before that.
    let kept = world.kept;
    world.disk.stop_after(after);
    drop(world.next());
    world.kept = kept;
    match death {
        Death::Kill => world.disk.restart(),
        Death::PowerCut => world.disk.crash(),
    }
    world.reopen();
}

fn go(world: &mut World, step: Step) {
    match step {
        Step::Line(entries) => world.line(entries),
        Step::Next => world.next().unwrap(),
        Step::Fails(of, at) => _ = fails(world, of, at),
        Step::Dies(after, death) => dies(world, after, death),
        Step::Reopen => world.reopen(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn the_truth_is_what_all_lines_come_to(
        seed: u64,
        steps in vec(step(), 1..30),
        from in key(),
        to in prop::option::of(key()),
    ) {
        let mut world = World::new(seed);
        let span = Span { from, to };
        for step in steps {
            go(&mut world, step);
            world.is_whole();
            let expected = world.model().into_iter().filter(|(key, _)| span.contains(key)).map(Ok).collect::<Vec<_>>();
            prop_assert_eq!(world.read(&span), expected);
        }
        world.next().unwrap();
        world.is_clean();
    }

    #[test]
    fn what_is_damaged_comes_back_or_is_named(
        seed: u64,
        steps in vec(step(), 1..20),
        at in any::<prop::sample::Index>(),
        how in 0..5_u8,
        place in any::<prop::sample::Index>(),
    ) {
        let mut world = World::new(seed);
        for step in steps {
            go(&mut world, step);
        }
        let files: Vec<_> = files(&world.disk).into_iter().filter(|(_, data)| !data.is_empty()).collect();
        prop_assume!(!files.is_empty());
        let (name, data) = at.get(&files);
        super::damage::damage(&world.disk, name, how, place.index(data.len()));
        world.reopen();
        super::damage::is_whole_but_for_what_is_named(&world);
    }
}

/// Two generations, and lines for a third that writes chunks anew, keeps some, joins some and adds some.
fn before_the_third() -> World {
    let mut world = World::of([puts(0..40), puts(10..25)]);
    world.line([puts(30..60), vec![Entry::DeleteAll(b"00".into())]].concat());
    world
}

#[test]
fn a_checkpoint_may_die_at_each_effect_and_once_more() {
    let start = before_the_third();
    let mut clean = start.copy(0);
    clean.next().unwrap();
    let effects = clean.disk.count(Operation::Write) + clean.disk.count(Operation::Sync);
    assert!(effects > 15, "{effects}");
    for (after, seed) in (0..=effects).flat_map(|after| (0..8).map(move |seed| (after, seed))) {
        let death = if seed == 0 { Death::Kill } else { Death::PowerCut };
        let mut world = start.copy(seed);
        for after in [after, after + seed] {
            dies(&mut world, after, death);
            // No other generation has to stand in for one that is there.
            world.is_readable();
            world.is_whole();
        }
        world.next().unwrap();
        world.is_whole();
        world.is_clean();
    }
}

#[test]
fn what_is_made_stays_made() {
    let start = before_the_third();
    for seed in 0..20 {
        let mut world = start.copy(seed);
        world.next().unwrap();
        world.disk.crash();
        world.reopen();
        assert_eq!(world.checkpoints.newest().generation, 3);
        world.is_readable();
        world.is_whole();
    }
}

#[test]
fn what_a_failed_one_leaves_is_the_last_generation_untouched() {
    let start = before_the_third();
    for (of, most) in [(Operation::Write, 20), (Operation::Sync, 9)] {
        let mut failed = 0;
        for at in 0..most {
            let mut world = start.copy(at);
            let before = files(&world.disk);
            if fails(&mut world, of, at) {
                failed += 1;
                assert_eq!(files(&world.disk), before, "{of:?} {at}");
                assert_eq!((world.checkpoints.newest().generation, world.checkpoints.through()), (2, 1));
            }
            world.is_whole();
            world.next().unwrap();
            world.is_whole();
            world.is_clean();
        }
        // The last are those of the removal of old files, which may fail: the new generation counts.
        assert!(failed > 5 && failed < most, "{failed} {of:?}");
    }
}

#[test]
fn a_full_disk_costs_a_checkpoint_and_nothing_else() {
    let start = before_the_third();
    let size: usize = files(&start.disk).values().map(Vec::len).sum();
    let mut results = Vec::new();
    for more in (0..4000).step_by(50) {
        let mut world = start.copy(more);
        let before = files(&world.disk);
        world.disk.limit(size as u64 + more);
        results.push(world.next().is_ok());
        assert!(results.last() == Some(&true) || files(&world.disk) == before, "{more}");
        world.is_whole();
        world.disk.limit(u64::MAX);
        world.next().unwrap();
        world.is_whole();
        world.is_clean();
    }
    assert!(results.is_sorted() && results.first() < results.last(), "{results:?}");
}
