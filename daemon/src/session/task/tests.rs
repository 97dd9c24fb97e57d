//! The machine in a random world, one test for each promise; `tables` holds the cases that have names.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use witness::Promise;
use world::{Op, World, script};

mod tables;
mod witness;
mod words;
mod world;

/// Plays a script and fails where this one promise is broken.
fn keeps(promise: Promise, ops: &[Op]) -> Result<(), TestCaseError> {
    let broken = World::play(ops).broken;
    let broken: Vec<String> = broken.into_iter().filter(|(which, _)| *which == promise).map(|(_, what)| what).collect();
    prop_assert!(broken.is_empty(), "{promise:?}: {broken:#?}");
    Ok(())
}

macro_rules! promises {
    ($($name:ident => $promise:ident,)*) => {
        proptest! { $(
            #[test]
            fn $name(ops in script()) { keeps(Promise::$promise, &ops)?; }
        )* }
    };
}

promises! {
    never_two_tasks_at_once => OneTaskAtATime,
    each_task_ends_exactly_once => EachTaskEndsOnce,
    tasks_end_and_go_on_for_the_right_reason => EndsForTheRightReason,
    each_call_has_one_result_in_the_replys_order => EachCallHasOneResult,
    a_writing_call_runs_alone_and_calls_start_in_order => CallsStartInOrder,
    no_call_starts_after_a_redirect_was_accepted => HaltedCallsNeverStart,
    nothing_starts_and_nothing_is_asked_after_a_stop => NothingStartsAfterAStop,
    stops_reach_what_runs => StopsReachWhatRuns,
    no_steering_is_lost_or_doubled => SteeringIsNeitherLostNorDoubled,
    turns_are_bounded => TurnsAreBounded,
    turns_have_one_shape => TurnsHaveOneShape,
    the_queue_keeps_its_order => TheQueueKeepsItsOrder,
    repeats_are_counted_across_restarts => RepeatsAreCounted,
    late_inputs_change_nothing => LateInputsChangeNothing,
    nothing_starts_in_a_daemon_that_goes_down => SuspendedNothingStarts,
    it_never_gets_stuck => ItNeverGetsStuck,
}

/// The properties say something only where scripts go everywhere.
#[test]
fn scripts_reach_every_corner() {
    let mut runner = TestRunner::deterministic();
    let mut reached = BTreeSet::new();
    for _ in 0..2000 {
        reached.extend(World::play(&script().new_tree(&mut runner).unwrap().current()).reached);
    }
    let ends = ["done", "length", "max_turns", "timeout", "loop", "budget", "error", "cancelled"]
        .map(|why| format!("ended: {why}"));
    let not_run = ["redirect", "cancel", "length", "limit", "restart"].map(|why| format!("not run: {why}"));
    let at_once = (1..=8).map(|count| format!("{count} at once"));
    let all: BTreeSet<String> =
        ends.into_iter().chain(not_run).chain(at_once).chain(["run again".to_owned()]).collect();
    assert_eq!(reached, all);
}
