//! A mount namespace for one command: hidden places are covered, protected ones read-only, `/tmp` and shared memory its own.
//!
//! All of it is done by this process to itself, as root or in a user namespace; no other program is needed. The command
//! cannot undo it: it has no capability, and the filter has no `mount`.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, mkdirat, openat, openat2};
use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_bind, mount_bind_recursive, mount_change};
use rustix::process::{DumpableBehavior, chdir, getcwd, getegid, geteuid, set_dumpable_behavior};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use super::mounting::{copy, held, hold, make_read_only, put};
use super::sockets::Sockets;
use crate::sandbox::protected::may_be_made;
use crate::sandbox::reach::{Reach, SYSTEM};

const TMP: &str = "/tmp";
const SHARED_MEMORY: &str = "/dev/shm";
const TERMINALS: &str = "/dev/pts";
const MULTIPLEXER: &str = "/dev/ptmx";
/// The name there of the file that covers others, while it is needed.
const NOTHING: &str = ".nothing";

/// Gives this process mounts of its own; tells whether every socket outside the writable folders is out of its reach.
pub fn enter(reach: &Reach) -> io::Result<bool> {
    let here = getcwd(Vec::new())?;
    let sockets = Sockets::look(reach);
    leave()?;
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    // What is seen anyway needs nothing done.
    let is_around =
        |path: &&Path| reach.writable().contains(path) || reach.hidden.iter().any(|place| path.starts_with(place));
    let open = reach.open().filter(is_around).filter_map(|path| Some((path, Open::take(reach, path).ok()?))).collect();
    let own_tmp = if reach.has_own_tmp() { copy(&reach.temporary).ok() } else { None };
    keep_the_rest(reach)?;
    own_tmp.map_or(Ok(()), |own| put(&own, Path::new(TMP)))?;
    own_terminals()?;
    let nothing = shared_memory()?;
    cover(reach, open, nothing.as_fd())?;
    protect(reach)?;
    let are_closed = sockets.is_some_and(|sockets| sockets.close(nothing.as_fd()));
    fs::remove_file(Path::new(SHARED_MEMORY).join(NOTHING))?;
    // The folder of before may lie below a cover: from there one could climb.
    chdir(here)?;
    Ok(are_closed)
}

/// A place that stays within reach, taken before what is around it changes.
enum Open {
    /// As a mount that can be written.
    Writable(OwnedFd),
    /// As it is seen through what is around it.
    Readable(OwnedFd),
}

impl Open {
    fn take(reach: &Reach, path: &Path) -> Result<Self, Errno> {
        let is_root = path == Path::new("/");
        let is_writable = !is_root && reach.writable().contains(&path);
        if is_writable { copy(path).map(Self::Writable) } else { hold(path).map(Self::Readable) }
    }

    /// Puts it where it belongs, unless it is seen there.
    fn give(self, path: &Path) -> io::Result<()> {
        let (Self::Writable(place) | Self::Readable(place)) = &self;
        let (held_now, there) = (rustix::fs::fstat(place)?, fs::metadata(path).ok());
        let is_there = there.is_some_and(|there| (there.dev(), there.ino()) == (held_now.st_dev, held_now.st_ino));
        if !is_there {
            stand_in(path, FileType::from_raw_mode(held_now.st_mode))?;
        }
        match self {
            Self::Writable(place) => put(&place, path),
            Self::Readable(_) if is_there => Ok(()),
            Self::Readable(place) => Ok(mount_bind_recursive(held(place.as_fd()), path)?),
        }
    }
}

/// Makes something of the kind, for the real one to be mounted on.
fn stand_in(path: &Path, kind: FileType) -> io::Result<()> {
    if kind == FileType::Directory {
        return fs::create_dir_all(path);
    }
    path.parent().map_or(Ok(()), fs::create_dir_all)?;
    File::create(path).map(drop)
}

/// Makes read-only what may not be written: modes, owners and times of files, too, of which Landlock knows nothing.
fn keep_the_rest(reach: &Reach) -> io::Result<()> {
    let root = Path::new("/");
    if !reach.writable().contains(&root) {
        return make_read_only(root, true);
    }
    for path in SYSTEM.iter().map(Path::new).filter(|path| path.is_dir() && !path.is_symlink()) {
        mount_bind_recursive(path, path)?;
        make_read_only(path, true)?;
    }
    Ok(())
}

/// Leaves the namespaces of the daemon: as root, or as root of a user namespace in which nothing else changes.
#[expect(unsafe_code, reason = "no safe binding; see below")]
fn leave() -> io::Result<()> {
    let own = UnshareFlags::NEWNS | UnshareFlags::NEWIPC;
    // SAFETY: descriptors stay shared, and nothing else runs in this process.
    match unsafe { unshare_unsafe(own) } {
        Err(Errno::PERM) => {}
        result => return Ok(result?),
    }
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    // The maps belong to root otherwise.
    set_dumpable_behavior(DumpableBehavior::Dumpable)?;
    // SAFETY: as above.
    unsafe { unshare_unsafe(own | UnshareFlags::NEWUSER) }?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
}

