//! Skills in remote computers: the files of a skill's folder go there when they are asked for, again once they changed.
//!
//! A skill's folder may lie where anybody writes: links are not followed, hidden files stay here, and what is too much
//! is left out and said so.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{CWD, FileType, MemfdFlags, Mode, OFlags};
use sha2::{Digest, Sha256};
use tokio::sync::Mutex;

use super::jobs::{Shell, quoted};
use crate::sandbox::{Sandbox, SandboxError, workspace};

const FILES: usize = 100;
const BYTES: usize = 10 << 20;
const DEPTH: usize = 8;
/// How many names are looked at.
const NAMES: usize = 10_000;

/// Returns a file that has no name and holds `bytes`.
pub fn nameless(bytes: &[u8]) -> io::Result<File> {
    let mut file = File::from(rustix::fs::memfd_create("nanod", MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file)
}

/// What one computer has of skills.
#[derive(Debug, Default)]
pub struct SkillFiles(Mutex<HashMap<String, Brought>>);

#[derive(Debug)]
struct Brought {
    digest: String,
    files: BTreeSet<String>,
    place: String,
}

impl SkillFiles {
    /// Brings a skill's folder into the computer unless it is there as it is now; returns where it is there.
    pub async fn bring(
        &self,
        sandbox: &dyn Sandbox,
        shell: &dyn Shell,
        name: &str,
        folder: &Path,
    ) -> Result<String, SandboxError> {
        // Held until all is there: who comes second finds it done, and nobody is told of half a skill.
        let mut brought = self.0.lock().await;
        let opened = folder.to_owned();
        let found = tokio::task::spawn_blocking(move || Found::below(&opened)).await;
        let found = found.map_err(io::Error::from).flatten();
        let found = found.map_err(|why| SandboxError::Failed(format!("{}: {why}", folder.display())))?;
        let old = brought.remove(name);
        if let Some(same) = old.as_ref().filter(|old| old.digest == found.digest()) {
            let place = found.noted(&same.place);
            brought.extend(old.map(|old| (name.to_owned(), old)));
            return Ok(place);
        }
        let base = format!("skills/{}", safe(name));
        let place = found.upload(sandbox, &base).await?;
        let before = old.map(|old| old.files).unwrap_or_default();
        if let Some(line) = found.tidy(&base, &before) {
            shell.sh(line, Duration::from_secs(10)).await?;
        }
        let noted = found.noted(&place);
        brought.insert(name.to_owned(), Brought { digest: found.digest(), files: found.names(), place });
        Ok(noted)
    }
}

/// Returns a skill's name as the name of a folder.
fn safe(name: &str) -> String {
    let plain = |one: char| if matches!(one, '/' | '\\') || one.is_control() { '-' } else { one };
    name.trim_start_matches('.').chars().map(plain).collect()
}

#[derive(Debug, Default)]
struct Found {
    files: Vec<Brings>,
    bytes: usize,
    seen: usize,
    left_out: usize,
}

#[derive(Debug)]
struct Brings {
    path: String,
    bytes: Vec<u8>,
    runs: bool,
}

impl Found {
    fn below(folder: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut found = Self::default();
        found.walk(&rustix::fs::openat(CWD, folder, flags, Mode::empty())?, "", 0)?;
        if found.files.is_empty() {
            return Err(io::Error::other("there is no file to bring into the sandbox"));
        }
        Ok(found)
    }

    fn walk(&mut self, folder: &OwnedFd, below: &str, depth: usize) -> io::Result<()> {
        let mut entries = workspace::entries(folder, NAMES)?;
        entries.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        for (name, kind) in entries {
            let Some(name) = name.to_str().filter(|name| !name.starts_with('.') && self.seen < NAMES) else { continue };
            self.seen += 1;
            let path = format!("{below}{name}");
            match kind {
                FileType::Directory if depth < DEPTH => {
                    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                    let inner = rustix::fs::openat(folder, name, flags, Mode::empty())?;
                    self.walk(&inner, &format!("{path}/"), depth + 1)?;
                }
                FileType::RegularFile => self.take(folder, name, path)?,
                _ => self.left_out += 1,
            }
        }
        Ok(())
    }

    fn take(&mut self, folder: &OwnedFd, name: &str, path: String) -> io::Result<()> {
        // It may have become something else since its folder was read: a pipe must not be waited for.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::openat(folder, name, flags, Mode::empty())?);
        let (meta, room, mut bytes) = (file.metadata()?, BYTES - self.bytes, Vec::new());
        if meta.is_file() && self.files.len() < FILES {
            file.take(room as u64 + 1).read_to_end(&mut bytes)?;
        }
        if !meta.is_file() || self.files.len() == FILES || bytes.len() > room {
            self.left_out += 1;
            return Ok(());
        }
        self.bytes += bytes.len();
        self.files.push(Brings { path, bytes, runs: meta.permissions().mode() & 0o111 != 0 });
        Ok(())
    }

    fn digest(&self) -> String {
        let mut hash = Sha256::new();
        for file in &self.files {
            hash.update(format!("{:?} {} {}\n", file.path, file.runs, file.bytes.len()));
            hash.update(&file.bytes);
        }
        format!("{:x}", hash.finalize())
    }

    fn names(&self) -> BTreeSet<String> {
        self.files.iter().map(|file| file.path.clone()).collect()
    }

    /// Sends all files below `base`; returns where that is, as the computer says.
    async fn upload(&self, sandbox: &dyn Sandbox, base: &str) -> Result<String, SandboxError> {
        let mut place = base.to_owned();
        for file in &self.files {
            let unmade = |why| SandboxError::Failed(format!("{}: {why}", file.path));
            let nameless = nameless(&file.bytes).map_err(unmade)?;
            let there = sandbox.upload(nameless, &format!("{base}/{}", file.path)).await?;
            if let Some(folder) = there.strip_suffix(&format!("/{}", file.path)) {
                folder.clone_into(&mut place);
            }
        }
        Ok(place)
    }

    /// Returns what is left to do there: programs may be run, and what is no more is taken away.
    fn tidy(&self, base: &str, before: &BTreeSet<String>) -> Option<String> {
        let words =
            |paths: Vec<&str>| paths.iter().map(|path| quoted(&format!("{base}/{path}"))).collect::<Vec<_>>().join(" ");
        let now = self.names();
        let gone = words(before.difference(&now).map(String::as_str).collect());
        let runs = words(self.files.iter().filter(|file| file.runs).map(|file| file.path.as_str()).collect());
        let act = |act: &str, words: &str| (!words.is_empty()).then(|| format!("{act} {words}\n"));
        let line: String = [act("rm -f --", &gone), act("chmod +x --", &runs)].into_iter().flatten().collect();
        (!line.is_empty()).then_some(line)
    }

    fn noted(&self, place: &str) -> String {
        match self.left_out {
            0 => place.to_owned(),
            many => format!(
                "{place} (not all of it: {many} were left out; links stay behind, and {FILES} files or {} MiB are the most)",
                BYTES >> 20
            ),
        }
    }
}
