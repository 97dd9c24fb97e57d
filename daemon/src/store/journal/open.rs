//! Opening: what there is, how far it counts, and what is done about the rest.
//!
//! A line is known to have been on disk once where a later one says so, or where a later segment was begun. If such a
//! line cannot be read it is damage, and named. The first line that is missing and that nothing says that of ends the
//! journal: it was never acknowledged, or was the last that was. What is there from it on is kept aside.

use std::io;
use std::sync::Arc;

use super::super::SCHEMA;
use super::super::disk::{DiskFile, Folder};
use super::reader::{Damage, Reader};
use super::segment::{self, Placed, SegmentLines};
use super::{AppendError, Current, Journal};

/// Why a journal cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A newer version wrote it; nothing was changed.
    #[error("the segment {segment} of the journal was written by a newer nanod (schema {found})")]
    Newer {
        /// The segment.
        segment: String,
        /// Its schema.
        found: u32,
    },
    /// The disk does not do it.
    #[error("the journal: {what}: {source}")]
    Disk {
        /// What was tried.
        what: String,
        /// What the system says.
        source: io::Error,
    },
}

/// What was behind the last line that counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// The number of the first line that was cut.
    pub from: u64,
    /// How many bytes.
    pub bytes: u64,
    /// The file that they are kept in, in the folder of what is set aside; none before they are cut.
    pub kept: Option<String>,
}

/// What was found in a journal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// The number of the newest line; 0 if there is none.
    pub last: u64,
    /// The newest event number in what can be read.
    pub head: u64,
    /// Lines that are lost. Those that a checkpoint has need not be missed.
    pub damaged: Vec<Damage>,
    /// What the journal was cut by.
    pub cut: Option<Cut>,
    /// Segments whose header cannot be read; of their lines that says nothing.
    pub bad_headers: Vec<String>,
}

impl Found {
    /// Adds lines that the segment which begins with `first` should have.
    fn lose(&mut self, from: u64, to: u64, first: u64) {
        match self.damaged.last_mut() {
            _ if from > to => {}
            Some(before) if before.last + 1 == from => before.last = to,
            _ => {
                let why = format!("{} does not have them whole", segment::name(first));
                self.damaged.push(Damage { first: from, last: to, why });
            }
        }
    }
}

impl Journal {
    /// Opens the journal in `folder`, which is empty or has one; what has to be cut is kept in `set_aside`.
    #[cfg(test)]
    pub fn open(
        folder: Arc<dyn Folder>,
        set_aside: &dyn Folder,
        segment_size: u64,
    ) -> Result<(Self, Found), OpenError> {
        look(folder)?.open(set_aside, segment_size)
    }
}

/// A journal that was looked at; nothing of it was changed.
pub struct Seen {
    folder: Arc<dyn Folder>,
    segments: Vec<u64>,
    unfinished: Vec<String>,
    tail: Option<Tail>,
    /// What was found.
    pub found: Found,
}

impl Seen {
    /// Returns a reader of it.
    pub fn reader(&self) -> Reader {
        Reader { folder: self.folder.clone(), segments: self.segments.clone(), last: self.found.last }
    }

    /// Opens it to be appended to; what has to be cut is kept in `set_aside`.
    ///
    /// When this returns, all that counts is on disk, also what only the system's memory had.
    pub fn open(self, set_aside: &dyn Folder, segment_size: u64) -> Result<(Journal, Found), OpenError> {
        let Self { folder, mut segments, unfinished, tail, mut found } = self;
        for name in unfinished {
            folder.remove(&name).map_err(failed("removing an unfinished segment"))?;
        }
        let mut current = None;
        if let Some(tail) = tail {
            tail.settle().and_then(|()| folder.sync()).map_err(failed("syncing its end"))?;
            if let Some(cut) = &mut found.cut {
                cut.kept = Some(tail.keep(cut.from, set_aside).map_err(failed("keeping what is cut"))?);
            }
            if tail.is_sound() {
                let size = tail.file.len().map_err(failed("its size"))?.max(segment_size);
                current = Some(Current { file: tail.file, offset: tail.end, size });
            } else {
                current = Some(tail.replace(&*folder, found.last + 1, segment_size)?);
                segments.retain(|first| *first <= found.last);
                segments.push(found.last + 1);
            }
        }
        Ok((Journal { folder, segment_size, segments, current, last: found.last, failed: None }, found))
    }
}

fn failed(what: impl Into<String>) -> impl FnOnce(io::Error) -> OpenError {
    |source| OpenError::Disk { what: what.into(), source }
}

