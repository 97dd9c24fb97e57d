//! What a program printed: head and tail in memory, the whole in a file once something had to be left out.

use std::collections::VecDeque;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::limits;
use super::text::{clip_lines, whole_lines_after, whole_lines_before};
pub use super::text::{is_unseen, readable};

/// How many bytes of the beginning are kept.
pub const HEAD: usize = 10 * 1024;
/// How many bytes of the end are kept.
pub const TAIL: usize = 40 * 1024;
/// The most that goes into the file.
const SPILL: u64 = 64 * 1024 * 1024;
/// The most that the files of one folder, which is a session's, may have together.
const FOLDER: u64 = 1024 * 1024 * 1024;
const FULL: &str = "the disk is nearly full";

/// Collects output in bounded memory.
#[derive(Debug)]
pub struct Output {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
    path: PathBuf,
    spill: Spill,
    spill_always: bool,
    /// The most that this file may have.
    most: u64,
}

#[derive(Debug)]
enum Spill {
    /// Nothing was left out yet.
    Unneeded,
    Open(File),
    /// It is somewhere else, and nothing had to be left out yet.
    Offered,
    /// It is somewhere else.
    Elsewhere,
    /// The file ends early, for this reason.
    Partial(String),
}

impl Output {
    /// Starts to collect; `path` is where the whole goes once that is needed.
    pub fn new(path: PathBuf) -> Self {
        let (head, tail, spill) = (Vec::new(), VecDeque::new(), Spill::Unneeded);
        Self { head, tail, total: 0, path, spill, spill_always: false, most: SPILL }
    }

    /// Makes one of `total` bytes that were printed in another computer, where `path` holds them all; `head` and `tail`
    /// are what is known of them here.
    pub fn elsewhere(path: PathBuf, head: &[u8], tail: &[u8], total: u64) -> Self {
        let cut = total > (head.len() + tail.len()) as u64;
        let spill = if cut { Spill::Elsewhere } else { Spill::Offered };
        let (head, tail) = (head.to_vec(), tail.iter().copied().collect());
        Self { head, tail, total, path, spill, spill_always: false, most: SPILL }
    }

    /// Takes the next piece.
    pub fn push(&mut self, piece: &[u8]) {
        if self.total + piece.len() as u64 > (HEAD + TAIL) as u64 || self.spill_always {
            self.open_spill();
        }
        self.write_spill(piece);
        self.total += piece.len() as u64;
        let (first, rest) = piece.split_at(piece.len().min(HEAD - self.head.len()));
        self.head.extend_from_slice(first);
        self.tail.extend(&rest[rest.len().saturating_sub(TAIL)..]);
        self.tail.drain(..self.tail.len().saturating_sub(TAIL));
    }

    /// Has all that comes from now on written to the file, and returns where that is, unless the file is at its end.
    pub fn keep_the_rest(&mut self) -> Option<PathBuf> {
        self.spill_always = true;
        (!matches!(self.spill, Spill::Partial(_))).then(|| self.path.clone())
    }

    /// Has all of it written to the file, what came so far too.
    pub fn keep_all(&mut self) {
        self.spill_always = true;
        self.open_spill();
    }

    /// Returns how many bytes there were, and the first and the last of them.
    pub fn ends(&self) -> (u64, Vec<u8>, Vec<u8>) {
        (self.total, self.head.clone(), self.tail.iter().copied().collect())
    }

    /// Returns the readable text, and the file if it holds all of what the text does not.
    pub fn render(&mut self) -> (String, Option<PathBuf>) {
        let left_out = self.total.saturating_sub((self.head.len() + self.tail.len()) as u64);
        let tail: Vec<u8> = self.tail.iter().copied().collect();
        let (text, clipped) = if left_out == 0 {
            clip_lines(&readable(&[self.head.as_slice(), &tail].concat()))
        } else {
            let (head, head_clipped) = clip_lines(&readable(whole_lines_before(&self.head)));
            let (tail, tail_clipped) = clip_lines(&readable(whole_lines_after(&tail)));
            let note = format!("[… {left_out} bytes left out; {} …]", self.whereabouts());
            (format!("{}\n{note}\n{tail}", head.trim_end_matches('\n')), head_clipped || tail_clipped)
        };
        if !clipped {
            return (text, self.complete());
        }
        self.open_spill();
        (format!("{}\n[long lines were cut; {}]\n", text.trim_end_matches('\n'), self.whereabouts()), self.complete())
    }

    fn complete(&self) -> Option<PathBuf> {
        matches!(self.spill, Spill::Open(_) | Spill::Elsewhere).then(|| self.path.clone())
    }

