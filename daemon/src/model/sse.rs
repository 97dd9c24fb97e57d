//! Server-sent events: bytes in any pieces to the data of events.
//!
//! Pure and linear. Only `data` matters to the callers; events whose data is blank are keep-alives and are dropped.

/// The longest line, and the longest data of one event, in bytes.
pub const MAX_EVENT: usize = 16 * 1024 * 1024;

/// An event or a line beyond [`MAX_EVENT`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event is longer than {MAX_EVENT} bytes")]
pub struct TooLong;

/// The state between two reads.
#[derive(Debug, Default)]
pub struct Parser {
    line: Vec<u8>,
    /// Of the open event; `None` until it got a data line.
    data: Option<String>,
    /// The last byte was a CR: an LF that follows belongs to it.
    after_cr: bool,
    past_first_line: bool,
}

impl Parser {
    /// Takes bytes as they were read and returns the data of the events that they complete.
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<Vec<String>, TooLong> {
        let mut events = Vec::new();
        if self.after_cr && !bytes.is_empty() {
            self.after_cr = false;
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        while let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\r' | b'\n')) {
            let (line, rest) = bytes.split_at(end);
            self.extend(line)?;
            events.extend(self.end_line()?);
            bytes = match rest {
                [b'\r', b'\n', after @ ..] | [_, after @ ..] => after,
                [] => rest,
            };
            self.after_cr = rest == b"\r";
        }
        self.extend(bytes)?;
        Ok(events)
    }

    /// Returns the data of an event that the end of the stream left open.
    pub fn finish(mut self) -> Option<String> {
        self.end_line().ok()?.or_else(|| self.dispatch())
    }

    fn extend(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        self.line.extend_from_slice(bytes);
        if self.line.len() > MAX_EVENT { Err(TooLong) } else { Ok(()) }
    }

    fn end_line(&mut self) -> Result<Option<String>, TooLong> {
        let line = std::mem::take(&mut self.line);
        let start = if std::mem::replace(&mut self.past_first_line, true) { &b""[..] } else { b"\xEF\xBB\xBF" };
        let line = line.strip_prefix(start).unwrap_or(&line);
        if line.is_empty() {
            return Ok(self.dispatch());
        }
        if let Some(value) = data_of(line) {
            self.add(&String::from_utf8_lossy(value))?;
        }
        Ok(None)
    }

    fn add(&mut self, value: &str) -> Result<(), TooLong> {
        let data = match &mut self.data {
            Some(data) => {
                data.push('\n');
                data
            }
            none => none.insert(String::new()),
        };
        data.push_str(value);
        if data.len() > MAX_EVENT { Err(TooLong) } else { Ok(()) }
    }

    fn dispatch(&mut self) -> Option<String> {
        self.data.take().filter(|data| !data.trim().is_empty())
    }
}

/// Returns the value of a data line; comments and other fields have none. Older llama.cpp reports in a field `error`.
fn data_of(line: &[u8]) -> Option<&[u8]> {
    match line.strip_prefix(b"data").or_else(|| line.strip_prefix(b"error"))? {
        [b':', b' ', value @ ..] | [b':', value @ ..] => Some(value),
        [] => Some(b""),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