/// Looks at the journal in `folder`, which is empty or has one, and changes nothing.
pub fn look(folder: Arc<dyn Folder>) -> Result<Seen, OpenError> {
    let names = folder.list().map_err(failed("listing its segments"))?;
    let mut segments: Vec<u64> = names.iter().filter_map(|name| segment::first_of(name)).collect();
    segments.sort_unstable();
    let unfinished = names.into_iter().filter(|name| segment::is_unfinished(name)).collect();
    let mut found = Found::default();
    let mut newest = None;
    for first in &segments {
        let name = segment::name(*first);
        let file = folder.open(&name).map_err(failed(name.clone()))?;
        let header = segment::header(&file);
        match &header {
            Some((header, _)) if header.schema > SCHEMA => {
                return Err(OpenError::Newer { segment: name, found: header.schema });
            }
            Some(_) => {}
            None => found.bad_headers.push(name),
        }
        newest = Some((*first, file, header.map(|(_, end)| end)));
    }
    let tail = match newest {
        None => None,
        Some((first, file, begin)) => {
            found.last = first - 1;
            let sealed = Reader { folder: folder.clone(), segments: segments.clone(), last: found.last };
            let oldest = segments.first().copied().unwrap_or(first);
            for line in sealed.lines(oldest - 1, found.last) {
                match line {
                    Ok(line) => found.head = found.head.max(line.head),
                    Err(damage) => found.damaged.push(damage),
                }
            }
            Some(Tail::read(file, first, begin, &mut found).map_err(failed(segment::name(first)))?)
        }
    };
    Ok(Seen { folder, segments, unfinished, tail, found })
}

/// The newest segment, as far as it counts and behind that.
struct Tail {
    file: Arc<dyn DiskFile>,
    first: u64,
    has_header: bool,
    /// Where the lines end that something says were on disk.
    settled: u64,
    /// Where the last line ends that counts.
    end: u64,
    /// Where all that is not zeros ends.
    seen: u64,
}

impl Tail {
    fn read(file: Arc<dyn DiskFile>, first: u64, begin: Option<u64>, found: &mut Found) -> io::Result<Self> {
        let (covered, seen) = covered(&file, first)?;
        let start = begin.unwrap_or(0);
        let mut tail = Self { file, first, has_header: begin.is_some(), settled: start, end: start, seen };
        let mut next = first;
        let mut lines = SegmentLines::new(tail.file.clone(), first, u64::MAX);
        while let Some(Placed { line, end }) = lines.next()? {
            if line.number > next && line.number - 1 > covered {
                break;
            }
            found.lose(next, line.number - 1, first);
            next = line.number + 1;
            found.head = found.head.max(line.head);
            tail.end = end;
            if line.number <= covered {
                tail.settled = end;
            }
        }
        found.lose(next, covered, first);
        found.last = covered.max(next - 1);
        if tail.end < seen {
            found.cut = Some(Cut { from: found.last + 1, bytes: seen - tail.end, kept: None });
        }
        Ok(tail)
    }

    /// Writes once more what may have been written and not synced, and syncs it: a sync that failed before may have
    /// left it in memory, marked as if it were on disk.
    fn settle(&self) -> io::Result<()> {
        let length = self.end - self.settled;
        copy(&*self.file, self.settled, length, &*self.file, self.settled)?;
        self.file.sync()
    }

    /// Copies what is behind the end to a file of its own and returns its name.
    fn keep(&self, from: u64, set_aside: &dyn Folder) -> io::Result<String> {
        let taken = set_aside.list()?;
        let mut names = (1..).map(|n: u64| format!("journal-{from:016}-{n}.cut"));
        let name = names.find(|name| !taken.contains(name)).unwrap_or_default();
        let file = set_aside.create(&name)?;
        copy(&*self.file, self.end, self.seen - self.end, &*file, 0)?;
        file.sync()?;
        set_aside.sync()?;
        Ok(name)
    }

    fn is_sound(&self) -> bool {
        self.has_header && self.end >= self.seen
    }

    /// Begins a new segment. That alone makes what is behind the end count no more; then it is removed.
    fn replace(&self, folder: &dyn Folder, next: u64, size: u64) -> Result<Current, OpenError> {
        let (file, offset) = segment::make(folder, next, size).map_err(|why| match why {
            AppendError::Write(source) | AppendError::Sync(source) => failed("a new segment")(source),
        })?;
        if next != self.first {
            self.file.set_len(self.end).and_then(|()| self.file.sync()).map_err(failed("cutting it"))?;
        }
        Ok(Current { file, offset, size })
    }
}

/// Returns the newest line that was on disk for certain, and where all that is not zeros ends.
fn covered(file: &Arc<dyn DiskFile>, first: u64) -> io::Result<(u64, u64)> {
    let mut lines = SegmentLines::new(file.clone(), first, u64::MAX);
    let mut covered = first - 1;
    while let Some(Placed { line, .. }) = lines.next()? {
        covered = covered.max(line.synced);
    }
    Ok((covered, lines.seen))
}

fn copy(from: &dyn DiskFile, at: u64, length: u64, to: &dyn DiskFile, place: u64) -> io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    let mut done = 0;
    while done < length {
        let most = usize::try_from(length - done).unwrap_or(buffer.len()).min(buffer.len());
        let Some(part) = buffer.get_mut(..most) else { break };
        let count = from.read_at(part, at + done)?;
        let Some(part) = part.get(..count).filter(|part| !part.is_empty()) else { break };
        to.write_at(part, place + done)?;
        done += count as u64;
    }
    Ok(())
}