    fn whereabouts(&self) -> String {
        match &self.spill {
            Spill::Open(_) | Spill::Elsewhere => format!("the whole output is in {}", self.path.display()),
            Spill::Partial(why) => format!("{} is not the whole output: {why}", self.path.display()),
            Spill::Unneeded | Spill::Offered => String::new(),
        }
    }

    /// Opens the file and writes what came so far, which is all still in memory.
    fn open_spill(&mut self) {
        match self.spill {
            Spill::Unneeded => {}
            Spill::Offered => {
                self.spill = Spill::Elsewhere;
                return;
            }
            Spill::Open(_) | Spill::Elsewhere | Spill::Partial(_) => return,
        }
        let so_far = [self.head.as_slice(), self.tail.make_contiguous()].concat();
        self.most = SPILL.min(FOLDER.saturating_sub(self.path.parent().map_or(0, held)));
        if let Some(why) = self.refusal(so_far.len() as u64) {
            self.spill = Spill::Partial(why);
            return;
        }
        self.spill = match create(&self.path).and_then(|mut file| file.write_all(&so_far).map(|()| file)) {
            Ok(file) => Spill::Open(file),
            Err(why) => Spill::Partial(why.to_string()),
        };
    }

    /// Says why the file may not grow to `length` bytes.
    fn refusal(&self, length: u64) -> Option<String> {
        let folder = self.path.ancestors().skip(1).find(|folder| folder.exists());
        let too_many = self.most < SPILL && length > self.most;
        match folder {
            Some(folder) if limits::is_short(folder) => Some(FULL.into()),
            Some(folder) if too_many => Some(format!("{} holds {} MiB, and no more", folder.display(), FOLDER >> 20)),
            _ => None,
        }
    }

    fn write_spill(&mut self, piece: &[u8]) {
        if !matches!(self.spill, Spill::Open(_)) {
            return;
        }
        if let Some(why) = self.refusal(self.total + piece.len() as u64) {
            self.spill = Spill::Partial(why);
        }
        let Spill::Open(file) = &mut self.spill else { return };
        let room = usize::try_from(SPILL.saturating_sub(self.total)).unwrap_or(0).min(piece.len());
        // A full disk ends the file, not the command.
        if let Err(why) = file.write_all(&piece[..room]) {
            self.spill = Spill::Partial(why.to_string());
        } else if room < piece.len() {
            self.spill = Spill::Partial(format!("it holds the first {} MiB", SPILL >> 20));
        }
    }
}

/// Returns how many bytes the files of a folder have together.
fn held(folder: &Path) -> u64 {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    files.filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum()
}

fn create(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use super::{FOLDER, HEAD, Output, TAIL};

    #[test]
    fn the_files_of_a_session_have_a_bound_together() {
        let folder = std::env::temp_dir().join(format!("nano-outputs-{}", std::process::id()));
        assert!(std::fs::create_dir_all(&folder).is_ok());
        // A file of that length that takes no room.
        let large = std::fs::File::create(folder.join("large")).and_then(|file| file.set_len(FOLDER - 100_000));
        assert!(large.is_ok());
        let render = |name: &str, bytes: usize| {
            let mut output = Output::new(folder.join(name));
            b"line\n".repeat(bytes / 5).chunks(1000).for_each(|piece| output.push(piece));
            output.render()
        };
        let ((small, whole), (text, part)) = (render("small", 90_000), render("second", 90_000));
        assert!(small.contains("the whole output is in") && whole.is_some(), "{small}");
        assert!(text.contains("holds 1024 MiB, and no more") && part.is_none(), "{text}");
        assert!(std::fs::remove_dir_all(folder).is_ok());
    }

    #[test]
    fn pieces_of_any_size_give_the_same() {
        let raw: Vec<u8> = (0..30_000).flat_map(|n| format!("{n}\n").into_bytes()).collect();
        let folder = std::env::temp_dir().join(format!("nano-output-{}", std::process::id()));
        let render = |size: usize| {
            let path = folder.join(size.to_string());
            let mut output = Output::new(path.clone());
            raw.chunks(size).for_each(|piece| output.push(piece));
            let (text, spill) = output.render();
            assert_eq!(spill.as_ref(), Some(&path));
            assert_eq!(std::fs::read(&path).ok().as_ref(), Some(&raw));
            text.replace(&path.display().to_string(), "PATH")
        };
        let expected = render(raw.len());
        assert!(expected.len() < HEAD + TAIL + 200 && expected.starts_with("0\n") && expected.ends_with("29999\n"));
        for size in [1, 7, HEAD, HEAD + 1, TAIL, HEAD + TAIL, HEAD + TAIL + 1] {
            assert_eq!(render(size), expected, "{size}");
        }
        assert!(std::fs::remove_dir_all(folder).is_ok());
    }
}
