//! A journal that is a list, checkpoints of it on a disk in memory, and what they must come to.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::super::disk::Folder;
use super::super::super::journal::line::{Entry, Line};
use super::super::super::tail::{Record, Span, Tail};
use super::super::super::truth::Truth;
use super::super::{CheckpointError, Checkpoints, Missing};
use super::disk::Disk;

/// Small, so that a few records fill many.
pub const CHUNK: usize = 100;

pub type Model = BTreeMap<Vec<u8>, Vec<u8>>;

pub struct World {
    pub disk: Disk,
    pub checkpoints: Checkpoints,
    /// All lines there ever were.
    pub lines: Vec<Line>,
    /// The line behind which the journal still has them.
    pub kept: u64,
}

pub fn open(disk: &Disk) -> Checkpoints {
    let mut checkpoints = Checkpoints::read(Arc::new(disk.clone())).unwrap();
    checkpoints.chunk = CHUNK;
    checkpoints
}

pub fn put(key: &str, value: &str) -> Entry {
    Entry::Put(key.into(), format!("\"{value}\"").into())
}

/// Records named by number, of ten to a chunk.
pub fn puts(numbers: impl IntoIterator<Item = u32>) -> Vec<Entry> {
    numbers.into_iter().map(|number| put(&format!("{number:03}"), "12345")).collect()
}

impl World {
    pub fn new() -> Self {
        let disk = Disk::default();
        Self { checkpoints: open(&disk), disk, lines: Vec::new(), kept: 0 }
    }

    /// Returns a world with one checkpoint after each of `lines`.
    pub fn of(lines: impl IntoIterator<Item = Vec<Entry>>) -> Self {
        let mut world = Self::new();
        for entries in lines {
            world.line(entries);
            world.next().unwrap();
        }
        world
    }

    pub fn last(&self) -> u64 {
        self.lines.len() as u64
    }

    /// Returns another of the same, all of it durable.
    pub fn copy(&self) -> Self {
        let disk = Disk::default();
        self.disk.files().into_iter().for_each(|(name, data)| disk.set(&name, Some(data)));
        Folder::sync(&disk).unwrap();
        Self { checkpoints: open(&disk), disk, lines: self.lines.clone(), kept: self.kept }
    }

    pub fn line(&mut self, entries: Vec<Entry>) {
        let number = self.last() + 1;
        self.lines.push(Line { number, synced: number - 1, head: number * 10, entries });
    }

    pub fn next(&mut self) -> Result<(), CheckpointError> {
        let (lines, kept) = (&self.lines, self.kept);
        let tail = tail(lines, self.checkpoints.newest().through.max(kept));
        let mut source =
            |after: u64, each: &mut dyn FnMut(Line)| behind(lines, after.max(kept)).cloned().for_each(each);
        let last = lines.len() as u64;
        self.kept = self.checkpoints.next(&tail, &mut source, last, last * 10)?;
        Ok(())
    }

    /// Reads the disk as a new process does.
    pub fn reopen(&mut self) {
        self.checkpoints = open(&self.disk);
    }

    pub fn model(&self) -> Model {
        let mut model = Model::new();
        for entry in self.lines.iter().flat_map(|line| &line.entries) {
            match entry {
                Entry::Put(key, value) => _ = model.insert(key.clone(), value.clone()),
                Entry::Delete(key) => _ = model.remove(key),
                Entry::DeleteAll(prefix) => model.retain(|key, _| !key.starts_with(prefix)),
            }
        }
        model
    }

    pub fn truth<T>(&self, look: impl FnOnce(&mut Truth<'_>) -> T) -> T {
        let (lines, kept) = (&self.lines, self.kept);
        let tail = tail(lines, self.checkpoints.newest().through.max(kept));
        let mut source =
            |after: u64, each: &mut dyn FnMut(Line)| behind(lines, after.max(kept)).cloned().for_each(each);
        look(&mut Truth::new(&self.checkpoints, &tail, &mut source))
    }

    pub fn read(&self, span: &Span) -> Vec<Result<Record, Missing>> {
        self.truth(|truth| truth.records(span).collect())
    }

    #[track_caller]
    pub fn is_whole(&self) {
        let records: Result<Model, _> = self.read(&Span::all()).into_iter().collect();
        assert_eq!(records, Ok(self.model()), "{:?}", self.checkpoints.newest());
    }

    /// Asserts that every chunk of the newest generation is there as it was written.
    #[track_caller]
    pub fn is_readable(&self) {
        for chunk in &self.checkpoints.newest().chunks {
            assert!(super::super::chunk::read(&self.disk, chunk).is_ok(), "{}", chunk.file);
        }
    }

    /// Returns how many records each chunk of the newest generation has.
    pub fn counts(&self) -> Vec<u64> {
        self.checkpoints.newest().chunks.iter().map(|chunk| chunk.count).collect()
    }

    /// Returns the generation that each chunk of the newest one was written for.
    pub fn written_for(&self) -> Vec<u64> {
        let chunks = &self.checkpoints.newest().chunks;
        chunks.iter().map(|chunk| super::super::manifest::generation(&chunk.file).unwrap()).collect()
    }

    /// Asserts that nothing lies there but what the two newest generations name.
    #[track_caller]
    pub fn is_clean(&self) {
        let named = self.checkpoints.named();
        let more: Vec<_> = self.disk.files().into_keys().filter(|name| !named.contains(name)).collect();
        assert!(more.is_empty(), "{more:?}");
    }
}

fn behind(lines: &[Line], after: u64) -> impl Iterator<Item = &Line> {
    lines.iter().filter(move |line| line.number > after)
}

fn tail(lines: &[Line], after: u64) -> Tail {
    let mut tail = Tail::default();
    behind(lines, after).flat_map(|line| line.entries.clone()).for_each(|entry| tail.take(entry));
    tail
}
