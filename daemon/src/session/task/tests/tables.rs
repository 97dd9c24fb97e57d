//! Tables: what a machine makes of each input, in the words of the loop's acceptance table.

use nano_protocol::id::{MessageId, TaskId};
use nano_protocol::session::Delivery::{self, Interrupt, Note, Redirect};

use super::super::{Effect, Input, Left, Machine, Queued, Steer, Stop};
use super::words::*;

#[test]
fn redirect_ends_the_batch_and_note_waits_for_it() {
    // Row 3, 35: in the first of three calls; both messages go in together.
    check(&[
        (submit(20), "p: < U ask"),
        (says(&[WRITES, WRITES, WRITES]), "A start0"),
        (steer("S1", Redirect), ""),
        (steer("S2", Redirect), ""),
        (ended(0), "end0 T0 T1!redirect T2!redirect > < S1 S2 ask"),
        (says(&[]), "A > p=succeeded:done"),
    ]);
    check(&[
        (submit(20), "p: < U ask"),
        (says(&[WRITES, WRITES]), "A start0"),
        (steer("S1", Note), ""),
        (steer("S2", Note), ""),
        (ended(0), "end0 T0 start1"),
        (ended(1), "end1 T1 > < S1 S2 ask"),
        (says(&[]), "A > p=succeeded:done"),
    ]);
}

#[test]
fn redirect_counts_from_when_it_was_accepted() {
    // Row 6: while the reply streams; none of its calls starts.
    check(&[
        (submit(20), "p: < U ask"),
        (steer("S", Redirect), ""),
        (says(&[WRITES, WRITES]), "A T0!redirect T1!redirect > < S ask"),
    ]);
    // Taken back before the reply is there, it redirects nothing.
    check(&[
        (submit(20), "p: < U ask"),
        (steer("S", Redirect), ""),
        (Input::Withdraw("S".into()), "drop(S)"),
        (says(&[WRITES]), "A start0"),
    ]);
}

#[test]
fn steering_into_the_last_reply_is_answered() {
    // Rows 7, 8: what waits goes in together.
    check(&[
        (submit(20), "p: < U ask"),
        (steer("S1", Note), ""),
        (steer("S2", Note), ""),
        (says(&[]), "A > < S1 S2 ask"),
        (says(&[]), "A > p=succeeded:done"),
    ]);
}

#[test]
fn interrupt_stops_the_stream_and_the_calls() {
    check(&[
        (submit(20), "p: < U ask"),
        (steer("S1", Interrupt), "stop-model"),
        (steer("S2", Interrupt), ""),
        (Input::ModelStopped, "A > < S1 S2 ask"),
        (says(&[READS, READS, WRITES]), "A start0 start1"),
        (steer("S3", Interrupt), "stop0 stop1"),
        (ended(1), "end1"),
        (ended(0), "end0 T0 T1 T2!redirect > < S3 ask"),
    ]);
}

#[test]
fn cancel_starts_nothing_and_asks_nothing() {
    // Rows 29, 30: in the first of two calls; a call that ends late, or a second time, changes nothing.
    check(&[
        (submit(20), "p: < U ask"),
        (says(&[WRITES, WRITES]), "A start0"),
        (ended(1), ""),
        (cancel("p"), "stop0"),
        (ended(0), "end0 T0 T1!cancel > p=cancelled:cancelled"),
        (ended(0), ""),
        (ended(1), ""),
        (cancel("p"), ""),
    ]);
    // Row 28: while it streams; the text so far is kept, what waits is carried.
    check(&[
        (submit(20), "p: < U ask"),
        (steer("S", Note), ""),
        (cancel("p"), "stop-model"),
        (Input::ModelStopped, "A > p=cancelled:cancelled carry(S)"),
        (another("q"), "q: < U S ask"),
    ]);
    // A reply that came before it could be stopped.
    check(&[
        (submit(20), "p: < U ask"),
        (cancel("p"), "stop-model"),
        (says(&[READS, WRITES]), "A T0!cancel T1!cancel > p=cancelled:cancelled"),
    ]);
}

