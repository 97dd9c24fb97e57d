//! The last step before a command: gives up what it must not have, then becomes it.
//!
//! It is `nanod` run once more below the helper, so that what it gives up is given up by the command alone: the helper,
//! which ends everything in the end, stays out of the command's reach. No process stands between the two, so that the
//! command's end is told as it was. In this order: a mount namespace, where one can be had, takes out of sight what is
//! hidden and makes read-only what is protected; all capabilities go; Landlock keeps writing below the writable folders;
//! and a filter takes away the system calls by which one could get out of all that.
#![doc = include_str!("README.md")]

mod filter;
pub mod force;
mod mounting;
mod mounts;
mod rights;
mod rules;
mod sockets;

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::os::fd::{BorrowedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use rustix::io::FdFlags;
use serde::{Deserialize, Serialize};

use super::limits::Limits;
use super::reach::Reach;
use force::Force;

/// The hidden argument that makes `nanod` this step; a file with the plan and the program with its arguments follow.
pub const ARGUMENT: &str = "__exec-confined";
/// The one that makes it try what it could do here, and tell.
pub const PROBE: &str = "__probe-confined";
/// The exit status where the program could not be started, as shells have it.
const CANNOT: u8 = 126;

/// What a command must not do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// How much it may take.
    pub limits: Limits,
    /// How far it reaches; none: as far as the daemon's user.
    pub reach: Option<Reach>,
    /// Whether it gets a mount namespace of its own.
    pub mounts: bool,
}

/// Returns the command that becomes `program`, confined as the file `plan` says, which may be an inherited one; what else
/// it needs is added to it as to any other.
pub fn command(plan: &str, program: &Path) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.args([ARGUMENT, plan]).arg(program);
    command
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

/// Tries on this process what could be done to a command, and prints what worked.
pub fn probe() -> u8 {
    let told = serde_json::to_string(&Force::try_here()).map(|text| writeln!(io::stdout(), "{text}"));
    u8::from(!matches!(told, Ok(Ok(()))))
}

fn become_program(arguments: &mut dyn Iterator<Item = OsString>) -> io::Result<std::convert::Infallible> {
    let missing = || io::Error::other("nothing to run");
    let plan = arguments.next().ok_or_else(missing)?;
    let plan = read(Path::new(&plan))?;
    let program = arguments.next().ok_or_else(missing)?;
    plan.limits.apply()?;
    if let Some(reach) = &plan.reach {
        confine(reach, plan.mounts)?;
    }
    Err(Command::new(program).args(arguments).exec())
}

/// Sees to it that a descriptor by number goes to no program that this process becomes or starts.
#[expect(unsafe_code, reason = "the standard library lends no descriptor that it did not open; see below")]
pub fn close_on_exec(number: RawFd) -> io::Result<()> {
    // SAFETY: it is lent for one call that changes a flag of it, and nothing else runs in this process. One that is closed
    // by now is answered with an error.
    let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
    Ok(rustix::io::fcntl_setfd(descriptor, FdFlags::CLOEXEC)?)
}

/// Reads the plan; an inherited file goes no further.
fn read(path: &Path) -> io::Result<Plan> {
    let plan = serde_json::from_slice(&fs::read(path)?)?;
    let number = path.strip_prefix("/proc/self/fd").ok().and_then(|number| number.to_str()?.parse().ok());
    number.map_or(Ok(()), close_on_exec)?;
    Ok(plan)
}

fn confine(reach: &Reach, with_mounts: bool) -> io::Result<()> {
    let are_sockets_closed = with_mounts && mounts::enter(reach).map_err(at("mounts"))?;
    rights::drop_all().map_err(at("capabilities"))?;
    let status = rules::enforce(reach, with_mounts).map_err(at("Landlock"))?;
    // An older Landlock lets those through that have no file.
    let has_sockets = are_sockets_closed && force::version(status) >= Some(force::SCOPES);
    filter::apply(reach.has_network(), has_sockets).map_err(at("the system call filter"))
}

fn at(what: &str) -> impl FnOnce(io::Error) -> io::Error + '_ {
    move |why| io::Error::new(why.kind(), format!("it could not be confined ({what}: {why})"))
}
