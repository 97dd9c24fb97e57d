//! Just enough HTTP/1.1 for the servers of the tests: one request a connection.

use std::borrow::Cow;
use std::io::{BufRead, BufReader, Error, Read, Result, Write};

use serde_json::Value;

/// A request as it came over the wire.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Its method, in capitals.
    pub method: String,
    /// Its path, percent-encoded as it came, without the query.
    pub path: String,
    /// What follows the question mark, encoded as it came.
    pub query: String,
    /// Its headers in their order, names in lower case.
    pub headers: Vec<(String, String)>,
    /// Its body.
    pub body: Vec<u8>,
}

impl Request {
    /// Returns the first header called `name`, which is in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
    }

    /// Returns the body as text.
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.body)
    }

    /// Returns the body as JSON, null where it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// Reads one request.
pub fn read(stream: impl Read) -> Result<Request> {
    let mut reader = BufReader::new(stream);
    let start = line(&mut reader)?;
    let mut words = start.split(' ').map(str::to_owned);
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let mut request = Request { method, path: path.to_owned(), query: query.to_owned(), ..Request::default() };
    while let Some((name, value)) = line(&mut reader)?.split_once(':') {
        request.headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    request.body = match (request.header("transfer-encoding"), request.header("content-length")) {
        (Some(_), _) => chunks(&mut reader)?,
        (None, length) => exactly(&mut reader, length.unwrap_or("0").parse().map_err(Error::other)?)?,
    };
    Ok(request)
}

fn line(reader: &mut impl BufRead) -> Result<String> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Err(Error::other("the caller left"));
    }
    line.truncate(line.trim_end().len());
    Ok(line)
}

fn exactly(reader: &mut impl Read, length: usize) -> Result<Vec<u8>> {
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(body)
}

fn chunks(reader: &mut impl BufRead) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let size = line(reader)?;
        let size = usize::from_str_radix(size.split(';').next().unwrap_or_default(), 16).map_err(Error::other)?;
        body.append(&mut exactly(reader, size)?);
        line(reader)?;
        if size == 0 {
            return Ok(body);
        }
    }
}

/// Writes the head of an answer after which the connection ends.
pub fn head(stream: &mut impl Write, status: u16, headers: &[(String, String)]) -> Result<()> {
    write!(stream, "HTTP/1.1 {status} Scripted\r\n")?;
    for (name, value) in headers {
        write!(stream, "{name}: {value}\r\n")?;
    }
    stream.write_all(b"connection: close\r\n\r\n")
}

/// Writes a whole JSON answer.
pub fn reply(stream: &mut impl Write, status: u16, retry_after: Option<u64>, body: &str) -> Result<()> {
    let wait = retry_after.map(|seconds| ("retry-after", seconds.to_string()));
    let usual = [("content-type", "application/json".to_owned()), ("content-length", body.len().to_string())];
    let headers: Vec<_> = usual.into_iter().chain(wait).map(|(name, value)| (name.to_owned(), value)).collect();
    head(stream, status, &headers)?;
    stream.write_all(body.as_bytes())?;
    stream.flush()
}

/// Begins a stream of events, which ends with the connection.
pub fn begin_events(stream: &mut impl Write) -> Result<()> {
    head(stream, 200, &[("content-type".to_owned(), "text/event-stream".to_owned())])?;
    stream.flush()
}

/// Writes one event of a stream.
pub fn event(stream: &mut impl Write, data: &str) -> Result<()> {
    write!(stream, "data: {data}\n\n")?;
    stream.flush()
}
