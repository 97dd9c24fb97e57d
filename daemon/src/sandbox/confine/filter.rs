//! The system calls that a command does not have: those by which one leaves namespaces and Landlock, or changes the
//! machine. One that is refused fails as if it were not permitted; two kinds fail as if they were unknown, for programs
//! then do without them.

use std::collections::BTreeMap;
use std::io;

use libc::{c_int, c_long};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Length, SeccompCmpOp as Op, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter, sock_filter,
};

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// What is not permitted.
const REFUSED: [c_long; 36] = [
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_bpf,
    libc::SYS_chroot,
    libc::SYS_clock_adjtime,
    libc::SYS_clock_settime,
    libc::SYS_delete_module,
    libc::SYS_fanotify_init,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_init_module,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_lookup_dcookie,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_pivot_root,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_quotactl,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_setdomainname,
    libc::SYS_sethostname,
    libc::SYS_setns,
    libc::SYS_settimeofday,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_umount2,
];
/// What is unknown: the first hides its flags from a filter, the others do their work past it.
const UNKNOWN: [c_long; 5] = [
    libc::SYS_clone3,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_userfaultfd,
];
/// Every kind of namespace.
const NAMESPACES: [c_int; 8] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    // The one for time; `clone` takes it for a signal.
    0x80,
];
/// The bit of a system call's number that chooses x86-64's second table.
const X32: u32 = 0x4000_0000;

/// Tells whether this architecture has a filter.
pub fn is_there() -> bool {
    architecture().is_some()
}

/// Takes the system calls away from this process and all that comes of it.
pub fn apply(has_network: bool, has_unix_sockets: bool) -> io::Result<()> {
    let Some(architecture) = architecture() else { return Ok(()) };
    let mut refused: Rules = REFUSED.iter().map(|call| (*call, vec![])).collect();
    refused.insert(libc::SYS_unshare, namespaces(&NAMESPACES)?);
    refused.insert(libc::SYS_clone, namespaces(&NAMESPACES[..7])?);
    refused.insert(libc::SYS_socket, sockets(has_network, has_unix_sockets)?);
    let unknown: Rules = UNKNOWN.iter().map(|call| (*call, vec![])).collect();
    for (rules, errno) in [(unknown, libc::ENOSYS), (refused, libc::EPERM)] {
        let action = SeccompAction::Errno(errno.unsigned_abs());
        let filter = SeccompFilter::new(rules, SeccompAction::Allow, action, architecture).map_err(io::Error::other)?;
        apply_filter(&BpfProgram::try_from(filter).map_err(io::Error::other)?).map_err(io::Error::other)?;
    }
    if architecture == TargetArch::x86_64 {
        apply_filter(&second_table()).map_err(io::Error::other)?;
    }
    Ok(())
}

fn architecture() -> Option<TargetArch> {
    match () {
        () if cfg!(target_arch = "x86_64") => Some(TargetArch::x86_64),
        () if cfg!(target_arch = "aarch64") => Some(TargetArch::aarch64),
        () => None,
    }
}

/// Matches a first argument that asks for one of these.
fn namespaces(flags: &[c_int]) -> io::Result<Vec<SeccompRule>> {
    let asks = |flag: &c_int| {
        let bit = u64::from(flag.cast_unsigned());
        rule(vec![condition(Op::MaskedEq(bit), bit)?])
    };
    flags.iter().map(asks).collect()
}

/// Matches every family of sockets but those that are left.
fn sockets(has_network: bool, has_unix_sockets: bool) -> io::Result<Vec<SeccompRule>> {
    let left: &[c_int] = match (has_network, has_unix_sockets) {
        // What is refused without a condition is refused always.
        (false, _) => return Ok(vec![]),
        (true, true) => &[libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK],
        (true, false) => &[libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK],
    };
    let others = left.iter().map(|family| condition(Op::Ne, u64::from(family.unsigned_abs())));
    Ok(vec![rule(others.collect::<io::Result<_>>()?)?])
}

fn condition(op: Op, value: u64) -> io::Result<SeccompCondition> {
    SeccompCondition::new(0, Length::Dword, op, value).map_err(io::Error::other)
}

fn rule(conditions: Vec<SeccompCondition>) -> io::Result<SeccompRule> {
    SeccompRule::new(conditions).map_err(io::Error::other)
}

/// Makes the second table unknown: the same calls have other numbers there.
fn second_table() -> BpfProgram {
    // A word of what is looked at, from its beginning; a jump that compares with a constant; an answer.
    const LOAD: u16 = 0x20;
    const AT_LEAST: u16 = 0x35;
    const ANSWER: u16 = 0x06;
    let step = |code, jt, k| sock_filter { code, jt, jf: 0, k };
    let unknown = u32::from(SeccompAction::Errno(libc::ENOSYS.unsigned_abs()));
    let skip = |code, jf, k| sock_filter { code, jt: 0, jf, k };
    vec![
        step(LOAD, 0, 0),
        skip(AT_LEAST, 1, X32),
        step(ANSWER, 0, unknown),
        step(ANSWER, 0, u32::from(SeccompAction::Allow)),
    ]
}
