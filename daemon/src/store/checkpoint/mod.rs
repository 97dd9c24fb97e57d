//! The checkpoint: all records as they were after one line of the journal, cut into chunks that are never changed.
//!
//! The next generation rewrites only the chunks whose keys have changed and names the others again. It is proven by
//! reading it back before it counts, and the one before it is kept. Nothing needs a checkpoint to be made: where one
//! cannot be, the last one and a longer journal say the same.

mod base;
mod chunk;
mod file;
pub mod line;
mod manifest;
mod merge;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::fmt::Display;
use std::io;
use std::mem;
use std::sync::Arc;

use super::SCHEMA;
use super::disk::Folder;
use super::keys;
use super::tail::{Record, Tail};
use crate::crash;
pub use base::{Base, Lines, Missing};
pub use chunk::Chunk;
pub use manifest::Checkpoint;
use merge::{CHUNK, Cutter};

/// Why a checkpoint cannot be read or made. What was there stays as it is.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// A newer version wrote it.
    #[error("{file} was written by a newer nanod ({found}, this one knows {SCHEMA}); it was left untouched")]
    Newer {
        /// The manifest.
        file: String,
        /// Its schema or format.
        found: u32,
    },
    /// The disk failed or is full.
    #[error("cannot {doing} {file} of the checkpoint: {error}")]
    Io {
        /// What was tried.
        doing: &'static str,
        /// With which file.
        file: String,
        /// What the system says.
        error: io::Error,
    },
    /// A file does not read back as it was written.
    #[error("{0} of the checkpoint does not read back as it was written")]
    Unproven(String),
    /// Records that the next generation needs cannot be read any more.
    #[error("the checkpoint has lost {0}")]
    Lost(Missing),
    /// The stream of records ended badly.
    #[error("no checkpoint was made: {0}")]
    Records(String),
}

/// The generations in a folder: the newest that can be read, and the one before.
pub struct Checkpoints {
    folder: Arc<dyn Folder>,
    newest: Checkpoint,
    older: Option<Checkpoint>,
    unreadable: Vec<String>,
    chunk: usize,
}

/// Returns what a record adds to the sum of the records it is among.
pub fn sum_of(key: &[u8], value: &[u8]) -> u64 {
    let mut sum = crc32fast::Hasher::new();
    for part in [key, &[0], value] {
        sum.update(part);
    }
    u64::from(sum.finalize())
}

impl Checkpoints {
    /// Reads what is in `folder`. Without a manifest that can be read the newest is the empty generation 0.
    pub fn read(folder: Arc<dyn Folder>) -> Result<Self, CheckpointError> {
        let failed = |error| CheckpointError::Io { doing: "list", file: "the folder".into(), error };
        let mut names = folder.list().map_err(failed)?;
        names.retain(|name| manifest::generation(name).is_some_and(|generation| *name == manifest::name(generation)));
        names.sort_unstable();
        let (mut readable, mut unreadable) = (Vec::new(), Vec::new());
        for name in names.into_iter().rev() {
            match manifest::read(&*folder, &name)? {
                Some(checkpoint) if readable.len() < 2 => readable.push(checkpoint),
                None if readable.len() < 2 => unreadable.push(name),
                _ => {}
            }
        }
        let mut readable = readable.into_iter();
        let newest = readable.next().unwrap_or_default();
        Ok(Self { folder, newest, older: readable.next(), unreadable, chunk: CHUNK })
    }

    /// Returns the newest generation that can be read; the journal goes on behind its `through`.
    pub fn newest(&self) -> &Checkpoint {
        &self.newest
    }

    /// Returns the names of manifests that should have been read and could not be.
    pub fn unreadable(&self) -> &[String] {
        &self.unreadable
    }

    /// Returns the files of the newest generation that are not as they were written.
    pub fn rotten(&self) -> Vec<String> {
        let chunks = self.newest.chunks.iter().filter(|chunk| !chunk::is_whole(&*self.folder, chunk));
        chunks.map(|chunk| chunk.file.clone()).collect()
    }

    /// Returns the line of the journal behind which every line is still needed.
    pub fn through(&self) -> u64 {
        self.older.as_ref().map_or(0, |older| older.through)
    }

    /// Returns the newest generation to read from; `lines` can stand in for what is damaged.
    pub fn base<'a>(&'a self, lines: Lines<'a>) -> Base<'a> {
        Base { folder: &*self.folder, newest: &self.newest, older: self.older.as_ref(), lines }
    }

    /// Makes the next generation from the newest and `tail`, the journal from there `through` a line, with `head` the
    /// newest event number then. Returns the line behind which the journal must still be kept.
    pub fn next(&mut self, tail: &Tail, lines: Lines<'_>, through: u64, head: u64) -> Result<u64, CheckpointError> {
        self.make(through, head, |this, cutter| this.merge(tail, lines, cutter))
    }

