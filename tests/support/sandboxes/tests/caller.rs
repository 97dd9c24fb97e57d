//! A caller of the fakes: one request a connection, and nothing hidden.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::Value;

/// Who asks: where, with which headers.
#[derive(Clone)]
pub struct Caller {
    address: String,
    headers: Vec<(String, String)>,
}

/// An answer; what came of it where the connection broke.
#[derive(Debug, Clone)]
pub struct Heard {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
    /// Whether the connection was reset.
    pub broken: bool,
}

impl Caller {
    pub fn new(url: &str, key: &str) -> Self {
        let address = url.trim_start_matches("http://").to_owned();
        Self { address, headers: Vec::new() }.with("Authorization", &format!("Bearer {key}"))
    }

    pub fn with(&self, name: &str, value: &str) -> Self {
        let mut new = self.clone();
        new.headers.retain(|(own, _)| own != name);
        new.headers.push((name.to_owned(), value.to_owned()));
        new
    }

    pub fn without(&self, name: &str) -> Self {
        let mut new = self.clone();
        new.headers.retain(|(own, _)| own != name);
        new
    }

    /// Sends a request and leaves the answer to be read.
    pub fn send(&self, method: &str, path: &str, body: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).expect("a live fake");
        let headers = self.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect::<Vec<_>>();
        let (headers, length) = (headers.concat(), body.len());
        let head = format!("{method} {path} HTTP/1.1\r\n{headers}Content-Length: {length}\r\n\r\n");
        stream.write_all(&[head.as_bytes(), body].concat()).expect("a request sent");
        stream
    }

    pub fn ask(&self, method: &str, path: &str, body: &[u8]) -> Heard {
        hear(self.send(method, path, body))
    }

    pub fn post(&self, path: &str, body: &Value) -> Heard {
        self.ask("POST", path, body.to_string().as_bytes())
    }

    pub fn get(&self, path: &str) -> Heard {
        self.ask("GET", path, b"")
    }

    pub fn upload(&self, path: &str, fields: &[(&str, &[u8])]) -> Heard {
        let mut body = Vec::new();
        for (name, bytes) in fields {
            let head = format!("--b0\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"f\"\r\n\r\n");
            body.extend([head.as_bytes(), bytes, b"\r\n"].concat());
        }
        body.extend(b"--b0--\r\n");
        self.with("Content-Type", "multipart/form-data; boundary=b0").ask("POST", path, &body)
    }
}

/// Reads an answer to its end.
pub fn hear(mut stream: TcpStream) -> Heard {
    let mut bytes = Vec::new();
    let broken = stream.read_to_end(&mut bytes).is_err();
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(bytes.len());
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or_default();
    Heard { status, head, body: bytes.get(end + 4..).unwrap_or_default().to_vec(), broken }
}

impl Heard {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// Checks the status and returns the body.
    #[track_caller]
    pub fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}: {}", self.head, String::from_utf8_lossy(&self.body));
        self.json()
    }

    /// Checks an error of Bay and returns its details.
    #[track_caller]
    pub fn expect_error(&self, status: u16, code: &str) -> Value {
        let body = self.expect(status);
        assert_eq!(body["error"]["code"], code, "{body}");
        body["error"]["details"].clone()
    }
}
