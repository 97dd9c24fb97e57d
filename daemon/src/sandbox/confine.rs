//! The last step before a command: gives up what it must not have, then becomes it.
//!
//! It is `nanod` run once more below the helper, so that what it gives up is given up by the command alone: the helper,
//! which ends everything in the end, stays out of the command's reach.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use serde::{Deserialize, Serialize};

use super::limits::Limits;

/// The hidden argument that makes `nanod` this step; the plan and the program with its arguments follow.
pub const ARGUMENT: &str = "__exec-confined";
/// The exit status where the program could not be started, as shells have it.
const CANNOT: u8 = 126;

/// What a command must not do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// How much it may take.
    pub limits: Limits,
}

/// Returns the command that becomes `program`, confined; what else it needs is added to it as to any other.
pub fn command(plan: &Plan, program: &Path) -> io::Result<Command> {
    let mut command = Command::new("/proc/self/exe");
    command.arg(ARGUMENT).arg(serde_json::to_string(plan)?).arg(program);
    Ok(command)
}

/// Confines this process and becomes the program that `arguments` name behind the plan; returns the exit status where that fails.
pub fn enter(arguments: &mut dyn Iterator<Item = OsString>) -> u8 {
    let why = match become_program(arguments) {
        Ok(never) => match never {},
        Err(why) => why,
    };
    // The command's own output: nobody else listens.
    writeln!(io::stderr(), "nanod: the command was not started: {why}").ok();
    CANNOT
}

fn become_program(arguments: &mut dyn Iterator<Item = OsString>) -> io::Result<std::convert::Infallible> {
    let missing = || io::Error::other("nothing to run");
    let plan = arguments.next().ok_or_else(missing)?;
    let plan: Plan = serde_json::from_slice(plan.as_encoded_bytes())?;
    let program = arguments.next().ok_or_else(missing)?;
    plan.limits.apply()?;
    Err(Command::new(program).args(arguments).exec())
}
