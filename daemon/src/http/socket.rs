//! A WebSocket, opened by the one client: its rules on redirects, proxies, TLS and keys hold here too.

use std::time::Duration;

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use reqwest::{Upgraded, header};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use super::call::{Call, Reply};
use super::{HttpError, Response};

/// The longest message that is taken.
const MOST: usize = 16 << 20;
/// The longest body of a refusal that is read.
const REFUSAL: usize = 64 << 10;
/// How long reading a refusal may take.
const REFUSAL_WITHIN: Duration = Duration::from_secs(5);

/// What a server said to the wish for a WebSocket.
#[derive(Debug)]
pub enum Opened {
    /// Yes.
    Socket(Box<Socket>),
    /// No, and why.
    Refused(Reply),
}

/// An open WebSocket; its two directions can be used at the same time.
#[derive(Debug)]
pub struct Socket {
    /// What goes out.
    pub sending: Sending,
    /// What comes in.
    pub receiving: Receiving,
}

/// The direction to the server.
#[derive(Debug)]
pub struct Sending(SplitSink<WebSocketStream<Upgraded>, Message>);

/// The direction from the server.
#[derive(Debug)]
pub struct Receiving(SplitStream<WebSocketStream<Upgraded>>);

/// What a server sent.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame {
    /// Bytes.
    Binary(Vec<u8>),
    /// A text.
    Text(String),
}

/// Opens a WebSocket; `call` names its address as http or https and carries nothing.
pub async fn open(mut call: Call) -> Result<Opened, HttpError> {
    let key = generate_key();
    let wishes = [
        ("connection", "Upgrade".into()),
        ("upgrade", "websocket".into()),
        ("sec-websocket-version", "13".into()),
        ("sec-websocket-key", key.clone()),
    ];
    call.headers.extend(wishes);
    let within = call.within;
    let mut response = call.begin().await?;
    if response.status() != 101 {
        let body = response.start(REFUSAL, REFUSAL_WITHIN).await;
        return Ok(Opened::Refused(Reply { status: response.status(), body }));
    }
    if response.header(header::SEC_WEBSOCKET_ACCEPT.as_str()) != Some(&derive_accept_key(key.as_bytes())) {
        return Err(broken("the server does not speak WebSocket".into()));
    }
    timeout(within, shake(response)).await.unwrap_or_else(|_| Err(broken("the connection did not open in time".into())))
}

async fn shake(response: Response) -> Result<Opened, HttpError> {
    let connection = response.0.upgrade().await.map_err(|error| super::explain(&error))?;
    let limits = WebSocketConfig::default().max_message_size(Some(MOST)).max_frame_size(Some(MOST));
    let stream = WebSocketStream::from_raw_socket(connection, Role::Client, Some(limits)).await;
    let (sending, receiving) = stream.split();
    Ok(Opened::Socket(Box::new(Socket { sending: Sending(sending), receiving: Receiving(receiving) })))
}

impl Sending {
    /// Sends bytes.
    pub async fn binary(&mut self, bytes: Vec<u8>) -> Result<(), HttpError> {
        self.send(Message::Binary(bytes.into())).await
    }

    /// Sends a text.
    pub async fn text(&mut self, text: String) -> Result<(), HttpError> {
        self.send(Message::Text(text.into())).await
    }

    async fn send(&mut self, message: Message) -> Result<(), HttpError> {
        self.0.send(message).await.map_err(|error| broken(error.to_string()))
    }
}

impl Receiving {
    /// Waits for what the server sends next, `None` once it closed in an orderly way. Loses nothing when dropped.
    pub async fn next(&mut self) -> Result<Option<Frame>, HttpError> {
        loop {
            match self.0.next().await {
                None | Some(Ok(Message::Close(_))) => return Ok(None),
                Some(Ok(Message::Binary(bytes))) => return Ok(Some(Frame::Binary(bytes.into()))),
                Some(Ok(Message::Text(text))) => return Ok(Some(Frame::Text(text.as_str().to_owned()))),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(broken(error.to_string())),
            }
        }
    }
}

fn broken(message: String) -> HttpError {
    HttpError { message, transient: true, sent: true }
}
