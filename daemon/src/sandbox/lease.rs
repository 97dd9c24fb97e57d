//! Read leases: whether anybody has a file open for writing, and a hold on those who are about to open it so.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use libc::c_int;

/// Chooses the signal of a descriptor; the binding lacks it, all Linux architectures share it.
const F_SETSIG: c_int = 10;

/// A read lease on an open file; while it lives, whoever opens the file for writing waits.
pub struct Lease<'a> {
    file: &'a File,
}

impl<'a> Lease<'a> {
    /// Takes a lease; none if somebody has the file open for writing, or where leases are not to be had.
    pub fn take(file: &'a File) -> Option<Self> {
        Self::acquire(file).ok()
    }

    /// Tells whether somebody has the file, opened to be read, open for writing; none: that cannot be told.
    pub fn is_written(file: &'a File) -> Option<bool> {
        match Self::acquire(file) {
            Ok(_) => Some(false),
            Err(why) if why.raw_os_error() == Some(libc::EAGAIN) => Some(true),
            Err(_) => None,
        }
    }

    fn acquire(file: &'a File) -> io::Result<Self> {
        // The default signal for "somebody waits" would end the process, this one is ignored by default.
        fcntl(file, F_SETSIG, libc::SIGURG)?;
        fcntl(file, libc::F_SETLEASE, libc::F_RDLCK)?;
        Ok(Self { file })
    }

    /// Returns whether somebody waits for the lease to end in order to write; true if that cannot be told.
    pub fn somebody_waits(&self) -> bool {
        !matches!(fcntl(self.file, libc::F_GETLEASE, 0), Ok(libc::F_RDLCK))
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        // If this fails the lease ends with the descriptor.
        drop(fcntl(self.file, libc::F_SETLEASE, libc::F_UNLCK));
    }
}

#[expect(unsafe_code, reason = "no safe binding has leases")]
fn fcntl(file: &File, command: c_int, argument: c_int) -> io::Result<c_int> {
    // SAFETY: the descriptor is open as long as `file`, and the three lease commands take or give integers alone.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), command, argument) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
