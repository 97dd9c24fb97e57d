//! A chunk: one sorted, immutable run of records in a compressed file of its own.

use std::io::{self, ErrorKind, Read, Write};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};

use super::super::disk::Folder;
use super::super::tail::Record;
use super::line::{self, key_text};
use super::{CheckpointError, file, sum_of};
use crate::crash;

/// A chunk as a manifest names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chunk {
    /// Its file.
    pub file: String,
    /// Its first key.
    #[serde(with = "key_text")]
    pub first: Vec<u8>,
    /// Its last key.
    #[serde(with = "key_text")]
    pub last: Vec<u8>,
    /// How many records it holds.
    pub count: u64,
    /// The sum over its records, see [`sum_of`].
    pub sum: u64,
    /// The SHA-256 of its file.
    pub sha256: String,
    /// The length of its file.
    pub length: u64,
}

impl Chunk {
    /// Tells whether `records` are, by count and sum, the ones it holds.
    pub fn is_of(&self, records: &[Record]) -> bool {
        (self.count, self.sum) == totals(records)
    }
}

fn totals(records: &[Record]) -> (u64, u64) {
    let sum = records.iter().fold(0_u64, |sum, (key, value)| sum.wrapping_add(sum_of(key, value)));
    (records.len() as u64, sum)
}

/// Writes `records`, which are sorted and not none, as the chunk `name`, and proves it by reading it back.
pub fn write(folder: &dyn Folder, name: String, records: &[Record]) -> Result<Chunk, CheckpointError> {
    let failed = |error| CheckpointError::Io { doing: "write", file: name.clone(), error };
    let bytes = pack(records).map_err(failed)?;
    crash::point("checkpoint.chunk.before");
    file::write(folder, &name, &bytes).map_err(failed)?;
    let (count, sum) = totals(records);
    let end = |record: Option<&Record>| record.map(|(key, _)| key.clone()).unwrap_or_default();
    let (first, last) = (end(records.first()), end(records.last()));
    let (sha256, length) = (file::sha256(&bytes), bytes.len() as u64);
    let chunk = Chunk { file: name, first, last, count, sum, sha256, length };
    if read(folder, &chunk).ok().as_deref() != Some(records) {
        return Err(CheckpointError::Unproven(chunk.file));
    }
    crash::point("checkpoint.chunk.after");
    Ok(chunk)
}

/// Reads a chunk, whole and as it was written or not at all.
pub fn read(folder: &dyn Folder, chunk: &Chunk) -> io::Result<Vec<Record>> {
    let bytes = file::read(folder, &chunk.file)?;
    let records = if file::sha256(&bytes) == chunk.sha256 { unpack(&bytes)? } else { Vec::new() };
    if chunk.is_of(&records) { Ok(records) } else { Err(ErrorKind::InvalidData.into()) }
}

/// Tells whether the file of a chunk is byte for byte as it was written.
pub fn is_whole(folder: &dyn Folder, chunk: &Chunk) -> bool {
    file::read(folder, &chunk.file).is_ok_and(|bytes| file::sha256(&bytes) == chunk.sha256)
}

fn pack(records: &[Record]) -> io::Result<Vec<u8>> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    let mut text = Vec::new();
    for (key, value) in records {
        text.clear();
        line::encode(&mut text, key, value)?;
        packed.write_all(&text)?;
    }
    packed.finish()
}

fn unpack(bytes: &[u8]) -> io::Result<Vec<Record>> {
    let mut text = Vec::new();
    GzDecoder::new(bytes).read_to_end(&mut text)?;
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(line::decode).collect()
}
