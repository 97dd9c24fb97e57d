//! Whole small files: how the parts of a checkpoint lie in their folder.

use std::io;

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use super::super::disk::Folder;

/// Reads a file from its beginning to its end.
pub fn read(folder: &dyn Folder, name: &str) -> io::Result<Vec<u8>> {
    let file = folder.open(name)?;
    let length = usize::try_from(file.len()?).map_err(io::Error::other)?;
    let mut bytes = vec![0; length];
    let mut filled = 0;
    while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, filled as u64)? {
            0 => break,
            more => filled += more,
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

/// Writes a file durably; its name is durable once the folder is synced.
pub fn write(folder: &dyn Folder, name: &str, bytes: &[u8]) -> io::Result<()> {
    let file = folder.create(name)?;
    file.write_at(bytes, 0)?;
    file.sync()
}

/// Returns the SHA-256 of `bytes` in hex.
pub fn sha256(bytes: &[u8]) -> String {
    HEXLOWER.encode(&Sha256::digest(bytes))
}
