//! Single steps with mounts.

use std::ffi::CString;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::mount::{MoveMountFlags, OpenTreeFlags, move_mount, open_tree};

/// Opens a place, so that it can be found again once it is covered.
pub fn hold(path: &Path) -> Result<OwnedFd, Errno> {
    openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
}

/// Returns a path of what is held.
pub fn held(place: BorrowedFd<'_>) -> String {
    format!("/proc/self/fd/{}", place.as_raw_fd())
}

/// Makes a mount of a folder, with those below it, that is nowhere yet.
pub fn copy(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_RECURSIVE;
    open_tree(CWD, path, flags)
}

/// Puts such a mount on a folder.
pub fn put(copy: &OwnedFd, path: &Path) -> io::Result<()> {
    Ok(move_mount(copy, c"", CWD, path, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?)
}

/// What the kernel is told to change of a mount.
#[repr(C)]
struct Change {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

/// Makes the mount at `path` read-only, with those below it if told so.
#[expect(unsafe_code, reason = "no safe binding; see below")]
pub fn make_read_only(path: &Path, with_those_below: bool) -> io::Result<()> {
    const READ_ONLY: u64 = 1;
    let path = CString::new(path.as_os_str().as_bytes())?;
    let change = Change { set: READ_ONLY, clear: 0, propagation: 0, user_namespace: 0 };
    let flags = if with_those_below { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: both pointers are to what lives until the call has returned, and the length is that of the structure.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            flags,
            &raw const change,
            size_of::<Change>(),
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
