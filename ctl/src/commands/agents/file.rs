//! A text that stands in a file, or on stdin where that is named `-`.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::failure::{Failure, Kind};

/// Reads a text of at most `most` bytes.
pub fn read(path: &Path, most: usize) -> Result<String, Failure> {
    let shown = path.display();
    let unreadable = |error: io::Error| {
        Failure::usage(format!("{shown} cannot be read ({error})"), "name a file that can, or - for stdin")
    };
    let source: Box<dyn Read> =
        if path == Path::new("-") { Box::new(io::stdin()) } else { Box::new(File::open(path).map_err(unreadable)?) };
    let mut bytes = Vec::new();
    source.take(most as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() > most {
        return Err(Failure::new(Kind::Refused, format!("{shown} is longer than {most} bytes"), "give less at once"));
    }
    let text = String::from_utf8(bytes);
    let text = text.map_err(|_| Failure::new(Kind::Refused, format!("{shown} is not UTF-8"), "convert it first"))?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned())
}
