//! Tests that cannot run here say so where it is seen.

use std::io::Write as _;

/// Says that something is not tested here and why, past the capture of what passing tests print.
pub fn say(why: &str) {
    writeln!(std::io::stderr(), "######## SKIPPED: {why} ########").expect("a stderr");
}
