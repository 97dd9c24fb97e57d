//! A manifest: which chunks make up one generation. Lines of JSON: a head, one line a chunk, and a checksum of them all.
//!
//! Head and checksum keep their form in every format to come, so that a newer one is told from a damaged one.

use std::io::{self, ErrorKind};

use serde::{Deserialize, Serialize};

use super::super::SCHEMA;
use super::super::disk::Folder;
use super::chunk::Chunk;
use super::{CheckpointError, file};
use crate::crash;

const FORMAT: u32 = 1;

/// One generation of the checkpoint: all records as they were after one line of the journal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checkpoint {
    /// Counts the checkpoints; 0 is the empty one that every store begins with.
    pub generation: u64,
    /// The last line of the journal that is in it.
    pub through: u64,
    /// The newest event number that was given out then.
    pub head: u64,
    /// Its chunks, in order of their keys.
    pub chunks: Vec<Chunk>,
}

#[derive(Serialize, Deserialize)]
struct Header {
    nano_checkpoint: u32,
    schema: u32,
    generation: u64,
    through: u64,
    head: u64,
}

#[derive(Serialize, Deserialize)]
struct End {
    sha256: String,
}

/// Returns the name of a generation's manifest.
pub fn name(generation: u64) -> String {
    format!("{generation:016}.manifest")
}

/// Returns the name of a chunk that a generation writes.
pub fn chunk_name(generation: u64, place: usize) -> String {
    format!("{generation:016}-{place:06}.chunk")
}

fn draft_name(generation: u64) -> String {
    format!("{generation:016}.draft")
}

/// Returns the generation that a file was written for, or none for a file that is not of a checkpoint.
pub fn generation(name: &str) -> Option<u64> {
    let (number, kind) = name.split_at_checked(16)?;
    let number = number.parse().ok()?;
    let is_chunk = kind.strip_suffix(".chunk").is_some_and(|place| place.starts_with('-'));
    (is_chunk || kind == ".manifest" || kind == ".draft").then_some(number)
}

/// Makes `checkpoint` the newest generation, at once and durably; its chunks are there.
pub fn write(folder: &dyn Folder, checkpoint: &Checkpoint) -> Result<(), CheckpointError> {
    let (name, draft) = (name(checkpoint.generation), draft_name(checkpoint.generation));
    let failed = |error| CheckpointError::Io { doing: "write", file: name.clone(), error };
    file::write(folder, &draft, &encode(checkpoint).map_err(|why| failed(why.into()))?).map_err(failed)?;
    if read(folder, &draft).ok().flatten().as_ref() != Some(checkpoint) {
        return Err(CheckpointError::Unproven(draft));
    }
    // The chunks' names must be durable before one that names them.
    folder.sync().map_err(failed)?;
    crash::point("checkpoint.manifest.before");
    folder.rename(&draft, &name).and_then(|()| folder.sync()).map_err(failed)?;
    crash::point("checkpoint.manifest.after");
    Ok(())
}

/// Reads the manifest `name`; none where it is damaged. A newer one is refused.
pub fn read(folder: &dyn Folder, name: &str) -> Result<Option<Checkpoint>, CheckpointError> {
    let Some((head, chunks)) = file::read(folder, name).and_then(open).ok() else { return Ok(None) };
    let Ok(head) = serde_json::from_str::<Header>(&head) else { return Ok(None) };
    if head.nano_checkpoint > FORMAT || head.schema > SCHEMA {
        let found = if head.nano_checkpoint > FORMAT { head.nano_checkpoint } else { head.schema };
        return Err(CheckpointError::Newer { file: name.to_owned(), found });
    }
    let chunks = chunks.lines().map(serde_json::from_str).collect::<Result<_, _>>();
    let Header { generation, through, head, .. } = head;
    Ok(chunks.ok().map(|chunks| Checkpoint { generation, through, head, chunks }))
}

fn encode(checkpoint: &Checkpoint) -> serde_json::Result<Vec<u8>> {
    let Checkpoint { generation, through, head, ref chunks } = *checkpoint;
    let mut text = serde_json::to_vec(&Header { nano_checkpoint: FORMAT, schema: SCHEMA, generation, through, head })?;
    for chunk in chunks {
        text.push(b'\n');
        serde_json::to_writer(&mut text, chunk)?;
    }
    text.push(b'\n');
    let sha256 = file::sha256(&text);
    serde_json::to_writer(&mut text, &End { sha256 })?;
    Ok(text)
}

/// Returns the head and the lines of the chunks, where the checksum is right.
fn open(bytes: Vec<u8>) -> io::Result<(String, String)> {
    let damaged = || io::Error::from(ErrorKind::InvalidData);
    let text = String::from_utf8(bytes).map_err(|_| damaged())?;
    let at = text.rfind('\n').ok_or_else(damaged)? + 1;
    let (body, end) = text.split_at(at);
    let end: End = serde_json::from_str(end)?;
    let (head, chunks) = body.split_once('\n').ok_or_else(damaged)?;
    if end.sha256 == file::sha256(body.as_bytes()) { Ok((head.to_owned(), chunks.to_owned())) } else { Err(damaged()) }
}
