//! The real disk behind the seam.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::disk::{DiskFile, Folder};

/// A folder of the file system.
pub struct RealFolder {
    path: PathBuf,
}

impl RealFolder {
    /// Makes the folder where it is missing.
    pub fn make(path: &Path) -> io::Result<Arc<dyn Folder>> {
        if !path.is_dir() {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
            path.parent().map_or(Ok(()), |parent| File::open(parent)?.sync_all())?;
        }
        Ok(Self::at(path))
    }

    /// Names a folder; one that is missing has no files.
    pub fn at(path: &Path) -> Arc<dyn Folder> {
        Arc::new(Self { path: path.to_owned() })
    }
}

impl Folder for RealFolder {
    fn list(&self) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(&self.path) {
            Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let names = entries.map(|entry| entry.map(|entry| entry.file_name().into_string().ok()));
        names.filter_map(Result::transpose).collect()
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let path = self.path.join(name);
        Ok(Arc::new(RealFile(OpenOptions::new().read(true).write(true).open(path)?)))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true).mode(0o600);
        Ok(Arc::new(RealFile(options.open(self.path.join(name))?)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    fn sync(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }
}

struct RealFile(File);

impl DiskFile for RealFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let (mut read, mut at) = (0, offset);
        while let Some(rest) = buffer.get_mut(read..).filter(|rest| !rest.is_empty()) {
            match self.0.read_at(rest, at) {
                Ok(0) => break,
                Ok(length) => (read, at) = (read + length, at + length as u64),
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                Err(why) => return Err(why),
            }
        }
        Ok(read)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.0.set_len(length)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}
