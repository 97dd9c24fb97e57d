//! Runs the real program in an empty environment.

use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Output, Stdio};

use crate::fake::Fake;

/// How a run ended.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub struct Ran {
    /// The exit code; minus the signal where one ended it.
    pub code: i32,
    /// All of stdout.
    pub out: String,
    /// All of stderr.
    pub err: String,
}

impl Ran {
    /// Takes over what a process left.
    pub fn from(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let code = output.status.code().unwrap_or_else(|| -output.status.signal().unwrap());
        Self { code, out: text(&output.stdout), err: text(&output.stderr) }
    }
}

/// Returns the program with `args`, an empty environment and no stdin.
pub fn bare(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nanoctl"));
    command.args(args).env_clear().stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Returns the program with `args`, told of `fake`.
pub fn command(fake: &Fake, args: &[&str]) -> Command {
    let mut command = bare(args);
    command.env("NANO_SOCKET", fake.socket());
    command
}

/// Runs `nanoctl ARGS` against `fake`.
pub fn nanoctl(fake: &Fake, args: &[&str]) -> Ran {
    Ran::from(&command(fake, args).output().unwrap())
}

/// Runs `nanoctl ARGS` against `fake` with `input` piped in.
pub fn piped(fake: &Fake, args: &[&str], input: &[u8]) -> Ran {
    let mut child = command(fake, args).stdin(Stdio::piped()).spawn().unwrap();
    // A program that does not read its stdin may be gone by now.
    child.stdin.take().unwrap().write_all(input).ok();
    Ran::from(&child.wait_with_output().unwrap())
}
