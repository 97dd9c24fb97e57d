//! Room on the disk: how much must stay free, and the ballast that is let go when there is none.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, fallocate, statvfs};

use crate::crash;

const MIB: u64 = 1024 * 1024;

/// What the size of a disk asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// With less than this free, nothing new is taken. More than the ballast: letting that go invites no new work.
    pub watermark: u64,
    /// Kept to be let go when what is owed finds no room.
    pub ballast: u64,
    /// What a segment of the journal takes beforehand.
    pub segment: u64,
}

/// Returns what a disk of `total` bytes asks for; one that does not tell its size counts as large.
pub fn sizes(total: u64) -> Sizes {
    let total = if total == 0 { u64::MAX } else { total };
    Sizes {
        watermark: (total / 8).min(64 * MIB),
        ballast: (total / 16).min(32 * MIB),
        segment: (total / 64).clamp(64 * 1024, 4 * MIB).next_multiple_of(4096),
    }
}

fn wants_ballast(sizes: Sizes, free: u64, is_there: bool) -> bool {
    !is_there && free >= sizes.watermark + 2 * sizes.ballast
}

/// The disk that the store lies on.
#[derive(Debug)]
pub struct Room {
    folder: PathBuf,
    /// What it asks for.
    pub sizes: Sizes,
}

impl Room {
    /// Looks at the disk that `folder` lies on.
    pub fn new(folder: &Path) -> Self {
        let total = || statvfs(folder).map_or(0, |disk| disk.f_blocks.saturating_mul(disk.f_frsize));
        let total = crash::disk_size().unwrap_or_else(total);
        Self { folder: folder.to_owned(), sizes: sizes(total) }
    }

    /// Returns how many bytes are free; a disk that does not tell has room until a write says otherwise.
    pub fn free(&self) -> u64 {
        statvfs(&self.folder).map_or(u64::MAX, |disk| disk.f_bavail.saturating_mul(disk.f_frsize))
    }

    /// Returns why nothing new is taken, while that is so.
    pub fn shortage(&self) -> Option<String> {
        let free = self.free();
        let is_low = free < self.sizes.watermark;
        is_low.then(|| self.told(&format!("has {free} bytes free and {} must stay", self.sizes.watermark)))
    }

    /// Says of the disk what is wrong with it.
    pub fn told(&self, what: &str) -> String {
        format!("the disk of {} {what}", self.folder.display())
    }

    /// Lets the ballast go; returns whether that made room.
    pub fn release(&self) -> bool {
        let gone = fs::remove_file(self.folder.join("ballast")).is_ok();
        if gone {
            tracing::warn!("the disk is full: the ballast was let go");
        }
        gone
    }

    /// Makes the ballast where it is missing and there is plenty of room. It is a precaution: that it fails is no harm.
    pub fn keep_ballast(&self) {
        let path = self.folder.join("ballast");
        if !wants_ballast(self.sizes, self.free(), path.exists()) {
            return;
        }
        let made = OpenOptions::new().write(true).create_new(true).open(&path).and_then(|file| {
            fallocate(&file, FallocateFlags::empty(), 0, self.sizes.ballast)?;
            Ok(())
        });
        if let Err(error) = made {
            tracing::debug!(%error, "no ballast");
            drop(fs::remove_file(&path));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_follow_the_disk() {
        for (total, watermark, ballast, segment) in [
            (0, 64 * MIB, 32 * MIB, 4 * MIB),
            (u64::MAX, 64 * MIB, 32 * MIB, 4 * MIB),
            (1 << 40, 64 * MIB, 32 * MIB, 4 * MIB),
            (512 * MIB, 64 * MIB, 32 * MIB, 4 * MIB),
            (128 * MIB, 16 * MIB, 8 * MIB, 2 * MIB),
            (8 * MIB, MIB, MIB / 2, MIB / 8),
            (MIB, MIB / 8, MIB / 16, 64 * 1024),
        ] {
            assert_eq!(sizes(total), Sizes { watermark, ballast, segment }, "{total}");
        }
    }

    #[test]
    fn the_ballast_is_made_where_that_leaves_room() {
        let sizes = sizes(8 * MIB);
        for (free, is_there, expected) in [
            (8 * MIB, false, true),
            (2 * MIB, false, true),
            (2 * MIB - 1, false, false),
            (0, false, false),
            (8 * MIB, true, false),
        ] {
            assert_eq!(wants_ballast(sizes, free, is_there), expected, "{free} {is_there}");
        }
    }

    #[test]
    fn a_ballast_is_made_once_and_let_go_once() {
        let folder = tempfile::tempdir().unwrap_or_else(|why| unreachable!("{why}"));
        let room = Room { folder: folder.path().to_owned(), sizes: sizes(MIB) };
        room.keep_ballast();
        room.keep_ballast();
        assert_eq!(fs::metadata(folder.path().join("ballast")).map(|file| file.len()).ok(), Some(MIB / 16));
        assert_eq!((room.release(), room.release()), (true, false));
    }
}
