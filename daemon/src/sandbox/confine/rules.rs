//! Landlock: writing below the writable folders alone, reading all but what is hidden, no signal to the outside.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, LandlockStatus, PathBeneath, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, RulesetStatus, Scope,
};
use rustix::fs::{CWD, Mode, OFlags, openat};

use crate::sandbox::reach::{Reach, SYSTEM};

/// The newest that is asked for; an older kernel does what it can, and that is told.
const NEWEST: ABI = ABI::V9;
/// Devices that programs expect.
const DEVICES: [&str; 6] = ["/dev/full", "/dev/null", "/dev/random", "/dev/tty", "/dev/urandom", "/dev/zero"];
/// Those of terminals: the command's own with mounts, everybody's without.
const TERMINALS: [&str; 2] = ["/dev/ptmx", "/dev/pts"];
/// No more rules than this: what is left out can then not be reached.
const MOST: usize = 20_000;

/// Keeps this process, and all that comes of it, within `reach`.
pub fn enforce(reach: &Reach, with_mounts: bool) -> io::Result<LandlockStatus> {
    let all = AccessFs::from_all(NEWEST);
    let mut rules = Ruleset::default().handle_access(all).map_err(io::Error::other)?;
    rules = rules.scope(Scope::from_all(NEWEST)).map_err(io::Error::other)?;
    if !reach.has_network() {
        rules = rules.handle_access(AccessNet::from_all(NEWEST)).map_err(io::Error::other)?;
    }
    let rules = rules.create().map_err(io::Error::other)?;
    let rules = writing(reading(rules, reach, with_mounts)?, reach, with_mounts)?;
    let status = rules.restrict_self().map_err(io::Error::other)?;
    match status.ruleset {
        RulesetStatus::NotEnforced => Err(io::Error::other("this kernel does not have it")),
        RulesetStatus::PartiallyEnforced | RulesetStatus::FullyEnforced => Ok(status.landlock),
    }
}

fn reading(mut rules: RulesetCreated, reach: &Reach, with_mounts: bool) -> io::Result<RulesetCreated> {
    let read = AccessFs::from_read(NEWEST);
    // With mounts of its own what is hidden is out of sight already. Without, names can be listed, or `ls /` would not work.
    let hidden: &[PathBuf] = if with_mounts { &[] } else { &reach.hidden };
    let out: Vec<PathBuf> = hidden.iter().cloned().chain(["/dev".into()]).collect();
    rules = allow(rules, Path::new("/"), AccessFs::ReadDir.into())?;
    for place in carved(Path::new("/"), &out).iter().map(PathBuf::as_path).chain(reach.open()) {
        // A workspace that holds what is hidden must not bring it back.
        for place in carved(place, &inside(place, &out)) {
            rules = allow(rules, &place, read)?;
        }
    }
    let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev;
    let terminals: &[&str] = if with_mounts { &TERMINALS } else { &[] };
    DEVICES.iter().chain(terminals).try_fold(rules, |rules, path| allow(rules, Path::new(path), device))
}

fn writing(mut rules: RulesetCreated, reach: &Reach, with_mounts: bool) -> io::Result<RulesetCreated> {
    let system = SYSTEM.iter().map(PathBuf::from);
    let out: Vec<PathBuf> = if with_mounts { vec![] } else { reach.hidden.clone() };
    for root in reach.writable() {
        let out: Vec<PathBuf> = out.iter().cloned().chain(system.clone()).collect();
        for place in carved(root, &inside(root, &out)) {
            rules = allow(rules, &place, AccessFs::from_all(NEWEST))?;
        }
    }
    // With mounts of its own it is the command's alone.
    if with_mounts { allow(rules, Path::new("/dev/shm"), AccessFs::from_all(NEWEST)) } else { Ok(rules) }
}

/// Adds a rule for what is there under this very name; a link is not followed to where it points.
fn allow(rules: RulesetCreated, path: &Path, access: BitFlags<AccessFs>) -> io::Result<RulesetCreated> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat(CWD, path, flags, Mode::empty()) {
        Ok(place) => rules.add_rule(PathBeneath::new(place, access)).map_err(io::Error::other),
        // What is not there, or not for us, is not for the command either.
        Err(_) => Ok(rules),
    }
}

/// Returns those of `out` that lie below `root`.
fn inside(root: &Path, out: &[PathBuf]) -> Vec<PathBuf> {
    out.iter().filter(|one| one.starts_with(root) && *one != root).cloned().collect()
}

/// Returns what makes up `root` without `out`: a rule cannot be taken back below where it holds.
fn carved(root: &Path, out: &[PathBuf]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    carve(root, out, &mut found);
    found
}

fn carve(place: &Path, out: &[PathBuf], found: &mut Vec<PathBuf>) {
    let is_left_out = out.iter().any(|one| place.starts_with(one));
    if is_left_out || found.len() >= MOST {
        return;
    }
    if !out.iter().any(|one| one.starts_with(place)) {
        return found.push(place.to_owned());
    }
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        carve(&entry.path(), out, found);
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::carved;

    #[test]
    fn what_is_left_out_is_left_out_and_nothing_else() {
        let folder = std::env::temp_dir().join(format!("nano-carve-{}", std::process::id()));
        for path in ["a/b/c", "a/d", "e"] {
            assert!(std::fs::create_dir_all(folder.join(path)).is_ok());
        }
        for (out, expected) in [
            (vec![], vec![""]),
            (vec!["a/b"], vec!["a/d", "e"]),
            (vec!["a/b/c", "e"], vec!["a/d"]),
            (vec!["a/x"], vec!["a/b", "a/d", "e"]),
            (vec![""], vec![]),
        ] {
            let out: Vec<PathBuf> = out.iter().map(|path| folder.join(path)).collect();
            let mut found = carved(&folder, &out);
            found.sort();
            let expected: Vec<PathBuf> = expected.iter().map(|path| folder.join(path)).collect();
            assert_eq!(found, expected, "{out:?}");
        }
        assert!(std::fs::remove_dir_all(&folder).is_ok());
    }
}
