//! The TEXT of a command line: an argument, `-` for stdin, or a piped stdin.

use std::io::{self, Read as _};

use nano_protocol::MAX_CONTENT;
use rustix::fs::FileType;

use crate::failure::{Failure, Kind};
use crate::output::Output;

/// Returns the text to send; one final line feed of stdin is not part of it.
pub fn resolve(given: Option<&str>, output: &Output) -> Result<String, Failure> {
    let text = match given {
        Some("-") => read(output)?,
        Some(text) => text.to_owned(),
        None if is_piped() => read(output)?,
        None => return Err(Failure::usage("no TEXT was given", "add it, or - to read stdin")),
    };
    fitting(text)
}

/// Returns the text to send where there may be none: cron gives every line a pipe as stdin, with nothing in it.
pub fn resolve_optional(given: Option<&str>, output: &Output) -> Result<Option<String>, Failure> {
    if given.is_some() {
        return resolve(given, output).map(Some);
    }
    let text = if is_piped() { read(output)? } else { String::new() };
    if text.is_empty() { Ok(None) } else { fitting(text).map(Some) }
}

fn fitting(text: String) -> Result<String, Failure> {
    if text.is_empty() {
        return Err(Failure::usage("the TEXT is empty", "say what to do, or pipe it in"));
    }
    if text.len() > MAX_CONTENT {
        let hint = "put it into a file of the workspace and name the file";
        return Err(Failure::new(Kind::Refused, "the TEXT is longer than 1 MiB", hint));
    }
    Ok(text)
}

/// Tells whether stdin is a pipe, a socket or a file: that was put there on purpose, a terminal or `/dev/null` was not.
pub fn is_piped() -> bool {
    let kind = rustix::fs::fstat(io::stdin()).map(|stat| FileType::from_raw_mode(stat.st_mode));
    matches!(kind, Ok(FileType::Fifo | FileType::Socket | FileType::RegularFile))
}

fn read(output: &Output) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    // Three bytes over the bound: one to see that it is passed, two for a final line end that is not counted.
    let bound = MAX_CONTENT as u64 + 3;
    let outcome = io::stdin().lock().take(bound).read_to_end(&mut bytes);
    outcome.map_err(|error| Failure::usage(format!("stdin cannot be read ({error})"), "pipe the TEXT in"))?;
    let text = String::from_utf8(bytes).unwrap_or_else(|error| {
        output.note("stdin is not UTF-8: what is not is replaced");
        String::from_utf8_lossy(error.as_bytes()).into_owned()
    });
    let line = text.strip_suffix('\n').unwrap_or(&text);
    Ok(line.strip_suffix('\r').unwrap_or(line).to_owned())
}