/// Hides the terminals that others have opened: the command sees those alone that it opens.
fn own_terminals() -> io::Result<()> {
    let (terminals, multiplexer) = (Path::new(TERMINALS), Path::new(MULTIPLEXER));
    if !terminals.is_dir() {
        return Ok(());
    }
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
    mount("nano", terminals, "devpts", flags, c"newinstance,ptmxmode=0666,mode=620")?;
    if multiplexer.exists() && !multiplexer.is_symlink() {
        mount_bind(terminals.join("ptmx"), multiplexer)?;
    }
    Ok(())
}

/// Makes shared memory the command's own; returns an empty file there that nobody can open, to cover files with.
fn shared_memory() -> io::Result<OwnedFd> {
    mount("nano", SHARED_MEMORY, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, c"mode=1777,size=25%")?;
    let (name, flags) = (Path::new(SHARED_MEMORY).join(NOTHING), OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC);
    Ok(openat(CWD, name, flags, Mode::empty())?)
}

/// Covers what is hidden, the outermost first, and uncovers what of it is to be seen.
fn cover(reach: &Reach, open: Vec<(&Path, Open)>, nothing: BorrowedFd<'_>) -> io::Result<()> {
    let hidden = reach.hidden.iter().filter(|path| open.iter().all(|(one, _)| one != path));
    let mut steps: Vec<_> = hidden.map(|path| (path.as_path(), None)).collect();
    steps.extend(open.into_iter().map(|(path, place)| (path, Some(place))));
    steps.sort_by_key(|(path, _)| path.components().count());
    let mut covers = Vec::new();
    for (path, place) in steps {
        match place {
            Some(place) => place.give(path)?,
            None if path.is_dir() => {
                mount("nano", path, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, c"mode=755,size=1m")?;
                covers.push(path);
            }
            None if path.exists() => {
                mount_bind(held(nothing), path)?;
                covers.push(path);
            }
            None => {}
        }
    }
    covers.into_iter().try_for_each(|path| make_read_only(path, false))
}

/// Makes read-only what is protected. What holds it, or something hidden, becomes a mount: it cannot be moved away then.
fn protect(reach: &Reach) -> io::Result<()> {
    let is_link = |path: &Path| fs::symlink_metadata(path).is_ok_and(|meta| meta.is_symlink());
    let paths: Vec<&PathBuf> = outermost(reach)
        .filter(|path| path.exists() || may_be_made(path) && make(path, &reach.workspace).is_ok())
        .collect();
    let mut folders = BTreeSet::new();
    for path in paths.iter().copied().chain(&reach.hidden) {
        folders.extend(holders(reach, path).into_iter().filter(|folder| folder.is_dir() && !is_link(folder)));
    }
    // The outer ones come first, for they are shorter.
    for folder in folders {
        mount_bind_recursive(folder, folder)?;
    }
    for path in paths {
        // A link cannot be mounted on: then nothing beside it can be changed either.
        match path.parent().filter(|_| is_link(path)) {
            Some(parent) if parent != reach.workspace => read_only(parent)?,
            _ => read_only(path)?,
        }
    }
    Ok(())
}

/// Returns what is protected where commands may write, without what lies in another such place.
fn outermost(reach: &Reach) -> impl Iterator<Item = &PathBuf> {
    let writable = reach.writable();
    let is_writable = |path: &&PathBuf| writable.iter().any(|root| path.starts_with(root));
    let all: BTreeSet<&PathBuf> = reach.protected.iter().filter(is_writable).collect();
    // What holds a path comes before it, with nothing else between.
    let mut last: Option<&PathBuf> = None;
    all.into_iter().filter(move |path| {
        let is_outer = last.is_none_or(|last| !path.starts_with(last));
        last = if is_outer { Some(path) } else { last };
        is_outer
    })
}

/// Returns the folders by whose renaming, in what may be written, the path would be somewhere else.
fn holders<'a>(reach: &Reach, path: &'a Path) -> Vec<&'a Path> {
    let is_movable = |folder: &&Path| reach.writable().iter().any(|root| folder.starts_with(root) && folder != root);
    path.ancestors().skip(1).filter(is_movable).collect()
}

/// Makes, empty, what is protected and missing in a folder that has it usually: what is not there cannot be mounted on.
fn make(path: &Path, workspace: &Path) -> Result<(), Errno> {
    let folder = path.parent().filter(|folder| *folder != workspace).ok_or(Errno::NOENT)?;
    let (flags, how) = (OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, ResolveFlags::NO_SYMLINKS);
    let folder = openat2(CWD, folder, flags, Mode::empty(), how)?;
    let name = path.file_name().unwrap_or_default();
    if name == "hooks" || name == "skills" {
        return mkdirat(folder, name, Mode::from_raw_mode(0o755));
    }
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    openat(folder, name, flags, Mode::from_raw_mode(0o644)).map(drop)
}

fn read_only(path: &Path) -> io::Result<()> {
    mount_bind_recursive(path, path)?;
    make_read_only(path, true)
}
