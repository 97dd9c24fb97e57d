//! Cuts a child loose from whoever called us: its own session, and no descriptor but the three that it is given.
//!
//! The one module with unsafe code: the standard library offers no safe way to either.

#![expect(unsafe_code, reason = "a new session and closing inherited descriptors have no safe interface")]

use std::io;
use std::os::fd::{BorrowedFd, RawFd};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::io::FdFlags;

/// Makes `command` start in a session of its own and without the descriptors we inherited.
///
/// A script that reads us through a pipe, or holds a lock by a descriptor, must not wait for a daemon.
pub fn detach(command: &mut Command) -> io::Result<()> {
    close_on_exec()?;
    // SAFETY: setsid is a plain system call, allowed between fork and exec.
    unsafe { command.pre_exec(|| Ok(rustix::process::setsid().map(drop)?)) };
    Ok(())
}

fn close_on_exec() -> io::Result<()> {
    let names = std::fs::read_dir("/proc/self/fd")?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let inherited: Vec<RawFd> = names.filter_map(|name| name.parse().ok()).filter(|fd| *fd > 2).collect();
    for fd in inherited {
        // SAFETY: no other thread closes descriptors; the one of the listing itself is closed, which answers EBADF.
        let fd = unsafe { BorrowedFd::borrow_raw(fd) };
        match rustix::io::fcntl_setfd(fd, FdFlags::CLOEXEC) {
            Ok(()) | Err(rustix::io::Errno::BADF) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
