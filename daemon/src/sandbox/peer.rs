//! Who is at the other end of a socket: somebody, or a command of an agent, which must not drive its own daemon.
//!
//! Everything that a command starts stays below the daemon: its helpers are subreapers and so is the daemon itself (see
//! [`super::adopted`]), and what an earlier run left has a mark. So the peer's ancestors tell, if it is the peer that is
//! looked at and not somebody who got its number after it: a pidfd holds on to it, and who has ended is not served.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, getpid, pidfd_open, test_kill_process};

use super::{adopted, descendants, leftovers};

/// How often ancestors that change under the eyes are read again.
const READS: usize = 16;
/// More ancestors than this has nobody; numbers that are used again may go in a circle.
const DEPTH: usize = 4096;

/// Who it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// Somebody who is no command of this daemon.
    Stranger,
    /// A command of an agent of this daemon, or started by one.
    Command,
    /// Nobody knows: it has ended, or its ancestors do not stay the same.
    Unknown,
}

/// What is seen of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    /// It lives.
    Process { parent: i32, started: u64, marked: bool },
    /// It is another user's, and this `/proc` does not show those.
    Hidden,
    /// It is not there.
    Gone,
}

/// The daemon, as far as kinship with it goes.
#[derive(Clone, Copy)]
struct Daemon<'a> {
    pid: i32,
    /// Whether a child is one that it had before it began.
    is_elder: &'a dyn Fn(i32) -> bool,
}

/// Tells who is at the other end of a connected socket; `mark` is what the daemon's commands carry.
pub fn of(socket: BorrowedFd, mark: Option<&str>) -> Peer {
    let Ok([pid, ..]) = option::<3>(socket, libc::SO_PEERCRED) else { return Peer::Unknown };
    if pid == 0 {
        // It is outside of our namespace of processes; what is below us is inside.
        return Peer::Stranger;
    }
    let Ok(handle) = handle(socket, pid) else { return Peer::Unknown };
    let see = |pid| see(pid, mark);
    let daemon = Daemon { pid: getpid().as_raw_pid(), is_elder: &|pid| adopted::elders().contains(&pid) };
    let peer = settled(pid, see, daemon);
    // Alive after all was read, it was alive, and itself, before.
    if has_ended(&handle) { Peer::Unknown } else { peer }
}

/// Returns a handle of the peer; a kernel before 6.5 gives one of whoever has its number now.
fn handle(socket: BorrowedFd, pid: i32) -> io::Result<OwnedFd> {
    match option::<1>(socket, libc::SO_PEERPIDFD) {
        Ok([number]) => Ok(owned(number)),
        Err(why) if why.raw_os_error() == Some(libc::ENOPROTOOPT) => {
            let pid = Pid::from_raw(pid).ok_or(Errno::SRCH)?;
            Ok(pidfd_open(pid, PidfdFlags::empty())?)
        }
        Err(why) => Err(why),
    }
}

#[expect(unsafe_code, reason = "the standard library has no such option of a socket")]
fn option<const N: usize>(socket: BorrowedFd, name: i32) -> io::Result<[i32; N]> {
    let mut value = [0_i32; N];
    let mut length = libc::socklen_t::try_from(size_of_val(&value)).map_err(io::Error::other)?;
    let (socket, place) = (socket.as_raw_fd(), value.as_mut_ptr().cast());
    // SAFETY: `place` has `length` bytes, which any values may fill; both live on while the kernel writes.
    let result = unsafe { libc::getsockopt(socket, libc::SOL_SOCKET, name, place, &raw mut length) };
    if result == 0 { Ok(value) } else { Err(io::Error::last_os_error()) }
}

#[expect(unsafe_code, reason = "a descriptor that the kernel has just made has no owner yet")]
fn owned(number: i32) -> OwnedFd {
    // SAFETY: the kernel opened it for this call, and nobody else knows its number.
    unsafe { OwnedFd::from_raw_fd(number) }
}

fn has_ended(handle: &OwnedFd) -> bool {
    let handle = handle.as_fd();
    !matches!(poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&Timespec { tv_sec: 0, tv_nsec: 0 })), Ok(0))
}

fn see(pid: i32, mark: Option<&str>) -> Seen {
    let Some(stat) = descendants::of(pid) else { return unseen(pid) };
    let marked = mark.is_some_and(|mark| leftovers::is_marked(pid, mark));
    Seen::Process { parent: stat.parent, started: stat.started, marked }
}

fn unseen(pid: i32) -> Seen {
    let exists = Pid::from_raw(pid).map(test_kill_process);
    if exists == Some(Err(Errno::PERM)) { Seen::Hidden } else { Seen::Gone }
}

/// Reads the ancestors until two readings are the same: then both were true in between.
fn settled(pid: i32, see: impl Fn(i32) -> Seen, daemon: Daemon) -> Peer {
    let mut last = ancestors(pid, &see);
    for _ in 0..READS {
        let now = ancestors(pid, &see);
        let same = now == last;
        last = now;
        if same && let Some(peer) = judge(&last, daemon) {
            return peer;
        }
    }
    Peer::Unknown
}

/// Returns the process and those above it, the nearest first.
fn ancestors(pid: i32, see: impl Fn(i32) -> Seen) -> Vec<(i32, Seen)> {
    let next = |(_, seen): &(i32, Seen)| match seen {
        Seen::Process { parent: 1.., .. } => Some((parent(*seen), see(parent(*seen)))),
        _ => None,
    };
    std::iter::successors(Some((pid, see(pid))), next).take(DEPTH).collect()
}

fn parent(seen: Seen) -> i32 {
    if let Seen::Process { parent, .. } = seen { parent } else { 0 }
}

/// Judges by the ancestors, the process itself the first; none where they are not all known.
fn judge(ancestors: &[(i32, Seen)], daemon: Daemon) -> Option<Peer> {
    let pairs = ancestors.iter().zip(ancestors.iter().skip(1));
    let mut below = pairs.filter(|(_, (above, _))| *above == daemon.pid).map(|((pid, _), _)| *pid);
    let is_marked = |(_, seen): &(i32, Seen)| matches!(seen, Seen::Process { marked: true, .. });
    if below.any(|pid| !(daemon.is_elder)(pid)) || ancestors.iter().any(is_marked) {
        return Some(Peer::Command);
    }
    match ancestors.last()? {
        // What runs as another user is nobody's command: those cannot become anybody else.
        (_, Seen::Process { parent: 0, .. } | Seen::Hidden) => Some(Peer::Stranger),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
