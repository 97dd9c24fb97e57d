//! Reading a file that the configuration is in, or names: it answers at once and ends, whatever it is.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

/// More than any that makes sense.
const MOST: u64 = 16 * 1024 * 1024;

/// Reads a file whole. A pipe, which might never end, is refused, and so is what is too large.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_fifo() {
        return Err(io::Error::other("it is a pipe, not a file"));
    }
    let mut bytes = Vec::new();
    file.take(MOST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST { Err(io::Error::other(format!("it has more than {MOST} bytes"))) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use std::fs;
    use std::path::Path;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::{MOST, read};

    #[test]
    fn what_never_ends_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        mknodat(CWD, at("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        fs::write(at("file"), "x").unwrap();
        fs::File::create(at("large")).unwrap().set_len(MOST + 1).unwrap();
        std::os::unix::fs::symlink(at("file"), at("link")).unwrap();
        for (path, expected) in [
            (at("file"), Ok("x")),
            (at("link"), Ok("x")),
            (Path::new("/dev/null").to_owned(), Ok("")),
            (at("pipe"), Err("it is a pipe, not a file")),
            (at("large"), Err("it has more than 16777216 bytes")),
            (Path::new("/dev/zero").to_owned(), Err("it has more than 16777216 bytes")),
        ] {
            let found = read(&path).map_err(|why| why.to_string());
            let expected = expected.map(|text| text.as_bytes().to_vec()).map_err(str::to_owned);
            assert_eq!(found, expected, "{}", path.display());
        }
    }
}
