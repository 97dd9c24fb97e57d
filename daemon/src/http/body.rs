//! A body as it comes in: decompressed, and never more of it than was asked for.

use std::io::{self, Write};

use flate2::write::{MultiGzDecoder, ZlibDecoder};

/// A body so far, and how many bytes came of it.
pub struct Body(Coding, usize);

enum Coding {
    Plain(Bounded),
    Gzip(MultiGzDecoder<Bounded>),
    Zlib(ZlibDecoder<Bounded>),
}

/// Bytes up to a limit; more is an error.
#[derive(Default)]
struct Bounded {
    bytes: Vec<u8>,
    limit: usize,
    cut: bool,
}

impl Body {
    /// Starts one in this content coding, of which `limit` bytes are kept.
    pub fn new(coding: Option<&str>, limit: usize) -> Result<Self, String> {
        let bounded = Bounded { bytes: Vec::new(), limit, cut: false };
        match coding.unwrap_or_default().trim().to_ascii_lowercase().as_str() {
            "" | "identity" => Ok(Self(Coding::Plain(bounded), 0)),
            "gzip" | "x-gzip" => Ok(Self(Coding::Gzip(MultiGzDecoder::new(bounded)), 0)),
            "deflate" => Ok(Self(Coding::Zlib(ZlibDecoder::new(bounded)), 0)),
            other => Err(format!("the reply is compressed as `{}`, which was not asked for", other.escape_debug())),
        }
    }

    /// Tells whether nothing more is kept.
    pub fn is_full(&self) -> bool {
        self.bounded().cut
    }

    /// Takes the next piece.
    pub fn push(&mut self, piece: &[u8]) -> Result<(), String> {
        self.1 += piece.len();
        let taken = match &mut self.0 {
            Coding::Plain(bounded) => bounded.write_all(piece),
            Coding::Gzip(decoder) => decoder.write_all(piece),
            Coding::Zlib(decoder) => decoder.write_all(piece),
        };
        self.judge(&taken)
    }

    /// Returns the bytes, and whether there are more.
    pub fn end(mut self) -> Result<(Vec<u8>, bool), String> {
        let ended = match &mut self.0 {
            // A reply without a body may still name its coding.
            _ if self.1 == 0 => Ok(()),
            Coding::Plain(_) => Ok(()),
            Coding::Gzip(decoder) => decoder.try_finish(),
            Coding::Zlib(decoder) => decoder.try_finish(),
        };
        self.judge(&ended)?;
        let bounded = match self.0 {
            Coding::Plain(bounded) => bounded,
            Coding::Gzip(mut decoder) => std::mem::take(decoder.get_mut()),
            Coding::Zlib(mut decoder) => std::mem::take(decoder.get_mut()),
        };
        Ok((bounded.bytes, bounded.cut))
    }

    fn bounded(&self) -> &Bounded {
        match &self.0 {
            Coding::Plain(bounded) => bounded,
            Coding::Gzip(decoder) => decoder.get_ref(),
            Coding::Zlib(decoder) => decoder.get_ref(),
        }
    }

    fn judge(&self, done: &io::Result<()>) -> Result<(), String> {
        match done {
            Err(_) if !self.bounded().cut => Err("the reply is not compressed as it says".into()),
            _ => Ok(()),
        }
    }
}

impl Write for Bounded {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        let room = self.limit - self.bytes.len();
        self.bytes.extend_from_slice(&piece[..piece.len().min(room)]);
        if piece.len() > room {
            self.cut = true;
            return Err(io::Error::other("the limit is reached"));
        }
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use std::io::Write;

    use flate2::Compression;
    use flate2::write::{GzEncoder, ZlibEncoder};

    use super::Body;

    fn read(coding: &str, bytes: &[u8], limit: usize) -> Result<(Vec<u8>, bool), String> {
        let mut body = Body::new(Some(coding), limit)?;
        for piece in bytes.chunks(7) {
            if body.is_full() {
                break;
            }
            body.push(piece)?;
        }
        body.end()
    }

    #[test]
    fn codings() {
        let text = b"abc".repeat(1000);
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        gzip.write_all(&text).unwrap();
        let gzip = gzip.finish().unwrap();
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
        zlib.write_all(&text).unwrap();
        let zlib = zlib.finish().unwrap();
        let all = || Ok((text.clone(), false));
        for (coding, bytes) in
            [("", &text), ("identity", &text), ("gzip", &gzip), (" X-Gzip", &gzip), ("deflate", &zlib)]
        {
            assert_eq!(read(coding, bytes, 3000), all(), "{coding}");
            assert_eq!(read(coding, bytes, 2999), Ok((text[..2999].to_vec(), true)), "{coding}");
            assert_eq!(read(coding, b"", 10), Ok((Vec::new(), false)), "{coding}: no body");
        }
        for (coding, bytes) in [("gzip", text.as_slice()), ("deflate", &gzip), ("br", &text), ("gzip, gzip", &gzip)] {
            assert!(read(coding, bytes, 3000).is_err(), "{coding}");
        }
        assert!(read("gzip", &gzip[..gzip.len() / 2], 3000).is_err(), "broken off");
    }

    #[test]
    fn a_bomb_takes_no_more_than_the_limit() {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
        (0..64).for_each(|_| gzip.write_all(&vec![0; 1 << 20]).unwrap());
        let (bytes, cut) = read("gzip", &gzip.finish().unwrap(), 1 << 20).unwrap();
        assert_eq!((bytes.len(), cut), (1 << 20, true));
    }
}
