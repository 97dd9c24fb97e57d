//! The table of the loop: each file of `fixtures/loop` is a case that is played against the real daemon.

use std::collections::BTreeSet;

use crate::loop_case::{self, Case};

/// The rows that the cases must cover between them.
const ROWS: [u32; 39] = [
    1, 2, 3, 4, 6, 7, 8, 9, 11, 12, 13, 14, 15, 16, 18, 20, 21, 22, 24, 25, 27, 28, 29, 30, 32, 34, 35, 37, 38, 39, 41,
    42, 43, 44, 49, 52, 53, 56, 57,
];

fn read(name: &str) -> Case {
    let path = format!("{}/fixtures/loop/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"))
}

macro_rules! cases {
    ($($test:ident => $name:literal;)+) => {
        const NAMES: &[&str] = &[$($name),+];

        $(
            #[test]
            fn $test() {
                loop_case::play(&read($name));
            }
        )+
    };
}

cases! {
    row_01_text => "01-text";
    row_02_call => "02-call";
    row_03_note_in_batch => "03-note-in-batch";
    row_03_redirect_in_batch => "03-redirect-in-batch";
    row_04_note_in_parallel_batch => "04-note-in-parallel-batch";
    row_06_redirect_while_streaming => "06-redirect-while-streaming";
    row_07_note_while_streaming => "07-note-while-streaming";
    row_08_two_notes => "08-two-notes";
    row_11_steer_idle => "11-steer-idle";
    row_12_followup_while_streaming => "12-followup-while-streaming";
    row_13_two_followups => "13-two-followups";
    row_15_followup_then_steer => "15-followup-then-steer";
    row_16_followup_in_call => "16-followup-in-call";
    row_18_unknown_tool => "18-unknown-tool";
    row_20_bad_json => "20-bad-json";
    row_20_missing_argument => "20-missing-argument";
    row_20_unknown_argument => "20-unknown-argument";
    row_21_both_fail => "21-both-fail";
    row_22_failed_with_waiting => "22-failed-with-waiting";
    row_24_resume_failed => "24-resume-failed";
    row_25_resume_with_steering => "25-resume-with-steering";
    row_27_length_text => "27-length-text";
    row_28_cancel_while_streaming => "28-cancel-while-streaming";
    row_29_cancel_in_call => "29-cancel-in-call";
    row_30_cancel_stubborn_call => "30-cancel-stubborn-call";
    row_32_submit_while_running => "32-submit-while-running";
    row_34_redirect_before_parallel_batch => "34-redirect-before-parallel-batch";
    row_34_redirect_in_parallel_batch => "34-redirect-in-parallel-batch";
    row_35_note_and_redirect => "35-note-and-redirect";
    row_35_two_notes => "35-two-notes";
    row_35_two_redirects => "35-two-redirects";
    row_37_late_output => "37-late-output";
    row_38_steer_in_last_call => "38-steer-in-last-call";
    row_39_followup_when_idle => "39-followup-when-idle";
    row_41_max_turns => "41-max-turns";
    row_41_max_turns_usual => "41-max-turns-usual";
    row_42_retry => "42-retry";
    row_42_retry_after => "42-retry-after";
    row_43_always_error => "43-always-error";
    row_43_permanent_error => "43-permanent-error";
    row_44_seen_is_stored => "44-seen-is-stored";
    row_49_resume_after_result => "49-resume-after-result";
    row_52_kill_in_call => "52-kill-in-call";
    row_52_kill_in_call_ask => "52-kill-in-call-ask";
    row_52_kill_in_call_never => "52-kill-in-call-never";
    row_53_kill_in_first_request => "53-kill-in-first-request";
    row_53_kill_in_first_request_ask => "53-kill-in-first-request-ask";
    row_56_steer_twice => "56-steer-twice";
    row_57_silent_between_words => "57-silent-between-words";
    row_57_silent_for_ever => "57-silent-for-ever";
    row_57_silent_model => "57-silent-model";
    x_cancel_queued => "x-cancel-queued";
    x_doubled_ids => "x-doubled-ids";
    x_files => "x-files";
    x_goes_on_after_failure => "x-goes-on-after-failure";
    x_interrupt_in_call => "x-interrupt-in-call";
    x_interrupt_while_streaming => "x-interrupt-while-streaming";
    x_interrupted_holds_queue => "x-interrupted-holds-queue";
    x_length_calls => "x-length-calls";
    x_length_calls_apart => "x-length-calls-apart";
    x_length_calls_twice => "x-length-calls-twice";
    x_loop => "x-loop";
    x_no_loop => "x-no-loop";
    x_read_only_order => "x-read-only-order";
    x_steer_survives_cancel => "x-steer-survives-cancel";
    x_timeout => "x-timeout";
}

#[test]
fn every_file_is_played_and_every_row_covered() {
    let folder = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/loop")).expect("the fixtures");
    let files: BTreeSet<String> =
        folder.map(|entry| entry.expect("a file").file_name().display().to_string()).collect();
    let names: BTreeSet<String> = NAMES.iter().map(|name| format!("{name}.json")).collect();
    assert_eq!(files, names);
    let rows: BTreeSet<u32> = NAMES.iter().flat_map(|name| read(name).rows).collect();
    assert_eq!(rows, BTreeSet::from(ROWS));
}