#[test]
fn reading_calls_run_at_once() {
    // Row 34: a redirect lets those that run finish, in the reply's order.
    check(&[
        (submit(20), "p: < U ask"),
        (says(&[READS, READS, WRITES, READS]), "A start0 start1"),
        (steer("S", Redirect), ""),
        (ended(1), "end1"),
        (ended(0), "end0 T0 T1 T2!redirect T3!redirect > < S ask"),
    ]);
    // A note lets all run; the one that writes runs alone.
    check(&[
        (submit(20), "p: < U ask"),
        (says(&[READS, READS, WRITES, READS]), "A start0 start1"),
        (steer("S", Note), ""),
        (ended(1), "end1"),
        (ended(0), "end0 T0 T1 start2"),
        (ended(2), "end2 T2 start3"),
        (ended(3), "end3 T3 > < S ask"),
    ]);
    check(&[
        (submit(20), "p: < U ask"),
        (says(&[READS; 10]), "A start0 start1 start2 start3 start4 start5 start6 start7"),
        (ended(5), "end5 start8"),
        (ended(0), "end0 T0 start9"),
    ]);
}

#[test]
fn turns_are_used_up() {
    // Row 41.
    check(&[
        (submit(2), "p: < U ask"),
        (says(&[WRITES]), "A start0"),
        (ended(0), "end0 T0 > < ask"),
        (says(&[WRITES]), "A start0"),
        (ended(0), "end0 T0 > p=failed:max_turns"),
    ]);
    // Interrupting does not make more of them.
    check(&[
        (submit(1), "p: < U ask"),
        (another("q"), ""),
        (steer("S", Interrupt), "stop-model"),
        (Input::ModelStopped, "A > p=failed:max_turns carry(S) q: < U S ask"),
    ]);
}

#[test]
fn cut_replies() {
    // Without calls: at once.
    check(&[(submit(20), "p: < U ask"), (is_cut(&[]), "A > p=failed:length")]);
    // With calls: none runs; two in a row end it.
    check(&[
        (submit(20), "p: < U ask"),
        (is_cut(&[READS, WRITES]), "A T0!length T1!length > < ask"),
        (is_cut(&[READS]), "A T0!length > p=failed:length"),
    ]);
    // A whole reply between them begins anew, and so does one that was stopped.
    for between in [says(&[]), Input::ModelStopped] {
        check(&[
            (submit(20), "p: < U ask"),
            (is_cut(&[READS]), "A T0!length > < ask"),
            (steer("S", Interrupt), "stop-model"),
            (between, "A > < S ask"),
            (is_cut(&[READS]), "A T0!length > < ask"),
        ]);
    }
}

#[test]
fn repeats_warn_at_three_and_end_at_six() {
    let mut script = vec![(submit(20), "p: < U ask")];
    for ends in ["end0 T0 > < ask", "end0 T0 > < ask", "end0(3 times) T0 > < ask", "end0(4 times) T0 > < ask"] {
        script.extend([(says(&[WRITES]), "A start0"), (ended_as(0, 7), ends)]);
        // Another one between them does not make it new; one that may repeat does not count.
        script.extend([
            (says(&[WRITES, WRITES]), "A start0"),
            (ended(0), "end0 T0 start1"),
            (ended(1), "end1 T1 > < ask"),
        ]);
    }
    script.extend([
        (says(&[READS, READS, WRITES]), "A start0 start1"),
        (ended_as(1, 7), "end1(5 times)"),
        (ended_as(0, 7), "end0(6 times) T0 T1 T2!limit > p=failed:loop"),
    ]);
    check(&script);
}

#[test]
fn budgets() {
    // An answer is an answer, whatever it cost.
    check(&[(submit(20), "p: < U ask"), (spends_all(&[]), "A > p=succeeded:done")]);
    check(&[(submit(20), "p: < U ask"), (spends_all(&[READS]), "A T0!limit > p=failed:budget")]);
    // What waits would cost more.
    check(&[(submit(20), "p: < U ask"), (steer("S", Note), ""), (spends_all(&[]), "A > p=failed:budget carry(S)")]);
}