    /// Makes a generation that holds `records`, which are sorted, and nothing else. The journal begins behind
    /// `through`, which is over 0: so a journal alone never passes for the whole.
    pub fn build<E: Display>(
        &mut self,
        records: impl IntoIterator<Item = Result<Record, E>>,
        through: u64,
        head: u64,
    ) -> Result<u64, CheckpointError> {
        self.make(through, head, |_, mut cutter| {
            let mut last = None;
            for record in records {
                let (key, value) = record.map_err(|why| CheckpointError::Records(why.to_string()))?;
                if last.as_ref().is_some_and(|last| *last >= key) {
                    return Err(CheckpointError::Records(format!("{} is out of order", keys::text(&key))));
                }
                last = Some(key.clone());
                cutter.take((key, value))?;
            }
            cutter.finish()
        })
    }

    fn merge(&self, tail: &Tail, lines: Lines<'_>, mut cutter: Cutter<'_>) -> Result<Vec<Chunk>, CheckpointError> {
        let mut base = self.base(lines);
        for part in 0..base.parts() {
            let span = base.span(part);
            match base.chunk(part) {
                Some(chunk) if !cutter.is_short() && !tail.touches(&span) && self.is_sound(chunk) => {
                    cutter.keep(chunk.clone())?;
                }
                _ => {
                    let records = base.records(part).map_err(CheckpointError::Lost)?;
                    tail.over(&span, records.into_iter().map(Ok)).try_for_each(|record| cutter.take(record?))?;
                }
            }
        }
        cutter.finish()
    }

    /// A chunk that the newest generation wrote is read once more: the one that could stand in for it is about to go.
    fn is_sound(&self, chunk: &Chunk) -> bool {
        let is_new = manifest::generation(&chunk.file) == Some(self.newest.generation);
        !is_new || chunk::read(&*self.folder, chunk).is_ok()
    }

    fn make(
        &mut self,
        through: u64,
        head: u64,
        cut: impl FnOnce(&Self, Cutter<'_>) -> Result<Vec<Chunk>, CheckpointError>,
    ) -> Result<u64, CheckpointError> {
        let generation = self.sweep_interrupted()? + 1;
        let cutter = Cutter::new(&*self.folder, generation, self.chunk);
        let made = cut(self, cutter).and_then(|chunks| {
            let checkpoint = Checkpoint { generation, through, head, chunks };
            manifest::write(&*self.folder, &checkpoint).map(|()| checkpoint)
        });
        let made = made.inspect_err(|_| self.sweep(|_, written_for| written_for == generation))?;
        let before = mem::replace(&mut self.newest, made);
        self.older = (before.generation > 0).then_some(before);
        self.unreadable.clear();
        crash::point("checkpoint.clean.before");
        let named = self.named();
        self.sweep(|name, _| !named.contains(name));
        crash::point("checkpoint.clean.after");
        Ok(self.through())
    }

    /// Removes what an interrupted one left: files of generations without a manifest. Returns the last generation.
    fn sweep_interrupted(&self) -> Result<u64, CheckpointError> {
        let failed = |error| CheckpointError::Io { doing: "list", file: "the folder".into(), error };
        let names: HashSet<String> = self.folder.list().map_err(failed)?.into_iter().collect();
        let named = self.named();
        self.sweep(|name, written_for| !names.contains(&manifest::name(written_for)) && !named.contains(name));
        let last = names.iter().filter_map(|name| manifest::generation(name)).max();
        Ok(last.unwrap_or(0).max(self.newest.generation))
    }

    fn named(&self) -> HashSet<String> {
        let generations = [Some(&self.newest), self.older.as_ref()];
        let names = |checkpoint: &Checkpoint| {
            let chunks = checkpoint.chunks.iter().map(|chunk| chunk.file.clone());
            chunks.chain([manifest::name(checkpoint.generation)]).collect::<Vec<_>>()
        };
        generations.into_iter().flatten().flat_map(names).collect()
    }

    /// Removes files that go by `goes`, manifests first: none is to name what is gone. One that stays is no harm.
    fn sweep(&self, goes: impl Fn(&str, u64) -> bool) {
        let mut names = self.folder.list().unwrap_or_default();
        names.sort_by_key(|name| !name.ends_with(".manifest"));
        let gone = |name: &String| manifest::generation(name).is_some_and(|written_for| goes(name, written_for));
        names.iter().filter(|name| gone(name)).for_each(|name| drop(self.folder.remove(name)));
    }
}
