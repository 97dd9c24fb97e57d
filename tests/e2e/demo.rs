//! `nanoctl demo`: alone, without a key, a daemon or a network, in an empty home.

use nano_tests::ctl::Ctl;
use nano_tests::processes;

#[test]
fn it_ends_well_and_leaves_nothing() {
    let home = tempfile::tempdir().expect("a home");
    let output = Ctl::new(home.path()).args(["demo"]).run();
    let said = output.expect_code(0);
    for verb in ["nanoctl submit", "nanoctl steer", "nanoctl tools", "nanoctl followup"] {
        assert!(said.contains(verb) || output.stderr.contains(verb), "`{verb}` is not shown: {output:?}");
    }
    assert_eq!(processes::of(home.path()), []);
    let left: Vec<_> = std::fs::read_dir(home.path()).expect("the home").flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}
