//! What a running program has printed last, in a small file: read by the next daemon if this one dies meanwhile.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

/// So much of the end is kept at least.
pub const KEPT: u64 = 16 * 1024;
/// The file never grows beyond this by more than one piece.
const MOST: u64 = 8 * KEPT;

/// The file; nothing is synced, for a dead daemon is not a dead machine. One that cannot be written is done without.
#[derive(Debug)]
pub struct Spool {
    path: PathBuf,
    file: Option<File>,
    length: u64,
    failed: bool,
}

impl Spool {
    /// Names the file; it is made with the first piece.
    pub fn new(path: PathBuf) -> Self {
        Self { path, file: None, length: 0, failed: false }
    }

    /// Takes the next piece.
    pub fn push(&mut self, piece: &[u8]) {
        if !self.failed {
            self.failed = self.write(piece).is_err();
        }
    }

    fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        let piece = &piece[piece.len().saturating_sub(usize::try_from(MOST).unwrap_or(usize::MAX))..];
        let mut file = match self.file.take() {
            Some(file) => file,
            None => create(&self.path)?,
        };
        if self.length > MOST {
            let mut kept = Vec::new();
            file.seek(SeekFrom::End(-KEPT.cast_signed()))?;
            (&file).take(KEPT).read_to_end(&mut kept)?;
            file.set_len(0)?;
            file.rewind()?;
            file.write_all(&kept)?;
            self.length = kept.len() as u64;
        }
        file.write_all(piece)?;
        self.length += piece.len() as u64;
        self.file = Some(file);
        Ok(())
    }
}

/// A spool that is written while a call runs, and not any more when this is dropped or told so: nobody removes the file
/// after that.
#[derive(Debug)]
pub struct Held(Arc<Mutex<Option<Spool>>>);

impl Held {
    /// Holds a spool.
    pub fn new(spool: Spool) -> Self {
        Self(Arc::new(Mutex::new(Some(spool))))
    }

    /// Returns what takes the pieces.
    pub fn sink(&self) -> impl Fn(&[u8]) + Send + 'static {
        let spool = Arc::clone(&self.0);
        move |piece| {
            if let Some(spool) = spool.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
                spool.push(piece);
            }
        }
    }

    /// Takes nothing any more.
    pub fn end(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.end();
    }
}

fn create(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    OpenOptions::new().read(true).write(true).create(true).truncate(true).mode(0o600).open(path)
}

/// Returns the end of what was printed, and when that was.
pub fn read(path: &Path) -> Option<(Vec<u8>, SystemTime)> {
    let mut file = File::open(path).ok()?;
    let meta = file.metadata().ok()?;
    file.seek(SeekFrom::Start(meta.len().saturating_sub(KEPT))).ok()?;
    let mut end = Vec::new();
    file.take(KEPT).read_to_end(&mut end).ok()?;
    Some((end, meta.modified().ok()?))
}

#[cfg(test)]
mod tests {
    use super::{Held, KEPT, MOST, Spool, read};

    #[test]
    fn the_end_is_kept_in_a_small_file() {
        let folder = std::env::temp_dir().join(format!("nano-spool-{}", std::process::id()));
        let raw: Vec<u8> = (0..100_000).flat_map(|n| format!("{n}\n").into_bytes()).collect();
        let kept = usize::try_from(KEPT).unwrap_or_default();
        for size in [raw.len(), 7, 1000, 64 * 1024] {
            let path = folder.join(size.to_string());
            let mut spool = Spool::new(path.clone());
            raw.chunks(size).for_each(|piece| spool.push(piece));
            let length = std::fs::metadata(&path).map_or(0, |meta| meta.len());
            assert!(length <= 2 * MOST, "pieces of {size}: {length}");
            assert_eq!(read(&path).map(|(end, _)| end).as_deref(), raw.get(raw.len() - kept..), "pieces of {size}");
        }
        assert!(std::fs::remove_dir_all(&folder).is_ok());
        assert!(read(&folder.join("7")).is_none());
        // Nothing comes back after the end of its call.
        for ends in [Held::end, |_: &Held| {}] {
            let path = folder.join("ended");
            let held = Held::new(Spool::new(path.clone()));
            let sink = held.sink();
            sink(b"x");
            assert_eq!(read(&path).map(|(end, _)| end).as_deref(), Some(b"x".as_slice()));
            ends(&held);
            drop(held);
            assert!(std::fs::remove_dir_all(&folder).is_ok());
            sink(b"y");
            assert!(read(&path).is_none());
        }
        // A folder that cannot be made is no reason to stop.
        Spool::new("/proc/none/spool".into()).push(b"x");
    }
}
