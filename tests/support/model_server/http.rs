//! Just enough HTTP/1.1: one request a connection.

use std::io::{BufRead, BufReader, Error, Read, Result, Write};

/// A request as far as a model server cares.
pub struct Request {
    /// Whether it only asks what there is.
    pub is_get: bool,
    /// Its body.
    pub body: Vec<u8>,
}

/// Reads one request.
pub fn read(stream: impl Read) -> Result<Request> {
    let mut reader = BufReader::new(stream);
    let mut start = String::new();
    reader.read_line(&mut start)?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Err(Error::other("the caller left"));
        }
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().map_err(Error::other)?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Request { is_get: start.starts_with("GET "), body })
}

/// Writes a whole JSON answer.
pub fn reply(stream: &mut impl Write, status: u16, retry_after: Option<u64>, body: &str) -> Result<()> {
    let wait = retry_after.map(|seconds| format!("retry-after: {seconds}\r\n")).unwrap_or_default();
    let length = body.len();
    let head = format!("HTTP/1.1 {status} Scripted\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n");
    write!(stream, "{head}{wait}connection: close\r\n\r\n{body}")?;
    stream.flush()
}

/// Begins a stream of events, which ends with the connection.
pub fn begin_events(stream: &mut impl Write) -> Result<()> {
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")?;
    stream.flush()
}

/// Writes one event of a stream.
pub fn event(stream: &mut impl Write, data: &str) -> Result<()> {
    write!(stream, "data: {data}\n\n")?;
    stream.flush()
}
