//! Lines cut into checkpoints anywhere, with a failure or a power cut at any effect.

use proptest::collection::vec;
use proptest::prelude::*;

use super::super::super::journal::line::Entry;
use super::super::super::tail::Span;
use super::disk::Fault;
use super::world::{World, puts};

#[derive(Debug, Clone)]
enum Step {
    Line(Vec<Entry>),
    Next,
    Fails(u64),
    Dies(u64, u64),
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
        1 => (1_u64..30).prop_map(Step::Fails),
        2 => (1_u64..40, any::<u64>()).prop_map(|(at, seed)| Step::Dies(at, seed)),
        1 => Just(Step::Reopen),
    ]
}

/// A choice below n that differs each time, from a seed.
fn picker(mut seed: u64) -> impl FnMut(usize) -> usize {
    move |below| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 33).unwrap() % below
    }
}

fn fails(world: &mut World, at: u64) {
    let before = world.disk.files();
    world.disk.fail(Fault::Once(at));
    let made = world.next();
    world.disk.fail(Fault::None);
    if made.is_err() {
        // What an interrupted one before it had left may be gone.
        let is_left = |(name, data): (&String, &Vec<u8>)| before.get(name) == Some(data);
        assert!(world.disk.files().iter().all(is_left), "{:?}", world.disk.files().keys());
    }
}

fn dies(world: &mut World, at: u64, seed: u64) {
    world.disk.fail(Fault::From(at));
    // What it said is not heard by the next process; the journal drops nothing before that.
    let kept = world.kept;
    drop(world.next());
    world.kept = kept;
    world.disk.crash(picker(seed));
    world.reopen();
}

fn go(world: &mut World, step: Step) {
    match step {
        Step::Line(entries) => world.line(entries),
        Step::Next => world.next().unwrap(),
        Step::Fails(at) => fails(world, at),
        Step::Dies(at, seed) => dies(world, at, seed),
        Step::Reopen => world.reopen(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn the_truth_is_what_all_lines_come_to(steps in vec(step(), 1..30), from in key(), to in prop::option::of(key())) {
        let mut world = World::new();
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
        steps in vec(step(), 1..20),
        at in any::<prop::sample::Index>(),
        how in 0..4_u8,
        place in any::<prop::sample::Index>(),
    ) {
        let mut world = World::new();
        for step in steps {
            go(&mut world, step);
        }
        let files: Vec<_> = world.disk.files().into_iter().filter(|(_, data)| !data.is_empty()).collect();
        prop_assume!(!files.is_empty());
        let (name, data) = at.get(&files);
        world.disk.set(name, super::damage::damaged(data, how, place.index(data.len())));
        world.reopen();
        super::damage::is_whole_but_for_what_is_named(&world);
    }
}

#[test]
fn a_checkpoint_may_fail_or_die_at_each_effect() {
    let lines = [puts(0..40), puts(10..25), [puts(30..60), vec![Entry::DeleteAll(b"00".into())]].concat()];
    let mut start = World::of(lines[..2].to_vec());
    start.line(lines[2].clone());
    let mut clean = start.copy();
    clean.disk.fail(Fault::None);
    clean.next().unwrap();
    let effects = clean.disk.effects();
    assert!(effects > 15, "{effects}");
    for at in 1..=effects {
        let mut world = start.copy();
        fails(&mut world, at);
        world.is_whole();
        for seed in 0..8 {
            let mut world = start.copy();
            for at in [at, at + seed] {
                dies(&mut world, at, seed);
                // No other generation has to stand in for one that is there.
                world.is_readable();
                world.is_whole();
            }
            world.next().unwrap();
            world.is_whole();
            world.is_clean();
        }
    }
}

#[test]
fn what_is_made_stays_made() {
    for seed in 0..20 {
        let mut world = World::of([puts(0..40), puts(5..9)]);
        world.disk.crash(picker(seed));
        world.reopen();
        assert_eq!(world.checkpoints.newest().generation, 2);
        world.is_readable();
        world.is_whole();
    }
}

#[test]
fn what_a_failed_one_leaves_is_the_last_generation_untouched() {
    let mut world = World::of([puts(0..40), puts(5..9)]);
    world.line(puts(0..90));
    let before = world.disk.files();
    for at in 1.. {
        world.disk.fail(Fault::Once(at));
        if world.next().is_ok() {
            // From here on the new generation counts: what fails is the removal of old files.
            assert!(at > 10, "{at}");
            break;
        }
        assert_eq!(world.disk.files(), before, "{at}");
        assert_eq!((world.checkpoints.newest().generation, world.checkpoints.through()), (2, 1), "{at}");
    }
    world.is_whole();
    world.line(vec![]);
    world.next().unwrap();
    world.is_clean();
}
