//! Cuts a sorted stream of records into the chunks of a new generation.

use std::mem;

use super::super::disk::Folder;
use super::super::tail::Record;
use super::chunk::{self, Chunk};
use super::{CheckpointError, manifest};

/// How much a chunk should hold, in bytes of keys and values.
pub const CHUNK: usize = 256 * 1024;

/// Takes records and whole chunks in order, and writes what is new; holds one chunk and a half at most.
pub struct Cutter<'a> {
    folder: &'a dyn Folder,
    generation: u64,
    target: usize,
    written: usize,
    chunks: Vec<Chunk>,
    waiting: Vec<Record>,
    size: usize,
}

fn size_of((key, value): &Record) -> usize {
    key.len() + value.len()
}

impl<'a> Cutter<'a> {
    /// Begins the chunks of `generation`, each of about `target` bytes.
    pub fn new(folder: &'a dyn Folder, generation: u64, target: usize) -> Self {
        Self { folder, generation, target, written: 0, chunks: Vec::new(), waiting: Vec::new(), size: 0 }
    }

    /// Takes the next record. One that is larger than a chunk becomes a chunk of its own.
    pub fn take(&mut self, record: Record) -> Result<(), CheckpointError> {
        let size = size_of(&record);
        if size >= self.target {
            self.flush()?;
        }
        self.waiting.push(record);
        self.size += size;
        if size >= self.target {
            return self.flush();
        }
        // Cut at the half more: what stays behind is never a small chunk.
        if self.size >= self.target + self.target / 2 { self.cut() } else { Ok(()) }
    }

    /// Takes a chunk as it is.
    pub fn keep(&mut self, chunk: Chunk) -> Result<(), CheckpointError> {
        self.flush()?;
        self.chunks.push(chunk);
        Ok(())
    }

    /// Tells whether so little waits that it should be joined with what follows.
    pub fn is_short(&self) -> bool {
        self.size > 0 && self.size < self.target / 4
    }

    /// Writes what waits and returns all chunks.
    pub fn finish(mut self) -> Result<Vec<Chunk>, CheckpointError> {
        self.flush()?;
        Ok(self.chunks)
    }

    fn cut(&mut self) -> Result<(), CheckpointError> {
        let mut size = 0;
        let mut fits = |record: &Record| {
            size += size_of(record);
            size <= self.target
        };
        let at = self.waiting.iter().position(|record| !fits(record));
        let rest = at.map(|at| self.waiting.split_off(at)).unwrap_or_default();
        let rest_size = rest.iter().map(size_of).sum();
        self.flush()?;
        (self.waiting, self.size) = (rest, rest_size);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), CheckpointError> {
        self.size = 0;
        let records = mem::take(&mut self.waiting);
        if !records.is_empty() {
            let name = manifest::chunk_name(self.generation, self.written);
            self.chunks.push(chunk::write(self.folder, name, &records)?);
            self.written += 1;
        }
        Ok(())
    }
}
