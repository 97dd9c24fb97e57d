//! Looking at the memory: a copy of it is opened, filled from the journal, and compared with the truth.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use super::super::looked::Looked;
use super::super::recall::is_full;
use super::super::verify::is_same;
use super::super::{StoreError, disk, memory};
use super::with_truth;

/// How the memory is.
pub enum Memory {
    /// It says what the truth says.
    IsWell,
    /// It does not; this says how.
    IsWrong(String),
    /// Its copy found no place; this says why.
    Unseen(String),
}

/// Compares the memory of the store in `path` with the truth, by a copy in the first of `places` that has room.
pub fn at_memory(path: &Path, places: &[PathBuf], looked: &Looked) -> Memory {
    let folder = memory::folder(path);
    match fs::metadata(&folder) {
        Err(_) if looked.is_empty() => return Memory::IsWell,
        Err(why) => return Memory::IsWrong(format!("the memory is not there: {why}")),
        Ok(kind) if !kind.is_dir() => return Memory::IsWrong(format!("{} is no folder", folder.display())),
        Ok(_) => {}
    }
    if let Err(why) = disk::check_kinds(&folder) {
        return Memory::IsWrong(why.to_string());
    }
    let mut seen = Memory::Unseen("there is no place for a copy of it".into());
    for place in places {
        seen = in_copy(&folder, place, looked);
        drop(fs::remove_dir_all(place));
        if !matches!(seen, Memory::Unseen(_)) {
            break;
        }
    }
    seen
}

fn in_copy(folder: &Path, copy: &Path, looked: &Looked) -> Memory {
    drop(fs::remove_dir_all(copy));
    // Where others may write nobody else must have made it.
    let made = fs::DirBuilder::new().mode(0o700).create(copy);
    if let Err(why) = made.and_then(|()| disk::copy(folder, copy, &|_| true)) {
        return Memory::Unseen(format!("it cannot be copied to {}: {why}", copy.display()));
    }
    match catch_unwind(AssertUnwindSafe(|| compare(copy, looked))) {
        Ok(Ok(())) => Memory::IsWell,
        Ok(Err(why)) if is_full(&why) => Memory::Unseen(why),
        Ok(Err(why)) => Memory::IsWrong(why),
        Err(_) => Memory::IsWrong("the memory is damaged: sled panicked".into()),
    }
}

fn compare(copy: &Path, looked: &Looked) -> Result<(), String> {
    let sled = memory::open(copy, &copy.join("set-aside")).map_err(|why| format!("the memory does not open: {why}"))?;
    let told = |error: StoreError| format!("the memory: {error}");
    let applied = sled.applied().map_err(told)?.ok_or("the memory does not know how far it has come")?;
    let reader = looked.journal.reader();
    if applied > reader.last().max(looked.checkpoints.newest().through) {
        return Err(format!("the memory knows line {applied}, which the journal has lost"));
    }
    for line in reader.lines(applied, u64::MAX).filter_map(Result::ok) {
        sled.apply(&line.entries, Some(line.number)).map_err(told)?;
    }
    let wrong = with_truth(looked, |truth| {
        let parts = truth.parts();
        let mut wrong = 0_u64;
        for part in &parts {
            wrong += u64::from(!is_same(&sled, truth, part)?);
        }
        Ok::<_, StoreError>((wrong, parts.len()))
    });
    match wrong.map_err(told)? {
        (0, _) => Ok(()),
        (wrong, all) => Err(format!("the memory differs from the truth in {wrong} of {all} parts")),
    }
}
