//! What this kernel and this machine have for confining commands.

use std::path::Path;

/// Returns the version of Landlock's interface; none where the kernel has none.
#[expect(unsafe_code, reason = "no call of the standard library asks for it")]
pub fn landlock() -> Option<i64> {
    /// Asks for the version alone.
    const VERSION: libc::c_uint = 1;
    let nothing = std::ptr::null::<libc::c_void>();
    // SAFETY: with this flag the kernel reads no attributes: there are none, of length 0.
    let version = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, nothing, 0_usize, VERSION) };
    (version > 0).then_some(version)
}

/// Tells whether the kernel filters system calls.
pub fn seccomp() -> bool {
    Path::new("/proc/sys/kernel/seccomp/actions_avail").exists()
}
