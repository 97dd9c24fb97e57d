//! Just enough HTTP/1.1: one request a connection, which may become a WebSocket.

use std::io::{BufRead, BufReader, Error, Read, Result, Write};
use std::net::TcpStream;

use serde_json::{Value, json};
use tungstenite::WebSocket;
use tungstenite::handshake::derive_accept_key;
use tungstenite::protocol::Role;

/// A request.
#[derive(Debug, Default)]
pub struct Request {
    /// Its method.
    pub method: String,
    /// Its path.
    pub path: String,
    /// The header `authorization`.
    pub authorization: Option<String>,
    /// The header `sec-websocket-key`.
    pub key: Option<String>,
    /// Its body.
    pub body: Vec<u8>,
}

/// Reads one request.
pub fn read(stream: &TcpStream) -> Result<Request> {
    let mut reader = BufReader::new(stream);
    let mut start = String::new();
    reader.read_line(&mut start)?;
    let mut words = start.split(' ').map(str::to_owned);
    let mut request = Request { method: words.next().unwrap_or_default(), ..Request::default() };
    request.path = words.next().unwrap_or_default();
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Err(Error::other("the caller left"));
        }
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().map_err(Error::other)?,
            "authorization" => request.authorization = Some(value.trim().to_owned()),
            "sec-websocket-key" => request.key = Some(value.trim().to_owned()),
            _ => {}
        }
    }
    request.body = vec![0; length];
    reader.read_exact(&mut request.body)?;
    Ok(request)
}

/// Writes a whole answer.
pub fn reply(mut stream: &TcpStream, status: u16, header: &str, body: &str) -> Result<()> {
    let length = body.len();
    let head = format!("HTTP/1.1 {status} Stand-in\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n");
    write!(stream, "{head}{header}connection: close\r\n\r\n{body}")?;
    stream.flush()
}

/// Writes an error in the way of the server.
pub fn refuse(stream: &TcpStream, status: u16, code: &str, message: &str) -> Result<()> {
    let body: Value = json!({"error": {"message": message, "type": "StandInError", "code": code}});
    reply(stream, status, "", &body.to_string())
}

/// Turns the connection into a WebSocket, one end for each direction.
pub fn upgrade(mut stream: TcpStream, key: &str) -> Result<(WebSocket<TcpStream>, WebSocket<TcpStream>)> {
    let accept = derive_accept_key(key.as_bytes());
    let head = "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n";
    write!(stream, "{head}sec-websocket-accept: {accept}\r\n\r\n")?;
    stream.flush()?;
    let reading = WebSocket::from_raw_socket(stream.try_clone()?, Role::Server, None);
    Ok((reading, WebSocket::from_raw_socket(stream, Role::Server, None)))
}
