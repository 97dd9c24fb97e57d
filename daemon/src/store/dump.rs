//! The export of a store: JSON Lines that a person can read and another version can take in.
//!
//! A head with the version, one line `["key text", value]` for each record in order, and an end that counts and seals
//! them. Reading is strict: what was cut, changed or put out of order is refused with the number of the line.

#[cfg(test)]
mod tests;

use std::io::{self, BufRead, Read, Write};

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::SCHEMA;
use super::checkpoint::line;
use super::tail::Record;

const FORMAT: u32 = 1;
/// A record holds at most 1 MiB; its key as text is short beside that.
const MOST_LINE: u64 = 16 * 1024 * 1024;

/// The first line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    nano_store: u32,
    /// The schema of the records.
    pub schema: u32,
    /// The newest event number that was given out.
    pub head: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct End {
    count: u64,
    sha256: String,
}

/// Why an export cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum DumpError {
    /// It cannot be read at all.
    #[error("line {0}: {1}")]
    Io(u64, io::Error),
    /// A line is not what it should be.
    #[error("line {0}: {1}")]
    Line(u64, String),
    /// A newer version wrote it.
    #[error("line 1: this export is of a newer nanod ({found}; this one knows {known}); import it with that one")]
    Newer {
        /// Its format or schema.
        found: u32,
        /// Ours.
        known: u32,
    },
}

/// Writes an export of `records`, which are sorted, and returns how many there were.
pub fn write(mut out: impl Write, head: u64, records: impl IntoIterator<Item = Record>) -> io::Result<u64> {
    let (mut sum, mut count) = (Sha256::new(), 0);
    let mut text = serde_json::to_vec(&Header { nano_store: FORMAT, schema: SCHEMA, head })?;
    text.push(b'\n');
    for (key, value) in records {
        sum.update(&text);
        out.write_all(&text)?;
        text.clear();
        line::encode(&mut text, &key, &value)?;
        count += 1;
    }
    sum.update(&text);
    out.write_all(&text)?;
    serde_json::to_writer(&mut out, &End { count, sha256: HEXLOWER.encode(&sum.finalize()) })?;
    out.write_all(b"\n")?;
    out.flush()?;
    Ok(count)
}

/// Reads an export: an iterator of its records that ends with an error unless all is as it was written.
pub struct Reader<R> {
    input: R,
    header: Header,
    line: u64,
    sum: Sha256,
    last: Option<Vec<u8>>,
    is_over: bool,
}

impl<R: BufRead> Reader<R> {
    /// Reads the head. A newer format or schema is refused.
    pub fn open(mut input: R) -> Result<Self, DumpError> {
        let text = read_line(&mut input, 1)?;
        let header = serde_json::from_slice::<Header>(&text);
        let header = header.map_err(|_| DumpError::Line(1, "this is no export of a nano store".into()))?;
        for (found, known) in [(header.nano_store, FORMAT), (header.schema, SCHEMA)] {
            if found > known {
                return Err(DumpError::Newer { found, known });
            }
        }
        Ok(Self { input, header, line: 1, sum: Sha256::new_with_prefix(text), last: None, is_over: false })
    }

    /// Returns what it says of itself.
    pub fn header(&self) -> &Header {
        &self.header
    }

    fn read(&mut self) -> Result<Option<Record>, DumpError> {
        self.line += 1;
        let text = read_line(&mut self.input, self.line)?;
        if text.first() == Some(&b'{') {
            return self.check_end(&text).map(|()| None);
        }
        let record = line::decode(&text).map_err(|why| self.bad(format!("this is no record: {why}")))?;
        if self.last.as_ref().is_some_and(|last| *last >= record.0) {
            return Err(self.bad("this record is out of order or there twice"));
        }
        self.sum.update(&text);
        self.last = Some(record.0.clone());
        Ok(Some(record))
    }

    fn check_end(&mut self, text: &[u8]) -> Result<(), DumpError> {
        let end: End = serde_json::from_slice(text).map_err(|why| self.bad(format!("this is no end: {why}")))?;
        let sum = HEXLOWER.encode(&self.sum.finalize_reset());
        if (end.count, end.sha256) != (self.line - 2, sum) {
            return Err(self.bad("the end does not match the lines before it: they were changed"));
        }
        let more = self.input.fill_buf().map_err(|why| DumpError::Io(self.line, why))?;
        if more.is_empty() { Ok(()) } else { Err(self.bad("something follows the end")) }
    }

    fn bad(&self, why: impl Into<String>) -> DumpError {
        DumpError::Line(self.line, why.into())
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = Result<Record, DumpError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let read = self.read();
        self.is_over = !matches!(read, Ok(Some(_)));
        read.transpose()
    }
}

fn read_line(input: &mut impl BufRead, number: u64) -> Result<Vec<u8>, DumpError> {
    let mut text = Vec::new();
    let read = input.take(MOST_LINE).read_until(b'\n', &mut text);
    read.map_err(|why| DumpError::Io(number, why))?;
    match text.last() {
        Some(b'\n') => Ok(text),
        _ if text.len() as u64 == MOST_LINE => Err(DumpError::Line(number, "it is too long".into())),
        _ => Err(DumpError::Line(number, "the export ends here, before its end: it was cut".into())),
    }
}
