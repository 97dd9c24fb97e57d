//! Files in memory for what is too long for an argument.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;

use rustix::fs::{MemfdFlags, memfd_create};

use super::Job;
use crate::sandbox::Language;

/// One argument of a program may have 128 KiB; a longer text goes by a file in memory.
const ARGUMENT_MAX: usize = 100_000;

/// Returns what follows `-c`: the text, or a short program that reads it from the file that must stay open.
pub fn argument(job: &Job) -> io::Result<(String, Option<File>)> {
    if job.text.len() <= ARGUMENT_MAX {
        return Ok((job.text.clone(), None));
    }
    let (file, path) = handed_on(job.text.as_bytes())?;
    let text = match job.language {
        Language::Shell => format!(". {path}"),
        Language::Python => format!("exec(compile(open('{path}', 'rb').read(), '<string>', 'exec'))"),
    };
    Ok((text, Some(file)))
}

/// Puts bytes in a file in memory that whatever is started while it is open inherits; returns its path there, too.
pub fn handed_on(bytes: &[u8]) -> io::Result<(File, String)> {
    let mut file = File::from(memfd_create("text", MemfdFlags::empty())?);
    file.write_all(bytes)?;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok((file, path))
}
