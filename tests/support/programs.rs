//! Where the programs under test are: beside the test executable, as one build makes them.

use std::path::PathBuf;

/// Returns the path of a program of this workspace.
pub fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("the path of the test");
    let folder = test.parent().and_then(|deps| deps.parent()).expect("a folder of the build's profile");
    let path = folder.join(name);
    assert!(path.exists(), "{} is missing: run `cargo build --workspace` first", path.display());
    path
}

/// Returns the folder of the programs, for a PATH.
pub fn folder() -> PathBuf {
    let program = program("nanod");
    program.parent().expect("a folder of the build's profile").to_owned()
}
