//! Where the programs under test are: beside the test executable, as one build makes them.

use std::path::PathBuf;
use std::process::Command;

/// Returns the path of a program of this workspace.
pub fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("the path of the test");
    let folder = test.parent().and_then(|deps| deps.parent()).expect("a folder of the build's profile");
    let path = folder.join(name);
    assert!(path.exists(), "{} is missing: run `cargo build --workspace` first", path.display());
    path
}

/// Makes the command that runs a program of this workspace in an empty environment; where coverage is measured, the
/// variable that says where to is kept.
pub fn command(name: &str) -> Command {
    let mut command = Command::new(program(name));
    command.env_clear();
    if let Some(profile) = std::env::var_os("LLVM_PROFILE_FILE") {
        command.env("LLVM_PROFILE_FILE", profile);
    }
    command
}