#[test]
fn the_first_reason_to_stop_stands() {
    check(&[
        (submit(20), "p: < U ask"),
        (says(&[READS, READS, WRITES]), "A start0 start1"),
        (steer("S", Redirect), ""),
        (Input::Stop(Stop::Timeout), "stop0 stop1"),
        (cancel("p"), "stop0 stop1"),
        (ended(0), "end0 T0"),
        (ended(1), "end1 T1 T2!limit > p=failed:timeout carry(S)"),
    ]);
}

#[test]
fn an_interrupted_task_holds_the_queue() {
    let held =
        || Machine::restore(Some(TaskId("p".into())), [Queued::fresh(TaskId("q".into()), 20)].into(), Vec::new());
    let after = |input: Input| {
        let mut machine = held();
        assert_eq!(machine.begin(), [], "it waits");
        machine.on(input).iter().map(word).collect::<Vec<_>>().join(" ")
    };
    let resumed = Queued { resumed: true, ..Queued::fresh(TaskId("p".into()), 20) };
    assert_eq!(after(another("r")), "");
    assert_eq!(after(steer("S", Interrupt)), "");
    assert_eq!(after(Input::Resume(resumed)), "p: < ask");
    assert_eq!(after(cancel("p")), "p=cancelled:cancelled q: < U ask");
    assert_eq!(after(cancel("q")), "q=cancelled:cancelled");
    assert_eq!(after(Input::Close), "q=cancelled:cancelled p=cancelled:cancelled");
}

#[test]
fn calls_of_a_dead_daemon_run_again_before_the_model_is_asked() {
    let again = Left::Again { read_only: true };
    let writes = Left::Again { read_only: false };
    let check = |left: &[Left], waiting: &[Delivery], then: Vec<(Input, &str)>, expected: &str| {
        let task = Queued { resumed: true, left: left.to_vec(), ..Queued::fresh(TaskId("p".into()), 20) };
        let steers = waiting.iter().map(|&delivery| Steer { message: MessageId("S".into()), delivery });
        let mut machine = Machine::restore(None, [task].into(), steers.collect());
        let words = |effects: Vec<Effect>| effects.iter().map(word).collect::<Vec<_>>().join(" ");
        assert_eq!(words(machine.begin()), expected, "{left:?}");
        for (input, expected) in then {
            assert_eq!(words(machine.on(input.clone())), expected, "{left:?}, {input:?}");
        }
    };
    check(
        &[Left::Kept, again, Left::Ended, again, Left::Never],
        &[Note],
        vec![(ended(3), "end3"), (ended(1), "end1 T1 T2 T3 T4!restart > < S ask")],
        "p: start1 start3",
    );
    check(&[Left::Ended, again], &[], vec![(ended(1), "end1 T1 > < ask")], "p: T0 start1");
    let stopped = vec![(cancel("p"), "stop0"), (ended(0), "end0 T0 T1 T2!restart > p=cancelled:cancelled")];
    check(&[writes, writes, Left::Never], &[], stopped, "p: start0");
    check(&[again, Left::Never], &[Redirect], vec![], "p: T0 T1!restart > < S ask");
}

#[test]
fn a_daemon_that_goes_down_ends_nothing_and_starts_nothing() {
    // The request is made again after the restart.
    check(&[
        (submit(20), "p: < U ask"),
        (another("q"), ""),
        (Input::Suspend, "stop-model"),
        (Input::ModelStopped, ""),
        (steer("S", Interrupt), ""),
        (cancel("q"), "q=cancelled:cancelled"),
    ]);
    // The running call ends, the next does not start.
    check(&[
        (submit(20), "p: < U ask"),
        (says(&[WRITES, WRITES]), "A start0"),
        (Input::Suspend, ""),
        (ended(0), "end0 T0"),
        (cancel("p"), "T1!cancel > p=cancelled:cancelled"),
    ]);
    // An answer that came all the same is the answer.
    check(&[
        (submit(20), "p: < U ask"),
        (another("q"), ""),
        (Input::Suspend, "stop-model"),
        (says(&[]), "A > p=succeeded:done"),
    ]);
}
