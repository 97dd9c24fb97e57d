//! The journal: what was accepted, line by line, in segments that are only ever appended to.
//!
//! It promises that a line is on disk when [`Journal::append`] returns, that a line whose append failed is never read
//! back, and that a line which is lost is named by its number. One thread appends; [`Reader`]s read beside it.

pub mod line;
mod open;
pub mod reader;
mod segment;

#[cfg(test)]
mod tests;

use std::io;
use std::sync::Arc;

use super::disk::{DiskFile, Folder};
use crate::crash;
use line::Line;
pub use open::{Cut, Found, OpenError, Seen, look};
use reader::Reader;

/// Why lines were not appended.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// Nothing of them is there; a later try may succeed.
    #[error("the journal cannot be written: {0}")]
    Write(#[source] io::Error),
    /// It is not known what of them is there, and nothing will be appended any more.
    #[error("the journal cannot be synced: {0}")]
    Sync(#[source] io::Error),
}

/// A segment that is not appended to any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    /// Its file.
    pub name: String,
    /// The number of its first line.
    pub first: u64,
    /// The number of its last line.
    pub last: u64,
    /// How much it takes on disk.
    pub bytes: u64,
}

/// The segment that is appended to.
struct Current {
    file: Arc<dyn DiskFile>,
    /// Where the next line goes.
    offset: u64,
    /// Lines that would end behind this go to a new segment.
    size: u64,
}

/// The journal, open for appending.
pub struct Journal {
    folder: Arc<dyn Folder>,
    segment_size: u64,
    /// The number of the first line of each segment, the current one's included.
    segments: Vec<u64>,
    /// None before the first line, and where the next append begins a segment.
    current: Option<Current>,
    last: u64,
    failed: Option<String>,
}

impl Journal {
    /// Returns the number of the newest line; all up to it are on disk.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Returns a reader of what is there now.
    pub fn reader(&self) -> Reader {
        Reader { folder: self.folder.clone(), segments: self.segments.clone(), last: self.last }
    }

    /// Makes `lines` durable with one write and one sync. They are numbered on from [`Self::last`], and their `synced`
    /// is that.
    pub fn append(&mut self, lines: &[Line]) -> Result<(), AppendError> {
        self.check_usable()?;
        let in_order = lines.iter().zip(self.last + 1..).all(|(line, number)| line.number == number);
        if !in_order || lines.iter().any(|line| line.synced != self.last) {
            let why = format!("these are not the lines that follow line {}", self.last);
            return Err(AppendError::Write(io::Error::new(io::ErrorKind::InvalidInput, why)));
        }
        let bytes: Vec<u8> = lines.iter().flat_map(Line::encode).collect();
        let appended = self.room_for(bytes.len() as u64).and_then(|current| current.append(&bytes));
        if let Err(AppendError::Sync(why)) = &appended {
            self.failed = Some(why.to_string());
        }
        appended?;
        self.last += lines.len() as u64;
        Ok(())
    }

    /// Goes on with a new segment at the next append, so that all there is now is sealed.
    pub fn seal(&mut self) {
        self.current = None;
    }

    /// Numbers on from `number` where that is not given out yet: the lines between are missing, and named as that.
    pub fn number_on_from(&mut self, number: u64) {
        if number > self.last {
            self.seal();
            self.last = number;
        }
    }

    /// Returns the sealed segments, oldest first.
    pub fn sealed(&self) -> io::Result<Vec<Sealed>> {
        let open_end = self.current.is_none().then_some(self.last + 1);
        let ends = self.segments.iter().skip(1).copied().chain(open_end);
        let describe = |(first, end): (&u64, u64)| {
            let name = segment::name(*first);
            let bytes = self.folder.open(&name)?.len()?;
            Ok(Sealed { name, first: *first, last: end - 1, bytes })
        };
        self.segments.iter().zip(ends).map(describe).collect()
    }

    /// Removes the segments that only have lines up to `number`, but for the newest segment; returns how many.
    pub fn drop_through(&mut self, number: u64) -> Result<usize, AppendError> {
        self.check_usable()?;
        let count = self.segments.iter().skip(1).take_while(|next| **next <= number.saturating_add(1)).count();
        for _ in 0..count {
            let Some(first) = self.segments.first() else { break };
            self.folder.remove(&segment::name(*first)).map_err(AppendError::Write)?;
            self.segments.remove(0);
        }
        if count > 0 {
            let synced = self.folder.sync().map_err(AppendError::Sync);
            self.failed = synced.as_ref().err().map(ToString::to_string);
            synced?;
        }
        Ok(count)
    }

    fn check_usable(&self) -> Result<(), AppendError> {
        self.failed.as_ref().map_or(Ok(()), |why| Err(AppendError::Sync(io::Error::other(why.clone()))))
    }

    /// Returns the segment that the next `length` bytes go to.
    fn room_for(&mut self, length: u64) -> Result<&mut Current, AppendError> {
        let first = self.last + 1;
        // What is too large for any segment goes into an empty one.
        let has_lines = self.segments.last().is_none_or(|newest| *newest < first);
        match self.current.take() {
            Some(current) if current.offset + length <= current.size || !has_lines => Ok(self.current.insert(current)),
            // The old one is done with even if this fails: a new one that is named after the next line may be there
            // all the same, and then no such line of the old one would count.
            _ => self.roll(first),
        }
    }

    fn roll(&mut self, first: u64) -> Result<&mut Current, AppendError> {
        crash::point("journal.roll.before");
        let (file, offset) = segment::make(&*self.folder, first, self.segment_size)?;
        crash::point("journal.roll.after");
        if self.segments.last() != Some(&first) {
            self.segments.push(first);
        }
        Ok(self.current.insert(Current { file, offset, size: self.segment_size }))
    }
}

impl Current {
    fn append(&mut self, bytes: &[u8]) -> Result<(), AppendError> {
        crash::point("journal.write.before");
        if let Err(why) = self.file.write_at(bytes, self.offset) {
            // Part of it may be there, and even whole lines: they must not come back, not after a power cut either.
            self.file.set_len(self.offset).and_then(|()| self.file.sync()).map_err(AppendError::Sync)?;
            return Err(AppendError::Write(why));
        }
        crash::point("journal.write.after");
        crash::point("journal.sync.before");
        self.file.sync().map_err(AppendError::Sync)?;
        crash::point("journal.sync.after");
        self.offset += bytes.len() as u64;
        Ok(())
    }
}
