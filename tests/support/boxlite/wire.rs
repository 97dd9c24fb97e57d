//! What goes back over the wire, which may become a WebSocket.

use std::io::{Result, Write};
use std::net::TcpStream;

use serde_json::json;
use tungstenite::WebSocket;
use tungstenite::handshake::derive_accept_key;
use tungstenite::protocol::Role;

use crate::http;

/// Writes a whole answer; `to` is where else to ask.
pub fn reply(mut stream: &TcpStream, status: u16, to: Option<&str>, body: &str) -> Result<()> {
    let usual = [("content-type", "application/json".to_owned()), ("content-length", body.len().to_string())];
    let headers = usual.into_iter().chain(to.map(|to| ("location", to.to_owned())));
    let headers: Vec<_> = headers.map(|(name, value)| (name.to_owned(), value)).collect();
    http::head(&mut stream, status, &headers)?;
    stream.write_all(body.as_bytes())?;
    stream.flush()
}

/// Writes an error in the way of the server.
pub fn refuse(stream: &TcpStream, status: u16, code: &str, message: &str) -> Result<()> {
    let body = json!({"error": {"message": message, "type": "StandInError", "code": code}});
    reply(stream, status, None, &body.to_string())
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
